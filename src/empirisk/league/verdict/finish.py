"""After the contest: the winner fitted again, tested once, explained, and made a model."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from empirisk import tables
from empirisk.explain.contributions import SENT, passed_by, rows_behind
from empirisk.explain.effects import SECONDS as EFFECT_SECONDS
from empirisk.explain.effects import effects
from empirisk.league.candidates.vote import last_step, members
from empirisk.league.contest.budget import GRACE_SECONDS
from empirisk.league.contest.contest import Contest
from empirisk.league.contest.fold import sentence
from empirisk.league.records import CandidateResult
from empirisk.league.result import Learned
from empirisk.league.rows.seasons import Backtest, backtest
from empirisk.league.rows.split import Plan
from empirisk.league.verdict import judge
from empirisk.league.verdict.refit import fit_winner, refit_on_all
from empirisk.linalg import threads
from empirisk.messages import coded
from empirisk.stop import Stopped, listening_to, stopping
from empirisk.tables.model import settings_of, uncalibrated
from empirisk.tables.spread import Errors, learn_spread
from empirisk.tables.understanding.profile import profile

#: Share of the time left that importances may take, and then effects; the learning curve may take the rest.
IMPORTANCES_SHARE = 0.4
#: Residuals of the test kept with a model, about.
KEPT_RESIDUALS = 20_000
CALIBRATED = "its margins, calibrated on rows that it had not learned from"


def finish(contest: Contest, results: list[CandidateResult], best: CandidateResult) -> Learned:
    """Refit the winner on the training part, test it once, and say what is to be said."""
    begin, budget, seed = perf_counter(), contest.budget, contest.request.seed
    found, metric = contest.plan, contest.metric
    held_out = len(found.test)
    pipeline, rows, found = fit_winner(contest, best)
    if contest.interrupts.second.is_set():  # by a call: a signal raises by itself
        raise KeyboardInterrupt
    share = 1 / max(len(found.folds) - 1, 1)
    contest.tell("the test")
    tested = judge.test(found, pipeline, metric)
    once = perf_counter() - begin
    sections = OptionalSections(contest)
    errors = None
    if found.classes is None:
        errors = sections.optional_section("the spread of errors", lambda: _errors(found, pipeline, tested, seed))
        errors = errors or Errors.by_prediction(tested.predictions, tested.truth)
    ahead = found.history and sections.optional_section("forecasts", lambda: backtest(found, pipeline))
    final = (
        sections.optional_section("the refit on all rows", lambda: refit_on_all(found, best))
        if contest.request.refit
        else None
    )
    importances = sections.optional_section(
        "importances",
        lambda: judge.importances(
            found, pipeline, metric, seed, min(judge.IMPORTANCE_SECONDS, IMPORTANCES_SHARE * budget.rest)
        ),
    )
    leading = _leading(importances, found)
    seen = leading and sections.optional_section(
        "effects", lambda: effects(found, pipeline, leading, seed, min(EFFECT_SECONDS, IMPORTANCES_SHARE * budget.rest))
    )
    curve = None
    if judge.curve_shares(len(found.train)):
        curve = sections.optional_section(
            "the learning curve",
            lambda: judge.curve(found, best, metric, seed, once, min(judge.CURVE_SECONDS, budget.rest)),
        )
    remarks = [*found.warnings, *_on_fewer_rows(found, rows, held_out), *sections.sentences()]
    model = _model(found, final or pipeline, tested, best, rows, errors, ahead)
    if final is not None:
        model.description["refitted"] = f"on all {len(found.y):,} rows"
        remarks.append(
            coded(
                "ER035",
                f"The model in the file learned from all {len(found.y):,} rows; the scores are those of the same "
                f"machine learned from {rows:,}, tested on the others.",
            )
        )
    return Learned(
        name=Path(found.name).stem or "table",
        target=found.target.name,
        model=model,
        standings=results,
        winner=best.name,
        metric=metric.name,
        test=tested,
        train_rows=rows,
        twins=found.twins,
        sign=metric.sign,
        warnings=remarks,
        differences=judge.differences(results, best, share),
        intervals={one.name: judge.interval(one, metric, share) for one in results if one.state == "done"},
        importances=importances or [],
        effects=seen or [],
        curve=curve,
        plan=found,
        errors=errors,
        backtest=ahead,
        more_time=contest.more_time,
        prefer=contest.request.prefer,
    )


def _model(
    found: Plan,
    pipeline: Any,
    tested: Any,
    best: CandidateResult,
    rows: int,
    errors: Errors | None,
    ahead: Backtest | None,
) -> tables.TableModel:
    """The model, with its scores and what is worth knowing of it."""
    for machine in map(last_step, members(pipeline[-1])):
        if hasattr(machine, "choice_"):  # the loss of every training row would make the file large
            machine.choice_ = replace(machine.choice_, losses=machine.choice_.mean[None])
        if hasattr(machine, "coef_"):  # weights say it all: no training rows are needed in the file
            for name in ("dual_coef_", "support_", "support_vectors_"):
                vars(machine).pop(name, None)
    description = {
        "machine": best.title,
        "settings": settings_of(pipeline[-1]),
        "rows": rows,
        "tested": len(found.test),
    }
    if tested.threshold is not None and found.classes is not None:
        place, from_here = tested.threshold
        description["threshold"] = f"{found.target.name} {found.classes[place]} is named from {from_here:.2g} on"
    if hasattr(pipeline[-1], "calibrated_classifiers_"):
        description["probabilities"] = CALIBRATED
        pipeline[-1].set_params(cv=len(found.folds))  # and not the rows of every fold
    encoded = pipeline[0].transform(found.frame[np.random.default_rng(0).permutation(found.train)[:SENT]])
    passed = passed_by(uncalibrated(pipeline[-1]), encoded)
    residuals = None if errors is None else np.sort(errors.scaled)[:: len(found.test) // KEPT_RESIDUALS + 1]
    return tables.TableModel(
        found.schema,
        pipeline,
        found.target,
        {one.name: {"value": one.value, "low": one.interval[0], "high": one.interval[1]} for one in tested.scores},
        description,
        residuals,
        profile(found.frame[found.train], found.schema),
        passed,
        None if errors is None else errors.spread,
        None if errors is None else _limits(found),
        tested.threshold,
        found.history if ahead is None or found.history is None else replace(found.history, growth=ahead.growth),
        _example(found),
        rows_behind(uncalibrated(pipeline[-1]), passed, encoded),
    )


def _example(found: Plan) -> dict[str, Any]:
    """A training row as a service is asked for it; in order of time with the last moment that is known."""
    row, history = found.schema.example(found.frame[found.train]), found.history
    if history is None:
        return row
    last = history.times(history.moments[-1:])[0]
    return {history.time.name: history.time.type.as_json(last)} | {
        name: value for name, value in row.items() if name not in history.names
    }


def _errors(found: Plan, pipeline: Any, tested: Any, seed: int) -> Errors:
    """How far predictions were off in the test, and how far they are to be expected to be, row by row."""
    rows = np.arange(len(found.test))[:: len(found.test) // KEPT_RESIDUALS + 1]
    X = pipeline[0].transform(found.frame[found.test[rows]])
    return learn_spread(X, tested.predictions[rows], tested.truth[rows], seed)


def _limits(found: Plan) -> tuple[float, float]:
    """Between what numbers the target lies: those that it has had or, in order of time, zero where none is below it."""
    low, high = float(found.y.min()), float(found.y.max())
    return (low, high) if not found.in_order else (0.0 if low >= 0 else -np.inf, 0.0 if high <= 0 else np.inf)


def _on_fewer_rows(found: Plan, rows: int, held_out: int) -> list[str]:
    """What the time given did not allow for."""
    sentences = []
    if rows < len(found.train):
        sentences.append(
            f"The model learned from {rows:,} of {len(found.train):,} training rows: give more time for all of them."
        )
    if len(found.test) < held_out:
        sentences.append(f"It was tested on {len(found.test):,} of {held_out:,} rows that were held out, for the time.")
    return [coded("ER033", sentence) for sentence in sentences]


def _leading(importances: list | None, found: Plan) -> list[str]:
    """The columns that matter most, as far as that is known; values of texts are too many to be tried one by one."""
    drawn = set(found.schema.named(lambda kind: bool(kind.drawn)))
    known = [name for name, fall, _ in importances or [] if fall > 0]
    names = known if importances else [column.name for column in found.schema.used]
    return [name for name in names if name in drawn]


class OptionalSections:
    """Parts of the report that a result can do without: what fails, or what nobody waits for, is named."""

    def __init__(self, contest: Contest):
        self._interrupts, self._budget, self._tell = contest.interrupts, contest.budget, contest.tell
        self._failed: list[str] = []
        self._lacking: dict[str, list[str]] = {}

    def optional_section(self, name: str, work: Callable[[], Any]) -> Any:
        """What ``work`` gives, or None."""
        pressed = self._interrupts.requested

        def over() -> bool:
            return pressed() or self._budget.rest <= 0

        found = None
        try:
            self._budget.look_again_where(lambda: not pressed() and over())
            if not over():
                self._tell(name)
                # What was cut is not used, so that nobody need be warned of it.
                quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
                with listening_to(over), stopping(over), quiet:
                    found = threads.call_with_deadline(
                        lambda: self._budget.end - self._budget.writing + GRACE_SECONDS, work
                    )
        except (Stopped, KeyboardInterrupt):
            if self._interrupts.second.is_set() or not over():
                raise
        except Exception as problem:  # noqa: BLE001 - a result is never lost for the sake of a picture
            self._failed.append(f"{name[0].upper()}{name[1:]} could not be made: {sentence(problem)}")
            return None
        if over():  # what a cut fit says is worth nothing
            found = None
        if not found and (pressed() or self._budget.limited):
            self._lacking.setdefault("Ctrl-C" if pressed() else "The time given", []).append(name)
        return found

    def sentences(self) -> list[str]:
        """What is lacking, and why."""
        left_out = [f"{reason} left no room for {_listed(names)}." for reason, names in self._lacking.items()]
        return [coded("ER034", failed) for failed in self._failed] + [coded("ER033", lacking) for lacking in left_out]


def _listed(names: list[str]) -> str:
    """Names as people list them: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
