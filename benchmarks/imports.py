"""Seconds of a fresh process until names can be used: ``python -m benchmarks imports``.

What counts is the time beyond scikit-learn's own import: the median over several processes, with bytecode already
written.
"""

import os
import statistics
import subprocess
import sys

REPEATS = 7  # processes of each kind, in turns
#: The first is what all others are compared with.
IMPORTS = {
    "scikit-learn": "import sklearn.svm",
    "import empirisk": "import empirisk",
    "er.SVM": "import empirisk as er; er.SVM",
    "er.KMeans": "import empirisk as er; er.KMeans",
    "er.ForestClassifier": "import empirisk as er; er.ForestClassifier",
    "er.learn": "import empirisk as er; er.learn",
}
CODE = "import time; begin = time.process_time(); {}; print(time.process_time() - begin)"


def seconds(statement: str) -> float:
    """Processor time of a statement in a process of its own: other work on the machine does not count."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", CODE.format(statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings).stdout)


def run() -> None:
    for statement in IMPORTS.values():
        seconds(statement)  # writes the bytecode
    times: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(REPEATS):
        for name, statement in IMPORTS.items():
            times[name].append(seconds(statement))
    medians = {name: statistics.median(found) for name, found in times.items()}
    base = medians["scikit-learn"]
    for name, median in medians.items():
        print(f"  {name:<20} {median:5.2f} s   {median / base:4.2f} of scikit-learn   {median - base:+5.2f} s")
