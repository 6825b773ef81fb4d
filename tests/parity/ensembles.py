"""Forests, boosting, bagging, AdaBoost and votes."""

import numpy as np
from scipy import sparse
from sklearn import ensemble as theirs
from sklearn import linear_model
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import empirisk as er
from tests.parity.cases import (
    DIABETES_X,
    DIABETES_Y,
    IRIS_X,
    IRIS_Y,
    TWO_X,
    TWO_Y,
    behaviour,
    near,
    refuses,
)

SEED = {"random_state": 0}
CLASSIFIERS = (
    er.ForestClassifier(15, **SEED),
    er.BoostingClassifier(n_estimators=15, **SEED),
    er.BaggingClassifier(n_estimators=10, **SEED),
    er.AdaBoostClassifier(n_estimators=15, **SEED),
    er.VoteClassifier([("a", er.LogisticRegression()), ("b", er.TreeClassifier(max_depth=4))]),
)
REGRESSORS = (
    er.ForestRegressor(15, **SEED),
    er.BoostingRegressor(n_estimators=15, **SEED),
    er.BaggingRegressor(n_estimators=10, **SEED),
    er.VoteRegressor([("a", er.Ridge()), ("b", er.TreeRegressor(max_depth=4))]),
)
GROWING = (*CLASSIFIERS[:4], *REGRESSORS[:3])
X, T = DIABETES_X, DIABETES_Y


def target(machine):
    return TWO_Y if hasattr(machine, "predict_proba") or hasattr(machine, "voting") else TWO_X.sum(axis=1)


@behaviour(CLASSIFIERS)
def iris_is_learned(machine):
    """Ensembles learn iris."""
    assert clone(machine).fit(IRIS_X, IRIS_Y).score(IRIS_X, IRIS_Y) > 0.92


@behaviour(REGRESSORS)
def diabetes_is_learned(machine):
    """Ensembles of numbers explain more than half of diabetes on their own rows."""
    assert clone(machine).fit(X, T).score(X, T) > 0.5


@behaviour([machine for machine in CLASSIFIERS if not isinstance(machine, er.VoteClassifier)])
def probabilities_add_up(machine):
    """Probabilities sum to one, and predict is the largest."""
    found = clone(machine).fit(IRIS_X, IRIS_Y)
    shares = found.predict_proba(IRIS_X)
    near(shares.sum(axis=1), 1.0)
    near(np.exp(found.predict_log_proba(IRIS_X)), shares)
    assert np.array_equal(found.classes_[shares.argmax(1)], found.predict(IRIS_X))


@behaviour(CLASSIFIERS)
def words_are_classes(machine):
    """Labels may be words."""
    found = clone(machine).fit(IRIS_X, np.array(["one", "two", "three"])[IRIS_Y])
    assert list(found.classes_) == ["one", "three", "two"]
    assert set(found.predict(IRIS_X)) <= {"one", "two", "three"}


@behaviour(GROWING)
def warm_start_adds_members(machine):
    """warm_start with more members gives the ensemble of a single fit."""
    y = target(machine)
    going = clone(machine).set_params(n_estimators=5, warm_start=True).fit(TWO_X, y)
    going.set_params(n_estimators=9).fit(TWO_X, y)
    whole = clone(machine).set_params(n_estimators=9).fit(TWO_X, y)
    assert np.array_equal(going.predict(TWO_X), whole.predict(TWO_X))


@behaviour(GROWING)
def warm_start_without_more_members_changes_nothing(machine):
    """warm_start with as many members leaves the ensemble as it is; without it all is fitted anew."""
    y = target(machine)
    going = clone(machine).set_params(warm_start=True).fit(TWO_X, y)
    before = going.predict(TWO_X)
    assert np.array_equal(going.fit(TWO_X, y).predict(TWO_X), before)


@behaviour(
    [er.ForestClassifier(40, **SEED), er.ForestRegressor(40, **SEED), er.BaggingClassifier(n_estimators=40, **SEED)]
)
def out_of_bag_scores_are_honest(machine):
    """oob_score_ is close to the score on new rows, below that on the training rows."""
    y = target(machine)
    half = len(y) // 2
    found = clone(machine).fit(TWO_X[:half], y[:half])
    assert abs(found.oob_score_ - found.score(TWO_X[half:], y[half:])) < 0.25
    assert found.oob_score_ <= found.score(TWO_X[:half], y[:half])


