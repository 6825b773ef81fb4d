"""empirisk learn: the command, and the table of results that it prints while machines are compared."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from inspect import signature
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from empirisk.errors import EmpiriskError, listed, typed
from empirisk.formats import metric_name, number, percent, printable, seconds_of
from empirisk.league import Job, Learned, Listener, Request
from empirisk.league.records import CandidateResult
from empirisk.league.unsupervised import Described, describe
from empirisk.settings import config, holding

MIN_SECONDS = 0.1  # time limit at the least, where the imports have used all of it: an error would say less
TITLE_LETTERS = 31  # letters of the longest title of a machine
COMPILING = "compiling, once"
NOTHING_LEARNED = 3  # exit status where a model was written, but no machine had the time to learn
PROOF_LETTERS = len("gap 1e-05")
MAX_NAME_LETTERS = 12  # letters of a score's name in words; longer ones go by their short name
SCORES = "accuracy, bacc, auc, ap, f1, precision, recall or logloss for classes; rmse, mae, mape or r2 for numbers"


def command(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(
            help="A CSV, TSV, Parquet, Arrow, JSON-lines or XLSX file, a table of SQLite (shop.db::orders), a folder "
            "of Parquet, - or a name."
        ),
    ],
    *,
    target: Annotated[list[str] | None, typer.Option(help="The column to predict.")] = None,
    no_target: Annotated[bool, typer.Option("--no-target", help="Find clusters and strange rows instead.")] = False,
    metric: Annotated[str | None, typer.Option(help=f"The score that decides: {SCORES}.")] = None,
    test: Annotated[float, typer.Option(help="Share of the rows held out for the test.")] = 0.2,
    folds: Annotated[int | None, typer.Option(help="Folds of the contest: 5, or 3 where rows are many.")] = None,
    groups: Annotated[
        str | None, typer.Option("--groups", "--group", help="Column whose values stay on one side of every split.")
    ] = None,
    time_order: Annotated[str | None, typer.Option(help="Column that orders the rows in time.")] = None,
    machines: Annotated[str | None, typer.Option(help="Kinds that compete, such as logistic,forest.")] = None,
    time: Annotated[str | None, typer.Option(help="Limit such as 60s, 5m or 1h.")] = None,
    balance: Annotated[bool, typer.Option("--balance", help="Let all classes count alike.")] = False,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    types: Annotated[list[str] | None, typer.Option(help="What a column holds, such as zip=category.")] = None,
    missing: Annotated[list[str] | None, typer.Option(help="Values that mean missing, such as ERR,---,-999.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads.")] = None,
    cluster: Annotated[
        str, typer.Option(help="Workers that fit: those of a Dask scheduler, tcp://host:8786, or local.")
    ] = "none",
    device: Annotated[str, typer.Option(help="Where kernels and networks compute: auto, cpu or gpu.")] = "auto",
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Files are <out>.model and <out>.report.html.")] = None,
    test_file: Annotated[str | None, typer.Option(help="A table to test on, instead of a share of the rows.")] = None,
    prefer: Annotated[str, typer.Option(help="simple: as good as the best but for chance; or best.")] = "simple",
    refit: Annotated[bool, typer.Option("--refit", help="Let the final model learn from the test rows too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier model of that name.")] = False,
    no_header: Annotated[bool, typer.Option("--no-header", help="Columns are column_1, column_2, ...")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Learn a table: train, select, test on held-out rows, and write a model and a report.

    The exit status is 3 where no machine had the time to learn, and the model always says the same.
    """
    given = dict(locals())
    out, begin = place(out, table), context.obj.begin
    console = Console(quiet=quiet or as_json, highlight=False)
    console.soft_wrap = not console.is_terminal  # lines in a file are not broken at the width of a terminal
    limit = None if time is None else seconds_of(time)
    # These options are written as text in a shell, and converted to the types of the library.
    given["machines"] = None if machines is None else [name.strip() for name in machines.split(",")]
    given["drop"] = [name for entry in drop or [] for name in entry.split(",")]
    given["types"] = kinds(types or [])
    given["missing"] = [value for entry in missing or [] for value in entry.split(",")]
    given["time"] = None if limit is None else left(limit, begin)
    given |= {"data": table, "out": out, "header": not no_header}
    given["target"] = only_one(target or [])
    if no_target and target:
        raise EmpiriskError(f"--target={target[0]!r} and --no-target contradict each other; give one of them.")
    with (
        config(device=device),
        using(cluster),
        Screen(console, begin, limit) as screen,
        holding(typed, context.obj.command),
    ):
        if no_target:
            screen.doing(f"reading {table}")
            found: Any = describe(**{name: given[name] for name in signature(describe).parameters})
        else:
            options = {option.name: given[option.name] for option in fields(Request) if option.name in given}
            found = Job(Request(**options, listener=screen)).run()
    with holding(typed, context.obj.command):
        about = (_tell if no_target else _conclude)(console, found)
    files = {"model": f"{out}.model", "report": f"{out}.report.html"}
    after = f" after {perf_counter() - begin:.0f} s."
    console.print(text("Wrote ", (files["model"], "bold"), " and ", (files["report"], "bold"), after))
    if as_json:
        typer.echo(json.dumps({**about, **files}, indent=1))
    if getattr(found, "nothing_learned", False):
        raise typer.Exit(NOTHING_LEARNED)


