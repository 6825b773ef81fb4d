"""
Filters and feature maps
========================

What the units of a convolution look for.
"""

import numpy as np

import empirisk as er

images = er.Network.convolutional((4,), dense=(8,), shape=(8, 8, 1), random_state=0).fit(np.zeros((2, 64)))
er.plots.filters(images)

# %%
# Their answers to one image.

er.plots.feature_maps(images, np.eye(8).ravel())
