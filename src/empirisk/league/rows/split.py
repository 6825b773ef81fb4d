"""The table taken apart: what is learned from, what is predicted, and which rows only judge."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from empirisk import tables
from empirisk.errors import EmpiriskError, OneClass, TooFewRows, listed, option
from empirisk.evaluation.splits import make_splits
from empirisk.formats import percent
from empirisk.lazy import lazy
from empirisk.league.request import Request
from empirisk.league.rows.encodings import encoders, pipeline_of
from empirisk.league.rows.large import read_or_sample
from empirisk.linalg.hashes import equal_keys
from empirisk.messages import coded
from empirisk.tables.history import History, mean_by_moment, moments_of, season_of
from empirisk.tables.kinds import KINDS
from empirisk.tables.kinds.number import forms_of, written_as
from empirisk.tables.reading import datasets
from empirisk.tables.understanding.groups import perhaps_groups
from empirisk.tables.understanding.guess import LEADING_ZERO, column_words, guess, read_as
from empirisk.tables.understanding.schema import find_column, with_missing
from empirisk.tables.understanding.stand_ins import stand_ins

#: Rows a class must have: two to learn from in folds, one to be tested on.
MIN_CLASS_ROWS = 3
MIN_ROWS = 10  # five folds of one row, and as many to be tested on
#: The column that says which rows of two tables are tested; no table has one of that name.
HELD_OUT = "\0held out"
#: Different rows that a class must have for its equal rows to be kept together: two folds of what is not tested.
MIN_DISTINCT_ROWS = 4
#: Rows of which there are more copies than this, on average, are equal by chance: they are too simple to differ.
MAX_MEAN_COPIES = 10
#: A class is rare below this share of the rows, and below this part of what it would have among equals; one of several
#: that has less than the least share is too rare to decide for all.
RARE_SHARE, RARE_SHARE_OF_EQUAL, LEAST_SHARE = 0.05, 0.3, 0.002
MIN_ORDERED = 20  # rows whose order is no accident
FEW_TEST_ROWS = 50  # test rows: an error rate is then off by more than a twentieth
MAX_CODES = 10  # different whole numbers that may stand for words
MAX_WORDS_SHARE = 1 / 3  # share of the values that may be words in a column that is still one of numbers
NUMBER_BEGINS = r"^\W{0,3}\d"  # with a sign, a bracket, the sign of a currency
SMALLEST, LARGEST = 1e-100, 1e100  # squares of these, summed over any number of rows, are still numbers
TASKS = {name: kind.task for name, kind in KINDS.items() if kind.task}
#: Folds of the contest; where rows are many, few folds tell machines apart.
FOLDS, FEW_FOLDS, MANY_ROWS = 5, 3, 100_000


@dataclass(frozen=True, eq=False)
class Plan:
    """What `learn` works on.

    Attributes
    ----------
    name : str
        Of the table.
    frame : DataFrame
        The columns to learn from, of all rows with a target.
    schema, target
        What the columns hold, and what is predicted.
    y : array
        The target of every row.
    numbers : array
        Which row of the table each of them was, from 0; of the table of tests, where that is another.
    train, test : arrays
        Row numbers.
    folds : list of (train, validation)
        Numbers among the training rows.
    warnings : list of str
        What deserves a second look.
    times : array or None
        The rank of every row in time, where the test rows come after the others.
    leaks : dict
        Columns that may give the target away, and why.
    files : Scan or None
        The table, where it is larger than memory and the rows here are a sample of it.
    missing : sequence of str
        Values that mean missing.
    ruled : bool
        Whether a column decides which rows are held out.
    history : History or None
        Of numbers in order of time, what the target was before each row.
    """

    name: str
    frame: pl.DataFrame
    schema: Any
    target: Any
    y: NDArray
    numbers: NDArray
    train: NDArray
    test: NDArray
    folds: list[tuple[NDArray, NDArray]]
    warnings: list[str]
    times: NDArray | None = None
    leaks: dict[str, str] = field(default_factory=dict)
    files: Any = None
    missing: Sequence[str] = ()
    ruled: bool = False
    history: History | None = None

    @property
    def in_order(self) -> bool:
        """Whether the test rows come after the others in time."""
        return self.times is not None

    @lazy
    def tested_hashes(self) -> pl.Series:
        """By what rows of the test are recognised."""
        return self.frame[self.test].hash_rows(seed=1)

    @lazy
    def twins(self) -> int:
        """Test rows that equal a training row in every column."""
        rows = self.frame.hash_rows(seed=1)
        return int(rows[self.test].is_in(rows[self.train].implode()).sum())

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON has it: what the columns hold, what is predicted, how rows are used, and the warnings."""
        target = {name: getattr(self.target, name) for name in ("name", "task", "classes", "reason")}
        return {
            "table": self.name,
            "target": target,
            "columns": [asdict(column) | {"used": column.used} for column in self.schema.columns],
            "rows": len(self.y),
            "train": len(self.train),
            "test": len(self.test),
            "folds": len(self.folds),
            "warnings": list(self.warnings),
        }

    @property
    def classes(self) -> NDArray | None:
        """The classes in order, or None for numbers."""
        return np.array(self.target.classes) if self.target.classes else None

    @property
    def encoder(self) -> tables.TableEncoder:
        """What makes numbers of the columns, not fitted yet."""
        return tables.TableEncoder(self.schema)

    def pipeline(self, machine: Any) -> Pipeline:
        """The encoder and a copy of the machine, to be fitted together."""
        return pipeline_of(machine, encoders(self.encoder))


