"""The whole job: a table in, a tested model and a report out."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from empirisk import tables
from empirisk.contract.arguments import check_count, check_number
from empirisk.errors import EmpiriskError
from empirisk.evaluation.metrics import Metric
from empirisk.files.atomic import whole_file
from empirisk.files.models import save
from empirisk.fits.fit import listening_to
from empirisk.league import judge
from empirisk.league.arena import Arena
from empirisk.league.clock import GRACE, Clock, Stopped, pace_now
from empirisk.league.contest import Contest, Standing, sentence, winner
from empirisk.league.contestants import contestants
from empirisk.league.effects import SECONDS as EFFECT_SECONDS
from empirisk.league.effects import effects
from empirisk.league.origin import Origin
from empirisk.league.refit import fit_winner, refit_on_all
from empirisk.league.result import Learned
from empirisk.league.split import Plan, Wishes, plan
from empirisk.league.vote import members
from empirisk.linalg import threads
from empirisk.runs.journal import Journal, alone, fingerprint
from empirisk.settings import config
from empirisk.tables.explain import SENT, passed_by
from empirisk.tables.model import settings_of, uncalibrated
from empirisk.tables.profile import profile

#: Share of what is left after the test that goes into importances; the rest is for the learning curve.
LOOKING = 0.4
#: Residuals of the test kept with a model, about.
KEPT = 20_000
CALIBRATED = "its margins, calibrated on rows that it had not learned from"


class Listener:
    """Hears what happens during `learn`; every method does nothing here.

    >>> class Loud(Listener):
    ...     def chosen(self, standing):
    ...         print(standing.title)
    >>> found = er.learn("iris", machines=["centroid"], listener=Loud())
    Nearest centroid
    """

    def doing(self, what: str) -> None:
        """A step begins that may take a while, such as "Ridge regression, fold 2 of 5"."""

    def understood(self, found: Plan) -> None:
        """The table was read and split."""

    def deciding(self, metric: Metric) -> None:
        """The score that decides is known."""

    def played(self, standing: Standing) -> None:
        """A contestant's standing changed."""

    def stopped(self, reason: str) -> None:
        """The contest ended early."""

    def chosen(self, standing: Standing) -> None:
        """The winner is known."""

    def done(self, learned: Learned) -> None:
        """The result is there."""


def learn(
    data: Any,
    target: str | None = None,
    *,
    metric: str | None = None,
    test: float = 0.2,
    folds: int | None = None,
    groups: str | None = None,
    time_order: str | None = None,
    machines: Sequence[str] | None = None,
    time: float | None = None,
    balance: bool = False,
    drop: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    jobs: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    test_file: Any = None,
    refit: bool = False,
    force: bool = False,
    header: bool = True,
    listener: Listener | None = None,
) -> Learned:
    """Train, select, test honestly, and write a model and a report.

    The test part is held out first. On the rest, kinds of machines, and a vote of the best, compete on the same folds,
    with all that is learned from data learned inside the folds; the simplest machine that is not worse than the best by
    more than one standard error of their difference is refitted and tested once.

    Parameters
    ----------
    data : path, name of a bundled table, or frame
        The table.
    target : str
        The column to predict; bundled tables know their own.
    metric : str, optional
        Such as "auc", "f1", "logloss", "rmse" or "mae", or a scorer's name of scikit-learn; by default the root mean
        squared error of numbers, and accuracy of classes, or average precision where one of them is rare.
    test : float
        Share of the rows that are held out.
    folds : int, optional
        Number of folds of the contest; 5 by default, and 3 beyond 100 000 rows.
    groups, time_order : str, optional
        A column whose values stay on one side of every split; a column that orders the rows in time.
    machines : list of str, optional
        Which kinds compete, such as ["logistic", "forest"]; all by default.
    time : float, optional
        Seconds that all of it may take.
    balance : bool
        Whether classes count alike, however many rows they have.
    drop : list of str
        Columns to leave out.
    types : dict, optional
        What columns hold, where the guess is wrong: {"zip": "category"}, or number, boolean, date, text, several.
    jobs : int, optional
        Threads.
    seed : int
        Same seed, same result.
    out : path, optional
        Writes ``<out>.model`` and ``<out>.report.html``; run again after it was killed, it goes on where it was.
    test_file : path or frame, optional
        Rows to test on, instead of a share of the table.
    refit : bool
        Whether the final model learns from all rows, those of the test too. The scores are those of the one tested.
    force : bool
        Whether an earlier ``<out>.model`` may be replaced.
    header : bool
        Whether the first row of a text table names the columns; else they are column_1, column_2, ...
    listener : Listener, optional
        Hears what happens.

    Returns
    -------
    Learned

    Examples
    --------
    >>> found = er.learn("iris", machines=["logistic", "tree"])
    >>> found.winner
    'logistic'
    >>> found.test.scores[0].value > 0.9
    True
    >>> found.model.predict(er.tables.read("iris").head(2))
    array(['setosa', 'setosa'], dtype='<U10')
    """
    given = dict(locals())
    begin, work = perf_counter(), process_time()
    listener = listener or Listener()
    check_count("folds", folds, 2, optional=True)
    check_count("seed", seed, 0)
    limit = np.inf if time is None else check_number("time", time, 0, above=True)
    wishes = Wishes(target, test, folds, groups, time_order, _names(drop), seed, tuple((types or {}).items()))
    paths = None if out is None else file_paths(Path(out), force)
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)  # all that is to be said is told
    with config(threads=jobs), nullcontext() if out is None else alone(Path(out)), quiet:
        listener.doing(f"reading {data}" if isinstance(data, (str, Path)) else "reading the table")
        found = plan(data, wishes, test_file, header)
        players = contestants(found.classes is not None, _names(machines) if machines is not None else None)
        decides = judge.metric_for(metric, found.classes, balance, found.y[found.train])
        listener.understood(found)
        listener.deciding(decides)
        contest = Contest(
            Arena(found.frame[found.train], found.y[found.train], found.encoder, found.folds, seed),
            decides,
            Clock(
                limit,
                begin,
                work,
                len(found.test),
                judge.scoring(found.classes),
                pace=1.0 if time is None else pace_now(),
            ),
            _journal(paths, found, wishes, decides.name, balance),
            0 if found.classes is None else len(found.classes),
            seed,
            balance,
            listener.doing,
        )
        with contest.presses as presses:
            standings = _contest(contest, players, listener)
            if presses.first.is_set() and not any(standing.eligible for standing in standings):
                raise KeyboardInterrupt
            best = winner(standings)
            listener.chosen(best)
            learned = _finish(found, contest, standings, best, decides, refit)
            listener.doing("drawing and writing")
            learned = replace(learned, seconds=perf_counter() - begin, origin=Origin.of(learn, given))
            if paths is not None:
                from empirisk.report.page import page  # what draws takes a while to import, and is needed at the end

                with threads.stopping(lambda: contest.clock.over):  # pictures for which there is no time are left out
                    report = page(learned, paths["model"].name)
                presses.last_word()
                write(learned.model, report, paths)
    listener.done(learned)
    return learned


