"""The whole job: a table in, a tested model and a report out."""

import warnings
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from time import perf_counter, process_time

from sklearn.exceptions import ConvergenceWarning

from empirisk.league.candidates.everyone import candidates_for
from empirisk.league.contest.budget import TimeBudget, pace_now
from empirisk.league.contest.contest import Contest, Resources
from empirisk.league.contest.precompile import PrecompileProcesses, nothing_compiled
from empirisk.league.events import Tell
from empirisk.league.origin import Origin
from empirisk.league.outputs import MARK_LETTERS, file_paths, write
from empirisk.league.records import FoldResult, winner
from empirisk.league.request import Request
from empirisk.league.result import Learned
from empirisk.league.rows.split import Plan, plan
from empirisk.league.verdict import judge
from empirisk.league.verdict.finish import finish
from empirisk.linalg.accelerator import accelerator
from empirisk.linalg.threads import workers
from empirisk.runs.journal import Journal, file_lock, fingerprint
from empirisk.settings import config
from empirisk.stop import InterruptCounter, Stopped, stopping


def run(request: Request, interrupts: InterruptCounter, tell: Tell) -> Learned:
    """Do what `learn` is asked for, and tell what happens.

    The first event of ``interrupts`` asks for what is done so far, the second ends everything by KeyboardInterrupt.
    """
    begin, work = perf_counter(), process_time()
    paths = None if request.out is None else file_paths(Path(request.out), request.force)
    lock = nullcontext() if request.out is None else file_lock(Path(request.out))
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)  # all that is to be said is told
    accelerator(0.0)  # a device that is not there is said at once, and not by each machine
    with config(threads=request.jobs), lock, quiet, PrecompileProcesses() as precompile:
        if nothing_compiled():
            precompile.start()
        named = isinstance(request.data, (str, Path))
        tell("doing", f"reading {request.data}" if named else "reading the table")
        found = plan(request)
        candidates = candidates_for(found.classes is not None, request.machines)
        metric = judge.metric_for(request.metric, found.classes, request.balance, found.y[found.train])
        tell("understood", found)
        budget = TimeBudget(request.seconds, begin, work, len(found.test), judge.scoring(found.classes))
        budget.written = paths is not None
        budget.pace = pace_now() if budget.limited else 1.0
        journal = _journal(paths, found, *request.deciding, metric.name)
        if journal.done:
            tell("resumed", len(journal.done))
        tell("deciding", metric)
        resources = Resources(budget, journal, interrupts, tell, precompile)
        contest = Contest(found, request, metric, candidates, resources)
        with interrupts, stopping(interrupts.second.is_set):
            try:
                return _whole(contest, paths, tell)
            except Stopped:
                if interrupts.second.is_set():
                    raise KeyboardInterrupt from None
                raise


def _whole(contest: Contest, paths: dict[str, Path] | None, tell: Tell) -> Learned:
    """Contest, refit, test, report and files."""
    results = contest.run()
    if contest.schedule.ended:
        tell("stopped", contest.schedule.ended)
    if contest.interrupts.requested() and not any(one.eligible for one in results):
        raise KeyboardInterrupt
    if contest.budget.limited:
        contest.budget.look_again(pace_now())
    best = winner(results, contest.request.prefer)
    tell("chosen", best)
    learned = finish(contest, results, best)
    tell("doing", "drawing and writing")
    seconds, used = perf_counter() - contest.budget.begin, process_time() - contest.budget.work
    busy = used / (workers() * seconds)
    learned = replace(learned, seconds=seconds, busy=busy, origin=Origin.of("learn", contest.request))
    if paths is not None:
        from empirisk.report.page import page  # what draws takes a while to import, and is needed at the end

        contest.budget.look_again_where(lambda: contest.budget.rest <= 0)
        with stopping(lambda: contest.budget.over):  # pictures for which there is no time are left out
            report = page(learned, paths["model"].name)
        contest.interrupts.ignore_interrupts()
        write(learned.model, report, paths)
    return learned


def _journal(paths: dict[str, Path] | None, found: Plan, *request: object) -> Journal:
    """Beside the model, one for each request, so that no other finds its results; in memory without a place."""
    if paths is None:
        return Journal(None, str)
    kept = [field.name for field in fields(FoldResult)]
    mark = fingerprint(found.frame.schema, found.frame.hash_rows(seed=1).to_numpy(), found.y, kept, *request)
    return Journal(paths["model"].with_suffix(f".{mark[:MARK_LETTERS]}.journal"), lambda: mark)
