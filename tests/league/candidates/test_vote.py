"""A vote of the best: made of fitted machines, judged as they are, and the winner only where it is really better."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

import empirisk as er
from empirisk.league.candidates import everyone as candidates
from empirisk.league.candidates.vote import can_vote, greedy_weights, temperature, votes
from empirisk.league.contest.fold import limit, was_cut
from empirisk.league.records import CandidateResult
from empirisk.league.request import Request
from empirisk.league.rows.encodings import encoding_of, join
from empirisk.league.rows.split import plan
from empirisk.tables.model import settings_of


def waves(rows=700):
    """A smooth wave and a step: a kernel machine and trees are each good at one of them."""
    random = np.random.default_rng(1)
    X = random.uniform(-3, 3, (rows, 3))
    y = np.sin(X).sum(axis=1) + 0.7 * (X[:, 1] > 0.7) + 0.3 * random.normal(size=rows)
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})


def test_members_that_are_fitted_are_joined_as_they_are():
    X, y = waves().select("a", "b", "c").to_numpy(), waves()["y"].to_numpy()
    parts = [er.Ridge(), er.TreeRegressor(max_leaf_nodes=8)]
    whole = votes(parts, 0)[1].fit(X, y)
    joined = votes(parts, 0)[1]
    fitted = [part.fit(X, y) for part in parts]
    join(joined, fitted, X, y)
    assert joined.estimators_[0] is fitted[0]
    assert joined.weights_.tolist() == [2 / 3, 1 / 3]
    np.testing.assert_array_equal(joined.predict(X), whole.predict(X))


@pytest.mark.parametrize("classes", [0, 3])
def test_weights_are_about_those_with_the_least_loss_of_the_answers(classes):
    random = np.random.default_rng(0)
    if classes:
        truth = random.integers(classes, size=200)
        said = [0.2 * random.dirichlet(np.ones(classes), 200) + 0.8 * np.eye(classes)[(truth + wrong) % classes]
                for wrong in (random.random((3, 200)) < [[0.1], [0.2], [0.3]]).astype(int)]  # fmt: skip
    else:
        truth = random.normal(size=200)
        said = [truth + size * random.normal(size=200) for size in (0.5, 0.6, 1.0)]

    def loss(weights):
        mean = sum(weight * one for weight, one in zip(weights, said, strict=False)) / sum(weights)
        if not classes:
            return np.mean((mean - truth) ** 2)
        return -np.log(np.maximum(mean[np.arange(200), truth], 1e-6)).mean()

    found = greedy_weights((said, truth), classes)
    grid = [(a, b, 40 - a - b) for a in range(41) for b in range(41 - a)]
    assert loss(found) <= min(map(loss, np.eye(3)))  # never worse than the best alone
    assert loss(found) <= 1.005 * min(map(loss, grid))
    machines = [er.KNNClassifier(k) if classes else er.KNNRegressor(k) for k in (1, 2, 3)]
    [vote] = votes(machines, classes, (said, truth))
    assert vote.weights == tuple(weight for weight in found if weight)
    assert vote.estimators == [one for one, weight in zip(machines, found, strict=True) if weight]


def test_the_best_does_not_vote_with_those_that_only_make_it_worse():
    truth = np.random.default_rng(0).normal(size=100)
    said = [truth + 0.1, truth + 5.0, truth + 9.0]
    assert greedy_weights((said, truth), 0)[1:] == (0, 0)
    assert votes([er.Ridge()] * 3, 0, (said, truth)) == []


@pytest.mark.parametrize("true", [0.5, 1.0, 2.0])
def test_votes_are_calibrated_by_one_temperature(true):
    """Labels are drawn from probabilities; the answers are these at another temperature, which is found again."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(4000, 3)) * 1.5
    real = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = (real.cumsum(axis=1) < random.random((4000, 1))).sum(axis=1)
    said = real**true / (real**true).sum(axis=1, keepdims=True)
    found = temperature(([said], truth), (1,))
    assert found == pytest.approx(true, rel=0.1)
    assert (found == 1.0) == (true == 1.0)
    assert temperature(([said[:8]], truth[:8]), (1,)) == 1.0  # so few answers do not decide
    noisy = [one / one.sum(axis=1, keepdims=True) for one in said * random.uniform(0.7, 1.3, (2, 4000, 3))]
    machines = [er.LogisticRegression(), er.ForestClassifier(5)]
    [vote] = votes(machines, 3, (noisy, truth))
    assert vote.temperature == temperature((noisy, truth), vote.weights)
    assert votes(machines, 3)[0].temperature == 1.0  # nothing is known of what they say
    assert ("temperature=" in settings_of(vote)) == (vote.temperature != 1)