@behaviour(
    [er.ForestClassifier(10, **SEED), er.ForestRegressor(10, **SEED), er.BoostingRegressor(n_estimators=5, **SEED)]
)
def importances_sum_to_one(machine):
    """feature_importances_ sum to one, and the column that matters leads."""
    rows = np.random.default_rng(0).normal(size=(150, 4))
    y = rows[:, 2] > 0 if isinstance(machine, er.ForestClassifier) else 3 * rows[:, 2]
    found = clone(machine).fit(rows, y).feature_importances_
    near(found.sum(), 1.0)
    assert found.argmax() == 2


@behaviour([er.ForestClassifier(4, **SEED), er.ForestRegressor(4, **SEED)])
def members_average(machine):
    """The forest is the mean of its estimators_; apply and decision_path have a part for each tree."""
    y = target(machine)
    found = clone(machine).fit(TWO_X, y)
    answer = "predict_proba" if hasattr(found, "predict_proba") else "predict"
    near(np.mean([getattr(tree, answer)(TWO_X) for tree in found.estimators_], axis=0), getattr(found, answer)(TWO_X))
    assert found.apply(TWO_X).shape == (len(y), 4)
    assert found.decision_path(TWO_X)[1].shape == (5,)


@behaviour([1, 2, -1])
def threads_change_nothing(jobs):
    """n_jobs changes no answer."""
    for machine in (er.ForestClassifier(6, **SEED), er.BaggingClassifier(n_estimators=4, **SEED)):
        many = clone(machine).set_params(n_jobs=jobs).fit(TWO_X, TWO_Y)
        assert np.array_equal(many.predict_proba(TWO_X), clone(machine).fit(TWO_X, TWO_Y).predict_proba(TWO_X))


@behaviour([0.5, 30, None, 1.0])
def max_samples_values(value):
    """max_samples as a share, a number of rows and None."""
    for kind in (er.ForestClassifier, er.BaggingClassifier):
        assert kind(n_estimators=5, max_samples=value, **SEED).fit(TWO_X, TWO_Y).score(TWO_X, TWO_Y) > 0.7


@behaviour([0.0, -1, 1000, 2.0])
def bad_max_samples(value):
    """max_samples outside of its range is refused."""
    refuses(lambda: er.ForestClassifier(3, max_samples=value).fit(TWO_X, TWO_Y), "max_samples")


@behaviour([0, -1, 2.5, "ten"])
def bad_numbers_of_members(count):
    """n_estimators must be a whole number from 1 on."""
    for kind in (er.ForestClassifier, er.BoostingClassifier, er.AdaBoostClassifier):
        refuses(lambda kind=kind: kind(n_estimators=count).fit(TWO_X, TWO_Y), "n_estimators")


@behaviour([20, 0.1])
def forests_take_min_samples_split(least):
    """A forest without samples or drawn columns is one tree with the same limit."""
    forest = er.ForestRegressor(1, bootstrap=False, max_features=None, min_samples_split=least).fit(TWO_X, TWO_X[:, 0])
    tree = er.TreeRegressor(min_samples_split=least).fit(TWO_X, TWO_X[:, 0])
    assert forest.estimators_[0].get_n_leaves() == tree.get_n_leaves()


@behaviour(["balanced", "balanced_subsample", {0: 1, 1: 10}])
def forests_take_class_weights(class_weight):
    """class_weight as a word, also for each sample, and as a dictionary."""
    found = er.ForestClassifier(20, max_depth=2, class_weight=class_weight, **SEED).fit(TWO_X, TWO_Y)
    assert found.score(TWO_X, TWO_Y) > 0.5


@behaviour(["squared_error", "absolute_error", "poisson", "gamma", "huber", "quantile"])
def boosting_losses_by_their_names(loss):
    """Boosting takes every loss of scikit-learn by its name, and lowers it from round to round."""
    y = np.abs(TWO_X[:, 0]) + 0.5
    found = er.BoostingRegressor(loss, n_estimators=20).fit(TWO_X, y)
    assert found.history_["loss"][-1] < found.history_["loss"][0]


@behaviour(["log_loss", "exponential"])
def boosting_losses_of_classes(loss):
    """Boosting of classes takes scikit-learn's losses."""
    assert er.BoostingClassifier(loss, n_estimators=20).fit(TWO_X, TWO_Y).score(TWO_X, TWO_Y) > 0.9


