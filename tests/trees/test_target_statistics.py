"""Mean targets of categories in boosting: naive means, no leak of the own target, sets of categories in the trees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import empirisk as er
from empirisk.linalg.hashes import equal_rows
from empirisk.trees.objectives import numbers_objective
from empirisk.trees.predict import Ensemble
from empirisk.trees.target_statistics import FOLDS, PRIOR_ROWS, with_statistics

pytestmark = pytest.mark.row("T8")


def words(rows, categories, effect, seed=0):
    """A frame of a column of words and two of numbers, and labels that depend on them."""
    random = np.random.default_rng(seed)
    codes, X = random.integers(0, categories, rows), random.normal(size=(rows, 2))
    f = effect * random.normal(size=categories)[codes] + 0.5 * X[:, 0]
    frame = pd.DataFrame({"word": [f"w{code}" for code in codes], "a": X[:, 0], "b": X[:, 1]})
    return frame, random.random(rows) < 1 / (1 + np.exp(-f))


@pytest.mark.parametrize("categories", [40, 300, 2000])
def test_a_random_target_cannot_be_learned_from_categories(categories):
    """With a column of words that tell nothing, twice, a machine is as good as without it; sets of words are worse."""
    X, y = words(4000, categories, 0.0)
    X = X.assign(again=X["word"])
    train, test = slice(0, 2000), slice(2000, None)

    def loss(columns, **options):
        machine = er.BoostingClassifier(**options).fit(X[columns][train], y[train])
        return log_loss(y[test], machine.predict_proba(X[columns][test]))

    without, told = loss(["a", "b"]), loss(["word", "again", "a", "b"])
    assert told < without + 0.015
    assert loss(["word", "a", "b"], target_encoding=False) > without + 0.03


def test_words_that_tell_something_are_learned():
    X, y = words(8000, 300, 1.0)
    train, test = slice(0, 4000), slice(4000, None)
    encoded, sets = (
        log_loss(y[test], er.BoostingClassifier(target_encoding=how).fit(X[train], y[train]).predict_proba(X[test]))
        for how in ("auto", False)
    )
    assert encoded < sets - 0.05


def test_statistics_are_means_on_other_folds():
    random = np.random.default_rng(0)
    codes, y = random.integers(0, 6, 200).astype(float), random.normal(size=(200, 2))
    codes[:20] = np.nan
    X, weights = np.column_stack([random.normal(size=200), codes]), random.random(200)
    member = equal_rows(X, y)[1]
    objective = numbers_objective(er.losses.find("squared"), y, weights)
    table, statistics = with_statistics(X, objective, member, np.array([0, 6], dtype=np.int32), np.array([1]))
    assert table.shape == (200, 3)
    np.testing.assert_array_equal(statistics.sources, [0, 1, 1])
    fold = (np.random.default_rng(0).permutation(member.max() + 1) % FOLDS)[member]
    filled = np.where(np.isnan(codes), 6, codes)
    for part, place in ((0, 1), (1, 2)):
        prior = np.average(y[:, part], weights=weights)

        def mean(rows, part=part, prior=prior):
            mass = weights[rows].sum() + PRIOR_ROWS
            return (weights[rows] @ y[rows, part] + PRIOR_ROWS * prior) / mass - prior

        every = [mean(filled == code) for code in range(7)]
        np.testing.assert_allclose(statistics.values[place], every, atol=1e-8)
        others = [mean((filled == filled[row]) & (fold != fold[row])) for row in range(200)]
        np.testing.assert_allclose(table[:, place], others, atol=1e-8)


def test_splits_at_statistics_are_sets_of_categories():
    """Trees on the columns as given say what trees on the columns of statistics say."""
    X, y = words(3000, 150, 1.0)
    machine = er.BoostingRegressor(n_estimators=5, target_encoding=True, learning_rate=0.5).fit(X, y.astype(float))
    nodes = machine.nodes_
    assert (nodes.feature < 3).all()
    assert (nodes.category_start[nodes.feature == 0] >= 0).all()
    assert machine.feature_importances_.shape == (3,)
    one = X.iloc[:1]
    unseen, missing = one.assign(word="never seen"), one.assign(word=None)
    assert machine.predict(unseen) == machine.predict(missing)
    # The same by hand, on a table of numbers.
    codes = np.column_stack([pd.Categorical(X["word"]).codes, X["a"], X["b"]]).astype(float)
    counts = np.array([150, 0, 0], dtype=np.int32)
    objective = numbers_objective(er.losses.find("squared"), y.astype(float), np.ones(3000))
    table, statistics = with_statistics(codes, objective, np.arange(3000), counts, np.array([0]))
    plain = er.BoostingRegressor(n_estimators=5, learning_rate=0.5).fit(table, y.astype(float))
    told = codes.copy()
    told[:, 0] = statistics.values[0][codes[:, 0].astype(int)]
    packed = statistics.as_sets(plain.packed_)
    np.testing.assert_array_equal(
        Ensemble(packed, 1).add(codes, np.zeros((3000, 1))), Ensemble(plain.packed_, 1).add(told, np.zeros((3000, 1)))
    )


@pytest.mark.parametrize("options", [{}, {"subsample": 0.7}, {"early_stopping": True, "refit": True}], ids=repr)
@pytest.mark.parametrize("outputs", ["numbers", "several", "two", "three", "labels"])
def test_every_kind_of_target_has_statistics(options, outputs):
    X, y = words(600, 20, 2.0)
    three = y + (X["a"] > 0.5).to_numpy()
    target = {
        "numbers": three.astype(float),
        "several": np.column_stack([y, X["a"]]),
        "two": y,
        "three": three,
        "labels": np.column_stack([y, three]),
    }[outputs]
    kind = er.BoostingRegressor if outputs in ("numbers", "several") else er.BoostingClassifier
    machine = kind(n_estimators=20, random_state=0, **options)
    weights = np.random.default_rng(0).integers(1, 3, 600)
    often = np.repeat(np.arange(600), weights)
    weighted = machine.fit(X, target, sample_weight=weights).predict(X)
    repeated = machine.fit(X.iloc[often], target[often]).predict(X)
    np.testing.assert_allclose(weighted, repeated)
    assert machine.score(X, target) > (0.5 if outputs == "labels" else 0.3)


def test_a_value_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match="target_encoding='sets' must be True or False"):
        er.BoostingRegressor(target_encoding="sets").fit([[0.0], [1.0]], [0.0, 1.0])
