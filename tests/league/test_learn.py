"""The whole job: plan, contest, verdict, files."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.league import Listener
from empirisk.league.contest.budget import OVER, SLOW, TimeBudget
from empirisk.league.records import CandidateResult, winner
from empirisk.league.request import Request
from empirisk.league.rows.split import plan

FAST = ["centroid", "logistic"]


def table(rows=300, seed=0):
    random = np.random.default_rng(seed)
    x, town = random.normal(size=rows), random.choice(["Ulm", "Bonn", "Kiel"], rows)
    score = x + 1.5 * (town == "Ulm") + 0.3 * random.normal(size=rows)
    return pl.DataFrame(
        {
            "x": [None if random.random() < 0.1 else float(value) for value in x],
            "town": town,
            "noise": random.normal(size=rows),
            "bought": np.where(score > 0.5, "yes", "no"),
            "amount": score,
        }
    )


def test_classes_from_end_to_end(tmp_path):
    found = er.learn(table(), "bought", machines=FAST, drop=["amount"], out=tmp_path / "shop")
    assert found.winner == "logistic"
    assert found.test.scores[0].name == "accuracy"
    assert found.test.scores[0].value > 0.85
    assert found.importances[0][0] in ("x", "town")
    assert {name: fall for name, fall, _ in found.importances}["noise"] < 0.03
    assert found.differences["baseline"] == "really worse"
    assert "hardly luck" in found.test.luck
    assert sorted(file.name for file in tmp_path.iterdir()) == ["shop.model", "shop.report.html"]
    again = er.load(tmp_path / "shop.model")
    np.testing.assert_array_equal(again.predict(table(seed=1)), found.model.predict(table(seed=1)))


def test_numbers_from_end_to_end():
    found = er.learn(table(), "amount", machines=["ridge", "tree"], drop=["bought"])
    assert found.winner == "ridge"
    assert found.metric == "rmse"
    assert found.standings[0].mean < 0
    assert found.sign == -1
    assert found.test.scores[0].value < 0.6
    assert "off by" in found.summary()


def test_same_seed_same_result():
    first, second = (er.learn(table(), "bought", machines=FAST, drop=["amount"], seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.test.predictions, second.test.predictions)
    assert [s.mean for s in first.standings] == [s.mean for s in second.standings]


def test_the_test_part_has_no_say():
    """Other targets in the test part change the test, and nothing else."""
    frame = table()
    rows = plan(Request(frame, "amount", drop=("bought",))).test
    amounts = frame["amount"].to_numpy().copy()
    amounts[rows] += 100.0
    first = er.learn(frame, "amount", machines=["ridge"], drop=["bought"])
    second = er.learn(frame.with_columns(amount=pl.Series(amounts)), "amount", machines=["ridge"], drop=["bought"])
    np.testing.assert_array_equal(first.model.predict(frame), second.model.predict(frame))
    assert second.test.scores[0].value > 50


def test_what_deserves_a_second_look():
    frame = table().with_columns(receipt=pl.col("bought"), row=pl.int_range(pl.len()).cast(pl.String) + "-a")
    found = plan(Request(pl.concat([frame, frame]), "bought", drop=("amount",)))
    text = " ".join(found.warnings)
    assert "'receipt' may give the target away" in text
    simple = table().select("town", "bought")
    assert "test rows equal a training row" in plan(Request(simple, "bought")).warnings[-1]


@pytest.mark.parametrize("target", ["bought", "amount"])
def test_equal_rows_stay_on_one_side(target):
    frame = pl.concat([table(), table(), table(100)]).sample(fraction=1.0, shuffle=True, seed=1)
    found = plan(Request(frame, target, drop=("amount",) if target == "bought" else ("bought",)))
    rows = found.frame.hash_rows().to_numpy()
    assert found.twins == 0
    assert not set(rows[found.train]) & set(rows[found.test])
    assert sorted([*found.train, *found.test]) == list(range(frame.height))
    assert 0.1 < len(found.test) / frame.height < 0.3
    for train, validation in found.folds:
        inside = rows[found.train]
        assert not set(inside[train]) & set(inside[validation])
        assert len(train) + len(validation) == len(found.train)
    assert "kept on one side" in " ".join(found.warnings)


def test_never_seen_is_said_only_of_rows_that_were_not():
    simple = table().select("town", "bought")
    assert "rows that were held out, " in er.learn(simple, "bought", machines=["centroid"]).summary()
    assert "rows it had never seen, " in er.learn(table(), "bought", machines=["centroid"]).summary()


def test_a_class_of_few_different_rows_is_learned_and_tested():
    rare = pl.DataFrame({"x": [9.0] * 6, "bought": ["perhaps"] * 6})
    found = plan(Request(pl.concat([table().select("x", "bought").drop_nulls(), rare]), "bought"))
    assert "perhaps" in found.y[found.train]
    assert "perhaps" in found.y[found.test]


def test_groups_stay_on_one_side():
    frame = table().with_columns(person=pl.Series(np.repeat(np.arange(60), 5)))
    found = plan(Request(frame, "bought", groups="person", drop=("amount",)))
    person = frame["person"].to_numpy()
    assert not set(person[found.train]) & set(person[found.test])
    assert "person" not in found.frame.columns
    for train, validation in found.folds:
        assert not set(person[found.train][train]) & set(person[found.train][validation])
    assert any("48 of its values are learned from, and the test is on 12 others" in told for told in found.warnings)


@pytest.mark.parametrize("target", ["bought", "amount"])
def test_few_groups_make_few_folds(target):
    frame = table().drop_nulls().with_columns(person=pl.int_range(pl.len()) % 4)
    found = plan(Request(frame, target, groups="person"))
    assert len(found.folds) == 3
    assert any("of 3 groups: 3 folds were used" in told for told in found.warnings)
    for people, told in ((1, "1 group"), (2, "2 groups")):
        with pytest.raises(EmpiriskError, match=f"groups='person': of {told}, test=0.2 leaves fewer than two"):
            plan(Request(frame.with_columns(person=pl.int_range(pl.len()) % people), target, groups="person"))


def test_time_goes_forward():
    frame = table().with_columns(day=pl.Series(np.random.default_rng(0).permutation(300)))
    found = plan(Request(frame, "bought", time_order="day", drop=("amount",)))
    day = frame["day"].to_numpy()
    assert day[found.train].max() < day[found.test].min()
    for train, validation in found.folds:
        assert day[found.train][train].max() < day[found.train][validation].min()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "bougt"}, "did you mean 'bought'?"),
        ({"target": None}, "name the column to predict"),
        ({"machines": ["forrest"]}, "did you mean 'forest'?"),
        ({"metric": "acuracy"}, "acuracy"),
        ({"test": 1.5}, "between 0 and 1"),
        ({"folds": 1}, "at least 2"),
        ({"time": -1}, "time=-1 must be a number above 0"),
        ({"drop": ["colour"]}, "drop='colour' is not a column"),
        ({"groups": "who"}, "groups='who' is not a column"),
        ({"groups": "town", "time_order": "amount"}, "give one of them"),
        ({"out": "no/such/folder/x"}, "does not exist"),
    ],
)
def test_options_that_are_wrong(change, words):
    with pytest.raises(EmpiriskError, match=words.replace("?", r"\?")):
        er.learn(table(), **({"target": "bought", "machines": FAST} | change))


def test_too_few_rows():
    with pytest.raises(EmpiriskError, match="at least 10"):
        er.learn(table(8), "bought")


def test_rare_classes_are_left_out_with_a_word():
    frame = table()
    labels = frame["bought"].to_list()
    labels[0] = "perhaps"
    found = plan(Request(frame.with_columns(bought=pl.Series(labels)), "bought", drop=("amount",)))
    assert "perhaps" not in found.target.classes
    assert "perhaps" in found.warnings[0]


def test_the_simplest_within_one_standard_error_wins():
    def standing(name, place, scores):
        return CandidateResult(name, name, place, scores=np.array(scores), state="done")

    good = standing("forest", 2, [0.90, 0.94, 0.92])
    assert winner([standing("tree", 1, [0.91, 0.92, 0.91]), good]).name == "tree"
    assert winner([standing("tree", 1, [0.80, 0.81, 0.80]), good]).name == "forest"


class Heard(Listener):
    """Notes what is said."""

    def __init__(self):
        self.reason, self.standings, self.order = "", {}, []

    def played(self, standing):
        if standing.state != "playing":
            self.order.append(f"{standing.name} {standing.state}")
        self.standings[standing.name] = standing

    def stopped(self, reason):
        self.reason = reason


def refuse_after(monkeypatch, folds, reason):
    """No fold is played any more once so many were."""
    played = iter(range(1000))
    monkeypatch.setattr(TimeBudget, "refusal", lambda budget, expected: reason if next(played) >= folds else "")


def test_the_clock_ends_the_contest(monkeypatch):
    refuse_after(monkeypatch, 7, OVER)
    heard = Heard()
    found = er.learn(table(), "bought", drop=["amount"], machines=FAST, time=1000.0, listener=heard)
    assert heard.reason == "the time is over"
    assert found.winner == "logistic"
    assert {standing.name: standing.state for standing in heard.standings.values()} == {
        "baseline": "tried",
        "logistic": "tried",
        "centroid": "tried",
    }
    assert heard.standings["logistic"].remark == "the time is over"


def test_a_slow_candidate_is_out_and_the_others_play_on(monkeypatch):
    refuse_after(monkeypatch, 0, SLOW)
    heard = Heard()
    found = er.learn(table(), "bought", drop=["amount"], machines=FAST, time=1000.0, listener=heard)
    assert heard.reason == ""
    assert found.winner == "baseline"
    assert heard.standings["centroid"].remark == "it takes more than its share of the time"
    assert heard.standings["centroid"].state == "late"


def test_a_slow_candidate_plays_on_once_the_others_are_done(monkeypatch):
    asked = iter(range(1000))
    monkeypatch.setattr(TimeBudget, "refusal", lambda budget, expected: SLOW if next(asked) == 4 else "")
    heard = Heard()
    found = er.learn(table(), "bought", drop=["amount"], machines=FAST, time=1000.0, listener=heard)
    assert heard.order[:3] == ["baseline tried", "logistic tried", "centroid tried"]
    assert heard.order[3:7] == ["logistic tried", "centroid done", "baseline done", "logistic done"]
    assert heard.order[7:] == ["logistic done"] * 2  # with settings around the best
    assert {standing.name: len(standing.scores) for standing in found.standings}["logistic"] == 5


def test_a_turn_is_twice_an_even_share():
    clock = TimeBudget(102.0, learned=True)
    clock.begin_turn(waiting=3)
    assert 45 < clock.left < 51
    clock.begin_turn(waiting=0)
    assert 95 < clock.left <= 100


SCRIPT = """
import sys, time
import empirisk as er
from empirisk.league import Listener
from tests.league.test_learn import FAST, table
class Slow(Listener):
    def played(self, standing):
        print(standing.name, flush=True)
        time.sleep(float(sys.argv[2]))
