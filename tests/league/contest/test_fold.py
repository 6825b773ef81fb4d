"""One play: what refuses it, and what it takes."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from sklearn.pipeline import Pipeline

import empirisk as er
from empirisk.league.contest.budget import SLOW, TimeBudget
from empirisk.league.contest.fold import FoldPlayer
from empirisk.league.contest.schedule import Play
from empirisk.league.contest.store import FoldStore
from empirisk.league.records import CandidateResult, FoldResult
from empirisk.runs.journal import Journal
from empirisk.stop import InterruptCounter


@pytest.mark.parametrize("kept", [False, True])
def test_a_vote_of_fitted_machines_takes_no_time_for_fits(kept):
    folds: Any = SimpleNamespace(rows=100)
    ridge, tree = (CandidateResult(name, name, 1, machine=one) for name, one in
                   (("ridge", er.Ridge()), ("tree", er.TreeRegressor())))  # fmt: skip
    vote = er.VoteRegressor([ridge.machine, tree.machine])
    play = Play(CandidateResult("vote", "Vote", 2, predicting=0.1), vote, folds, 0, True, 30.0, (ridge, tree))
    store, fitted = FoldStore(Journal(None, str)), Pipeline([("machine", er.Ridge())])
    for one in (ridge, tree) if kept else ():
        store.add(replace(play, result=one, setting=one.machine, voters=()), FoldResult(1.0, 15.0), fitted)
    budget = TimeBudget(20.0, learned=True)
    budget.begin_turn(0)
    metric: Any = None
    refused = FoldPlayer(metric, budget, store, InterruptCounter()).refused(play)
    assert refused is None if kept else refused.reason == SLOW
