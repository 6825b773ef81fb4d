"""The pictures of the report, each with a sentence that says what to see."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from matplotlib.figure import Figure as Drawing

from empirisk import plots
from empirisk.report.words import plain

MOST_CLASSES = 30


class Figure(NamedTuple):
    """A picture and its caption."""

    svg: str
    caption: str


def of_test(learned: Any) -> Iterator[Figure]:
    """How the predictions on the test part look."""
    test, classes = learned.test, learned.classes
    if classes is None:
        yield _drawn(
            lambda: plots.residuals(test.truth, test.predictions), "Predictions against the truth, and their errors."
        )
        return
    if len(classes) <= MOST_CLASSES:
        yield _drawn(
            lambda: plots.confusion(test.truth, test.predictions, classes=list(classes)),
            "Rows are the truth, columns what the model said; the diagonal is right.",
        )
    graded = test.probabilities if test.probabilities is not None else test.decisions
    if len(classes) == 2 and graded is not None:
        scores = graded[:, 1] if graded.ndim == 2 else graded
        positive = classes[1]
        yield _drawn(
            lambda: plots.roc(test.truth, scores, positive=positive),
            f"How many of {positive} are found at the price of how many false alarms.",
        )
        yield _drawn(
            lambda: plots.precision_recall(test.truth, scores, positive=positive),
            f"How many of those called {positive} are right, over how many are found.",
        )
        if test.probabilities is not None:
            yield _drawn(
                lambda: plots.calibration(test.truth, scores, positive=positive),
                "Whether 80 % means 80 %: points on the diagonal keep their word.",
            )


def of_machine(learned: Any) -> Iterator[Figure]:
    """What the machine looks at, and whether more rows would help."""
    if learned.importances:
        names, means, deviations = zip(*learned.importances, strict=True)
        yield _drawn(
            lambda: plots.importance(list(means), list(deviations), names=list(names), most=15),
            f"How much the {plain(learned.metric)} on the test part suffers when a column is shuffled.",
        )
    if learned.curve is not None:
        yield _drawn(
            lambda: plots.learning_curve(learned.curve),
            "Scores of the machine chosen as it is given more and more rows.",
        )


def _drawn(draw: Callable[[], Drawing], caption: str) -> Figure:
    """The picture; one that cannot be drawn is named instead, for no result is lost for the sake of a picture."""
    try:
        return Figure(plots.to_svg(draw()), caption)
    except Exception as problem:  # noqa: BLE001
        return Figure("", f"{caption} This picture could not be drawn ({type(problem).__name__}: {problem}).")