@contextmanager
def using(cluster: str) -> Iterator[None]:
    """Fits in here go to the workers of a cluster; those that are started for it end with it."""
    with config(cluster=cluster):
        try:
            yield
        finally:
            if cluster != "none" and "empirisk.scale.workers" in sys.modules:
                sys.modules["empirisk.scale.workers"].close(cluster)


def text(*parts: str | tuple[str, str], **options: Any) -> Text:
    """A line of parts, some with a style. Markup and control characters in names of the user are printed as text."""
    styled = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((printable(part), style) for part, style in styled), **options)


def _tell(console: Console, found: Described) -> dict[str, Any]:
    """Print the clusters of a table without a target, and return the result as a dictionary for JSON."""
    for warning in found.warnings:
        console.print(text((f"! {warning}", "yellow")))
    console.print(text((found.name, "bold"), f": {found.summary()}"))
    for cluster in found.clusters:
        apart = "; ".join(cluster.words)
        console.print(text(f"cluster {cluster.number}: {cluster.size:,} rows ({percent(cluster.share, 0)}); {apart}"))

    return {
        "table": found.name,
        "rows": found.frame.height,
        "silhouette": found.silhouette,
        "clusters": [cluster._asdict() | {"apart": dict(cluster.apart)} for cluster in found.clusters],
        "directions": [{"share": each.share, "made_of": dict(each.made_of)} for each in found.directions],
        "strange": [{"row": row + 1, "likelier": share} for row, share in found.strange],
        "warnings": found.warnings,
        "seconds": found.seconds,
    }


class Screen(Listener):
    """Prints progress: on a terminal a live table sorted by score with a status line, elsewhere a line per machine.

    Parameters
    ----------
    console : Console
        Where to write.
    begin, limit : float
        When the command began, on the clock of `time.perf_counter`, and the seconds that it may take.
    """

    def __init__(self, console: Console, begin: float | None = None, limit: float | None = None):
        self._console = console
        self._rows: dict[str, Any] = {}
        self._lines: set[str] = set()
        self._metric, self._doing = "", ""
        self._begin, self._limit = perf_counter() if begin is None else begin, limit
        lively = console.is_terminal and not console.quiet
        self._live = Live(console=console, get_renderable=self._view, refresh_per_second=4) if lively else None

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._doing = ""
            self._live.stop()

    def doing(self, what: str) -> None:
        """Show the current step in the status line; elsewhere, print only reading and the first compilation."""
        self._doing = what
        if self._live is None and what.startswith("reading"):
            self._console.print(text(f"{what} ..."))
        if self._live is None and what.endswith(COMPILING) and COMPILING not in self._lines:
            self._lines.add(COMPILING)
            self._console.print(text(f"{what}: the first run of a machine takes longer"))
        if self._live is not None and not self._live.is_started:
            self._live.start()

    def understood(self, found: Any) -> None:
        """Print what the table holds."""
        target = found.target
        kinds = Counter(column.kind for column in found.schema.columns)
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        what = f"{len(target.classes)} classes" if target.classes else "a number"
        self._console.print(text((found.name, "bold"), f": {len(found.y):,} rows; columns: {listed}"))
        self._console.print(text("target ", (target.name, "bold"), f": {what} ({target.reason})"))
        self._console.print(f"{len(found.train):,} rows to learn from, {len(found.test):,} held out for the test")
        self._warn(found.warnings)

    def done(self, learned: Learned) -> None:
        """Print the warnings that were not printed before."""
        self._warn([warning for warning in learned.warnings if warning not in self._lines])

    def _warn(self, warnings: Sequence[str]) -> None:
        self._lines.update(warnings)
        for warning in warnings:
            self._console.print(text((f"! {warning}", "yellow")))

    def deciding(self, metric: Any) -> None:
        """Choose the name under which the score is shown, and print the head of the table where it is not live."""
        words = metric_name(metric.name)
        self._metric = words if len(words) <= max(MAX_NAME_LETTERS, len(metric.name)) else metric.name
        if self._live is None:
            self._console.print(text(self._line(self._head)))

    def resumed(self, folds: int) -> None:
        """Print that the run continues an earlier one."""
        self._console.print(text(f"going on where an earlier run ended: {folds:,} fits are known"))

    def played(self, result: CandidateResult) -> None:
        """Show a result."""
        self._rows[result.name] = result
        if self._live is None and result.state != "playing":
            line = self._line(self._cells(result))
            if line not in self._lines:
                self._console.print(text(line))
            self._lines.add(line)

    def outlook(self, more_time: str) -> None:
        """Print what more time would probably gain."""
        self._console.print(text(more_time))

    def stopped(self, reason: str) -> None:
        """Say why the contest ended early."""
        again = "; Ctrl-C again to stop without a model" if reason == "interrupted" else ""
        self._console.print(text((f"! {reason}: going on with what is done{again}", "yellow")))

    @property
    def _head(self) -> list[str]:
        return ["machine", self._metric, "+-", "seconds", "proof", ""]

    def _line(self, cells: list[str]) -> str:
        """The cells of a line, padded to columns; a machine without a score has its title and the reason."""
        title, *numbers, proof, remark = cells
        if not any(numbers):
            return f"{title.ljust(TITLE_LETTERS)}  {remark}"
        shown = [cell.rjust(max(len(name), 7)) for cell, name in zip(numbers, self._head[1:4], strict=True)]
        return "  ".join([title.ljust(TITLE_LETTERS), *shown, proof.ljust(PROOF_LETTERS), remark]).rstrip()

    def _view(self) -> Group:
        """The live table and the status line, cut to the width of the terminal; called four times a second."""
        results = sorted(self._rows.values(), key=lambda one: -one.mean)
        lines = [self._line(cells) for cells in (self._head, *map(self._cells, results))] if results else []
        styles = ["dim", "bold", *[""] * len(results)]  # the best comes first, and is marked
        shown = [
            text((line, style), no_wrap=True, overflow="ellipsis") for line, style in zip(lines, styles, strict=False)
        ]
        return Group(*shown, text((self._status(), "dim"), no_wrap=True, overflow="ellipsis"))

    def _status(self) -> str:
        """The current step, and the time used and left."""
        if not self._doing:
            return ""
        used = perf_counter() - self._begin
        left = "" if self._limit is None else f", {max(self._limit - used, 0):.0f} s left"
        return f"{self._doing} ({used:.0f} s{left})"

    def _cells(self, result: CandidateResult) -> list[str]:
        if not len(result.scores):
            return [result.title, "", "", "", "", f"{result.state}: {result.remark}"]
        folds = f"{len(result.scores)} fold{'s' * (len(result.scores) > 1)} of {result.rows:,} rows"
        remark = result.remark or ("" if result.state == "done" else folds)
        error = number(result.error, 2) if len(result.scores) > 1 else ""  # one fold tells nothing of it
        shown = number(result.sign * result.mean, 4), error, f"{result.seconds:.2g}"
        return [result.title, *shown, result.certificate, remark]