def test_classes_need_probabilities():
    assert can_vote(er.SVM(), 0)
    assert not can_vote(er.SVM(), 2)
    y = np.arange(40) % 2
    vote = votes([er.LogisticRegression(), er.ForestClassifier(5)], 2)[0].fit(y[:, None] + 0.0, y)
    assert vote.predict_proba([[1.0]]).argmax() == 1


def test_a_vote_that_is_better_wins_and_survives_the_file(tmp_path):
    found = er.learn(waves(), "y", machines=["kernel_ridge", "boosting", "vote"], folds=3, out=tmp_path / "it")
    scores = {one.name: one.mean for one in found.standings}
    assert scores["vote"] > max(scores["kernel_ridge"], scores["boosting"])
    assert found.winner == "vote"
    rows = waves().head(5)
    np.testing.assert_array_equal(er.load(tmp_path / "it.model").predict(rows), found.model.predict(rows))


def towns(rows=700, classes=False):
    """A smooth wave, and a step for each of some towns: a kernel reads their indicators, trees their codes."""
    random = np.random.default_rng(1)
    x, town = random.uniform(-3, 3, rows), random.integers(0, 9, rows)
    y = 2 * np.sin(x) + np.array([0, 3, 1, 4, 2, 0, 5, 1, 3])[town] * (x > 0) + 0.3 * random.normal(size=rows)
    names = np.array([f"town {k}" for k in range(9)])
    return pl.DataFrame({"x": x, "town": names[town], "y": np.where(y > 1, "high", "low") if classes else y})


@pytest.mark.parametrize("classes", [False, True])
def test_machines_that_read_different_encodings_vote(classes):
    """Each member says what it says alone, behind the encoding that it reads."""
    found, kind = plan(Request(towns(classes=classes), "y")), "Classifier" if classes else "Regressor"
    trees = getattr(er, f"Boosting{kind}")(n_estimators=20, categorical_features=[1], random_state=0)
    parts = [er.LogisticRegression() if classes else er.Ridge(), trees]
    vote = (er.VoteClassifier(parts, voting="soft") if classes else er.VoteRegressor(parts)).set_params(weights=(1, 3))
    assert encoding_of(vote) == "numbers and codes"
    rows, y = found.frame[found.train], found.y[found.train]
    alone = [found.pipeline(part).fit(rows, y) for part in parts]
    together = found.pipeline(vote).fit(rows, y)
    ask = "predict_proba" if classes else "predict"
    mean = sum(weight * getattr(one, ask)(found.frame) for weight, one in zip((0.25, 0.75), alone, strict=True))
    np.testing.assert_allclose(getattr(together, ask)(found.frame), mean, rtol=1e-12)
    assert together[0].encoders_[1].coded_places == [1]
    joined = together[1].set_params(estimators=parts)
    join(joined, [one[-1] for one in alone], together[0].transform(rows), y, together[0])
    np.testing.assert_allclose(getattr(joined, ask)(together[0].transform(found.frame)), mean, rtol=1e-12)


@pytest.mark.parametrize("classes", [False, True])
def test_a_vote_of_different_encodings_is_a_whole_model(classes, tmp_path, monkeypatch):
    """It wins a contest, survives the file, is explained, exported, and judged as the sum of its members."""
    module = sys.modules["empirisk.league.run"]  # the attribute of that name is the function
    monkeypatch.setattr(module, "winner", lambda results, prefer: next(one for one in results if one.name == "vote"))
    kernel = "kernel_svm" if classes else "kernel_ridge"
    table, metric = towns(500, classes), "log_loss" if classes else None
    machines = [kernel, "boosting", "logistic" if classes else "ridge", "vote"]
    found = er.learn(table, "y", machines=machines, folds=3, metric=metric, out=tmp_path / "it")
    assert encoding_of(found.best.machine) == "numbers and codes"
    if not classes:
        scores = {one.name: one.mean for one in found.standings}
        assert scores["vote"] > max(scores[kernel], scores["boosting"])
    rows, ask = table.head(8), "predict_proba" if classes else "predict"
    loaded = er.load(tmp_path / "it.model")
    np.testing.assert_array_equal(getattr(loaded, ask)(rows), getattr(found.model, ask)(rows))
    said = loaded.predict_proba(rows).max(axis=1) if classes else loaded.predict(rows)
    rest = said - loaded.explain(rows).sum(axis=1)  # the mean prediction of the rows that they are compared with
    if classes:
        rest = np.where(loaded.predict(rows) == "high", rest, 1 - rest)
    np.testing.assert_allclose(rest, rest[0])
    assert {name for name, _, _ in found.importances} == {"x", "town"}
    er.export(loaded, tmp_path / "it.onnx")  # which compares its answers with those of the model


