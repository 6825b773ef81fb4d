"""empirisk learn: the whole job, with a table that fills as machines finish."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from empirisk.cli.models import in_json
from empirisk.errors import EmpiriskError
from empirisk.formats import number, printable
from empirisk.league import Learned, Listener, learn
from empirisk.league.origin import typed
from empirisk.league.unsupervised import Described, describe
from empirisk.report.words import plain
from empirisk.settings import holding

LEAST = 0.1  # seconds
TITLE = 31  # letters of the longest title of a machine
COMPILING = "compiling, once"
PROOF = len("gap 1e-05")
LONGEST = 12  # letters of a score's name in words; longer ones go by their short name
SCORES = "accuracy, bacc, auc, ap, f1, precision, recall or logloss for classes; rmse, mae, mape or r2 for numbers"
UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def command(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(help="A CSV, TSV, Parquet, Arrow, JSON-lines or XLSX file, a folder of Parquet, - or a name."),
    ],
    *,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    no_target: Annotated[bool, typer.Option("--no-target", help="Find clusters and strange rows instead.")] = False,
    metric: Annotated[str | None, typer.Option(help=f"The score that decides: {SCORES}.")] = None,
    test: Annotated[float, typer.Option(help="Share of the rows held out for the test.")] = 0.2,
    folds: Annotated[int | None, typer.Option(help="Folds of the contest: 5, or 3 where rows are many.")] = None,
    groups: Annotated[str | None, typer.Option(help="Column whose values stay on one side of every split.")] = None,
    time_order: Annotated[str | None, typer.Option(help="Column that orders the rows in time.")] = None,
    machines: Annotated[str | None, typer.Option(help="Kinds that compete, such as logistic,forest.")] = None,
    time: Annotated[str | None, typer.Option(help="Limit such as 60s, 5m or 1h.")] = None,
    balance: Annotated[bool, typer.Option("--balance", help="Let all classes count alike.")] = False,
    drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    types: Annotated[list[str] | None, typer.Option(help="What a column holds, such as zip=category.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Threads.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Files are <out>.model and <out>.report.html.")] = None,
    test_file: Annotated[str | None, typer.Option(help="A table to test on, instead of a share of the rows.")] = None,
    refit: Annotated[bool, typer.Option("--refit", help="Let the final model learn from the test rows too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier model of that name.")] = False,
    no_header: Annotated[bool, typer.Option("--no-header", help="Columns are column_1, column_2, ...")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Learn a table: train, select, test honestly, and write a model and a report."""
    out, begin = place(out, table), context.obj.begin
    console = Console(quiet=quiet or as_json, highlight=False)
    console.soft_wrap = not console.is_terminal  # a line in a file is a line
    limit = None if time is None else seconds(time)
    common: dict[str, Any] = {
        "drop": [name for entry in drop or [] for name in entry.split(",")],
        "types": kinds(types or []),
        "jobs": jobs,
        "seed": seed,
        "time": None if limit is None else left(limit, begin),
        "out": out,
        "force": force,
        "header": not no_header,
    }
    if no_target and target is not None:
        raise EmpiriskError(f"--target={target!r} and --no-target contradict each other; give one of them.")
    if no_target:
        with holding(typed, context.obj.command):
            found = describe(table, **common)
        about = _tell(console, found)
    else:
        with Screen(console, begin, limit) as screen, holding(typed, context.obj.command):
            found = learn(
                table,
                target,
                metric=metric,
                test=test,
                folds=folds,
                groups=groups,
                time_order=time_order,
                machines=None if machines is None else [name.strip() for name in machines.split(",")],
                balance=balance,
                test_file=test_file,
                refit=refit,
                listener=screen,
                **common,
            )
        about = _conclude(console, found)
    files = {"model": f"{out}.model", "report": f"{out}.report.html"}
    after = f" after {perf_counter() - begin:.0f} s."
    console.print(text("Wrote ", (files["model"], "bold"), " and ", (files["report"], "bold"), after))
    if as_json:
        typer.echo(json.dumps({"table": found.name, **about, "seconds": found.seconds, **files}, indent=1))


def text(*parts: str | tuple[str, str], **options: Any) -> Text:
    """Parts of a line, some with a style; names in it are no markup, and steer no terminal."""
    styled = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((printable(part), style) for part, style in styled), **options)


def _tell(console: Console, found: Described) -> dict[str, Any]:
    """Say what a table without a target holds; the same in the words of JSON."""
    console.print(text((found.name, "bold"), f": {found.summary()}"))
    for cluster in found.clusters:
        apart = ", ".join(f"{name} {value:+.1f} sd" for name, value in cluster.apart)
        console.print(text(f"cluster {cluster.number}: {cluster.size:,} rows ({cluster.share:.0%}); {apart}"))

    return {
        "rows": found.frame.height,
        "silhouette": found.silhouette,
        "clusters": [cluster._asdict() | {"apart": dict(cluster.apart)} for cluster in found.clusters],
        "directions": [{"share": each.share, "made_of": dict(each.made_of)} for each in found.directions],
        "strange": [{"row": row + 1, "likelier": share} for row, share in found.strange],
    }


