"""Learned tables as graphs: raw columns in, each encoded as its kind says."""

from typing import Any

import numpy as np

from empirisk.exports import words
from empirisk.exports.registry import Answers, answers, asked, described, refused, write_answers
from empirisk.exports.rows import CHECKED, ExportRows, make_rows
from empirisk.exports.tensor import Symbolic, constant
from empirisk.tables.encoding.encoder import TableEncoder
from empirisk.tables.encoding.joined import EncodingReader, JoinedEncoder
from empirisk.tables.encoding.numbers_and_texts import FAR
from empirisk.tables.model import TableModel, named_from
from empirisk.tables.reading.frames import as_frame


@write_answers.register
def _(model: TableModel, x: Any) -> Answers:
    if model.history is not None:
        raise refused(model, "it reads what the target was in rows before, and a graph sees one row at a time")
    found = answers(model.pipeline, x)
    if model.threshold is None:
        return found
    named = named_from(constant(model.classes), found["predict_proba"], *model.threshold)
    return found | {"predict": named}


@write_answers.register
def _(encoder: TableEncoder, x: Any) -> Answers:
    """The blocks in the order of `TableEncoder`: numbers, codes, flags, means, indicators, words, others."""
    if encoder.letters:
        raise refused(encoder, "its sequences are compared by kernels on strings")
    used = {column.name: column for column in encoder.schema.used}
    column = {name: x[:, [place]] for place, name in enumerate(used)}
    numeric = [each.type.graph_numbers(column[each.name], each, words) for each in encoder._numeric]
    codes = {
        name: used[name].type.graph_codes(column[name], used[name], levels, words)
        for name, levels in zip(encoder._coded, encoder.words_.levels, strict=True)
    }
    parts: list[Symbolic] = []
    flags = None
    if numeric:
        scaled, flags = _numbers(encoder, np.concatenate(numeric, axis=1))
        parts.append(scaled)
    if encoder.codes:
        parts += [_code(encoder, place, code) for place, code in enumerate(codes.values())]
    if flags is not None and flags.shape[1]:
        parts.append(flags)
    for name, levels, means in zip(encoder.many_, encoder.means_.levels, encoder.means_.means, strict=True):
        place = used[name].type.graph_codes(column[name], used[name], levels, words)
        parts.append(constant(means)[np.minimum(place, float(len(levels)))[:, 0].astype(int)])
    for each in encoder.schema.used:
        if each.type.indicators:
            parts.append(each.type.graph_indicators(column[each.name], each, words))
    if not encoder.codes:
        parts += [_indicators(encoder, place, code) for place, code in enumerate(codes.values())]
    for name, block in encoder.column_blocks():
        parts.append(used[name].type.graph_block(column[name], block, words))
    return {"transform": np.concatenate([part for part in parts if part.shape[1]], axis=1)}


@write_answers.register
def _(encoder: JoinedEncoder, x: Any) -> Answers:
    return {"transform": np.concatenate([answers(one, x)["transform"] for one in encoder.encoders_], axis=1)}


@write_answers.register
def _(step: EncodingReader, x: Any) -> Answers:
    return {"transform": x[:, list(range(step.first, step.first + step.count))]}


def _numbers(encoder: TableEncoder, x: Symbolic) -> tuple[Symbolic, Symbolic]:
    """The scaled numbers, and the flags of missing ones."""
    known = encoder.numbers_
    missing = np.isnan(x) | np.isinf(x)
    filled = np.where(missing, known.middle, x)
    scaled = np.clip((filled - known.mean) / known.scale, -FAR, FAR)
    return scaled, missing[:, known.flagged.tolist()].astype(np.float64)


def _code(encoder: TableEncoder, place: int, code: Symbolic) -> Symbolic:
    """The codes of a column of words, NaN where they are missing or were not met."""
    count = len(encoder.words_.levels[place]) + int(encoder.words_.others[place])
    return np.where(code < float(count), code, np.nan)


def _indicators(encoder: TableEncoder, place: int, code: Symbolic) -> Symbolic:
    """The indicators of a column of words."""
    known, count = encoder.words_, len(encoder.words_.levels[place])
    kept = [*range(count), *[count] * bool(known.others[place]), *[count + 1] * bool(known.missing[place])]
    return (code == np.array(kept, dtype=np.float64)).astype(np.float64)


# --- rows -------------------------------------------------------------------------------------------------------------


@make_rows.register
def _(model: TableModel, given: Any) -> ExportRows:
    frame, arrays = as_frame(_trials(model) if given is None else given), {}
    for column in model.schema.used:
        series = frame[column.name]
        if column.type.graph_type == "double":
            values = column.convert(series).cast(float).fill_null(np.nan).to_numpy()
        else:
            text = column.parse(series) if series.dtype.is_numeric() else series
            values = np.array(text.cast(str).fill_null("").to_list(), dtype=object)
        arrays[column.name] = values[:, None]
    return ExportRows(frame, arrays)


def _trials(model: TableModel) -> dict[str, list[Any]]:
    """Values that the columns may have, and others, mixed at random: missing ones, and words that were not met."""
    random, encoder = np.random.default_rng(0), model.pipeline[0]
    table = {}
    for column in model.schema.used:
        values = [*column.type.graph_trials(column, encoder.levels(column.name)), None]
        table[column.name] = [values[place] for place in random.integers(len(values), size=CHECKED)]
        table[column.name][0] = values[0]  # a column of missing values alone has no type
    return table


@described.register
def _(model: TableModel) -> tuple[str, bool]:
    text = f"{type(model.machine).__name__} that predicts {model.target.name!r}."
    return text, model.target.task == "classification"


@asked.register
def _(model: TableModel, table: Any) -> Answers:
    encoded, machine = model.encode(table), model.pipeline[-1]
    methods = ["decision_function", *["predict_proba"] * model.has_probabilities]
    told = {name: getattr(machine, name)(encoded) for name in methods if hasattr(machine, name)}
    return told | {"predict": model.predict_encoded(encoded)}
