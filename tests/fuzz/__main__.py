"""Fuzz the machines.

    python -m tests.fuzz SEED ...              the cases of some seeds, one after the other
    python -m tests.fuzz --minutes 10          as many as the time allows, in processes under a watchdog

A process that is longer than a minute at one case is ended, and the case counts as a hang.
"""

import argparse
import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter, defaultdict
from typing import Any

HANG = 60.0
SHOWN = 12


def one(seed: int, timed: bool = True) -> dict[str, Any]:
    """The outcome of a seed as a plain record."""
    from tests.fuzz import cases, checks

    case = cases.make(seed)
    ended, found = checks.run(case, timed)
    return {"seed": seed, "ended": ended, "found": found, "case": str(case)}


class Worker:
    """A process that takes seeds and answers with records."""

    def __init__(self) -> None:
        one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
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
        code = self.process.wait()
        return {"seed": self.seed, "ended": "crashed", "found": [("crash", f"exit status {code}")], "case": ""}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def serve() -> None:
    """Answer seeds on the standard input with records on the standard output."""
    out, sys.stdout = sys.stdout, sys.stderr  # nothing else may write there
    for line in sys.stdin:
        print(json.dumps(one(int(line))), file=out, flush=True)


def farm(first: int, minutes: float, jobs: int, most: int) -> int:
    """Run seeds from ``first`` on, print the figures, and return how many findings there were."""
    ended: Counter[str] = Counter()
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    deadline, seed = time.monotonic() + 60 * minutes, first
    selector = selectors.DefaultSelector()

    def start() -> None:
        worker = Worker()
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        hand_out(worker)

    def hand_out(worker: Worker) -> None:
        nonlocal seed
        if time.monotonic() < deadline and seed < first + most:
            worker.give(seed)
            seed += 1
        else:
            selector.unregister(worker.process.stdout)
            worker.end()

    def note(record: dict[str, Any]) -> None:
        ended[record["ended"]] += 1
        for kind, sentence in record["found"]:
            found[kind].append((record["seed"], f"{sentence}\n      {record['case']}"))

    for _ in range(jobs):
        start()
    while selector.get_map():
        for key, _ in selector.select(timeout=1.0):
            worker = key.data
            note(worker.answer())
            if worker.process.poll() is None:
                hand_out(worker)
            else:
                selector.unregister(key.fileobj)
                start()
        for key in list(selector.get_map().values()):
            worker = key.data
            if time.monotonic() - worker.since > HANG:
                selector.unregister(key.fileobj)
                worker.end()
                note({"seed": worker.seed, "ended": "hung", "found": [("hang", "")], "case": ""})
                start()
    print(f"{sum(ended.values())} cases from seed {first}: " + ", ".join(f"{n} {word}" for word, n in ended.items()))
    for kind, cases in sorted(found.items()):
        print(f"{kind}: {len(cases)}")
        for number, sentence in cases[:SHOWN]:
            print(f"   {number}: {sentence}")
    return sum(map(len, found.values()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("seeds", nargs="*", type=int, help="single cases to run")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--most", type=int, default=10**9, help="the most cases to run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
    elif given.seeds:
        for seed in given.seeds:
            record = one(seed)
            print(record["case"], f"\n  {record['ended']}", *(f"\n  {kind}: {text}" for kind, text in record["found"]))
    else:
        sys.exit(1 if farm(given.first, given.minutes, given.jobs, given.most) else 0)


if __name__ == "__main__":
    main()
