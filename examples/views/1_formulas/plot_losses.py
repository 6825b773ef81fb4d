"""
Losses
======

Losses against the margin, by name or as objects.
"""

import empirisk as er

er.plots.losses(["hinge", "logistic", er.losses.SoftHinge(temperature=0.3)])

# %%
# Losses of numbers are drawn against the residual.

er.plots.losses(["squared", "absolute", "epsilon_insensitive"])
