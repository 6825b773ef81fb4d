"""
Filters and feature maps
========================

What the units of a convolution look for.
"""

from sklearn.datasets import load_digits

import empirisk as er

images, digit = load_digits(return_X_y=True)
images = images / 16
network = er.Network.convolutional((4,), dense=(8,), shape=(8, 8, 1), epochs=20, n_init=1, random_state=0)
machine = er.LogisticRegression(features=network).fit(images[:300], digit[:300])
er.plots.filters(machine.features_)

# %%
# Their answers to one image.

er.plots.feature_maps(machine.features_, images[3])
