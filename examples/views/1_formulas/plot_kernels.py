"""
Kernels by distance
===================

What a kernel makes of the distance of two rows.
"""

import empirisk as er

er.plots.kernels([er.kernels.Gaussian(1.0), er.kernels.Gaussian(0.3), er.kernels.Laplacian(1.0)])

# %%
# Kernels that depend on the place as well are drawn for one place; sums and products of kernels too.

er.plots.kernels([er.kernels.Polynomial(2), er.kernels.Polynomial(2) * er.kernels.Gaussian(1.0)], at=0.5, reach=2.0)
