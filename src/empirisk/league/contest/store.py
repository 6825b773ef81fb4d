"""What a contest has played and fitted: results, in a journal that survives a crash, and machines worth keeping."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline

from empirisk.league.contest.schedule import Play
from empirisk.league.records import CandidateResult, FoldResult
from empirisk.runs.journal import Journal


class FoldStore:
    """Results of all folds played, now or before a crash, and the pipelines of the leaders.

    Parameters
    ----------
    journal : Journal
        On disk, or in memory alone.
    every_fold : bool
        Whether pipelines of all folds are kept, or only the last of each candidate: those of large tables are large.
    """

    def __init__(self, journal: Journal, every_fold: bool = True):
        self._journal, self._every_fold = journal, every_fold
        self._fitted: dict[str, dict[tuple[int, int], Pipeline]] = {}

    def result(self, play: Play) -> FoldResult | None:
        """How a play went, if it was played before."""
        known = self._journal.done.get(fold_key(play))
        return None if known is None else FoldResult(**known)

    def add(self, play: Play, result: FoldResult, pipeline: Pipeline) -> None:
        """Note a fold that was played, and what was fitted on it; raises `NotWritten` where the disk is full."""
        settings = settings_key(play.result.name, play.setting)
        self._journal.add(fold_key(play), result.to_dict())
        self._fitted.setdefault(settings, {})[play.fold, play.folds.rows] = pipeline

    def fitted(self, result: CandidateResult) -> list[Pipeline]:
        """What was fitted with the settings of a result and kept, the last one last."""
        return list(self._fitted.get(settings_key(result.name, result.machine), {}).values())

    def members(self, play: Play, voters: Sequence[CandidateResult]) -> tuple[list[Pipeline], float] | None:
        """What voters have fitted on the fold of a play, and the seconds of their fits; None if it was not kept."""
        keys = [settings_key(one.name, one.machine) for one in voters]
        fold = play.fold, play.folds.rows
        kept = [self._fitted[key][fold] for key in keys if fold in self._fitted.get(key, {})]
        plays = [replace(play, result=one, setting=one.machine) for one in voters]
        known = [result for one in plays if (result := self.result(one)) is not None]
        return (kept, sum(one.seconds for one in known)) if len(kept) == len(known) == len(keys) else None

    def of_folds(self, result: CandidateResult, folds: Any) -> list[Pipeline] | None:
        """What was fitted with the settings of a result on each of the folds; None where not all is kept."""
        known = self._fitted.get(settings_key(result.name, result.machine), {})
        kept = [known.get((fold, folds.rows)) for fold in range(len(folds))]
        return None if None in kept else [pipeline for pipeline in kept if pipeline is not None]

    def keep_only(self, results: Sequence[CandidateResult]) -> None:
        """Forget what was fitted for others: it serves a vote, and where there is no time to fit the best again."""
        keys = [settings_key(one.name, one.machine) for one in results]
        first = 0 if self._every_fold else -1
        self._fitted = {key: dict([*self._fitted[key].items()][first:]) for key in keys if key in self._fitted}


def settings_key(name: str, setting: Any) -> str:
    """A candidate with its settings, as a line of text."""
    members = getattr(setting, "estimators", None)
    if members is None:
        return f"{name} | {setting}"
    vote = setting.weights, getattr(setting, "temperature", 1.0), members
    return f"{name} | {vote!r}"


def fold_key(play: Play) -> str:
    """A play as a line of text: the candidate with its settings, the fold, and its training rows."""
    return f"{settings_key(play.result.name, play.setting)} | {play.fold} | {play.folds.rows}"
