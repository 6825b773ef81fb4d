"""Arrays of JAX and Torch: fits and answers, also where scikit-learn dispatches by their own functions."""

import jax
import jax.numpy as jnp
import numpy as np
import sklearn
import torch
from sklearn.base import clone

import empirisk as er
from clients._rows import T, X, Y

jax.config.update("jax_enable_x64", True)
CODES = (Y == "yes").astype(int)
MACHINES = [
    (er.Ridge(), T),
    (er.LogisticRegression(), CODES),
    (er.SVM(features="gaussian"), CODES),
    (er.KNNClassifier(), CODES),
    (er.TreeClassifier(), CODES),
    (er.ForestRegressor(5, random_state=0), T),
    (er.BoostingClassifier(n_estimators=5), CODES),
    (er.AdditiveRegressor(max_iter=10, random_state=0), T),
    (er.BaggingClassifier(er.TreeClassifier(), 3, random_state=0), CODES),
    (er.AdaBoostClassifier(n_estimators=3), CODES),
    (er.NearestCentroid(), CODES),
    (er.VoteClassifier(), CODES),
    (er.KMeans(3, random_state=0), None),
    (er.GaussianMixture(2, random_state=0), None),
    (er.PCA(2), None),
    (er.OneClassSVM(), None),
]


def answers(machine, rows, target):
    """What a fitted machine says of its rows, as NumPy's array."""
    found = clone(machine).fit(rows) if target is None else clone(machine).fit(rows, target)
    return np.asarray(found.predict(rows) if hasattr(found, "predict") else found.transform(rows))


for convert in (jnp.asarray, torch.asarray):
    for dispatch in (False, True):
        with sklearn.config_context(array_api_dispatch=dispatch):
            for machine, target in MACHINES:
                found = answers(machine, convert(X), None if target is None else convert(target))
                np.testing.assert_allclose(found, answers(machine, X, target), rtol=1e-10, atol=1e-10)
print(f"{len(MACHINES)} machines on arrays of JAX and Torch, with and without dispatch")
