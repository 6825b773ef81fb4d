"""scikit-learn's partial dependence: by brute force on any machine, by recursion on trees and forests of numbers."""

import numpy as np
from sklearn.inspection import partial_dependence
from sklearn.tree import DecisionTreeRegressor

import empirisk as er
from clients._rows import T, X, Y
from empirisk.exports.scikit_learn_trees import scikit_learn_trees

theirs = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, T)
ours = scikit_learn_trees(er.TreeRegressor(max_depth=3).fit(X, T), X)
wanted, found = (partial_dependence(tree, X, [0], method="recursion").average for tree in (theirs, ours))
np.testing.assert_allclose(found, wanted, atol=1e-6)
forest = er.ForestRegressor(20, random_state=0).fit(X, T)
grown = scikit_learn_trees(forest, X)
np.testing.assert_allclose(grown.predict(X), forest.predict(X), atol=1e-6)
assert partial_dependence(grown, X, [1], method="recursion").average.shape[0] == 1
for machine in (er.LogisticRegression().fit(X, Y), er.BoostingClassifier(n_estimators=5).fit(X, Y), forest):
    assert np.isfinite(partial_dependence(machine, X, [0, 1], method="brute", grid_resolution=5).average).all()
print("recursion on a tree and a forest, brute force on three machines")
