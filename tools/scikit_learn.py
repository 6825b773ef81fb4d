"""Write the tables of docs/scikit-learn.md: ``python -m tools.scikit_learn``; a test asks that they are up to date.

What is compared: the constructors of scikit-learn's estimators with those of their counterparts here, name by name.
"""

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sklearn.utils import all_estimators

import empirisk as er
from empirisk.names import CLASSES, SPELLINGS, meant, names_of

PAGE = Path(__file__).parent.parent / "docs" / "scikit-learn.md"
#: Counterparts of the same name.
SAME = ("LogisticRegression", "SVR", "Ridge", "Lasso", "ElasticNet", "QuantileRegressor", "Perceptron", "KMeans", "PCA")
SAME += ("NearestCentroid", "AdaBoostClassifier", "BaggingClassifier", "BaggingRegressor", "GaussianMixture")
SAME += ("OneClassSVM",)
#: Networks are a map in a slot, and extremely random trees are forests, whose names are compared with those of theirs.
APART = ("MLPClassifier", "MLPRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor")
MARK = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def counterparts() -> list[tuple[type, type, str]]:
    """scikit-learn's class, ours, and what one writes for it."""
    known = dict(all_estimators())
    written = {name: name for name in SAME} | {name: ours for name, ours in CLASSES.items() if name not in APART}
    found = []
    for name, ours in sorted(written.items()):
        cls: Any = er
        for part in ours.partition("(")[0].split("."):
            cls = getattr(cls, part)
        found.append((known[name], cls, ours))
    return found


def parameters(cls: type) -> dict[str, inspect.Parameter]:
    """The parameters of a constructor."""
    return dict(inspect.signature(cls).parameters)


def missing() -> dict[tuple[str, str], list[str]]:
    """Parameters of theirs that ours lacks, with what is said of them, and the classes of scikit-learn."""
    found: dict[tuple[str, str], list[str]] = {}
    for theirs, ours, _ in counterparts():
        for name in parameters(theirs):
            if name not in names_of(ours):
                found.setdefault((name, meant(name, names_of(ours))), []).append(theirs.__name__)
    return found


def table(head: str, rows: list[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    titles = head.split(" | ")
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def tables() -> dict[str, str]:
    """The tables by their name."""
    classes = [(f"`{name}`", f"`er.{ours}`") for name, ours in sorted(CLASSES.items())]
    lacking = [
        (f"`{name}`", ", ".join(f"`{each}`" for each in sorted(set(where))), words)
        for (name, words), where in sorted(missing().items())
    ]
    values = [
        (f"`{name}`", _quoted(pairs), _quoted(dict.fromkeys(pairs.values())))
        for name, pairs in sorted(SPELLINGS.items())
    ]
    defaults = [
        (f"`{theirs.__name__}`", f"`{name}`", f"`{one.default!r}`", f"`{parameters(ours)[name].default!r}`")
        for theirs, ours, _ in counterparts()
        for name, one in parameters(theirs).items()
        if name in parameters(ours) and repr(one.default) != repr(parameters(ours)[name].default)
        and one.default is not inspect.Parameter.empty
    ]  # fmt: skip
    return {
        "classes": table("scikit-learn | here", classes),
        "parameters": table("scikit-learn's parameter | of | here", lacking),
        "values": table("parameter | scikit-learn's value, taken too | ours", values),
        "defaults": table("scikit-learn's class | parameter | default there | here", defaults),
    }


def page() -> str:
    """The page with its tables renewed."""
    found = tables()
    return MARK.sub(lambda part: f"{part[1]}{found[part[2]]}{part[3]}", PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(page())