@behaviour(["predict", "predict_proba", "decision_function"])
def stages_end_with_the_whole(method):
    """The last of the staged answers is the answer of the whole; there are as many as rounds."""
    for machine in (er.BoostingClassifier(n_estimators=8), er.AdaBoostClassifier(n_estimators=8)):
        found = machine.fit(TWO_X, TWO_Y)
        stages = list(getattr(found, f"staged_{method}")(TWO_X))
        assert len(stages) == (found.n_iter_ if hasattr(found, "n_iter_") else len(found.estimators_))
        near(stages[-1], getattr(found, method)(TWO_X))


@behaviour([1, 5])
def early_stopping_stops(patience):
    """early_stopping ends before the last round, and n_iter_ tells when."""
    y = np.random.default_rng(0).normal(size=len(TWO_Y))
    found = er.BoostingRegressor(n_estimators=200, early_stopping=True, n_iter_no_change=patience, **SEED).fit(TWO_X, y)
    assert found.n_iter_ < 200


@behaviour([1, -1])
def constraints_hold(sign):
    """monotonic_cst makes predictions rise, or fall, with a column."""
    found = er.BoostingRegressor(n_estimators=30, monotonic_cst=[sign, 0, 0, 0, 0]).fit(TWO_X, np.sin(3 * TWO_X[:, 0]))
    line = np.zeros((50, 5))
    line[:, 0] = np.linspace(-2, 2, 50)
    assert (sign * np.diff(found.predict(line)) >= 0).all()


@behaviour([0.01, 0.1, 0.9])
def learning_rates_shrink(rate):
    """A smaller learning rate leaves a larger training loss after as many rounds."""
    slow, fast = (er.BoostingRegressor(n_estimators=10, learning_rate=r).fit(X, T) for r in (rate / 2, rate))
    assert slow.history_["loss"][-1] > fast.history_["loss"][-1]


@behaviour([None, 2, 30])
def leaves_are_limited(leaves):
    """max_leaf_nodes limits every tree of boosting."""
    found = er.BoostingRegressor(n_estimators=3, max_leaf_nodes=leaves, min_samples_leaf=1).fit(X, T)
    sizes = [found.nodes_.tree(number).is_leaf.sum() for number in range(3)]
    assert max(sizes) <= (leaves or len(T))


@behaviour(["hard", "soft"])
def votes_vote(voting):
    """Hard votes are majorities, soft ones mean probabilities with weights."""
    members = [("a", er.LogisticRegression()), ("b", er.TreeClassifier(max_depth=2)), ("c", er.KNNClassifier(5))]
    vote = er.VoteClassifier(members, voting=voting, weights=[2, 1, 1]).fit(IRIS_X, IRIS_Y)
    logistic = linear_model.LogisticRegression(max_iter=10**4, tol=1e-8)
    others = [("a", logistic), ("b", DecisionTreeClassifier(max_depth=2, random_state=0)), ("c", er.KNNClassifier(5))]
    other = theirs.VotingClassifier(others, voting=voting, weights=[2, 1, 1]).fit(IRIS_X, IRIS_Y)
    assert (vote.predict(IRIS_X) == other.predict(IRIS_X)).mean() > 0.98


@behaviour(["a", "b"])
def members_of_votes_may_be_dropped(name):
    """set_params(name="drop") leaves a member out, name__parameter reaches into it."""
    vote = er.VoteRegressor([("a", er.Ridge()), ("b", er.TreeRegressor())])
    alone = clone(vote).set_params(**{name: "drop"}).fit(TWO_X, TWO_X[:, 0])
    assert len(alone.estimators_) == 1
    assert clone(vote).set_params(b__max_depth=1).fit(TWO_X, TWO_X[:, 0]).named_estimators_["b"].get_depth() == 1


@behaviour([[1, 0], [1, 3]])
def weights_of_votes(weights):
    """The mean of a vote of numbers has the weights."""
    vote = er.VoteRegressor([("a", er.Ridge()), ("b", er.TreeRegressor())], weights=weights).fit(TWO_X, TWO_X[:, 0])
    each = np.array([member.predict(TWO_X) for member in vote.named_estimators_.values()])
    near(vote.predict(TWO_X), np.average(each, axis=0, weights=weights))


