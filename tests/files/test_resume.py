"""A run of `learn` that was killed and started again writes the model of an undisturbed run, to the byte."""

import numpy as np
import pytest

import empirisk as er
from tests.files.kills import FOLD, READ, Case, Moment, killed, tables, whole

#: Run by `make test-all`.
pytestmark = pytest.mark.long


def test_killed_and_resumed_is_the_same_to_the_byte(tmp_path):
    """Three kills of one run; more of them, of more tables: ``python -m tests.files.kills``."""
    case = Case("texts", (FOLD, READ, Moment(".model")))
    table = tmp_path / f"{case.table}.csv"
    tables()[case.table].write_csv(table)
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    ended = killed(table, tmp_path / "killed" / "out", case, whole(table, tmp_path / "whole" / "out"))
    assert ended.resumed, ended
    assert ended.equal
    assert ended.tidy


def test_without_durations_the_same_work_gives_the_same_bytes(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    for machine in (er.LogisticRegression(), er.BoostingRegressor(n_estimators=3, random_state=0)):
        for name in ("a", "b"):
            er.save(machine.fit(X, (X[:, 0] > 0) * 1), tmp_path / name, durations=False)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        loaded = er.load(tmp_path / "a")
        assert "seconds" not in loaded.history_
    assert np.isnan(er.load(tmp_path / "a").history_["loss"]).sum() == 0


def test_a_certificate_without_seconds_says_none(tmp_path):
    machine = er.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    er.save(machine, tmp_path / "a", durations=False)
    assert " s;" not in str(er.load(tmp_path / "a").certificate_)
    assert " s;" in str(machine.certificate_)
