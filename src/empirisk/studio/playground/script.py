"""Copy as Python: a script that fits the same machine on the same points and draws it with `er.plots`."""

from typing import Any

import numpy as np

from empirisk.studio.playground.question import Question

VIEWS = {
    "classes": "figure = er.plots.regions(machine, X, y)",
    "numbers": "figure = er.plots.regression(machine, X, y)",
    "clusters": "figure = er.plots.voronoi(machine, X)",
    "hierarchical": "figure = er.plots.dendrogram(machine)",
}
PER_LINE = 4  # points in a line


def script(question: Question) -> str:
    """The script; it needs nothing but Empirisk."""
    X, y = question.data()
    tests, truth = question.data(held=True)
    lines = ["import numpy as np", "", "import empirisk as er", "", _array("X", X)]
    if y is not None:
        lines += [_array("y", y)]
    lines += ["", f"machine = {question.expression}", f"machine.fit({'X' if y is None else 'X, y'})"]
    if "er.Classifier" in question.expression or "er.Regressor" in question.expression:
        lines.append("print(machine.certificate_)")
    if len(tests):
        wrong = "tests_y != machine.predict(tests_X)" if question.task == "classes" else ""
        wrong = wrong or "abs(tests_y - machine.predict(tests_X))"
        lines += ["", _array("tests_X", tests), _array("tests_y", truth), f'print("held-out error:", ({wrong}).mean())']
    view = VIEWS.get(question.family, VIEWS[question.task])
    return "\n".join([*lines, "", view, 'figure.savefig("playground.png", dpi=150)', ""])


def _array(name: str, values: Any) -> str:
    """A line, or several, that make an array."""
    texts = [str(row) for row in np.asarray(values).tolist()]
    if len(texts) <= PER_LINE:
        return f"{name} = np.array([{', '.join(texts)}])"
    rows = [", ".join(texts[start : start + PER_LINE]) for start in range(0, len(texts), PER_LINE)]
    inner = ",\n    ".join(rows)
    return f"{name} = np.array([\n    {inner},\n])"