def _contest(contest: Contest, players: Sequence[Any], listener: Listener) -> list[Standing]:
    """The final standing of everyone who got to play, best first."""
    standings: dict[str, Standing] = {}
    try:
        with warnings.catch_warnings(action="ignore"):  # what is to be said of a fit is in the table
            for standing in contest.play(players):
                standings[standing.name] = standing
                listener.played(standing)
    except Stopped as reason:
        listener.stopped(str(reason))
        for place, player in enumerate(players):
            unheard = Standing(player.name, player.title, place, state="out", remark=f"{reason} before its turn")
            standings.setdefault(player.name, unheard)
    return sorted(standings.values(), key=lambda standing: (standing.state != "done", -standing.mean))


def _finish(found: Plan, contest: Contest, standings: list, best: Standing, metric: Metric, on_all: bool) -> Learned:
    """Refit the winner on the training part, test it once, and say what is to be said."""
    begin, clock, seed = perf_counter(), contest.clock, contest.seed
    held_out = len(found.test)
    pipeline, rows, found = fit_winner(found, contest, best)
    share = 1 / max(len(found.folds) - 1, 1)
    contest.tell("the test")
    tested = judge.test(found, pipeline, metric)
    once = perf_counter() - begin
    extras = Extras(contest)
    final = extras.get("the refit on all rows", lambda: refit_on_all(found, best)) if on_all else None
    importances = extras.get(
        "importances",
        lambda: judge.importances(found, pipeline, metric, seed, min(judge.IMPORTANCE_SECONDS, LOOKING * clock.rest)),
    )
    leading = _leading(importances, found)
    seen = leading and extras.get(
        "effects", lambda: effects(found, pipeline, leading, seed, min(EFFECT_SECONDS, LOOKING * clock.rest))
    )
    curve = extras.get(
        "the learning curve",
        lambda: judge.curve(found, best, metric, seed, once, min(judge.CURVE_SECONDS, clock.rest)),
    )
    remarks = [*found.warnings, *_on_fewer_rows(found, rows, held_out), *extras.sentences()]
    model = _model(found, final or pipeline, tested, best, rows)
    if final is not None:
        model.description["refitted"] = f"on all {len(found.y):,} rows"
        remarks.append(
            f"The model in the file learned from all {len(found.y):,} rows; the scores are those of the same machine "
            f"learned from {rows:,}, tested on the others."
        )
    return Learned(
        name=Path(found.name).stem or "table",
        target=found.target.name,
        model=model,
        standings=standings,
        winner=best.name,
        metric=metric.name,
        test=tested,
        train_rows=rows,
        twins=found.twins,
        sign=metric.sign,
        warnings=remarks,
        differences=judge.differences(standings, best, share),
        intervals={one.name: judge.interval(one, metric, share) for one in standings if one.state == "done"},
        importances=importances or [],
        effects=seen or [],
        curve=curve,
        plan=found,
    )