@behaviour(
    [er.LogisticRegression(), er.KNNClassifier(3), DecisionTreeClassifier(), make_pipeline(StandardScaler(), er.SVM())]
)
def anything_can_be_bagged(machine):
    """Bagging takes any classifier, pipelines and scikit-learn's own too."""
    found = er.BaggingClassifier(machine, 5, **SEED).fit(TWO_X, TWO_Y)
    assert len(found.estimators_) == 5
    assert found.score(TWO_X, TWO_Y) > 0.75


@behaviour([2, 0.6])
def bagging_draws_columns(share):
    """max_features of bagging: estimators_features_ has the columns of each member."""
    found = er.BaggingRegressor(er.Ridge(), 4, max_features=share, **SEED).fit(TWO_X, TWO_X[:, 0])
    assert {len(columns) for columns in found.estimators_features_} == {2 if share == 2 else 3}


@behaviour([False, True])
def bootstrap_draws_with_replacement(bootstrap):
    """Without bootstrap and with all rows, all members of bagging are alike."""
    found = er.BaggingRegressor(er.TreeRegressor(), 4, bootstrap=bootstrap, **SEED).fit(TWO_X, TWO_X[:, 0])
    same = all(np.array_equal(m.predict(TWO_X), found.estimators_[0].predict(TWO_X)) for m in found.estimators_)
    assert same != bootstrap


@behaviour([50, 200])
def adaboost_is_that_of_scikit_learn(rounds):
    """Stumps boosted by weights: the errors, and half of the weights, of scikit-learn's SAMME."""
    ours = er.AdaBoostClassifier(er.TreeClassifier(max_depth=1), n_estimators=rounds).fit(TWO_X, TWO_Y)
    other = theirs.AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=rounds, random_state=0).fit(
        TWO_X, TWO_Y
    )
    count = 5  # the first rounds have no ties
    near(ours.estimator_errors_[:count], other.estimator_errors_[:count], 1e-9)
    near(2 * ours.estimator_weights_[:count], other.estimator_weights_[:count], 1e-9)


@behaviour([er.SVM(), er.KNNClassifier()])
def adaboost_needs_weights(machine):
    """AdaBoost takes learners with sample weights, and refuses others."""
    boost = er.AdaBoostClassifier(machine, n_estimators=3)
    if isinstance(machine, er.SVM):
        assert boost.fit(TWO_X, TWO_Y).score(TWO_X, TWO_Y) > 0.7
    else:
        refuses(lambda: er.AdaBoostClassifier(make_pipeline(StandardScaler()), n_estimators=3).fit(TWO_X, TWO_Y))


@behaviour([{"max_depth": [1, 3]}, {"min_samples_split": [2, 40]}, {"n_estimators": [2, 8]}])
def searches_over_forests(grid):
    """Grid searches run over the parameters of forests."""
    assert GridSearchCV(er.ForestClassifier(4, **SEED), grid, cv=2).fit(TWO_X, TWO_Y).best_score_ > 0.6


@behaviour(
    [
        er.ForestClassifier(5, **SEED),
        er.BoostingClassifier(n_estimators=5),
        er.BaggingClassifier(n_estimators=3, **SEED),
    ]
)
def sparse_rows(machine):
    """Sparse rows give the answers of dense ones."""
    rows = np.where(np.abs(TWO_X) < 0.5, 0.0, TWO_X)
    found = clone(machine).fit(sparse.csr_array(rows), TWO_Y)
    assert np.array_equal(found.predict(sparse.csr_array(rows)), clone(machine).fit(rows, TWO_Y).predict(rows))


@behaviour([er.ForestClassifier(3, **SEED), er.ForestRegressor(3, **SEED)])
def several_outputs(machine):
    """Several targets at once: a column of predictions for each."""
    Y = np.column_stack([TWO_Y, 1 - TWO_Y])
    assert clone(machine).fit(TWO_X, Y).predict(TWO_X).shape == (len(TWO_Y), 2)


@behaviour([IsolationForest])
def their_ensembles_stay_apart(kind):
    """Machines of both libraries work in one pipeline."""
    kept = kind(random_state=0).fit_predict(TWO_X) == 1
    assert er.ForestClassifier(5, **SEED).fit(TWO_X[kept], TWO_Y[kept]).score(TWO_X, TWO_Y) > 0.8
