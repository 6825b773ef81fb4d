"""Encodings of a table: which of them a machine reads, and a machine behind those that it reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from empirisk.kernels.strings import Spelled
from empirisk.linalg.threads import ordered_map
from empirisk.tables.encoding.encoder import TableEncoder
from empirisk.tables.encoding.joined import JoinedEncoder

#: Encodings of a table: numbers; codes of words, for trees; sequences letter by letter, for kernels on strings.
NUMBERS, CODES, LETTERS = "numbers", "codes", "letters"
#: Between the names of encodings that a vote reads side by side.
AND = " and "


def encoders(encoder: TableEncoder) -> dict[str, TableEncoder]:
    """The encoder of each encoding; that of numbers where a table has nothing that another would show otherwise."""
    return {NUMBERS: encoder, CODES: encoder.for_trees(), LETTERS: encoder.for_strings()}


def encoding_of(machine: Any) -> str:
    """The encoding that a machine reads: trees can be told which columns hold codes of words; all of them of a vote.

    >>> encoding_of(er.VoteRegressor([er.BoostingRegressor(), er.Ridge(), er.Lasso()]))
    'numbers and codes'
    """
    if hasattr(machine, "estimators"):
        read = {encoding_of(one) for one in machine.estimators}
        return AND.join(name for name in (NUMBERS, CODES, LETTERS) if name in read)
    asked = machine.get_params()
    if any(name.rpartition("__")[2] == "categorical_features" for name in asked):
        return CODES
    return LETTERS if any(isinstance(value, Spelled) for value in asked.values()) else NUMBERS


def different(encoding: str, known: Mapping[str, TableEncoder]) -> str:
    """An encoding, or several, named as that of numbers where they would be the same."""
    names = [NUMBERS if known[name] is known[NUMBERS] else name for name in encoding.split(AND)]
    return AND.join(dict.fromkeys(names))


def pipeline_of(machine: Any, known: Mapping[str, TableEncoder]) -> Pipeline:
    """What encodes a table and a copy of the machine, to be fitted together."""
    names = different(encoding_of(machine), known).split(AND)
    if len(names) == 1:
        return Pipeline([("table", known[names[0]]), ("machine", clone(machine))])
    return VotePipeline([("table", JoinedEncoder({name: known[name] for name in names})), ("machine", clone(machine))])


class VotePipeline(Pipeline):
    """Encodings side by side, and a vote of machines each of which reads one of them."""

    def fit(self, X: Any, y: Any = None, **_: Any) -> "VotePipeline":
        """Fit the encoders, and each machine to what it reads."""
        encoder, vote = self.steps[0][1], self.steps[1][1]
        fit_vote(vote, encoder.fit_transform(X, y), y, encoder)
        return self


def fit_vote(vote: Any, X: Any, y: NDArray, encoder: Any) -> None:
    """Fit the machines of a vote to what each of them reads of encoded rows."""
    if not isinstance(encoder, JoinedEncoder):
        vote.fit(X, y)
        return
    pairs: list[Any] = list(zip(map(clone, vote.estimators), _readers(vote, encoder), strict=True))
    join(vote, list(ordered_map(lambda pair: pair[0].fit(pair[1].transform(X), y), pairs)), X, y, encoder)


def join(vote: Any, fitted: Sequence[Any], X: Any, y: NDArray, encoder: Any = None) -> None:
    """Make a vote of machines that have learned from these rows already, each from what it reads of them.

    ``encoder`` has made X of the rows: where it joins encodings, each machine goes behind the step that keeps its own.
    """
    given = vote.estimators
    if isinstance(encoder, JoinedEncoder):
        pairs = zip(_readers(vote, encoder), fitted, strict=True)
        fitted = [Pipeline([("encoding", reader), *_steps(machine)]) for reader, machine in pairs]
    vote.set_params(estimators=[FrozenEstimator(machine) for machine in fitted]).fit(X, y)
    vote.set_params(estimators=given)
    vote.estimators_ = list(fitted)


def _readers(vote: Any, encoder: JoinedEncoder) -> list[Any]:
    """For each machine of a vote the step that keeps what it reads."""
    made = {name: encoder.reader(name) for name in encoder.encoders}
    return [made.get(encoding_of(one), made.get(NUMBERS)) for one in vote.estimators]


def _steps(machine: Any) -> list[tuple[str, Any]]:
    """The steps of a machine that is a pipeline, or the machine as the only one."""
    return machine.steps if isinstance(machine, Pipeline) else [("machine", machine)]
