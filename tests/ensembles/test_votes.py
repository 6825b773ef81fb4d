"""Votes of many machines: ties, margins, errors by number of members, and votes of different machines."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.utils.estimator_checks import check_estimator

import empirisk as er
from empirisk.contract.ensemble import vote_margins
from empirisk.contract.multiclass import elected
from empirisk.errors import EmpiriskError

pytestmark = pytest.mark.row("T9")


@pytest.fixture(scope="module")
def three_classes():
    return make_classification(240, 6, n_informative=5, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)


def test_ties_of_two_go_to_the_positive_class():
    classes = np.array(["no", "yes"])
    assert elected(np.array([[0.5, 0.5], [0.6, 0.4], [0.4, 0.6]]), classes).tolist() == ["yes", "no", "yes"]
    assert elected(np.array([[0.4, 0.4, 0.2]]), np.array([1, 2, 3])).tolist() == [1]


def test_a_leaf_with_as_many_of_both_classes_says_the_second():
    X, y = np.zeros((4, 1)), np.array(["a", "b", "a", "b"])
    for machine in (er.TreeClassifier(), er.ForestClassifier(1, bootstrap=False), er.AdaBoostClassifier()):
        assert machine.fit(X, y).predict([[0.0]]).tolist() == ["b"]


def test_margins_are_the_right_share_minus_the_next():
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    assert vote_margins(shares, np.array([0, 1])) == pytest.approx([0.5, -0.3])


@pytest.mark.parametrize(
    "machine", [er.ForestClassifier(12, random_state=0), er.BaggingClassifier(n_estimators=9, random_state=0)]
)
def test_ensembles_of_classifiers_tell_about_their_members(machine, three_classes):
    X, y = three_classes
    machine.fit(X[:160], y[:160])
    new, answers = X[160:], y[160:]
    margins = machine.margins(new, answers)
    assert ((margins > 0) == (machine.predict(new) == answers))[margins != 0].all()
    errors = machine.staged_errors(new, answers)
    assert errors[-1] == pytest.approx(1 - machine.score(new, answers))
    assert len(errors) == machine.n_estimators
    spread = machine.spread(new, answers)
    own = np.array([vote_margins(said, machine._labels(answers)) for _, said in machine._each_answer(new)])
    pairs = np.corrcoef(own)[np.triu_indices(len(own), 1)]
    sizes = own.std(axis=1)
    weights = np.outer(sizes, sizes)[np.triu_indices(len(own), 1)]
    assert spread.correlation == pytest.approx(np.average(pairs, weights=weights))
    assert spread.variance == pytest.approx(own.var(axis=0).mean())
    assert spread.strength == pytest.approx(own.mean())
    with pytest.raises(EmpiriskError, match="not in the training data"):
        machine.margins(new, answers + 7)


def test_ensembles_of_numbers_tell_about_their_members():
    X, y = make_friedman1(200, random_state=0)
    for machine in (er.ForestRegressor(8, random_state=0), er.BaggingRegressor(n_estimators=5, random_state=0)):
        machine.fit(X[:120], y[:120])
        errors = machine.staged_errors(X[120:], y[120:])
        assert errors[-1] == pytest.approx(np.mean((machine.predict(X[120:]) - y[120:]) ** 2))
        spread = machine.spread(X[120:], y[120:])
        assert 0 < spread.correlation < 1
        assert -spread.strength == pytest.approx(errors[-1])


@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_a_vote_is_that_of_scikit_learn(vote, three_classes):
    X, y = three_classes
    machines = [er.LogisticRegression(), er.TreeClassifier(max_depth=3), er.KNNClassifier(5)]
    ours = er.VoteClassifier(machines, voting=vote, weights=[2, 1, 1.5]).fit(X, y)
    named = [(str(k), machine) for k, machine in enumerate(machines)]
    theirs = VotingClassifier(named, voting=vote, weights=[2, 1, 1.5]).fit(X, y)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.vote_shares(X).sum(axis=1) == pytest.approx(1.0)
    assert hasattr(ours, "predict_proba") == (vote == "soft")
    if vote == "soft":
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    assert ours.staged_errors(X, y)[-1] == pytest.approx(1 - ours.score(X, y))
    assert (ours.margins(X, y)[ours.predict(X) == y] >= 0).all()


def test_a_mean_of_machines_is_that_of_scikit_learn(tmp_path):
    X, y = make_friedman1(80, random_state=1)
    machines = [er.Ridge(), er.TreeRegressor(max_depth=3)]
    ours = er.VoteRegressor(machines, weights=[1, 3]).fit(X, y)
    theirs = VotingRegressor([("a", machines[0]), ("b", machines[1])], weights=[1, 3]).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    er.save(ours, tmp_path / "vote.model")
    assert np.array_equal(er.load(tmp_path / "vote.model").predict(X), ours.predict(X))


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (er.VoteClassifier([]), "estimators must be a list"),
        (er.VoteClassifier([er.TreeClassifier()], voting="loud"), "voting='loud' is not known"),
        (er.VoteClassifier([er.SVM()], voting="soft"), "needs probabilities"),
        (er.VoteClassifier([er.SVM()], weights=[-1]), "weights must be one number"),
        (er.VoteRegressor([er.Ridge(), er.Ridge()], weights=[1]), "weights must be one number"),
    ],
)
def test_votes_without_meaning_are_refused(machine, message):
    X, y = make_classification(30, 4, random_state=0)
    with pytest.raises(EmpiriskError, match=message):
        machine.fit(X, y)


@pytest.mark.parametrize(
    "machine",
    [
        er.VoteClassifier([er.LogisticRegression(), er.TreeClassifier(max_depth=2)]),
        er.VoteClassifier([er.LogisticRegression(), er.TreeClassifier(max_depth=2)], voting="soft"),
        er.VoteRegressor([er.Ridge(), er.TreeRegressor(max_depth=2)]),
    ],
)
def test_scikit_learn_accepts_votes(machine):
    check_estimator(machine)


# --- samples without replacement, columns, weights ------------------------------------------------------------------


def test_members_see_samples_without_replacement_and_some_columns(three_classes, tmp_path):
    X, y = three_classes
    bag = er.BaggingClassifier(n_estimators=15, bootstrap=False, max_samples=0.5, max_features=0.5, random_state=0)
    bag.fit(X, y)
    assert {len(columns) for columns in bag.features_} == {3}
    assert {member.n_features_in_ for member in bag.estimators_} == {3}
    assert all(member.nodes_.weight[0] == 120 for member in bag.estimators_)
    assert 0.5 < bag.oob_score_ < 1.0
    er.save(bag, tmp_path / "bag.model")
    assert np.array_equal(er.load(tmp_path / "bag.model").predict_proba(X), bag.predict_proba(X))
    whole = er.BaggingClassifier(n_estimators=2, bootstrap=False, random_state=0).fit(X, y)
    assert np.array_equal(whole.predict(X), er.TreeClassifier().fit(X, y).predict(X))


@pytest.mark.parametrize("bootstrap", [True, False])
def test_weight_two_is_the_row_twice_with_and_without_replacement(bootstrap):
    X, y = make_friedman1(40, random_state=0)
    times = np.random.default_rng(0).integers(1, 4, 40)
    bag = er.BaggingRegressor(n_estimators=5, bootstrap=bootstrap, max_samples=0.6, random_state=0)
    weighted = bag.fit(X, y, sample_weight=times).predict(X)
    order = np.random.default_rng(1).permutation(times.sum())
    repeated = bag.fit(np.repeat(X, times, axis=0)[order], np.repeat(y, times)[order]).predict(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


@pytest.mark.parametrize("size", [1e18, 1e45])
@pytest.mark.parametrize(
    "machine", [er.ForestRegressor(3, random_state=0), er.BaggingRegressor(n_estimators=3, random_state=0)]
)
def test_huge_weights_are_weights(machine, size):
    X, y = make_friedman1(40, random_state=0)
    huge = machine.fit(X, y, sample_weight=np.full(40, size)).predict(X)
    assert np.array_equal(huge, machine.fit(X, y).predict(X))


@pytest.mark.parametrize("machine", [er.TreeRegressor(), er.ForestRegressor(3), er.BoostingRegressor()])
def test_targets_whose_squares_overflow_are_refused(machine):
    X, y = make_friedman1(40, random_state=0)
    with pytest.raises(EmpiriskError, match="divide y"):
        machine.fit(X, y * 1e200)


def test_every_ensemble_of_trees_has_importances_and_keeps_them(tmp_path):
    X, y = make_classification(120, 5, n_informative=2, n_redundant=0, shuffle=False, random_state=0)
    machines = [
        er.ForestClassifier(20, random_state=0),
        er.BoostingClassifier(n_estimators=10),
        er.AdaBoostClassifier(n_estimators=10),
        er.BaggingClassifier(n_estimators=10, random_state=0),
    ]
    for machine in machines:
        found = machine.fit(X, y).feature_importances_
        assert found[:2].max() > 2 * found[2:].max()  # the first two columns are the ones that matter
        er.save(machine, tmp_path / "kept.model")
        assert np.array_equal(er.load(tmp_path / "kept.model").feature_importances_, found)


def test_a_temperature_changes_probabilities_and_no_answer(three_classes):
    X, y = three_classes
    members = [er.LogisticRegression(), er.TreeClassifier(max_depth=4)]
    plain = er.VoteClassifier(members, voting="soft").fit(X, y)
    for temperature in (1e-3, 0.5, 2.0, 1000.0):
        warm = er.VoteClassifier(members, voting="soft", temperature=temperature).fit(X, y)
        found = warm.predict_proba(X)
        powers = (plain.predict_proba(X) / plain.predict_proba(X).max(axis=1, keepdims=True)) ** (1 / temperature)
        assert found == pytest.approx(powers / powers.sum(axis=1, keepdims=True))
        assert np.isfinite(found).all()
        assert np.array_equal(warm.predict(X), plain.predict(X))
        assert np.array_equal(warm.classes_[found.argmax(axis=1)], warm.predict(X))
    for temperature in (0, -1.0, np.inf, 1001, "warm"):
        with pytest.raises(EmpiriskError, match="temperature="):
            er.VoteClassifier(members, voting="soft", temperature=temperature).fit(X, y)
    with pytest.raises(EmpiriskError, match="voting='soft'"):
        er.VoteClassifier(members, temperature=2.0).fit(X, y)
