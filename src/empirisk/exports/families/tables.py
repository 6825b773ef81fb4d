"""Learned tables as graphs: raw columns in, each encoded as its kind says."""

from typing import Any

import numpy as np

from empirisk.exports import words
from empirisk.exports.registry import Answers, answers, write_answers
from empirisk.exports.tensor import Symbolic, constant
from empirisk.tables.encoding.encoder import TableEncoder
from empirisk.tables.encoding.numbers_and_texts import FAR
from empirisk.tables.model import TableModel


@write_answers.register
def _(model: TableModel, x: Any) -> Answers:
    return answers(model.pipeline, x)


@write_answers.register
def _(encoder: TableEncoder, x: Any) -> Answers:
    """The blocks in the order of `TableEncoder`: numbers, codes, flags, means, indicators, words, others."""
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