def plan(request: Request) -> Plan:
    """Read the table, find out what it holds, and hold out the test part before anything is learned."""
    data = request.data
    table, files, note = read_or_sample(data, request.header)
    numbers = np.arange(table.height)
    if request.test_file is not None:
        table = _with_tests(table, tables.read(request.test_file, header=request.header))
        numbers = np.append(numbers, np.arange(table.height - len(numbers)))
    name = str(data) if isinstance(data, str) else getattr(data, "name", "table")
    types = {find_column(column, table.columns, "types"): kind for column, kind in (request.types or {}).items()}
    table = with_missing(table, request.missing)
    target = tables.Target.of(table, *_target(data, request.target, table, types), request.missing)
    warnings: list[str] = [coded("ER033", note)] if note else []
    known = target.known(table)
    if not known.all():
        lost = int((~known).sum())
        were = "was" if lost == 1 else "were"
        warnings.append(coded("ER029", f"{_rows(lost)} without a value of {target.name!r} {were} left out."))
        table, numbers = table.filter(pl.Series(known)), numbers[known]
    table, target, numbers = _without_rare_classes(table, target, numbers, warnings)
    if table.height < MIN_ROWS:
        raise TooFewRows(f"The table has {table.height} rows with a target; at least {MIN_ROWS} are needed.")
    asked = (("groups", "groups", request.groups), ("time", "time_order", request.time_order))
    ruling = {rule: find_column(name, table.columns, word) for rule, word, name in asked if name is not None}
    # The rank of every value; missing ones come first.
    rules = {rule: _ordered(table[name], rule).rank("dense").fill_null(0).to_numpy() for rule, name in ruling.items()}
    dropped = [find_column(column, table.columns, "drop") for column in request.drop]
    # The parts of a date are learned from, and numbers in time from what was before; what only orders rows is not.
    time = _counted_time(table[ruling["time"]], target) if "time" in ruling else None
    types |= {} if time is None else {time.name: time.kind}
    ordering = [name for rule, name in ruling.items() if rule == "groups" or time is None]
    unread = [target.name, *ordering, *dropped, *[HELD_OUT] * (request.test_file is not None)]
    schema = _more_than_order(tables.understand(table, unread, types, request.missing), time, ruling)
    worded = [column.name for column in schema.columns if column.type.names_rows or column.type.coded]
    warnings += [coded("ER030", odd) for name in worded if (odd := _odd_values(table[name], numbers))]
    warnings += [
        coded(
            "ER024",
            f"Several rows share each {name!r}: if the model is for others than these, keep their rows together with "
            f"{option('groups', name)}.",
        )
        for name in ([] if "groups" in rules else perhaps_groups(table, schema))
    ]
    y = _checked_target(target.values(table), target)
    frame = schema.features(table)
    equal = np.arange(len(y)) if rules else equal_rows(frame, y, bool(target.classes))
    copies = len(equal) - _sets(equal)
    if copies:
        rows = _rows(copies, "copy of a row", "copies of rows")
        warnings.append(coded("ER027", f"{rows}: equal rows were kept on one side of every split."))
    held = table[HELD_OUT].to_numpy() if HELD_OUT in table.columns else None
    train, test = _held_out(y, target, equal, request, rules) if held is None else _tested_apart(held, target)
    if "groups" in rules:
        warnings.append(coded("ER024", _told_of_groups(ruling["groups"], rules["groups"], train, test)))
    history = None if time is None or target.classes else _history(time, table[time.name], target.name, y, train)
    if history is not None:  # the first rows have nothing before them
        train = train[rules["time"][train] > history.reach]
    within = {rule: ranks[train] for rule, ranks in rules.items()}
    folds = _folds(y[train], target, equal[train], request, within, warnings)
    found = Plan(
        name,
        frame,
        schema,
        target,
        y,
        numbers,
        train,
        test,
        folds,
        warnings,
        rules.get("time"),
        files=files,
        missing=request.missing,
        ruled=bool(rules),
    )
    warnings += [coded(code, sentence) for code, sentence in _warn_about_columns(found)]
    return found if history is None else _with_history(found, history)


