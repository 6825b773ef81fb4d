"""The winner on all training rows, or on as many as the time allows; and the test on as many rows as that."""

import warnings
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from empirisk.fits.fit import listening_to
from empirisk.league.arena import sample
from empirisk.league.calibrate import calibrated
from empirisk.league.clock import ANSWERS, GRACE, LONGER, REFIT
from empirisk.league.contest import GROWTH, WORTH, Contest, Standing, limit, was_cut
from empirisk.league.split import Plan
from empirisk.linalg import threads

#: Test rows that are asked for however short the time is.
LEAST_TESTED = 200
#: The share of the limit that the test may take, even where nothing is left.
LEAST_TESTING = 0.03
#: Fits that a calibration takes: on the folds, and on all rows.
CALIBRATION = 6
#: The pipeline, the number of rows it learned from, and the plan with the rows that there is time to test.
Refit = tuple[Pipeline, int, Plan]


def fit_winner(plan: Plan, contest: Contest, best: Standing) -> Refit:
    """Fit the winner again on all training rows; where time is short, on as many as it allows, perhaps on none."""
    with listening_to(contest.presses.second.is_set):  # the first Ctrl-C asks for what is done, and this belongs to it
        if not contest.clock.limited:
            contest.tell(f"{best.title}, on all {len(plan.train):,} rows")
            machine = _with_probabilities(plan, best.machine, plan.train)
            return _fitted(plan, machine, plan.train), len(plan.train), plan
        return _in_time(_tested_in_time(plan, contest, best), contest, best)


def refit_on_all(plan: Plan, best: Standing) -> Pipeline:
    """The winner on all rows, those of the test too."""
    rows = np.arange(len(plan.y))
    return _fitted(plan, _with_probabilities(plan, best.machine, rows), rows)


def _in_time(plan: Plan, contest: Contest, best: Standing) -> Refit:
    """Fits on more and more rows, each as many as the time that is left allows by the pace of the last."""
    everyone, testing = len(plan.train), _testing(len(plan.test), contest, best)
    ready, pace = next(reversed(contest.fitted(best)), None), best
    # Of a match that is in the journal only, nothing is fitted: that is done first, whatever it takes.
    rows = best.rows if ready is None else _affordable(everyone, contest, pace, testing)
    while ready is None or rows >= min(WORTH * pace.rows, everyone) > pace.rows:
        contest.tell(f"{best.title}, on {'all ' if rows == everyone else ''}{rows:,} rows")
        chosen = sample(plan.y[plan.train], rows, contest.seed, plan.train)
        begin, hurried = perf_counter(), ready is not None
        try:
            with threads.stopping(lambda hurried=hurried: hurried and contest.clock.rest_but_files <= testing):
                seconds = contest.clock.rest_but_files - testing if hurried else np.inf
                ready = _fitted(plan, best.machine, chosen, seconds)
        except threads.Stopped:
            break
        pace = pace.on(len(chosen), perf_counter() - begin)
        rows = _affordable(everyone, contest, pace, testing)
    assert ready is not None
    return _calibrated_in_time(plan, contest, pace, testing, ready), pace.rows, plan


def _with_probabilities(plan: Plan, machine: Any, rows: NDArray) -> Any:
    """The machine, calibrated on the folds of the contest where it gives no probabilities itself."""
    if plan.classes is None:
        return machine
    return calibrated(machine, plan.y[rows], plan.folds if len(rows) == len(plan.train) else None)


def _calibrated_in_time(plan: Plan, contest: Contest, pace: Standing, testing: float, ready: Pipeline) -> Pipeline:
    """The pipeline with probabilities, where there is time for the fits that a calibration takes."""
    rows = sample(plan.y[plan.train], pace.rows, contest.seed, plan.train)
    machine = _with_probabilities(plan, pace.machine, rows)
    if machine is pace.machine or CALIBRATION * REFIT * pace.seconds > contest.clock.rest - testing:
        return ready
    contest.tell(f"{pace.title}, calibrating its margins")
    try:
        with threads.stopping(lambda: contest.clock.rest <= testing):
            return _fitted(plan, machine, rows, contest.clock.rest - testing)
    except threads.Stopped:
        return ready


def _affordable(everyone: int, contest: Contest, pace: Standing, testing: float) -> int:
    """Rows on which there is time for a fit."""
    seconds = contest.clock.rest_but_files - testing - contest.encoding(everyone)
    rows = pace.rows_for(seconds / LONGER)
    # What few rows took says little about many: not too many more at once.
    return min(everyone, GROWTH * pace.rows, rows)


def _fitted(plan: Plan, machine: Any, rows: NDArray, seconds: float = np.inf) -> Pipeline:
    """The pipeline on some rows; one that needs more than so many seconds is given up."""
    pipeline = plan.pipeline(machine)
    last, timed = pipeline[-1], np.isfinite(seconds)
    if timed:
        limit(last, max(seconds, 0.01))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # the folds of a calibration may be small
        if timed:
            warnings.simplefilter("ignore", ConvergenceWarning)  # what was cut is given up
        # What does not look at the clock in time, such as compiling, is left behind.
        late = perf_counter() + seconds + GRACE
        threads.until(lambda: late, lambda: pipeline.fit(plan.frame[rows], plan.y[rows]))
    if timed and was_cut(last):
        raise threads.Stopped
    limit(last, None)
    return pipeline


def _testing(rows: int, contest: Contest, best: Standing) -> float:
    """Seconds that the answers to so many rows take, and their scores."""
    judges = best.judged / max(len(best.scores), 1)
    answering = ANSWERS * best.predicting / max(judges, 1.0) + contest.encoding(1)
    return rows * answering + contest.clock.judging(rows)


def _tested_in_time(plan: Plan, contest: Contest, best: Standing) -> Plan:
    """The plan with as many test rows as half of the time that is left allows, or a small share of all of it."""
    seconds = max(contest.clock.rest / 2, LEAST_TESTING * contest.clock.limit)
    once = _testing(0, contest, best)
    allowed = (seconds - once) / max(_testing(1, contest, best) - once, 1e-12)
    count = max(int(min(allowed, len(plan.test))), LEAST_TESTED)
    return replace(plan, test=sample(plan.y[plan.test], count, contest.seed, plan.test))
