r"""
How lessons look
================

.. math:: R(w) + C \sum_i c_i \ell(y_i, \langle w, \varphi(x_i) \rangle + b)
"""

import numpy as np

import empirisk as er

er.plots.losses(["hinge", "logistic"])

# %%
# .. admonition:: Exercise 4.2
#
#    What is the value at 0?
#
# .. solution::
#
# It is 1.

assert er.losses.Hinge().value(np.array([1.0]), np.array([0.0])) == 1.0
er.plots.losses(["hinge"])

# %%
# .. end-solution::
#
# The text goes on.

er.LogisticRegression().fit([[0.0], [1.0]], [0, 1]).certificate_
