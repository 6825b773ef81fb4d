"""The winner on all training rows, or on as many as the time allows; and the test on as many rows as that."""

import warnings
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from empirisk.league.candidates.calibrate import calibrated
from empirisk.league.contest.budget import FIT_MARGIN, GRACE_SECONDS, PREDICTIONS, REFIT_MARGIN
from empirisk.league.contest.contest import Contest
from empirisk.league.contest.fold import MIN_FIT_SECONDS, limit, was_cut
from empirisk.league.contest.schedule import ROWS_FACTOR, WORTHWHILE
from empirisk.league.records import CandidateResult
from empirisk.league.rows.encoded_folds import sample
from empirisk.league.rows.split import Plan
from empirisk.league.verdict.all_rows import fit_on_files
from empirisk.linalg import threads
from empirisk.messages import coded
from empirisk.stop import Stopped, listening_to, stopping

#: Test rows that are asked for however short the time is.
MIN_TESTED_ROWS = 200
#: The share of the limit that the test may take, even where nothing is left.
MIN_TEST_SHARE = 0.03
#: Fits that a calibration takes: on the folds, and on all rows.
CALIBRATION_FITS = 6
#: The pipeline, the number of rows it learned from, and the plan with the rows that there is time to test.
Refit = tuple[Pipeline, int, Plan]


def fit_winner(contest: Contest, best: CandidateResult) -> Refit:
    """Fit the winner again on all training rows; where time is short, on as many as it allows, perhaps on none."""
    plan = contest.plan
    with listening_to(
        contest.interrupts.second.is_set
    ):  # the first Ctrl-C asks for what is done, and this belongs to it
        if not contest.budget.limited:
            contest.tell(f"{best.title}, on all {len(plan.train):,} rows")
            machine = _with_probabilities(plan, best.machine, plan.train)
            found = _fitted(plan, machine, plan.train), len(plan.train), plan
        else:
            found = _in_time(_tested_in_time(plan, contest, best), contest, best)
        return found if plan.files is None else _on_files(contest, best, *found)


def _on_files(contest: Contest, best: CandidateResult, pipeline: Pipeline, rows: int, plan: Plan) -> Refit:
    """The winner on all rows of a table that is larger than memory, where it can learn from files."""
    contest.tell(f"{best.title}, on all rows of the files")
    seconds = contest.budget.rest_but_files - _testing(len(plan.test), contest, best)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        learned, count, said = fit_on_files(plan, pipeline, seconds if contest.budget.limited else np.inf)
    count = rows if learned is pipeline else count
    return learned, count, replace(plan, warnings=[*plan.warnings, coded("ER033", said)])


def refit_on_all(plan: Plan, best: CandidateResult) -> Pipeline:
    """The winner on all rows, those of the test too."""
    rows = np.arange(len(plan.y))
    return _fitted(plan, _with_probabilities(plan, best.machine, rows), rows)


def _in_time(plan: Plan, contest: Contest, best: CandidateResult) -> Refit:
    """Fits on more and more rows, each as many as the time that is left allows by the pace of the last."""
    everyone, testing = len(plan.train), _testing(len(plan.test), contest, best)
    ready, pace = next(reversed(contest.store.fitted(best)), None), best
    # Of a match that is in the journal only, nothing is fitted: that is done first, whatever it takes.
    rows = best.rows if ready is None else _affordable(everyone, contest, pace, testing)
    contest.budget.look_again_where(lambda: rows < everyone)
    rows = rows if ready is None else _affordable(everyone, contest, pace, testing)
    while ready is None or rows >= min(WORTHWHILE * pace.rows, everyone) > pace.rows:
        contest.tell(f"{best.title}, on {'all ' if rows == everyone else ''}{rows:,} rows")
        chosen = sample(plan.y[plan.train], rows, contest.request.seed, plan.train)
        begin, hurried = perf_counter(), ready is not None
        try:
            with stopping(lambda hurried=hurried: hurried and contest.budget.rest_but_files <= testing):
                seconds = contest.budget.rest_but_files - testing if hurried else np.inf
                ready = _fitted(plan, best.machine, chosen, seconds)
        except Stopped:
            break
        pace = pace.timed(len(chosen), perf_counter() - begin)
        rows = _affordable(everyone, contest, pace, testing)
    assert ready is not None
    return _calibrated_in_time(plan, contest, pace, testing, ready), pace.rows, plan