def _more_than_order(schema: tables.Schema, time: tables.Column | None, ruling: dict[str, str]) -> tables.Schema:
    """The schema, where a column is left to learn from beside one that only orders the rows."""
    if time is None and "time" in ruling and not schema.used:
        raise EmpiriskError(
            f"time_order={ruling['time']!r} only orders the rows, and no other column is left to learn from; "
            "write it as dates such as 2024-05-31 or 2024-05, or add columns."
        )
    return schema


def _counted_time(times: pl.Series, target: Any) -> tables.Column | None:
    """The column of the time, where it can be counted on: dates and, for a target of numbers, numbers; else None."""
    time = read_as(times, "number") if times.dtype.is_numeric() else guess(times)
    return time if time.type.drawn in (("dates",) if target.classes else ("dates", "numbers")) else None


def _history(time: tables.Column, times: pl.Series, target: str, y: NDArray, train: NDArray) -> History:
    """What the target was over time, with the season of the training rows."""
    moments = moments_of(time, time.parse(times))
    return History.of(time, target, moments, y, season_of(mean_by_moment(moments[train], y[train])[1]))


def _with_history(found: Plan, history: History) -> Plan:
    """The plan with the columns that are known before the time of each row, instead of the time itself."""
    assert found.times is not None
    moments = np.append(np.nan, history.moments)[found.times]
    made = history.known_before(moments)
    kinds = dict.fromkeys(history.earlier, "number") | dict.fromkeys(history.calendar, "category")
    kept = [column for column in found.schema.columns if column.name not in (history.time.name, *made.columns)]
    season = f" It repeats after {history.season} moments." if history.season > 1 else ""
    earlier = listed(list(map(repr, history.names)))
    told = (
        f"{found.target.name!r} is learned from what is known before the time of each row: {earlier}; "
        f"the first {history.reach} moments serve for that alone.{season} The test predicts every row from those "
        "before it."
    )
    found.warnings.append(coded("ER031", told))
    schema = tables.Schema((*kept, *tables.understand(made, types=kinds).columns))
    return replace(
        found,
        frame=found.frame.with_columns(made).select(one.name for one in schema.used),
        schema=schema,
        history=history,
    )


