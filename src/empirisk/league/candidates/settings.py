"""What may be tried of each candidate on a table: its settings, those around them, and votes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from empirisk.league.candidates.calibrate import calibrated
from empirisk.league.candidates.everyone import AT_ONCE, Candidate, Size, around, deviance_of, is_large
from empirisk.league.candidates.vote import Answers, can_vote, votes
from empirisk.league.records import CandidateResult
from empirisk.league.rows.encoded_folds import EncodedFolds
from empirisk.league.rows.encodings import NUMBERS, encoding_of

#: Why nobody plays who reads an encoding that is empty, as where each word of the texts is met once.
NOTHING_TO_READ = "nothing in the columns is met often enough for it to learn from"


@dataclass
class CandidateSettings:
    """The settings of candidates for a table.

    Parameters
    ----------
    folds : EncodedFolds
        All of them: settings are those for all rows, on which the best is fitted again.
    classes : int
        Their number, or 0 for numbers.
    seed : int
        Draws what machines draw.
    balance, probabilities : bool
        Whether classes count alike, and whether every machine must give probabilities.
    quick : bool
        Whether settings that take little time come first, as where time is short.
    answers : callable
        From candidates and folds to what they said of the validation rows, or None where it is not known any more.
    sampled : bool
        Whether the rows are a sample of a table in files.
    """

    folds: EncodedFolds
    classes: int
    seed: int
    balance: bool = False
    probabilities: bool = False
    quick: bool = False
    answers: Callable[[Sequence[CandidateResult], EncodedFolds], Answers | None] = lambda voters, folds: None
    sampled: bool = False
    _sizes: dict[tuple[EncodedFolds, str], Size] = field(default_factory=dict)

    @property
    def large(self) -> bool:
        """Whether fits take long, and one fold already tells settings apart."""
        return is_large(self.folds.rows, self.classes)

    def size(self, folds: EncodedFolds, encoding: str = NUMBERS) -> Size:
        """What settings depend on: the encoding of these folds, and the rows of all."""
        key = folds, folds.encoding(encoding)
        if key not in self._sizes:
            size = Size.of(*folds.fold(0, encoding)[:2], self.classes, self.seed)
            deviance = "" if self.classes else deviance_of(self.folds.y)
            encoder = folds.encoder_of(0, encoding)
            places = {
                "codes": encoder.coded_places,
                "strings": encoder.spelled_places,
                "coordinates": encoder.coordinate_places,
            }
            self._sizes[key] = replace(size, rows=self.folds.rows, deviance=deviance, sampled=self.sampled, **places)
        return self._sizes[key]

    def _size_for(self, candidate: Candidate, folds: EncodedFolds) -> Size:
        return self.size(folds, candidate.encoding)

    def reason_not_to_run(self, candidate: Candidate, folds: EncodedFolds) -> str:
        """Why a candidate does not play, as half a sentence; empty if it does."""
        size = self._size_for(candidate, folds)
        plays = size.columns or candidate.turn == AT_ONCE
        return candidate.reason_not_to_run(size) if plays else NOTHING_TO_READ

    def slow(self, candidate: Candidate) -> bool:
        """Whether a candidate plays after the others where there is no limit of time."""
        return candidate.slow(self.size(self.folds))

    def of(self, candidate: Candidate, folds: EncodedFolds) -> list[Any]:
        """The settings of a candidate, unfitted, the most promising first."""
        size = self._size_for(candidate, folds)
        machines = [*(candidate.quick(size) if self.quick else []), *candidate.machines(size)]
        if self.balance and not candidate.fair:
            machines = [_balanced(machine) for machine in machines]
        if self.probabilities:
            machines = [calibrated(machine, folds.fold(0)[1]) for machine in machines]
        return machines

    def around(self, setting: Any) -> list[Any]:
        """Machines that differ from one in one of its numbers."""
        return around(setting)

    def can_vote(self, setting: Any) -> bool:
        """Whether what a machine says has a mean: numbers, or probabilities."""
        return can_vote(setting, self.classes)

    def votes(self, voters: Sequence[CandidateResult], folds: EncodedFolds | None) -> list[Any]:
        """Votes of the first of these machines, unfitted, weighted by what they said in the folds where it is known."""
        answers = None if folds is None else self.answers(voters, folds)
        return votes([one.machine for one in voters], self.classes, answers)

    def encoding(self, setting: Any) -> str:
        """The encoding that a machine reads."""
        return encoding_of(setting)


def _balanced(machine: Any) -> Any:
    """The machine with classes that count alike, where it knows weights of classes."""
    return machine.set_params(class_weight="balanced") if "class_weight" in machine.get_params() else machine
