"""Trees: growth and its limits, weights, missing values, pruning, several outputs."""

import numpy as np
from scipy import sparse
from sklearn import tree as theirs
from sklearn.base import clone

import empirisk as er
from tests.parity.cases import (
    DIABETES_X,
    DIABETES_Y,
    IRIS_X,
    IRIS_Y,
    TOY_NEW,
    TOY_TRUTH,
    TOY_X,
    TOY_Y,
    TWO_X,
    TWO_Y,
    behaviour,
    near,
    refuses,
)

ROWS = np.random.default_rng(5).normal(size=(200, 4))
NUMBERS = ROWS[:, 0] * 2 + np.abs(ROWS[:, 1]) + 0.1 * ROWS[:, 3]
CLASSES = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int) + (ROWS[:, 2] > 1)


def grown(**limits):
    """The same tree by us and by scikit-learn, for numbers."""
    ours = er.TreeRegressor(**limits).fit(ROWS, NUMBERS)
    return ours, theirs.DecisionTreeRegressor(random_state=0, **limits).fit(ROWS, NUMBERS)


@behaviour(["gini", "entropy", "log_loss"])
def criteria_of_classes(criterion):
    """Trees of classes have scikit-learn's size, depth and training answers for every criterion."""
    ours = er.TreeClassifier(criterion, max_depth=4).fit(ROWS, CLASSES)
    other = theirs.DecisionTreeClassifier(criterion=criterion, max_depth=4, random_state=0).fit(ROWS, CLASSES)
    assert (ours.get_n_leaves(), ours.get_depth()) == (other.get_n_leaves(), other.get_depth())
    near(ours.predict_proba(ROWS), other.predict_proba(ROWS))


@behaviour(["squared_error", "absolute_error"])
def criteria_of_numbers(criterion):
    """Trees of numbers predict what scikit-learn's predict for both criteria."""
    ours = er.TreeRegressor(criterion, max_depth=3).fit(ROWS, NUMBERS)
    other = theirs.DecisionTreeRegressor(criterion=criterion, max_depth=3, random_state=0).fit(ROWS, NUMBERS)
    near(ours.predict(ROWS), other.predict(ROWS))


@behaviour([{"max_depth": d} for d in (1, 2, 5)] + [{"max_leaf_nodes": n} for n in (2, 7, 30)])
def limits_of_size(limits):
    """max_depth and max_leaf_nodes make scikit-learn's tree."""
    ours, other = grown(**limits)
    assert (ours.get_n_leaves(), ours.get_depth()) == (other.get_n_leaves(), other.get_depth())
    near(ours.predict(ROWS), other.predict(ROWS))


@behaviour([2, 3, 10, 50, 0.01, 0.3, 0.9])
def min_samples_split(least):
    """min_samples_split, as a number or a share of the rows, makes scikit-learn's tree."""
    ours, other = grown(min_samples_split=least)
    assert ours.get_n_leaves() == other.get_n_leaves()
    near(ours.predict(ROWS), other.predict(ROWS))


@behaviour([1, 5, 20, 0.02, 0.2, 0.49])
def min_samples_leaf(least):
    """min_samples_leaf, as a number or a share of the rows, makes scikit-learn's tree."""
    ours, other = grown(min_samples_leaf=least)
    near(ours.predict(ROWS), other.predict(ROWS))
    assert np.bincount(ours.apply(ROWS)).max() >= (least if least >= 1 else least * 200)


@behaviour([0.01, 0.1, 0.4])
def min_weight_fraction_leaf(part):
    """min_weight_fraction_leaf makes scikit-learn's tree."""
    ours, other = grown(min_weight_fraction_leaf=part)
    near(ours.predict(ROWS), other.predict(ROWS))


@behaviour([0.001, 0.05, 0.5])
def min_impurity_decrease(least):
    """min_impurity_decrease makes scikit-learn's tree."""
    ours, other = grown(min_impurity_decrease=least)
    assert ours.get_n_leaves() == other.get_n_leaves()


@behaviour([0.001, 0.01, 0.1])
def cost_complexity_pruning(alpha):
    """ccp_alpha leaves scikit-learn's subtree."""
    ours, other = grown(ccp_alpha=alpha)
    assert ours.get_n_leaves() == other.get_n_leaves()
    near(ours.predict(ROWS), other.predict(ROWS))


