"""Jobs: requests, events, stopping by a call, going on where a run was, and the form in JSON."""

import inspect
import json
import threading

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.errors import EmpiriskError
from empirisk.league import Event, Job, Listener, Request
from empirisk.league.records import CandidateResult

FAST = ["centroid", "logistic"]


def table(rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 3))
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": np.where(X[:, 0] > 0, "yes", "no")})


class At(Listener):
    """Does something as soon as a candidate is done."""

    def __init__(self, name, act):
        self._name, self._act = name, act

    def played(self, result):
        if result.name == self._name and result.state == "done":
            self._act()


def test_the_options_are_written_once():
    """The call, the request and the shell take the same ones."""
    from empirisk.cli.learn import command

    options = inspect.signature(Request).parameters
    assert list(inspect.signature(er.learn).parameters) == list(options)
    assert {
        name: one.default for name, one in inspect.signature(er.learn).parameters.items() if one.default != one.empty
    } == {name: one.default for name, one in options.items() if one.default != one.empty}
    shell = set(inspect.signature(command).parameters)
    assert set(options) - shell == {"data", "header", "listener"}  # a table, --no-header and the screen
    undocumented = [
        name for name in options if f"{name} :" not in er.learn.__doc__ and f"{name}," not in er.learn.__doc__
    ]
    assert undocumented == []


def test_a_request_survives_json(tmp_path):
    request = Request(
        tmp_path / "t.csv",
        "y",
        machines="tree",
        drop=("a",),
        types={"b": "category"},
        time=3.0,
        out=tmp_path / "m",
        seed=2,
    )
    told = json.loads(json.dumps(request.to_dict()))
    again = Request.from_dict(told)
    assert again.to_dict() == told
    assert again.deciding == request.deciding
    assert told["machines"] == ["tree"]
    with pytest.raises(EmpiriskError, match="data is no file"):
        Request(table(), "y").to_dict()
    with pytest.raises(EmpiriskError, match="colour='red' is no option of learn"):
        Request.from_dict({"data": "iris", "colour": "red"})
    with pytest.raises(EmpiriskError, match="test_file decides"):
        Request("iris", test_file="iris", groups="species")


def test_events_are_told_in_json_while_it_runs_and_afterwards():
    heard = []
    job = Job(Request("iris", machines=FAST, folds=2, listener=heard.append))
    assert job.state == "waiting"
    told = list(job.start().events())
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told == [event.to_dict() for event in heard] == list(job.events())
    assert list(job.events(start=len(told) - 1)) == [told[-1]]
    kinds = [one["event"] for one in told]
    assert kinds[:3] == ["doing", "understood", "deciding"]
    assert kinds[-1] == "done"
    assert job.state == "done"
    by_kind = {one["event"]: one["about"] for one in told}
    assert by_kind["understood"]["target"] == {
        "name": "species",
        "task": "classification",
        "classes": ["setosa", "versicolor", "virginica"],
        "reason": by_kind["understood"]["target"]["reason"],
    }
    assert [column["kind"] for column in by_kind["understood"]["columns"]] == ["number"] * 4
    assert by_kind["deciding"] == {"name": "accuracy", "sign": 1.0}
    assert by_kind["chosen"]["name"] == by_kind["done"]["winner"] == job.result().winner
    assert 0 < by_kind["done"]["busy"] == job.result().busy
    assert by_kind["done"]["league"][0]["title"] == job.result().standings[0].title
    seconds = [one["seconds"] for one in told]
    assert seconds == sorted(seconds)


def test_a_candidate_survives_json():
    found = er.learn("diabetes", machines=["ridge"], folds=3)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["league"][0]["score"] > 0  # an error, as people read it
    again = CandidateResult.from_dict(told["league"][0])
    np.testing.assert_array_equal(again.scores, found.standings[0].scores)
    assert again.mean == found.standings[0].mean
    assert again.eligible
    assert json.loads(json.dumps(again.to_dict() | {"settings": told["league"][0]["settings"]})) == {
        name: value for name, value in told["league"][0].items() if name not in ("difference", "interval")
    }
    assert told["origin"]["command"] == "er.learn('diabetes', folds=3, machines=['ridge'])"


def test_finish_makes_a_model_of_what_is_done(tmp_path):
    request = Request(table(), "y", machines=FAST, out=tmp_path / "it", listener=At("centroid", lambda: job.finish()))
    job = Job(request)
    found = job.start().result(timeout=60)
    assert found.winner == "centroid"
    assert {one.name: one.state for one in found.standings}["logistic"] == "stopped"
    assert [event.about for event in job.history if event.kind == "stopped"] == ["interrupted"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["it.model", "it.report.html"]


def test_stop_ends_everything_without_a_model_and_the_next_run_goes_on(tmp_path):
    options = {"data": table(), "target": "y", "machines": FAST, "out": tmp_path / "it"}
    job = Job(Request(**options, listener=At("centroid", lambda: job.stop()))).start()
    with pytest.raises(EmpiriskError, match="stopped before it had a result"):
        job.result(timeout=60)
    assert job.state == "stopped"
    assert list(job.events())[-1]["about"] == "The job was stopped before it had a result."
    assert [path.suffix for path in tmp_path.iterdir()] == [".journal"]
    again = Job(Request(**options))
    found = again.run()
    assert [event.about for event in again.history if event.kind == "resumed"] == [10]
    fresh = er.learn(table(), "y", machines=FAST)
    assert [one.mean for one in found.standings] == [one.mean for one in fresh.standings]


@pytest.mark.parametrize("step", ["chosen", "the test", "importances", "drawing and writing"])
def test_stop_ends_it_after_the_contest_too(tmp_path, step):
    def at(event: Event) -> None:
        if step in (event.kind, event.about):
            job.stop()

    job = Job(Request(table(), "y", machines=["centroid"], out=tmp_path / "it", listener=at)).start()
    with pytest.raises(EmpiriskError, match="stopped"):
        job.result(timeout=60)
    assert not list(tmp_path.glob("it.model")) + list(tmp_path.glob("it.report.html"))


def test_what_goes_wrong_is_the_last_event_and_raised_by_the_result():
    job = Job(Request("no.csv", "y")).start()
    with pytest.raises(EmpiriskError, match=r"There is no table 'no.csv'"):
        job.result(timeout=60)
    assert job.state == "failed"
    assert list(job.events())[-1]["about"].startswith("There is no table")
    with pytest.raises(EmpiriskError, match="started before"):
        job.run()


def test_a_result_that_is_not_there_yet():
    free = threading.Event()
    job = Job(Request("iris", machines=["centroid"], folds=2, listener=At("baseline", lambda: free.wait(60)))).start()
    with pytest.raises(EmpiriskError, match="not over after"):
        job.result(timeout=0.01)
    free.set()
    assert job.result(timeout=60).winner == "centroid"
