"""Fuzz the machines.

    python -m tests.fuzz SEED ...                        the cases of some seeds, one after the other
    python -m tests.fuzz --seconds 600                   as many as the time allows, in processes under a watchdog
    python -m tests.fuzz --from 0 --to 100000 --log F    these seeds; each find and the figures as lines of JSON in F
    python -m tests.fuzz --from 0 --count 12500 --processes 1    a slice of the seeds, in one process under a watchdog

Seeds from 10 000 000 on (`cases.EVERY`) stand for machines of every public class, those below for the equation above
all. A case that takes more than `HANG` seconds of the processor, all checks of it together, is ended and counts as a
hang; so does one without an answer after `SILENCE` seconds, on a machine as busy as it may be. Finds are printed as
they come and the counts every `PERIOD` seconds, so a run that is killed has told what it found; the figures go to F
just as often, and at the end, also after Ctrl-C or SIGTERM, to the screen, with the counts as the last line. The exit
status tells whether anything was found. What needs CVXPY, pandas, Polars or JAX is left out where they are missing.
"""

import argparse
import collections
import contextlib
import heapq
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, TextIO

HANG, SILENCE = 30.0, 600.0
#: Seconds between two lines of figures.
PERIOD = 30.0
SHOWN = 12
SLOWEST = 10


def one(seed: int) -> dict[str, Any]:
    """The outcome of a seed as a plain record."""
    from tests.fuzz import cases, checks

    begin = time.process_time()
    case = cases.make(seed)
    ended, found = checks.run(case, timed=True)
    return {
        "seed": seed,
        "class": type(case.machine).__name__,
        "ended": ended,
        "found": found,
        "seconds": round(time.process_time() - begin, 3),
        "case": " ".join(str(case).split()),
    }


def class_of(seed: int) -> str:
    """The class of a seed whose fit has not come back."""
    from tests.fuzz import cases

    try:
        return type(cases.make(seed).machine).__name__
    except Exception as error:  # noqa: BLE001 - the case itself may be what went wrong
        return type(error).__name__


class Worker:
    """A process that takes seeds and answers with records."""

    def __init__(self) -> None:
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process lives
        one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            env=os.environ | one_thread,
        )
        self.seed, self.since = -1, 0.0

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.process.stdin.write(b"%d\n" % seed)
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The record of the seed; the end of the process without one is a crash."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        status = self.process.wait()
        if status == -signal.SIGPROF:
            return self.failure("hung", f"ended after {HANG:.0f} s of the processor")
        self.complaints.seek(0)
        last = self.complaints.read().decode(errors="replace").strip().splitlines()[-1:]
        return self.failure("crashed", " ".join([f"exit status {status}", *last]))

    def failure(self, ended: str, sentence: str) -> dict[str, Any]:
        """The record of a case that has none of its own."""
        seconds = round(time.monotonic() - self.since, 3)
        found, name = [(ended, sentence)], class_of(self.seed)
        return {"seed": self.seed, "class": name, "ended": ended, "found": found, "seconds": seconds, "case": ""}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.complaints.close()


def serve() -> None:
    """Answer seeds on the standard input with records on the standard output."""
    out = os.fdopen(os.dup(1), "w")  # nothing else may write there, compiled code included
    os.dup2(2, 1)
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, HANG)  # ends the process when it is over, whatever it is doing
        record = one(int(line))
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        print(json.dumps(record), file=out, flush=True)