@behaviour([er.TreeRegressor(max_depth=4), er.TreeClassifier(max_depth=4)])
def pruning_path(machine):
    """cost_complexity_pruning_path gives scikit-learn's prices and impurities, rising."""
    kind = theirs.DecisionTreeRegressor if isinstance(machine, er.TreeRegressor) else theirs.DecisionTreeClassifier
    y = NUMBERS if isinstance(machine, er.TreeRegressor) else CLASSES
    ours = machine.cost_complexity_pruning_path(ROWS, y)
    other = kind(max_depth=4, random_state=0).cost_complexity_pruning_path(ROWS, y)
    near(ours.ccp_alphas, other.ccp_alphas)
    near(ours.impurities, other.impurities)
    assert (np.diff(ours.ccp_alphas) >= 0).all()


@behaviour([er.TreeClassifier(), er.TreeClassifier(max_leaf_nodes=5), er.ForestClassifier(10, random_state=0)])
def the_toy_is_learned(machine):
    """Six points are learned, with any weights that are equal."""
    assert np.array_equal(clone(machine).fit(TOY_X, TOY_Y).predict(TOY_NEW), TOY_TRUTH)
    weighted = clone(machine).fit(TOY_X, TOY_Y, sample_weight=np.full(6, 0.5))
    assert np.array_equal(weighted.predict(TOY_NEW), TOY_TRUTH)


@behaviour([er.TreeClassifier(), er.ForestClassifier(10, random_state=0)])
def a_chessboard_is_learned(machine):
    """Exclusive or on a grid is learned without an error."""
    grid = np.indices((6, 6)).reshape(2, -1).T
    y = ((grid[:, 0] < 3) ^ (grid[:, 1] < 3)).astype(int)
    assert clone(machine).set_params(max_features=None).fit(grid, y).score(grid, y) == 1.0


@behaviour(["gini", "entropy"])
def iris_is_learned(criterion):
    """A full tree learns iris by heart; two columns a split do nearly."""
    assert er.TreeClassifier(criterion).fit(IRIS_X, IRIS_Y).score(IRIS_X, IRIS_Y) == 1.0
    few = er.TreeClassifier(criterion, max_features=2, random_state=0)
    assert few.fit(IRIS_X, IRIS_Y).score(IRIS_X, IRIS_Y) > 0.5


@behaviour(["squared", "absolute"])
def diabetes_is_learned_by_heart(criterion):
    """A full tree of numbers has no training error, a small one less than the mean."""
    whole = er.TreeRegressor(criterion).fit(DIABETES_X, DIABETES_Y)
    near(whole.predict(DIABETES_X), DIABETES_Y)
    assert 0 < er.TreeRegressor(criterion, max_depth=3).fit(DIABETES_X, DIABETES_Y).score(DIABETES_X, DIABETES_Y) < 1


@behaviour(["sqrt", "log2", 2, 0.5, None])
def max_features_values(value):
    """max_features as a word, a number, a share and None."""
    for machine in (er.TreeClassifier(max_features=value), er.ForestClassifier(3, max_features=value)):
        assert machine.set_params(random_state=0).fit(IRIS_X, IRIS_Y).score(IRIS_X, IRIS_Y) > 0.8


@behaviour([{"max_features": 0}, {"max_features": 1.5}, {"max_depth": -1}, {"min_samples_leaf": -1},
            {"min_weight_fraction_leaf": 0.6}, {"max_leaf_nodes": 0}, {"criterion": "foo"}])  # fmt: skip
def bad_limits_are_refused(limits):
    """Limits outside of their range are refused at fit, by name."""
    refuses(lambda: er.TreeClassifier(**limits).fit(IRIS_X, IRIS_Y), next(iter(limits)))


@behaviour([np.zeros((5, 3)), np.ones((5, 1))])
def constant_columns_make_no_split(X):
    """Columns that are the same on all rows leave a single leaf."""
    found = er.TreeClassifier().fit(X, [0, 1, 0, 1, 1])
    assert (found.get_n_leaves(), found.get_depth()) == (1, 0)
    near(found.predict_proba(X)[0], [0.4, 0.6])


@behaviour([1, 3])
def pure_nodes_make_no_split(label):
    """Rows of one class, or one number, leave a single leaf."""
    assert er.TreeRegressor().fit(TOY_X, np.full(6, float(label))).get_n_leaves() == 1
    assert er.TreeClassifier().fit(TOY_X, np.full(6, label)).get_n_leaves() == 1


@behaviour([er.TreeRegressor(), er.TreeRegressor(max_leaf_nodes=8)])
def weights_are_rows(machine):
    """Whole sample weights equal repeated rows, weight 0 leaves a row out."""
    counts = np.arange(200) % 3
    near(clone(machine).fit(ROWS, NUMBERS, sample_weight=counts).predict(ROWS),
         clone(machine).fit(np.repeat(ROWS, counts, 0), np.repeat(NUMBERS, counts)).predict(ROWS))  # fmt: skip


