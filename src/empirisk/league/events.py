"""What happens in a job, as a stream of records: for a screen, a page, a notebook or a file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from empirisk.evaluation.metrics import Metric
from empirisk.league.records import CandidateResult, as_json
from empirisk.league.result import Learned
from empirisk.league.rows.split import Plan

#: Hears of an event by its kind and what it is about.
Tell = Callable[[str, Any], None]


@dataclass(frozen=True)
class Event:
    """Something that happened.

    Attributes
    ----------
    kind : str
        The name of a method of `Listener`, which says what it means.
    about : Any
        The argument of that method.
    seconds : float
        Since the job began.

    Examples
    --------
    >>> Event("doing", "reading iris", 0.25).to_dict()
    {'event': 'doing', 'seconds': 0.25, 'about': 'reading iris'}
    """

    kind: str
    about: Any
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON has it; plans, metrics, results and the whole result have their own form within."""
        return as_json({"event": self.kind, "seconds": self.seconds, "about": self.about})


class Listener:
    """Hears of the events of `learn`, each by a method of its name; every method does nothing here.

    Any other function of an `Event` may listen as well.

    >>> class Loud(Listener):
    ...     def chosen(self, result):
    ...         print(result.title)
    >>> found = er.learn("iris", machines=["centroid"], listener=Loud())
    Nearest centroid
    """

    def __call__(self, event: Event) -> None:
        """Call the method of the event."""
        getattr(self, event.kind)(event.about)

    def doing(self, what: str) -> None:
        """A step begins that may take a while, such as "Ridge regression, fold 2 of 5"."""

    def understood(self, plan: Plan) -> None:
        """The table was read and split."""

    def deciding(self, metric: Metric) -> None:
        """The score that decides is known."""

    def resumed(self, folds: int) -> None:
        """An earlier run of the same request was cut off, and has played so many folds already."""

    def played(self, result: CandidateResult) -> None:
        """The result of a candidate changed."""

    def outlook(self, more_time: str) -> None:
        """What more time would probably gain, as far as is seen after the first rounds; only under a limit of time."""

    def stopped(self, reason: str) -> None:
        """The contest ended early."""

    def chosen(self, result: CandidateResult) -> None:
        """The winner is known."""

    def done(self, learned: Learned) -> None:
        """The result is there: the last event of a job that went well."""

    def failed(self, reason: str) -> None:
        """There is no result: the last event of a job that was stopped, or in which something went wrong."""