def _model(found: Plan, pipeline: Any, tested: Any, best: Standing, rows: int) -> tables.TableModel:
    """The model, with its scores and what is worth knowing of it."""
    for machine in map(uncalibrated, members(pipeline[-1])):
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
    if hasattr(pipeline[-1], "calibrated_classifiers_"):
        description["probabilities"] = CALIBRATED
        pipeline[-1].set_params(cv=len(found.folds))  # and not the rows of every fold
    residuals = None
    if found.classes is None:
        residuals = np.sort(tested.truth - tested.predictions)[:: len(found.test) // KEPT + 1]
    return tables.TableModel(
        found.schema,
        pipeline,
        found.target,
        {one.name: {"value": one.value, "low": one.interval[0], "high": one.interval[1]} for one in tested.scores},
        description,
        residuals,
        profile(found.frame[found.train], found.schema),
        passed_by(machine, pipeline[0].transform(found.frame[found.train[:SENT]])),
    )


def _on_fewer_rows(found: Plan, rows: int, held_out: int) -> list[str]:
    """What the time given did not allow for."""
    sentences = []
    if rows < len(found.train):
        sentences.append(
            f"The model learned from {rows:,} of {len(found.train):,} training rows: give more time for all of them."
        )
    if len(found.test) < held_out:
        sentences.append(f"It was tested on {len(found.test):,} of {held_out:,} rows that were held out, for the time.")
    return sentences


def _leading(importances: list | None, found: Plan) -> list[str]:
    """The columns that matter most, as far as that is known; values of texts are too many to be tried one by one."""
    drawn = set(found.schema.named(lambda kind: bool(kind.drawn)))
    known = [name for name, fall, _ in importances or [] if fall > 0]
    names = known if importances else [column.name for column in found.schema.used]
    return [name for name in names if name in drawn]


class Extras:
    """Parts of the report that a result can do without: what fails, or what nobody waits for, is named."""

    def __init__(self, contest: Contest):
        self._presses, self._clock, self._tell = contest.presses, contest.clock, contest.tell
        self._failed: list[str] = []
        self._lacking: dict[str, list[str]] = {}

    def get(self, name: str, work: Callable[[], Any]) -> Any:
        """What ``work`` gives, or None."""
        pressed = self._presses.first.is_set

        def over() -> bool:
            return pressed() or self._clock.rest <= 0

        found = None
        try:
            if not over():
                self._tell(name)
                # What was cut is not used, so that nobody need be warned of it.
                quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
                with listening_to(over), threads.stopping(over), quiet:
                    found = threads.until(lambda: self._clock.end - self._clock.writing + GRACE, work)
        except (threads.Stopped, KeyboardInterrupt):
            if self._presses.second.is_set() or not over():
                raise
        except Exception as problem:  # noqa: BLE001 - a result is never lost for the sake of a picture
            self._failed.append(f"{name[0].upper()}{name[1:]} could not be made: {sentence(problem)}")
            return None
        if over():  # what a cut fit says is worth nothing
            found = None
        if not found and (pressed() or self._clock.limited):
            self._lacking.setdefault("Ctrl-C" if pressed() else "The time given", []).append(name)
        return found

    def sentences(self) -> list[str]:
        """What is lacking, and why."""
        left_out = [f"{reason} left no room for {_listed(names)}." for reason, names in self._lacking.items()]
        return self._failed + left_out


def _listed(names: list[str]) -> str:
    """Names as people list them: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def file_paths(out: Path, force: bool) -> dict[str, Path]:
    """Where the files go; the folder must take them, so that nothing is learned in vain."""
    if not out.name:
        raise EmpiriskError(f"out={str(out)!r} is no name for files; give one such as 'spam'.")
    if not out.parent.is_dir():
        raise EmpiriskError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first.")
    try:
        with TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise EmpiriskError(
            f"out={str(out)!r}: nothing can be written to the folder {str(out.parent)!r} ({error.strerror}); "
            "choose another place."
        ) from error
    paths = {kind: out.with_name(f"{out.name}.{kind}") for kind in ("model", "report.html")}
    if paths["model"].exists() and not force:
        raise EmpiriskError(
            f"out={str(out)!r}: {str(paths['model'])!r} exists; choose another name, or replace it with --force "
            "(force=True)."
        )
    return paths


def _journal(paths: dict[str, Path] | None, found: Plan, *job: Any) -> Journal:
    """Beside the model, one for each job: another job never finds this one's results. In memory without a place."""
    if paths is None:
        return Journal(None, str)
    mark = fingerprint(found.frame.schema, found.frame.hash_rows(seed=1).to_numpy(), found.y, *job)
    # Twelve letters tell all runs in a folder apart.
    return Journal(paths["model"].with_suffix(f".{mark[:12]}.journal"), lambda: mark)


def write(model: tables.TableModel, report: str, paths: dict[str, Path]) -> None:
    """The report first: where it fails, no model is left without one."""
    with whole_file(paths["report.html"]) as file:
        file.write(report.encode())
    save(model, paths["model"], durations=False)
    begun = [f".{path.name}.{'[0-9a-f]' * 16}.part" for path in paths.values()]  # by runs that were killed
    for pattern in (f"{paths['model'].stem}.{'[0-9a-f]' * 12}.journal", *begun):
        for file in paths["model"].parent.glob(pattern):
            file.unlink(missing_ok=True)