@behaviour([{0: 1, 1: 20, 2: 1}, "balanced"])
def class_weights_are_sample_weights(class_weight):
    """class_weight of a tree multiplies the weights of its rows, as in scikit-learn."""
    ours = er.TreeClassifier(max_depth=3, class_weight=class_weight).fit(ROWS, CLASSES)
    other = theirs.DecisionTreeClassifier(max_depth=3, class_weight=class_weight, random_state=0).fit(ROWS, CLASSES)
    near(ours.predict_proba(ROWS), other.predict_proba(ROWS))


@behaviour([er.TreeRegressor(max_depth=3), er.TreeClassifier(max_depth=3)])
def importances(machine):
    """feature_importances_ sum to one and are scikit-learn's."""
    regression = isinstance(machine, er.TreeRegressor)
    kind = theirs.DecisionTreeRegressor if regression else theirs.DecisionTreeClassifier
    y = NUMBERS if regression else CLASSES
    found = clone(machine).fit(ROWS, y).feature_importances_
    near(found.sum(), 1.0)
    near(found, kind(max_depth=3, random_state=0).fit(ROWS, y).feature_importances_)


@behaviour([er.TreeRegressor(max_depth=4), er.TreeClassifier(max_depth=4)])
def leaves_and_paths(machine):
    """apply gives a leaf of every row, and decision_path the way to it, root first."""
    y = NUMBERS if isinstance(machine, er.TreeRegressor) else CLASSES
    found = clone(machine).fit(ROWS, y)
    leaves, paths = found.apply(ROWS), found.decision_path(ROWS)
    assert len(np.unique(leaves)) == found.get_n_leaves()
    assert (paths.toarray()[np.arange(200), leaves] == 1).all()
    assert (paths.toarray()[:, 0] == 1).all()
    assert paths.sum(axis=1).max() == found.get_depth() + 1


@behaviour([er.TreeClassifier(), er.TreeRegressor()])
def sparse_rows(machine):
    """Sparse rows grow the tree of dense ones."""
    X = np.where(np.abs(TWO_X) < 0.5, 0.0, TWO_X)
    dense = clone(machine).fit(X, TWO_Y)
    for kind in (sparse.csr_array, sparse.csc_array):
        assert np.array_equal(clone(machine).fit(kind(X), TWO_Y).predict(kind(X)), dense.predict(X))


@behaviour([(er.TreeRegressor(), 2), (er.TreeRegressor(max_depth=2), 3)])
def several_numbers(given):
    """Several targets are learned by one tree, a column for each."""
    machine, outputs = given
    Y = np.column_stack([NUMBERS * (k + 1) for k in range(outputs)])
    assert clone(machine).fit(ROWS, Y).predict(ROWS).shape == (200, outputs)


@behaviour(["left", "right"])
def missing_values_are_learned(side):
    """Missing values go to the side where they lower the impurity, as in scikit-learn."""
    X = np.array([np.nan, np.nan, 0.0, 1.0, 2.0, 3.0])[:, None]
    y = [0, 0, 0, 0, 1, 1] if side == "left" else [1, 1, 0, 0, 1, 1]
    ours, other = er.TreeClassifier().fit(X, y), theirs.DecisionTreeClassifier(random_state=0).fit(X, y)
    assert ours.predict([[np.nan]])[0] == other.predict([[np.nan]])[0]
    assert ours.score(X, y) == 1.0


@behaviour([er.TreeClassifier(), er.ForestClassifier(20, random_state=0), er.BoostingClassifier()])
def missing_values_can_tell(machine):
    """That a value is missing may be all that there is to know."""
    random = np.random.default_rng(0)
    y = random.integers(2, size=200)
    X = random.normal(size=(200, 1))
    X[y == 1] = np.nan
    assert clone(machine).fit(X, y).score(X, y) > 0.98


@behaviour([er.TreeClassifier(), er.TreeRegressor(), er.ForestClassifier(5, random_state=0), er.BoostingRegressor()])
def fits_repeat(machine):
    """The same rows and random state give the same answers, in Fortran order too."""
    y = IRIS_Y
    first = clone(machine).fit(IRIS_X, y).predict(IRIS_X)
    assert np.array_equal(first, clone(machine).fit(np.asfortranarray(IRIS_X), y).predict(IRIS_X))


@behaviour([er.TreeClassifier(), er.TreeRegressor(), er.ForestRegressor(5), er.BoostingClassifier()])
def one_row_is_no_table(machine):
    """A row that is not in a table is refused."""
    refuses(lambda: clone(machine).fit(TOY_X[:, 0], TOY_Y))
    found = clone(machine).fit(TOY_X, TOY_Y)
    refuses(lambda: found.predict(TOY_X[0]))
    refuses(lambda: found.predict(TOY_X[:, :1]))