def _with_tests(table: pl.DataFrame, tests: pl.DataFrame) -> pl.DataFrame:
    """Both tables, one below the other, and which rows are those of the test."""
    lacking = [name for name in table.columns if name not in tests.columns]
    if lacking:
        raise EmpiriskError(f"test_file lacks the column {lacking[0]!r} of the table; give one with the same columns.")
    tests = tests.select(table.columns)
    mixed = [name for name in table.columns if pl.String in (table[name].dtype, tests[name].dtype)]
    parts = [
        part.with_columns(pl.col(mixed).cast(pl.String), pl.lit(held).alias(HELD_OUT))
        for part, held in ((table, False), (tests, True))
    ]
    try:
        return pl.concat(parts, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise EmpiriskError(f"test_file holds other kinds of values than the table: {error}") from error


def _target(data: Any, target: str | None, table: pl.DataFrame, types: dict[str, str]) -> tuple[str, str | None]:
    """The column to predict, and the task where the user says what the column holds."""
    if target is None:
        if not (isinstance(data, str) and data in datasets.NAMES):
            raise EmpiriskError(f"target is missing; name the column to predict, one of {listed(table.columns)}.")
        target = datasets.about(data).target
    target = find_column(target, table.columns)
    if target not in types:
        return target, None
    if types[target] not in TASKS:
        raise EmpiriskError(f"types: the target {target!r} cannot be {types[target]!r}; choose number or category.")
    return target, TASKS[types[target]]


def _odd_values(column: pl.Series, numbers: NDArray) -> str:
    """What makes a column of numbers one of words, if some values do, with the number of a row; else empty."""
    if column.dtype != pl.String:
        return ""
    distinct = column_words(column.unique())
    if distinct.str.contains(LEADING_ZERO).any() or not distinct.str.contains(NUMBER_BEGINS).any():
        return ""
    words = column_words(column)
    most = MAX_WORDS_SHARE * (len(words) - words.null_count())
    if (~words.str.contains(NUMBER_BEGINS)).sum() > most:  # most columns end here
        return ""
    odd = min((~written_as(words, form) for form in forms_of(words)), key=pl.Series.sum)
    if not 0 < odd.sum() <= most:
        return ""
    row = int(odd.arg_max() or 0)
    return (
        f"Column {column.name!r} holds numbers, but for {_rows(int(odd.sum()))} such as {words[row]!r} "
        f"(row {numbers[row] + 1}), and was taken as words; {option('types', {column.name: 'number'})} takes those as "
        "missing."
    )


def _checked_target(y: NDArray, target: Any) -> NDArray:
    """The target; numbers whose squares a float cannot hold are refused."""
    size = 0.0 if target.classes else float(np.abs(y).max())
    if size and not SMALLEST <= size <= LARGEST:
        raise EmpiriskError(
            f"target={target.name!r} holds numbers of a size of {size:.0e}, which cannot be squared; "
            "use another unit for them."
        )
    return y


def _without_rare_classes(table: pl.DataFrame, target: Any, numbers: NDArray, warnings: list[str]) -> tuple:
    """Rows of classes that are too small to be both learned and tested are left out."""
    if not target.classes:
        return table, target, numbers
    labels, codes, counts = np.unique(target.values(table), return_inverse=True, return_counts=True)
    rare = labels[counts < MIN_CLASS_ROWS]
    if len(rare) == 0:
        return table, target, numbers
    left_out = f"Classes of {target.name!r} with fewer than {MIN_CLASS_ROWS} rows were left out: {listed(rare)}"
    warnings.append(coded("ER029", f"{left_out} ({len(rare)} in all)."))
    kept = counts[codes] >= MIN_CLASS_ROWS
    table = table.filter(pl.Series(kept))
    if table.height == 0:
        raise EmpiriskError(f"target={target.name!r} has no class with {MIN_CLASS_ROWS} rows; choose another column.")
    return table, tables.Target.of(table, target.name, target.task), numbers[kept]


def equal_rows(frame: pl.DataFrame, y: NDArray, classes: bool) -> NDArray:
    """The first row that equals each row: rows of the same first one stay on one side of every split.

    Where a few columns of few values make rows equal by chance, and for a class that would have too few different rows
    to be both learned and tested, each row is its own.
    """
    n = frame.height
    # Polars hashes columns of all its kinds, in threads; the order of the sets does not matter here.
    first, places = equal_keys(frame.hash_rows(seed=1).to_numpy())
    if len(first) * MAX_MEAN_COPIES < n:
        return np.arange(n)
    if classes:
        labels, class_of = np.unique(y, return_inverse=True)
        different = np.bincount(class_of[first], minlength=len(labels))
        few = (different < MIN_DISTINCT_ROWS)[class_of]
        return np.where(few, np.arange(n), first[places])
    return first[places]


def _sets(equal: NDArray) -> int:
    """How many sets of equal rows there are: each has a first row."""
    return int(np.sum(equal == np.arange(len(equal))))


def _split_sets(equal: NDArray, cv: Any, y: NDArray, **rules: Any) -> list[tuple[NDArray, NDArray]]:
    """Splits of sets of equal rows, as pairs of row numbers."""
    _, first, codes = np.unique(equal, return_index=True, return_inverse=True)

    def rows(sets: NDArray) -> NDArray:
        chosen = np.zeros(len(first), dtype=bool)
        chosen[sets] = True
        return np.flatnonzero(chosen[codes])

    return [(rows(train), rows(test)) for train, test in make_splits(cv, y[first], **rules)]


def _tested_apart(held: NDArray, target: Any) -> tuple:
    """The rows of the table, and those of the file of tests."""
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    if not len(test):
        raise EmpiriskError(f"test_file has no rows with a value of {target.name!r} that the table has too.")
    return train, test


def _check_groups(name: str | None, groups: NDArray, test: float) -> None:
    """Two groups are needed for folds, and others to test on."""
    count = len(np.unique(groups))
    if count - np.ceil(test * count) < 2:
        raise TooFewRows(
            f"groups={name!r}: of {_rows(count, 'group')}, test={test:g} leaves fewer than two to learn from in folds; "
            "name a column of more values, or give a smaller test."
        )


def _told_of_groups(name: str, groups: NDArray, train: NDArray, test: NDArray) -> str:
    """What is learned from and tested on where rows of a group stay together."""
    learned, tested = (len(np.unique(groups[rows])) for rows in (train, test))
    return (
        f"Rows of the same {name!r} stay on one side of every split: {learned:,} of its values are learned from, and "
        f"the test is on {tested:,} others."
    )


def _held_out(y: NDArray, target: Any, equal: NDArray, request: Request, rules: dict[str, NDArray]) -> tuple:
    if "groups" in rules:
        _check_groups(request.groups, rules["groups"], request.test)
    # Every class is to be tested.
    share = request.test if rules else max(request.test, len(target.classes) / _sets(equal))
    kept = {"classes": bool(target.classes), "test_size": share, "random_state": request.seed}
    [(train, test)] = _split_sets(equal, "holdout", y, **kept, **rules)
    if target.classes and len(np.unique(y[train])) < 2:
        raise OneClass("The training part holds one class only; give another time_order or groups column.")
    return np.sort(train), np.sort(test)


def _folds(
    y: NDArray, target: Any, equal: NDArray, request: Request, rules: dict[str, NDArray], warnings: list[str]
) -> list[tuple[NDArray, NDArray]]:
    """Folds of the training rows: as many as asked for, but no more than the smallest class has rows."""
    count = request.folds or (FOLDS if len(y) <= MANY_ROWS else FEW_FOLDS)
    if "groups" in rules and (groups := len(np.unique(rules["groups"]))) < count:
        count = groups
        warnings.append(coded("ER032", f"The training rows are of {groups} groups: {groups} folds were used."))
    if target.classes and not rules:
        smallest = int(np.unique(y[np.unique(equal, return_index=True)[1]], return_counts=True)[1].min())
        if smallest < count:
            count = max(2, smallest)
            told = f"The smallest class has {smallest} training rows: {count} folds were used."
            warnings.append(coded("ER032", told))
    folds = _split_sets(equal, count, y, classes=bool(target.classes), random_state=request.seed, **rules)
    # In order of time the last fold has most rows to learn from: the first to be played is the one that tells most.
    return folds[::-1] if "time" in rules else folds


def _warn_about_columns(found: Plan) -> Iterator[tuple[str, str]]:
    """Warnings of leaks, imbalance, rows on both sides of the split, and a test that says little, with their codes."""
    training = found.frame[found.train].with_columns(pl.Series(found.target.name, found.y[found.train]))
    found.leaks.update(tables.look_for_leaks(training, found.schema, found.target))
    for name, reason in found.leaks.items():
        out = option("drop", [name])
        yield "ER021", f"Column {name!r} may give the target away: {reason}; leave it out with {out} if so."
    if found.target.question:
        yield "ER025", found.target.question
    yield from (("ER030", remark) for remark in found.target.column.remarks())
    yield from remarks(found.frame, found.schema)
    in_time = [] if found.in_order else [name for name in found.schema.of_kind("date") if _rises(found.frame[name])]
    if in_time:
        yield (
            "ER023",
            f"Rows are in order of {in_time[0]!r}: if the model is for rows that come later, test it on the last ones "
            f"with {option('time_order', in_time[0])}.",
        )
    perhaps = _perhaps_codes(found)
    if perhaps:
        yield (
            "ER025",
            f"{listed(perhaps)}: whole numbers of few values, taken as numbers; where they are codes, say so with "
            f"{option('types', {perhaps[0]: 'category'})}.",
        )
    rare = rare_class(found.y[found.train]) if found.target.classes else None
    if rare is not None:
        share = float(np.mean(found.y[found.train] == rare))
        yield (
            "ER026",
            f"Class {str(rare)!r} has {percent(share)} of the rows: accuracy would hide it, and average "
            f"precision decides unless you say otherwise; {option('balance')} lets all classes count alike.",
        )
    if found.twins:
        equal = "equals" if found.twins == 1 else "equal"
        yield "ER027", f"{_rows(found.twins, 'test row')} {equal} a training row in every column: the test may flatter."
    if len(found.test) < FEW_TEST_ROWS:
        yield "ER028", f"The test part has {len(found.test)} rows only: its scores are uncertain."


def remarks(frame: pl.DataFrame, schema: tables.Schema) -> Iterator[tuple[str, str]]:
    """Columns of a table, as `Schema.features` makes it, that are not learned from, and values of others in doubt."""
    unused = [column for column in schema.columns if not column.used]
    if unused:
        are = "columns are" if len(unused) > 1 else "column is"
        reasons: dict[str, list[str]] = {}
        for column in unused:
            reasons.setdefault(f"{column.kind}: {column.type.why_not(column)}", []).append(repr(column.name))
        told = "; ".join(f"{listed(names)} ({reason})" for reason, names in reasons.items())
        yield "ER022", f"{len(unused)} {are} not learned from: {told}."
    yield from (("ER030", remark) for column in schema.used for remark in column.remarks())
    yield from (("ER030", question) for question in stand_ins(frame, schema))


def _ordered(series: pl.Series, rule: str) -> pl.Series:
    """The values by whose order rows are ruled: moments of dates that are written as text."""
    column = guess(series)
    return column.parse(series) if rule == "time" and column.kind in ("date", "number") else series


def _rises(moments: pl.Series) -> bool:
    """Whether rows are in order of time, and not all of one moment."""
    known = moments.drop_nulls()
    return len(known) >= MIN_ORDERED and known.is_sorted() and known.n_unique() > len(known) / 2


def rare_class(y: NDArray) -> Any:
    """The rarest class, where it is so rare that accuracy hides it; else None.

    >>> str(rare_class(np.array(["ok"] * 97 + ["fraud"] * 3))), rare_class(np.array(["a", "b"]))
    ('fraud', None)
    >>> print(rare_class(np.array(["a", "b"] * 5000 + ["c"] * 9)))
    None
    """
    labels, counts = np.unique(y, return_counts=True)
    some = (counts >= LEAST_SHARE * len(y)) | (len(labels) <= 2)
    labels, counts = labels[some], counts[some]
    least = min(RARE_SHARE, RARE_SHARE_OF_EQUAL / max(len(labels), 1)) * len(y)
    return labels[counts.argmin()] if len(labels) > 1 and counts.min() < least else None


def _perhaps_codes(found: Plan) -> list[str]:
    """Columns of numbers that might be codes: whole, and of few values."""
    numbers = found.schema.named(lambda kind: kind.drawn == "numbers")
    few = [name for name in numbers if 2 < found.schema[name].distinct <= MAX_CODES]
    return [name for name in few if bool((found.frame[name] == found.frame[name].round()).all())]


def _rows(count: int, word: str = "row", several: str = "") -> str:
    """A number of rows, as people write it."""
    return f"{count:,} {word if count == 1 else several or f'{word}s'}"