def _with_probabilities(plan: Plan, machine: Any, rows: NDArray) -> Any:
    """The machine, calibrated on the folds of the contest where it gives no probabilities itself."""
    if plan.classes is None:
        return machine
    return calibrated(machine, plan.y[rows], plan.folds if len(rows) == len(plan.train) else None)


def _calibrated_in_time(
    plan: Plan, contest: Contest, pace: CandidateResult, testing: float, ready: Pipeline
) -> Pipeline:
    """The pipeline with probabilities, where there is time for the fits that a calibration takes."""
    rows = sample(plan.y[plan.train], pace.rows, contest.request.seed, plan.train)
    machine = _with_probabilities(plan, pace.machine, rows)
    if machine is pace.machine or CALIBRATION_FITS * REFIT_MARGIN * pace.seconds > contest.budget.rest - testing:
        return ready
    contest.tell(f"{pace.title}, calibrating its margins")
    try:
        with stopping(lambda: contest.budget.rest <= testing):
            return _fitted(plan, machine, rows, contest.budget.rest - testing)
    except Stopped:
        return ready


def _affordable(everyone: int, contest: Contest, pace: CandidateResult, testing: float) -> int:
    """Rows on which there is time for a fit."""
    seconds = contest.budget.rest_but_files - testing - contest.schedule.encoding_seconds(everyone)
    rows = pace.rows_for(seconds / FIT_MARGIN)
    # What few rows took says little about many: not too many more at once.
    return min(everyone, ROWS_FACTOR * pace.rows, rows)


def _fitted(plan: Plan, machine: Any, rows: NDArray, seconds: float = np.inf) -> Pipeline:
    """The pipeline on some rows; one that needs more than so many seconds is given up."""
    pipeline = plan.pipeline(machine)
    last, timed = pipeline[-1], np.isfinite(seconds)
    if timed:
        limit(last, max(seconds, MIN_FIT_SECONDS))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # the folds of a calibration may be small
        if timed:
            warnings.simplefilter("ignore", ConvergenceWarning)  # what was cut is given up
        # What does not look at the clock in time, such as compiling, is left behind.
        late = perf_counter() + seconds + GRACE_SECONDS
        threads.call_with_deadline(lambda: late, lambda: pipeline.fit(plan.frame[rows], plan.y[rows]))
    if timed and was_cut(last):
        raise Stopped
    limit(last, None)
    return Pipeline(pipeline.steps)  # what stays in a model file


def _testing(rows: int, contest: Contest, best: CandidateResult) -> float:
    """Seconds that the answers to so many rows take, and their scores."""
    judges = best.judged / max(len(best.scores), 1)
    answering = PREDICTIONS * best.predicting / max(judges, 1.0) + contest.schedule.encoding_seconds(1)
    return rows * answering + contest.budget.judging(rows)


def _tested_in_time(plan: Plan, contest: Contest, best: CandidateResult) -> Plan:
    """The plan with as many test rows as half of the time that is left allows, or a small share of all of it."""
    most = len(plan.test)
    contest.budget.look_again_where(lambda: _affordable_tests(most, contest, best) < most)
    count = max(_affordable_tests(most, contest, best), MIN_TESTED_ROWS)
    return replace(plan, test=sample(plan.y[plan.test], count, contest.request.seed, plan.test))


def _affordable_tests(most: int, contest: Contest, best: CandidateResult) -> int:
    """Test rows for which there is time."""
    seconds = max(contest.budget.rest / 2, MIN_TEST_SHARE * contest.budget.limit)
    once = _testing(0, contest, best)
    return int(min((seconds - once) / max(_testing(1, contest, best) - once, 1e-12), most))
