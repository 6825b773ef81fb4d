"""Fuzz the machines.

    python -m tests.fuzz SEED ...                        the cases of some seeds, one after the other
    python -m tests.fuzz --seconds 600                   as many as the time allows, in processes under a watchdog
    python -m tests.fuzz --from 0 --to 100000 --out F    these seeds; each find and the figures as lines of JSON in F

A case that takes more than `HANG` seconds of the processor, all checks of it together, is ended and counts as a hang;
so does one without an answer after `SILENCE` seconds, on a machine as busy as it may be. The figures go to the screen
and are the last line of F; the exit status tells whether anything was found.
"""

import argparse
import collections
import heapq
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import Any, TextIO

HANG, SILENCE = 30.0, 600.0
SHOWN = 12
SLOWEST = 10


def one(seed: int) -> dict[str, Any]:
    """The outcome of a seed as a plain record."""
    from tests.fuzz import cases, checks

    begin = time.process_time()
    case = cases.make(seed)
    ended, found = checks.run(case, timed=True)
    seconds = round(time.process_time() - begin, 3)
    return {"seed": seed, "ended": ended, "found": found, "seconds": seconds, "case": " ".join(str(case).split())}


class Worker:
    """A process that takes seeds and answers with records."""

    def __init__(self) -> None:
        one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
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
        return self.failure("crashed", f"exit status {status}")

    def failure(self, ended: str, sentence: str) -> dict[str, Any]:
        """The record of a case that has none of its own."""
        seconds = round(time.monotonic() - self.since, 3)
        return {"seed": self.seed, "ended": ended, "found": [(ended, sentence)], "seconds": seconds, "case": ""}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def serve() -> None:
    """Answer seeds on the standard input with records on the standard output."""
    out, sys.stdout = sys.stdout, sys.stderr  # nothing else may write there
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, HANG)  # ends the process when it is over, whatever it is doing
        record = one(int(line))
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        print(json.dumps(record), file=out, flush=True)


class Figures:
    """What the records of a run add up to."""

    def __init__(self, first: int, out: TextIO | None):
        self.first, self.out, self.begin = first, out, time.monotonic()
        self.ended: collections.Counter[str] = collections.Counter()
        self.found: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
        self.slowest: list[tuple[float, int, str]] = []

    def note(self, record: dict[str, Any]) -> None:
        self.ended[record["ended"]] += 1
        for kind, sentence in record["found"]:
            find = {"find": kind, "seed": record["seed"], "says": sentence, "case": record["case"]}
            self.found[kind].append(find)
            self._write(find)
        entry = (record["seconds"], record["seed"], record["case"])
        (heapq.heappush if len(self.slowest) < SLOWEST else heapq.heappushpop)(self.slowest, entry)

    def finish(self, after: int) -> int:
        """Print and write the figures of the seeds before ``after``; how many finds there are."""
        counts = {kind: len(finds) for kind, finds in sorted(self.found.items())}
        seconds = time.monotonic() - self.begin
        slowest = sorted(self.slowest, reverse=True)
        self._write(
            {
                "from": self.first,
                "to": after,
                "cases": self.ended.total(),
                "ended": dict(self.ended),
                "finds": counts,
                "seconds": round(seconds, 1),
                "slowest": slowest,
            }
        )
        parts = ", ".join(f"{count} {word}" for word, count in sorted(self.ended.items()))
        print(f"{self.ended.total()} cases, seeds {self.first} to {after}, in {seconds:.0f} s: {parts}")
        print("the slowest took", ", ".join(f"{took:.1f} s (seed {seed})" for took, seed, _ in slowest))
        print("nothing found" if not counts else f"found {counts}")
        for kind, finds in sorted(self.found.items()):
            print(f"{kind}: {len(finds)}")
            for find in finds[:SHOWN]:
                print(f"   {find['seed']}: {find['says']}\n      {find['case']}")
        return sum(counts.values())

    def _write(self, line: dict[str, Any]) -> None:
        if self.out:
            print(json.dumps(line), file=self.out, flush=True)


def farm(first: int, after: int, seconds: float, processes: int, figures: Figures) -> int:
    """Run the seeds from ``first`` to before ``after`` while there is time; the seed that was not run any more."""
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
    return seed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("seeds", nargs="*", type=int, help="single cases to run")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--to", dest="after", type=int, default=10**9, help="the seed after the last one")
    parser.add_argument("--seconds", type=float, default=600.0, help="start no case after so many seconds")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", help="a file for the finds and the figures, as lines of JSON")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
    elif given.seeds:
        for seed in given.seeds:
            record = one(seed)
            print(record["case"], f"\n  {record['ended']}", *(f"\n  {kind}: {text}" for kind, text in record["found"]))
    else:
        with open(given.out or os.devnull, "w") as out:
            figures = Figures(given.first, out if given.out else None)
            reached = farm(given.first, given.after, given.seconds, given.processes, figures)
            sys.exit(1 if figures.finish(reached) else 0)


if __name__ == "__main__":
    main()
