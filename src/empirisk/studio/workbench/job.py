"""The process of one run: learns what its folder asks for, writes every event into a file, and obeys its input.

A process of its own, so that whatever happens to it leaves the studio alive. A line "finish" or "stop" on its standard
input means what one and two Ctrl-C mean; its end means that the studio is gone, and what was played is in the journal.
"""

import errno
import json
import os
import sys
import threading
from pathlib import Path

from polars.exceptions import PolarsError

from empirisk.errors import EmpiriskError, labels
from empirisk.league.events import Event
from empirisk.league.jobs import Job
from empirisk.league.request import Request
from empirisk.settings import holding
from empirisk.studio.workbench.kept import KeptRows

EVENTS, RESULT = "events.jsonl", "result"
DISK_FULL = 3  # how the process ends where not even that can be written
#: Options of `learn` that the page may set, and what they are called there.
OPTIONS = {
    "target": "Predict",
    "time": "Seconds it may take",
    "machines": "Machines that compete",
    "metric": "Score that decides",
    "drop": "Columns to leave out",
    "missing": "Values that mean missing",
    "groups": "Rows that belong together share",
    "time_order": "Rows are in the order of",
    "test": "Share held out for the test",
    "folds": "Folds",
    "balance": "All classes count alike",
    "types": "Type",
    "seed": "Seed",
}


def work(folder: Path) -> None:
    """Run the request of a folder."""
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    with (folder / EVENTS).open("w", encoding="utf-8") as file:

        def listen(event: Event) -> None:
            if event.kind == "done":
                try:
                    KeptRows.of(event.about).write(folder)
                except (EmpiriskError, OSError, PolarsError) as error:
                    event = Event("failed", f"The rows of the test could not be kept: {error}", event.seconds)
            file.write(json.dumps(event.to_dict()) + "\n")
            file.flush()

        job = Job(Request(**about["request"], out=folder / RESULT, force=True, listener=listen))
        threading.Thread(target=obey, args=(job,), daemon=True).start()
        try:
            with holding(labels, OPTIONS):
                job.run()
        except OSError as error:  # an event could not be written: there is nobody to tell but the studio
            os._exit(DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else 1)
        except (Exception, KeyboardInterrupt):  # noqa: BLE001 - the last event says it, and the studio shows that
            os._exit(1)


def obey(job: Job) -> None:
    """Do what lines of the standard input say."""
    for line in sys.stdin:
        {"finish": job.finish, "stop": job.stop}[line.strip()]()
    os._exit(2)  # the studio is gone


if __name__ == "__main__":
    work(Path(sys.argv[1]))
    os._exit(0)  # threads of abandoned fits are not waited for
