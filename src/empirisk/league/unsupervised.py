"""A table without a target: its clusters, its main directions, and the rows that fit nowhere."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline

from empirisk import tables
from empirisk.clusters.density import GaussianDensity
from empirisk.clusters.kmeans import KMeans
from empirisk.errors import TooFewRows, listed
from empirisk.formats import number, percent
from empirisk.league.origin import Origin
from empirisk.league.outputs import file_paths, write
from empirisk.league.request import Request
from empirisk.league.rows.split import remarks
from empirisk.messages import coded
from empirisk.projections.pca import PCA
from empirisk.settings import config
from empirisk.stop import CUT, Deadline, Ending, InterruptCounter, Stopped, listening_to

Array = NDArray[np.float64]

MAX_CLUSTERS = 8  # more are not told apart at a glance
SILHOUETTE_ROWS = 2000  # rows by which the number of clusters is chosen: all pairs of them are compared
MAX_DIRECTIONS = 5  # more are rarely looked at
NAMED_COLUMNS = 4  # columns that are named for a cluster or a direction
MIN_GAP = 0.25  # standard deviations by which a cluster must differ from all rows for its mean to be told
LISTED_ROWS = 10  # rows that are listed
MIN_ROWS = 10  # on fewer every row is a cluster of its own
CLEAR_SILHOUETTE = 0.25  # silhouettes above are usually called clusters
MIN_VARIANCE_SHARE = 1e-9  # directions with a smaller share of the variance are rounding


class Cluster(NamedTuple):
    """A cluster: its size, the columns in which it differs most from all rows, in standard deviations, and in words."""

    number: int
    size: int
    share: float
    apart: list[tuple[str, float]]
    words: list[str]


class Direction(NamedTuple):
    """A main direction: its share of the variance, and the columns that it is made of."""

    share: float
    made_of: list[tuple[str, float]]


@dataclass(frozen=True, eq=False)
class Described:
    """What `describe` finds.

    Attributes
    ----------
    name : str
        Of the table.
    model : TableModel
        Gives rows of such a table their cluster.
    clusters : list of Cluster
        The largest first.
    silhouette : float
        How clearly rows belong to their cluster, from -1 to 1.
    directions : list of Direction
        The main directions, that with the largest variance first.
    places : array, rows x 2
        The rows along the first two.
    labels : array
        The cluster of each row.
    strange : list of (int, float)
        The rows that are least likely, and how many of the others are likelier, as a share.
    frame : DataFrame
        The table.
    seconds : float
        How long it took.
    origin : Origin
        What it takes to make the result again.
    hurried : bool
        Whether the time, or Ctrl-C, ended the search before all was tried.
    warnings : list of str
        What deserves a second look.
    """

    name: str
    model: tables.TableModel
    clusters: list[Cluster]
    silhouette: float
    directions: list[Direction]
    places: Array
    labels: NDArray
    strange: list[tuple[int, float]]
    frame: pl.DataFrame
    seconds: float
    origin: Origin
    hurried: bool
    warnings: list[str]

    @property
    def _used(self) -> list[str]:
        return [column.name for column in self.model.schema.used]

    def summary(self) -> str:
        """The finding in a sentence."""
        how = "clear" if self.silhouette >= CLEAR_SILHOUETTE else "weak"
        return (
            f"{self.frame.height} rows in {len(self.clusters)} clusters, which are {how} (silhouette "
            f"{self.silhouette:.2f}); the largest holds {percent(self.clusters[0].share, 0)} of the rows."
            + (f" They look at {listed(self._used)} alone." if len(self._used) < self.frame.width else "")
            + (" The search ended before all numbers of clusters were tried." if self.hurried else "")
        )


def describe(
    data: Any,
    *,
    drop: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    jobs: int | None = None,
    seed: int = 0,
    time: float | None = None,
    out: str | Path | None = None,
    force: bool = False,
    header: bool = True,
) -> Described:
    """Find clusters, main directions and strange rows in a table that has no target.

    Parameters
    ----------
    data : path, name of a bundled table, or frame
        The table.
    drop : list of str
        Columns to leave out.
    types : dict, optional
        What columns hold, where the guess is wrong: {"zip": "category"}.
    missing : list, optional
        Values that stand for a missing one in every column, such as ["ERR", -999].
    jobs : int, optional
        Threads.
    seed : int
        Same seed, same result.
    time : float, optional
        Seconds after which no more clusters are tried.
    out : path, optional
        Writes ``<out>.model`` and ``<out>.report.html``.
    force : bool
        Whether an earlier ``<out>.model`` may be replaced.
    header : bool
        Whether the first row of a text table names the columns; else they are column_1, column_2, ...

    Examples
    --------
    >>> found = describe("iris", drop=["species"])
    >>> len(found.clusters), found.directions[0].share > 0.7
    (2, True)
    """
    options: Any = {
        "drop": drop,
        "types": types,
        "missing": missing,
        "jobs": jobs,
        "seed": seed,
        "time": time,
        "out": out,
    }
    request = Request(data, force=force, header=header, **options)
    begin = perf_counter()
    files = None if out is None else file_paths(Path(out), force)
    frame = tables.read(data, header=header)
    schema = tables.understand(frame, without=list(drop), types=types, missing=request.missing)
    # Rows that were entered first or last are not alike, or strange, for that.
    undated = tables.Schema(tuple(column for column in schema.columns if column.type.drawn != "dates"))
    dates = [repr(column.name) for column in schema.used if column.type.drawn == "dates"] if undated.used else []
    said = [("ER022", f"{listed(dates)}: rows are not alike, or strange, for their dates, which are left out.")]
    said = [*(said if dates else []), *remarks(schema.features(frame), schema)]
    schema = undated if undated.used else schema
    if frame.height < MIN_ROWS:
        raise TooFewRows(f"The table has {frame.height} rows; at least {MIN_ROWS} are needed.")
    with config(threads=jobs), InterruptCounter() as interrupts:
        encoder = tables.TableEncoder(schema)
        X = encoder.fit_transform(frame)
        with listening_to(interrupts.requested):
            machine, silhouette, hurried = _clusters(X, seed, Deadline(time, begin))
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        names = [str(name) for name in encoder.get_feature_names_out()]
        with listening_to(interrupts.second.is_set):  # the first request asks for what is done, and this belongs to it
            directions, scores = _directions(dense, names)
            strange = _strange(scores)
    target = tables.Target.of({"cluster": machine.labels_.tolist()}, "cluster", task="classification")
    described = Described(
        name=Path(str(data)).stem if isinstance(data, (str, Path)) else "table",
        model=tables.TableModel(
            schema,
            Pipeline([("encode", encoder), ("machine", machine)]),
            target,
            description={"machine": "k-means", "settings": repr(machine), "rows": frame.height},
        ),
        clusters=_told(dense, machine.labels_, names, encoder),
        silhouette=silhouette,
        directions=directions,
        places=scores[:, :2],
        labels=machine.labels_,
        strange=strange,
        frame=frame,
        origin=Origin.of("describe", request),
        seconds=perf_counter() - begin,
        hurried=hurried,
        warnings=[coded(code, told) for code, told in said],
    )
    if files is not None:
        from empirisk.report.unsupervised import page  # what draws takes a while to import

        write(described.model, page(described, files["model"].name), files)
    return described


def _clusters(X: Any, seed: int, deadline: Deadline) -> tuple[KMeans, float, bool]:
    """k-means with as many clusters as are told apart most clearly, how clearly, and whether it was cut short."""
    rows = X.shape[0]
    some = np.sort(np.random.default_rng(seed).permutation(rows)[:SILHOUETTE_ROWS])
    distinct = _distinct(X)
    if distinct < 3:
        raise TooFewRows(f"The table has {distinct} distinct rows; clusters need at least three.")
    found: dict[int, tuple[KMeans, float]] = {}
    counts = range(2, min(MAX_CLUSTERS, distinct - 1) + 1)
    tried = 0
    for count in (*counts, *counts):  # what was cut, such as by compiling, is tried again where time is left
        if count in found and found[count][0].stopped_ != Ending.MAX_TIME:
            continue
        left = deadline.left()
        # What comes after the clusters gets a share of the time too.
        limit = None if left is None else left / (max(len(counts) - tried, 1) + 1)
        tried += 1
        machine = KMeans(count, max_time=limit, random_state=seed)
        try:
            # The summary says what did not converge.
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                machine.fit(X)
        except Stopped:  # by Ctrl-C, while a loop was being compiled
            if not found:
                raise KeyboardInterrupt from None
            break
        labels = machine.labels_[some]
        clear = silhouette_score(X[some], labels) if 1 < len(np.unique(labels)) < len(some) else -1.0
        if count not in found or machine.stopped_ not in CUT:
            found[count] = machine, float(clear)
        if deadline():
            break
    best = max(found.values(), key=lambda pair: pair[1])
    cut = any(machine.stopped_ in CUT for machine, _ in found.values())
    return *best, cut or len(found) < len(counts)


def _distinct(X: Any) -> int:
    """How many rows differ, counted up to as many as there may be clusters, and one more."""
    seen: set[bytes] = set()
    for row in range(X.shape[0]):
        line = X[[row]]
        seen.add(line.toarray().tobytes() if sparse.issparse(line) else np.ascontiguousarray(line).tobytes())
        if len(seen) > MAX_CLUSTERS:
            break
    return len(seen)


def _told(X: Array, labels: NDArray, names: Sequence[str], encoder: tables.TableEncoder) -> list[Cluster]:
    """Each cluster by its size, and by the columns whose mean in it is farthest from the mean of all."""
    middle, spread = X.mean(axis=0), X.std(axis=0)
    clusters = []
    for label in np.unique(labels):
        inside = X[labels == label]
        gaps = np.where(spread > 0, (inside.mean(axis=0) - middle) / np.where(spread > 0, spread, 1.0), 0.0)
        # Of the words of a column, that which is most frequent for the cluster, or else most rare: the others follow.
        of_column: dict[str, int] = {}
        for place in sorted(range(len(names)), key=lambda k: (-round(abs(float(gaps[k])), 6), gaps[k] < 0)):
            column = encoder.schema.used[int(encoder.sources_[place])]
            of_column.setdefault(column.name if column.type.drawn == "levels" else f"{column.name} {place}", place)
        told = list(of_column.values())
        apart = _largest(gaps[told], [names[place] for place in told])
        apart = [one for one in apart if abs(one[1]) >= MIN_GAP] or apart[:1]
        words = [_in_units(names.index(name), inside.mean(axis=0), middle, encoder) for name, _ in apart]
        clusters.append(Cluster(int(label), len(inside), len(inside) / len(X), apart, words))
    return sorted(clusters, key=lambda cluster: -cluster.size)


def _in_units(place: int, inside: Array, middle: Array, encoder: tables.TableEncoder) -> str:
    """The mean of a number of the encoder in a cluster, and in all rows, in the unit of its column or as a share."""
    name, column = str(encoder.names_[place]), encoder.schema.used[int(encoder.sources_[place])]
    if place >= len(encoder.numbers_.middle):
        return f"{name}: {percent(inside[place], 0)} ({percent(middle[place], 0)} of all rows)"
    scale, mean = encoder.numbers_.scale[place], encoder.numbers_.mean[place]
    here, all_rows = (float(value[place] * scale + mean) for value in (inside, middle))
    if column.type.drawn == "levels":
        return f"{name}: {percent(here, 0)} ({percent(all_rows, 0)} of all rows)"
    if name == column.name:
        return f"{name} {number(here)} on average ({number(all_rows)} in all rows)"
    return f"{name} {number(here)} ({number(all_rows)} in all rows)"


def _directions(X: Array, names: Sequence[str]) -> tuple[list[Direction], Array]:
    """The directions of largest variance, and the rows along them."""
    found = PCA(min(MAX_DIRECTIONS, *X.shape)).fit(X)
    shares = found.explained_variance_ratio_
    count = max(1, int((shares > MIN_VARIANCE_SHARE).sum()))
    made = [Direction(float(shares[k]), _largest(found.components_[k], names)) for k in range(count)]
    scores = found.transform(X)[:, :count]
    return made, scores if count > 1 else np.column_stack([scores, np.zeros(len(scores))])


def _largest(values: Array, names: Sequence[str]) -> list[tuple[str, float]]:
    order = np.argsort(-np.abs(values), kind="stable")[:NAMED_COLUMNS]
    return [(names[int(k)], float(values[k])) for k in order if values[k] != 0]


def _strange(scores: Array) -> list[tuple[int, float]]:
    """The rows with the smallest density along the main directions."""
    moving = scores[:, scores.std(axis=0) > 0]
    density = GaussianDensity().fit(moving).score_samples(moving)
    order = np.argsort(density, kind="stable")[: min(LISTED_ROWS, len(density) // 10)]
    return [(int(row), 1 - float(np.mean(density <= density[row]))) for row in order]