found = er.learn(table(), "bought", machines=FAST, drop=["amount"], out=sys.argv[1], listener=Slow())
print("score", found.test.scores[0].value, [s.mean for s in found.standings], flush=True)
"""


@pytest.mark.long
def test_a_run_that_was_killed_goes_on_to_the_same_result(tmp_path):
    command = [sys.executable, "-c", SCRIPT]
    whole = subprocess.run([*command, tmp_path / "a", "0"], capture_output=True, text=True, check=True).stdout
    with subprocess.Popen([*command, tmp_path / "b", "0.3"], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while running.stdout.readline().strip() != "centroid":
            pass
        time.sleep(0.5)
        os.kill(running.pid, signal.SIGKILL)
    [journal] = tmp_path.glob("b.*.journal")
    before = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len(before) > 3
    resumed = subprocess.run([*command, tmp_path / "b", "0"], capture_output=True, text=True, check=True).stdout
    assert resumed.splitlines()[-1] == whole.splitlines()[-1]
    assert not list(tmp_path.glob("*.journal"))


def test_a_linear_model_holds_weights_and_no_training_rows(tmp_path):
    found = er.learn("iris", machines=["svm"], out=tmp_path / "iris")
    loaded = er.load(tmp_path / "iris.model")
    assert not hasattr(loaded.machine, "support_vectors_")
    assert loaded.machine.coef_.shape == (3, 4)
    rows = er.tables.read("iris")
    np.testing.assert_array_equal(loaded.predict_proba(rows), found.model.predict_proba(rows))


def test_no_member_of_a_vote_holds_the_loss_of_every_training_row():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    shape = 2 * X[:, 0] + 2 * np.sin(3 * X[:, 1]) + random.normal(size=400)
    found = er.learn(pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": shape}), "y", machines=["ridge", "tree", "vote"])
    assert found.winner == "vote"
    [ridge] = [member for member in found.model.machine.estimators_ if hasattr(member, "choice_")]
    assert len(ridge.choice_.losses) == 1