class Figures:
    """What the records of a run add up to."""

    def __init__(self, first: int, out: TextIO | None):
        self.first, self.reached, self.out = first, first, out
        self.begin = self.written = time.monotonic()
        self.ended: collections.Counter[str] = collections.Counter()
        self.classes: collections.Counter[str] = collections.Counter()
        self.found: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
        self.slowest: list[tuple[float, int, str]] = []

    def note(self, record: dict[str, Any]) -> None:
        self.ended[record["ended"]] += 1
        self.classes[record["class"]] += 1
        self.reached = max(self.reached, record["seed"] + 1)
        for kind, sentence in record["found"]:
            find = {"find": kind, "says": sentence} | {name: record[name] for name in ("class", "seed", "case")}
            self.found[kind].append(find)
            self._write(find)
            print(f"{find['seed']} {kind}: {sentence}\n   {find['case']}", flush=True)
        entry = (record["seconds"], record["seed"], record["case"])
        (heapq.heappush if len(self.slowest) < SLOWEST else heapq.heappushpop)(self.slowest, entry)
        if time.monotonic() - self.written > PERIOD:
            self.written = time.monotonic()
            self._write(self.summary())
            print(self.counts(), flush=True)

    def counts(self) -> str:
        """One line: how many cases, and how many finds of each kind; hangs, crashes and false certificates always."""
        kinds = {"hung": 0, "crashed": 0, "false certificate": 0} | {
            kind: len(finds) for kind, finds in sorted(self.found.items())
        }
        parts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return (
            f"{self.ended.total()} cases, {sum(kinds.values())} finds ({parts}), "
            f"seeds {self.first} to {self.reached}, {time.monotonic() - self.begin:.0f} s"
        )

    def summary(self) -> dict[str, Any]:
        """The figures so far, as a plain record."""
        by_class: dict[str, dict[str, list[int]]] = {}
        for kind, finds in sorted(self.found.items()):
            for find in finds:
                by_class.setdefault(find["class"], {}).setdefault(kind, []).append(find["seed"])
        return {
            "from": self.first,
            "to": self.reached,
            "cases": self.ended.total(),
            "ended": dict(self.ended),
            "finds": {kind: len(finds) for kind, finds in sorted(self.found.items())},
            "finds by class": by_class,
            "classes": dict(sorted(self.classes.items())),
            "seconds": round(time.monotonic() - self.begin, 1),
            "slowest": sorted(self.slowest, reverse=True),
        }

    def finish(self) -> int:
        """Print and write the figures; how many finds there are."""
        summary = self.summary()
        self._write(summary)
        print(", ".join(f"{count} {word}" for word, count in sorted(self.ended.items())))
        print("of", ", ".join(f"{name} {count}" for name, count in summary["classes"].items()))
        print("the slowest took", ", ".join(f"{took:.1f} s (seed {seed})" for took, seed, _ in summary["slowest"]))
        for name, kinds in summary["finds by class"].items():
            for kind, seeds in kinds.items():
                print(f"{name}, {kind}, {len(seeds)}: seeds {' '.join(map(str, seeds[:SHOWN]))}")
        print(self.counts(), flush=True)
        return sum(summary["finds"].values())

    def _write(self, line: dict[str, Any]) -> None:
        if self.out:
            print(json.dumps(line), file=self.out, flush=True)


def farm(first: int, after: int, seconds: float, processes: int, figures: Figures) -> None:
    """Run the seeds from ``first`` to before ``after`` while there is time."""
    deadline, seed = time.monotonic() + seconds, first
    selector = selectors.DefaultSelector()

    def start() -> None:
        worker = Worker()
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        hand_out(worker)

    def hand_out(worker: Worker) -> None:
        nonlocal seed
        if time.monotonic() < deadline and seed < after:
            worker.give(seed)
            seed += 1
        else:
            stop(worker)

    def stop(worker: Worker) -> None:
        selector.unregister(worker.process.stdout)
        worker.end()

    for _ in range(processes):
        start()
    while selector.get_map():
        for key, _ in selector.select(timeout=1.0):
            worker = key.data
            figures.note(worker.answer())
            if worker.process.poll() is None:
                hand_out(worker)
            else:
                stop(worker)
                start()
        for key in list(selector.get_map().values()):
            worker = key.data
            if time.monotonic() - worker.since > SILENCE:
                figures.note(worker.failure("hung", f"no answer after {SILENCE:.0f} s"))
                stop(worker)
                start()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("seeds", nargs="*", type=int, help="single cases to run")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--to", dest="after", type=int, default=10**9, help="the seed after the last one")
    parser.add_argument("--count", type=int, help="how many seeds, where --to is not given")
    parser.add_argument("--seconds", type=float, default=600.0, help="start no case after so many seconds")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--log", help="a file for the finds and the figures, as lines of JSON, written as they come")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.serve:
        tell_what_is_missing()
    if given.serve:
        serve()
    elif given.seeds:
        for seed in given.seeds:
            record = one(seed)
            print(record["case"], f"\n  {record['ended']}", *(f"\n  {kind}: {text}" for kind, text in record["found"]))
    else:
        with open(given.log or os.devnull, "w") as out:
            figures = Figures(given.first, out if given.log else None)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            after = given.after if given.count is None else min(given.after, given.first + given.count)
            with contextlib.suppress(KeyboardInterrupt):
                farm(given.first, after, given.seconds, given.processes, figures)
            sys.exit(1 if figures.finish() else 0)


def tell_what_is_missing() -> None:
    from tests.fuzz.parts import MISSING, OPTIONAL

    for name in MISSING:
        print(f"{name} is not installed: {OPTIONAL[name]} are left out", flush=True)


if __name__ == "__main__":
    main()