def _conclude(console: Console, learned: Learned) -> dict[str, Any]:
    """Print which machine was chosen and its test score, and return the result as a dictionary for JSON."""
    console.print()
    console.print(text((learned.best.title, "bold"), f" was chosen. {learned.summary()}"))
    if learned.test.luck and not learned.nothing_learned and not learned.leaks:
        console.print(text(f"Was it luck? {learned.test.luck}"))
    for said in filter(None, (learned.price, learned.more_time)):
        console.print(text(said))

    return learned.to_dict()


def place(out: Path | None, table: str) -> Path:
    """The path of the output files without their endings: as asked for, or named after the table.

    >>> place(Path("spam.model"), "mails.csv").name
    'spam'
    >>> place(None, "mails.csv.xz").name, place(None, "-").name
    ('mails', 'table')

    Of a pattern its letters count, or else its folder.

    >>> [place(None, pattern).name for pattern in ("sales/part-*.parquet", "sales/*.parquet", "*.csv")]
    ['part', 'sales', 'table']
    """
    path = Path(re.sub(r"\.(gz|bz2|xz|zst)$", "", table))
    name = path.stem.removeprefix("-") or "table"
    if re.search(r"[*?[]", name):
        names = (re.sub(r"\[.*?\]|[*?]", "", each).strip("-_. ") for each in (path.stem, path.parent.name))
        name = next(filter(None, names), "table")
    if out is None:
        return Path(name)
    if out.is_dir():
        return out / name
    return out.with_suffix("") if out.suffix == ".model" else out


def only_one(targets: list[str]) -> str | None:
    """The target, if there is one.

    >>> only_one(["price"])
    'price'
    """
    if len(targets) > 1:
        raise EmpiriskError(
            f"--target was given {len(targets)} times ({listed(list(map(repr, targets)))}), but a model predicts one "
            "column; run learn once for each, with another --out."
        )
    return targets[0] if targets else None


def kinds(entries: list[str]) -> dict[str, str]:
    """The kinds of columns, from entries such as "zip=category,age=number".

    >>> kinds(["zip=category"])
    {'zip': 'category'}
    """
    found = {}
    for entry in ",".join(entries).split(",") if entries else []:
        name, _, kind = entry.rpartition("=")
        if not name:
            raise EmpiriskError(f"types={entry!r} says nothing; write it like zip=category.")
        found[name.strip()] = kind.strip()
    return found


def left(limit: float, begin: float) -> float:
    """Seconds that are left of a limit since the command began, at least `MIN_SECONDS`; a bad limit stays as it is."""
    return limit if limit <= 0 else max(limit - (perf_counter() - begin), MIN_SECONDS)
