"""Tables larger than memory: passes, resident memory and seconds a row against the fit in memory.

``python -m benchmarks disk`` writes 50 000 000 x 20 numbers (8 GB) to the temporary folder; ``EMPIRISK_SIZE=0.02`` is a
run of a minute, ``EMPIRISK_BENCH_BUSY=1`` counts the seconds of the processor instead of those of the clock, and
``EMPIRISK_BENCH_ROWS="logistic;PCA, 5"`` runs those machines alone. Each fit is a process of its own, whose largest
resident memory is told, as Linux counts it.
"""

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

#: Share of the full sizes.
SIZE = float(os.environ.get("EMPIRISK_SIZE", "1"))
#: Rows and columns of the whole table, rows of a file, and the budget of memory.
ROWS, COLUMNS, FILE_ROWS, MEMORY = int(50_000_000 * SIZE), 20, 1_000_000, "1GB"
#: The names of the machines that are run, or nothing.
ONLY = os.environ.get("EMPIRISK_BENCH_ROWS", "")
#: Whether seconds are those of the processor, on a machine that others use too.
BUSY = bool(os.environ.get("EMPIRISK_BENCH_BUSY"))
MACHINES = {
    "logistic": "er.LogisticRegression(C=1e-3)",
    "logistic, l1": "er.LogisticRegression(penalty='l1', C=1e-4)",
    "hinge": "er.SVM(C=1e-4, tol=1e-4)",
    "k-means, 10": "er.KMeans(10, random_state=0, max_iter=10)",
    "PCA, 5": "er.PCA(5)",
    "boosting, 100": "er.BoostingClassifier(n_estimators=100)",
}
#: The share of the rows that a machine learns from, where it is not all of them.
SHARES = {"boosting, 100": 0.4}
CODE = """
import re, time, warnings
import numpy as np, polars as pl, empirisk as er
warnings.simplefilter("ignore")
machine, files, memory = {machine}, {files!r}, {memory!r}
table = er.scan(files, target="y")
supervised = hasattr(machine, "loss")
machine.fit(er.scan(files[:1], target="y"))  # loops are compiled
if memory is None:
    frame = pl.read_parquet(files)
    X, y = frame.drop("y").to_numpy(), frame["y"].to_numpy()
    begin, work = time.perf_counter(), time.process_time()
    machine.fit(X, y) if supervised else machine.fit(X)
else:
    with er.config(memory=memory):
        begin, work = time.perf_counter(), time.process_time()
        machine.fit(table)
seconds = time.process_time() - work if {busy} else time.perf_counter() - begin
passes = table.table().place.passes if memory is not None else 0
resident = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())
print(seconds, 1024 * int(resident[1]), passes)
"""


def write(folder: Path) -> list[str]:
    """The table, in files of a million rows at most."""
    import polars as pl

    random, files = np.random.default_rng(0), []
    w = random.normal(size=COLUMNS)
    step = min(FILE_ROWS, max(ROWS // 50, 1000))
    for start in range(0, ROWS, step):
        X = random.normal(size=(min(step, ROWS - start), COLUMNS))
        y = (X @ w + 2 * random.normal(size=len(X)) > 0).astype(np.int8)
        files.append(str(folder / f"part-{start:010d}.parquet"))
        pl.DataFrame(X, schema=[f"x{j}" for j in range(COLUMNS)]).with_columns(y=y).write_parquet(files[-1])
    return files


def measured(machine: str, files: list[str], memory: str | None) -> tuple[float, float, int]:
    """Seconds, resident bytes and passes of a fit in a process of its own."""
    code = CODE.format(machine=machine, files=files, memory=memory, busy=BUSY)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return float(found[0]), float(found[1]), int(found[2])


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = write(Path(folder))
        rows = ROWS / len(written)
        print(f"  {ROWS} x {COLUMNS} rows, memory={MEMORY!r}", flush=True)
        for name in ONLY.split(";") if ONLY else MACHINES:
            machine = MACHINES[name]
            files = written[: max(1, int(SHARES.get(name, 1) * len(written)))]
            tenth, fiftieth = files[: max(1, len(files) // 10)], files[: max(1, len(files) // 50)]
            whole, resident, passes = measured(machine, files, MEMORY)
            small, _, _ = measured(machine, fiftieth, MEMORY)
            memory, _, _ = measured(machine, tenth, None)
            ratio = (whole / len(files)) / (memory / len(tenth))
            growth = math.log(whole / small) / math.log(len(files) / len(fiftieth))
            print(
                f"  {name:<14} {whole:8.2f} s   {passes:3d} passes   {resident / 1e9:5.2f} GB resident   "
                f"{1e9 * whole / (rows * len(files)):7.1f} ns a row, {ratio:4.2f} of memory   growth {growth:4.2f}",
                flush=True,
            )
