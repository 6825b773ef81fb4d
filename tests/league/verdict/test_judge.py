"""What is said of the winner agrees with the numbers beside it."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_rel
from sklearn.metrics import f1_score

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.evaluation.curves import judge_learning
from empirisk.evaluation.metrics import find_metrics
from empirisk.league.candidates.everyone import CLASSIFIERS, REGRESSORS, Size
from empirisk.league.verdict.judge import ALIASES, metric_for, paired_luck


def test_luck_is_a_paired_test_on_the_loss_that_decides():
    random = np.random.default_rng(0)
    truth = random.normal(size=60)
    errors, others = truth - 0.4 * truth - 0.3 * random.normal(size=60), truth
    expected = ttest_rel(errors**2, others**2, alternative="less").pvalue
    assert f"probability {100 * expected:.3g} %: hardly luck" in paired_luck(errors, others, "rmse")
    assert paired_luck(errors, others, "rmse") == paired_luck(1e150 * errors, 1e150 * others, "rmse")
    assert "absolute error" in paired_luck(errors, others, "mae")
    assert "squared error is less than 1 % of the mean's" in paired_luck(0.05 * others, others, "rmse")
    assert "squared error is 0 % of the mean's" in paired_luck(0 * others, others, "rmse")
    assert "shows nothing" in paired_luck(others, errors, "rmse")
    assert "it could be luck" in paired_luck(others + 0.1 * random.normal(size=60), others * 1.01, "rmse")


def test_a_model_with_an_interval_above_zero_is_hardly_luck():
    """Few large targets decide the error: a count of nearer rows would call this model luck."""
    random = np.random.default_rng(0)
    x = random.exponential(size=400) ** 2
    found = er.learn(pl.DataFrame({"x": x, "y": 3 * x + random.normal(size=400)}), "y", machines=["ridge"])
    r2 = next(score for score in found.test.scores if score.name == "r2")
    assert r2.interval[0] > 0.3
    assert "hardly luck" in found.test.luck


@pytest.mark.parametrize(
    ("name", "classes", "meant"),
    [("auc", 2, "roc_auc"), ("auc", 3, "roc_auc_ovr"), ("f1", 3, "f1_macro"), ("f1", 2, "f1"), ("rmse", 0, "rmse")],
)
def test_scores_by_their_usual_names(name, classes, meant):
    assert metric_for(name, np.arange(classes) if classes else None, False).name == meant


@pytest.mark.parametrize(
    ("name", "classes", "words"),
    [
        ("rmse", 2, "metric='rmse' does not suit a target that holds classes"),
        ("auc", 0, "metric='auc' does not suit a target that holds numbers"),
        ("acuracy", 2, "metric='acuracy' is not known"),
        ("adjusted_rand_score", 0, "does not suit"),
    ],
)
def test_a_score_is_checked_against_the_target(name, classes, words):
    with pytest.raises(EmpiriskError, match=words):
        metric_for(name, np.arange(classes) if classes else None, False)


def test_every_usual_name_is_a_score():
    for name in ALIASES:
        for classes in (2, 3):
            if name not in ("mape", "ap"):
                assert metric_for(name, np.arange(classes), False)


def test_a_result_looks_like_one():
    found = er.learn("iris", machines=["centroid"])
    lines = repr(found).splitlines()
    assert lines[0] == "iris: Nearest centroid for species"
    assert lines[1].split() == ["machine", "accuracy", "compared", "with", "the", "one", "chosen"]
    assert lines[2].startswith("Nearest centroid ")
    assert lines[2].endswith("chosen")
    assert lines[-1] == found.summary()
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + len(found.standings)
    assert "<th>machine</th>" in html


def unbalanced(rows=600, share=0.05):
    random = np.random.default_rng(0)
    rare = random.random(rows) < share
    X = random.normal(size=(rows, 2)) + 2.5 * rare[:, None]
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(rare, "rare", "usual")})


@pytest.fixture(scope="module")
def rare():
    """What is learned of a rare class, by the score that it decides on itself and by one that is asked for."""
    return [
        er.learn(unbalanced(1500, 0.03), "y", machines=["logistic"], metric=metric) for metric in (None, "accuracy")
    ]


def test_with_a_rare_class_the_headline_says_what_was_found(rare):
    found, asked = rare
    said, are = found.test.predictions == "rare", found.test.truth == "rare"
    hits = int((said & are).sum())
    assert found.metric == "average_precision"
    assert found.summary().startswith("On 300 rows it had never seen, the model finds ")
    assert f" of the {are.sum()} with y rare among the {max(are.sum(), 10)} rows that it scores" in found.summary()
    score = f"(F1 score {f1_score(are, said):.3g}). Its average precision is "
    since = f" (from a probability of {found.test.threshold[1]:.2g} on)" if found.test.threshold else ""
    assert f"of {said.sum()} that it calls rare{since}, {hits} are {score}" in found.summary()
    assert "F1 score" in asked.summary()


def test_luck_is_judged_by_the_score_that_decides(rare):
    found, by_right_answers = rare
    assert found.test.luck.startswith(
        "Dealt to other rows at random, 99 times, the same answers' average precision is 0.0"
    )
    assert found.test.luck.endswith("Chance alone does as well with probability 1 %: hardly luck.")
    random = np.random.default_rng(0)
    noise = unbalanced(1500, 0.03).with_columns(a=random.normal(size=1500), b=random.normal(size=1500))
    of_noise = er.learn(noise, "y", machines=["logistic"]).test.luck
    assert found.test.luck != of_noise
    assert "it could be luck" in of_noise
    assert by_right_answers.test.luck.startswith("Guessing 'usual' for every row errs in")


def test_balance_does_not_hurt_the_nearest_centroid():
    plain, balanced = (
        er.learn(unbalanced(), "y", machines=["centroid"], metric="balanced_accuracy", balance=balance)
        for balance in (False, True)
    )
    first, second = ({one.name: one.mean for one in found.standings}["centroid"] for found in (plain, balanced))
    assert second == first
    assert second > 0.9


def test_least_absolute_deviations_know_no_unit():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 3))
    y = X @ [1.0, 2.0, -1.0] + 0.3 * random.standard_t(2, size=150)
    scores = []
    for unit in (1.0, 2.0**20, 2.0**-20):
        frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": unit * y})
        found = er.learn(frame, "y", machines=["robust"], types={"y": "number"})
        scores.append({one.name: one.mean for one in found.standings}["robust"] / unit)
    np.testing.assert_allclose(scores, scores[0], rtol=1e-3)


def test_the_pruned_tree_is_pruned():
    random = np.random.default_rng(0)
    X, noise = random.normal(size=(200, 3)), random.normal(size=200)
    size = Size.of(X, noise, 0, 0)
    for players, y in ((CLASSIFIERS, noise > 0), (REGRESSORS, noise)):
        tree = next(player for player in players if player.title == "Pruned tree")
        for machine in tree.machines(size):
            assert machine.fit(X, y).n_leaves_ < machine.set_params(ccp_alpha=0.0).fit(X, y).n_leaves_


def said(name, train, validation, floor):
    metric = find_metrics(name, np.array([0, 1]) if name == "accuracy" else None, None)[0]
    signed = (metric.sign * np.asarray(values, dtype=float) for values in (train, validation))
    return judge_learning(*signed, metric.sign * floor, metric.name, metric.sign)


def test_what_is_said_of_a_learning_curve_agrees_with_it():
    folds = np.array([-0.001, 0.0, 0.001])
    falling = said("rmse", [1.0 + folds] * 2, [1.4 + folds, 1.05 + folds], 5.0)
    assert falling.startswith("still learning")
    assert "and it falls" in falling
    assert "and it rises" in said("accuracy", [0.9 + folds] * 2, [0.8 + folds, 0.88 + folds], 0.5)
    assert said("accuracy", [0.9 + folds] * 2, [0.889 + folds, 0.89 + folds], 0.5).startswith("settled")
    rising = said("accuracy", [0.9 + folds] * 2, [0.86 + 10 * folds, 0.88 - 30 * folds], 0.5)
    assert rising.startswith("undecided")
    assert "not help" not in rising


def test_no_chance_is_none():
    errors = np.random.default_rng(0).normal(size=5000)
    assert "with probability less than 0.0001 %: hardly luck" in paired_luck(errors, 50 * errors, "rmse")
    assert "with probability less than 0.0001 %: hardly luck" in str(er.theory.luck(10, 20_000, 0.7))
