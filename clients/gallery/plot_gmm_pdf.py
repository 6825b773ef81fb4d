"""The density of a mixture of two Gaussians."""

import numpy as np
from sklearn.mixture import GaussianMixture

random = np.random.RandomState(0)
shifted = random.randn(300, 2) + np.array([20, 20])
stretched = np.dot(random.randn(300, 2), np.array([[0.0, -0.7], [3.5, 0.7]]))
mixture = GaussianMixture(n_components=2, covariance_type="full")
mixture.fit(np.vstack([shifted, stretched]))
grid = np.array([[20.0, 20.0], [0.0, 0.0], [-20.0, 30.0]])
result = {"near": (-mixture.score_samples(grid)).argsort().tolist()}