def test_texts_and_words_vote(monkeypatch):
    """One encoding is sparse, with the words of a text; trees read fewer of them."""
    module = sys.modules["empirisk.league.run"]
    monkeypatch.setattr(module, "winner", lambda results, prefer: next(one for one in results if one.name == "vote"))
    random = np.random.default_rng(0)
    table, words = towns(300), random.integers(0, 400, (300, 30))
    table = table.with_columns(
        note=pl.Series([" ".join(f"w{k}" for k in row) for row in words]),
        y=pl.Series(table["y"].to_numpy() + random.normal(size=400)[words].mean(axis=1) * 5),
    )
    found = er.learn(table, "y", machines=["ridge", "forest", "vote"], folds=2)
    assert found.model.pipeline[0].sparse_
    counts = {type(one[-1]).__name__: one[0].count for one in found.model.machine.estimators_}
    assert counts["Ridge"] > counts["ForestRegressor"]
    assert found.model.explain(table.head(3)).shape == (3, 3)


def test_a_vote_of_trees_is_explained(tmp_path, monkeypatch):
    """Contributions of columns, and the mean prediction of the rows that they are compared with, make a prediction."""
    module = sys.modules["empirisk.league.run"]  # the attribute of that name is the function
    monkeypatch.setattr(module, "winner", lambda results, prefer: next(one for one in results if one.name == "vote"))
    found = er.learn(waves(), "y", machines=["forest", "boosting", "vote"], folds=2, out=tmp_path / "it")
    rows = waves().head(8)
    for model in (found.model, er.load(tmp_path / "it.model")):
        rest = model.predict(rows) - model.explain(rows).sum(axis=1)
        np.testing.assert_allclose(rest, rest[0])


def test_the_limit_reaches_those_who_vote():
    vote = votes([er.Ridge(), er.BoostingRegressor(n_estimators=5000)], 0)[0]
    limit(vote, 0.5)
    assert [one.max_time for one in vote.estimators] == [0.5, 0.5]
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    limit(vote, 0.02)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        vote.fit(X, X[:, 0])
    assert was_cut(vote)


def test_settings_around_the_best_are_tried_where_time_is_left():
    found = er.learn(waves(300), "y", machines=["kernel_ridge"], folds=2, time=600.0)
    first = candidates.candidates_for(False, ["kernel_ridge"])[1].machines(candidates.Size(150, 3, 3.0, 0, False, 0))
    widths = {machine.features.width for machine in first}
    assert found.best.state == "done"
    assert found.best.machine.features.width not in widths or found.best.machine.C not in (1.0, 30.0, 300.0)


def test_around_changes_one_thing_at_a_time():
    boosting = er.BoostingRegressor(n_estimators=100, learning_rate=0.1, max_leaf_nodes=31)
    changed = [(one.learning_rate, one.n_estimators, one.max_leaf_nodes) for one in candidates.around(boosting)]
    assert changed == [(0.05, 200, 31), (0.1, 100, 62), (0.1, 100, 15)]
    machine = er.Ridge(C="loo", features=er.kernels.Gaussian(width=1.0))
    assert [one.features.width for one in candidates.around(machine)] == [0.7, 1.4]
    assert [one.n_neighbors for one in candidates.around(er.KNNClassifier(n_neighbors=2))] == [4]
    trees = candidates.around(er.TreeClassifier(max_leaf_nodes=3, min_samples_leaf=1))
    assert [(one.max_leaf_nodes, one.min_samples_leaf) for one in trees] == [(6, 1), (3, 3)]


def test_the_time_of_a_fit_grows_as_it_was_seen_to():
    machine = CandidateResult("svm", "SVM", 1, growth=1.5).timed(1000, 1.0)
    assert machine.seconds_for(4000) == 8.0  # as is assumed of it
    assert np.isclose(machine.timed(2000, 2.0).seconds_for(4000), 4.0)
    assert machine.timed(2000, 1.0).seconds_for(8000) == 2.0  # a cost of any size hides what is to come
    pairs = replace(machine, least_growth=2.0)
    assert pairs.timed(2000, 2.0).seconds_for(4000) == 8.0  # but not of one that looks at pairs of rows
    assert abs(pairs.rows_for(pairs.seconds_for(4000)) - 4000) <= 1


def test_what_is_said_of_a_vote_is_said_of_its_members():
    vote = er.VoteRegressor([er.Ridge(C=2.0, max_time=3.0), er.TreeRegressor(max_leaf_nodes=4)], weights=(2, 1))
    told = settings_of(vote)
    assert told.startswith("VoteRegressor(2 x Ridge(C=2,")
    assert "1 x TreeRegressor(" in told
    assert "max_time" not in told
    limit(vote, None)
    assert vote.estimators[0].max_time is None