class Screen(Listener):
    """A live table on a terminal, the best first, and what is being done; a line for each machine elsewhere.

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
        self._sign, self._metric, self._doing = 1.0, "", ""
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
        """Show what is being done on a terminal; elsewhere, what makes one wait before there is a table to fill."""
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
        """Print what was to be said of the test and the files."""
        self._warn([warning for warning in learned.warnings if warning not in self._lines])

    def _warn(self, warnings: Sequence[str]) -> None:
        self._lines.update(warnings)
        for warning in warnings:
            self._console.print(text((f"! {warning}", "yellow")))

    def deciding(self, metric: Any) -> None:
        """Note how scores are shown."""
        words = plain(metric.name)
        self._sign, self._metric = metric.sign, words if len(words) <= LONGEST else metric.name
        if self._live is None:
            self._console.print(text(self._line(self._head)))

    def played(self, standing: Any) -> None:
        """Show a standing."""
        self._rows[standing.name] = standing
        if self._live is None and standing.state != "playing":
            line = self._line(self._cells(standing))
            if line not in self._lines:
                self._console.print(text(line))
            self._lines.add(line)

    def stopped(self, reason: str) -> None:
        """Say why the contest ended early."""
        again = "; Ctrl-C again to stop without a model" if reason == "interrupted" else ""
        self._console.print(text((f"! {reason}: going on with what is done{again}", "yellow")))

    @property
    def _head(self) -> list[str]:
        return ["machine", self._metric, "+-", "seconds", "proof", ""]

    def _line(self, cells: list[str]) -> str:
        """Cells under each other, line after line; what has no score has a reason instead."""
        title, *numbers, proof, remark = cells
        if not any(numbers):
            return f"{title.ljust(TITLE)}  {remark}"
        shown = [cell.rjust(max(len(name), 7)) for cell, name in zip(numbers, self._head[1:4], strict=True)]
        return "  ".join([title.ljust(TITLE), *shown, proof.ljust(PROOF), remark]).rstrip()

    def _view(self) -> Group:
        """What the terminal shows, asked for a few times a second; no line is longer than the terminal is wide."""
        standings = sorted(self._rows.values(), key=lambda one: -one.mean)
        lines = [self._line(cells) for cells in (self._head, *map(self._cells, standings))] if standings else []
        styles = ["dim", "bold", *[""] * len(standings)]  # the best comes first, and is marked
        shown = [
            text((line, style), no_wrap=True, overflow="ellipsis") for line, style in zip(lines, styles, strict=False)
        ]
        return Group(*shown, text((self._status(), "dim"), no_wrap=True, overflow="ellipsis"))

    def _status(self) -> str:
        """What is being done, and the time used and left."""
        if not self._doing:
            return ""
        used = perf_counter() - self._begin
        left = "" if self._limit is None else f", {max(self._limit - used, 0):.0f} s left"
        return f"{self._doing} ({used:.0f} s{left})"

    def _cells(self, standing: Any) -> list[str]:
        if not len(standing.scores):
            return [standing.title, "", "", "", "", f"{standing.state}: {standing.remark}"]
        folds = f"{len(standing.scores)} fold{'s' * (len(standing.scores) > 1)} of {standing.rows:,} rows"
        remark = standing.remark or ("" if standing.state == "done" else folds)
        shown = number(self._sign * standing.mean, 4), number(standing.error, 2), f"{standing.seconds:.2g}"
        return [standing.title, *shown, standing.certificate, remark]


def _conclude(console: Console, learned: Learned) -> dict[str, Any]:
    """Say what was learned; the same in the words of JSON."""
    console.print()
    console.print(text((learned.champion.title, "bold"), f" was chosen. {learned.summary()}"))
    if learned.test.luck:
        console.print(text(f"Was it luck? {learned.test.luck}"))

    return {
        "target": learned.target,
        "task": learned.model.target.task,
        "winner": learned.winner,
        "settings": learned.model.description["settings"],
        "metric": learned.metric,
        "test": in_json(learned.test.scores),
        "league": [
            {
                "name": standing.name,
                "state": standing.state,
                "score": learned.sign * standing.mean if len(standing.scores) else None,
                "error": standing.error,
                "seconds": standing.seconds,
                "difference": learned.differences.get(standing.name, standing.remark),
            }
            for standing in learned.standings
        ],
        "warnings": learned.warnings,
    }


def place(out: Path | None, table: str) -> Path:
    """Where files go: named after the table here or in the folder given, or as asked, with or without ``.model``.

    >>> place(Path("spam.model"), "mails.csv").name
    'spam'
    >>> place(None, "mails.csv.xz").name, place(None, "-").name
    ('mails', 'table')
    """
    name = Path(re.sub(r"\.(gz|bz2|xz|zst)$", "", table)).stem.removeprefix("-") or "table"
    if out is None:
        return Path(name)
    if out.is_dir():
        return out / name
    return out.with_suffix("") if out.suffix == ".model" else out


def kinds(entries: list[str]) -> dict[str, str]:
    """What columns hold, from entries such as "zip=category,age=number".

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
    """What is left of a limit of time since the command began: some, unless there was none."""
    return limit if limit <= 0 else max(limit - (perf_counter() - begin), LEAST)


def seconds(limit: str) -> float:
    """Seconds from text such as "90", "60s", "5m" or "1h".

    >>> seconds("5m")
    300.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|)\s*", limit)
    if match is None:
        raise EmpiriskError(f"time={limit!r} is not a time; write it like 60s, 5m or 1h.")
    return float(match[1]) * UNITS[match[2]]
