"""The reference of the site: a page for every room of public names, and docstrings with all their parameters.

A composed machine (`SVM`, `Ridge`) says in its own docstring what it minimises, and that its parameters are those of
`Classifier` or `Regressor`; on the site they are written out, each as the machine's own constructor takes it.
"""

import inspect
import types
from operator import attrgetter
from pathlib import Path
from typing import Any

import empirisk as er

#: Title and names of each page, in the order of a reader's questions; what is not named here stands on the last page.
PAGES = {
    "machines": (
        "Machines",
        "Classifier Regressor SVM SVR OneClassSVM LogisticRegression LeastSquares LeastSquaresClassifier Ridge Lasso "
        "ElasticNet LeastAbsolute QuantileRegressor Perceptron NearestCentroid KNNClassifier KNNRegressor Parametric",
    ),
    "ensembles": (
        "Trees and ensembles",
        "TreeClassifier TreeRegressor ForestClassifier ForestRegressor BoostingClassifier BoostingRegressor "
        "BaggingClassifier BaggingRegressor AdaBoostClassifier VoteClassifier VoteRegressor",
    ),
    "unsupervised": (
        "Clusters, densities, projections",
        "KMeans Hierarchical GaussianMixture GaussianDensity PCA Dictionary ContrastiveMetric LargeMarginMetric",
    ),
    "job": ("The whole job", "learn evaluate compare luck save load config"),
}
#: Title of the page of each module that users reach as an attribute.
MODULES = {
    "losses": "Losses",
    "penalties": "Penalties",
    "kernels": "Kernels",
    "maps": "Maps",
    "nets": "Networks",
    "solvers": "Solvers",
    "evaluation": "Evaluation",
    "selection": "Selection",
    "theory": "Theory",
    "plots": "Views",
    "tables": "Tables",
    "scales": "Scales of other libraries",
    "errors": "Errors",
}
#: The last page: whatever has no page of its own.
REST = "problems"
BASES = (er.Classifier, er.Regressor)


def pages() -> dict[str, tuple[str, list[str]]]:
    """Title and full names of each page; together they hold every public name.

    >>> "empirisk.Ridge" in pages()["machines"][1]
    True
    """
    found = {name: (title, _present(names.split())) for name, (title, names) in PAGES.items()}
    modules = [name for name in er.__all__ if isinstance(getattr(er, name), types.ModuleType)]
    titles = MODULES | {name: name.capitalize() for name in modules if name not in MODULES}
    found |= {name: (title, _members(name)) for name, title in titles.items()}
    listed = {name for _, names in found.values() for name in names}
    rest = [f"empirisk.{name}" for name in er.__all__ if name not in modules and f"empirisk.{name}" not in listed]
    found[REST] = "Problems, parts and more", sorted(rest)
    first: dict[int, str] = {}  # what has two names stands where the first one does
    return {
        page: (title, [name for name in names if first.setdefault(id(_value(name)), name) == name])
        for page, (title, names) in found.items()
    }


def _value(name: str) -> Any:
    return attrgetter(name.removeprefix("empirisk."))(er)


def _present(names: list[str]) -> list[str]:
    return [f"empirisk.{name}" for name in names if name in er.__all__]


def _members(module: str) -> list[str]:
    """What a module lists; a module that lists nothing has what it defines."""
    value = getattr(er, module)
    own = [name for name, one in vars(value).items() if getattr(one, "__module__", "") == value.__name__]
    listed = getattr(value, "__all__", None) or [name for name in own if not name.startswith("_")]
    return [f"empirisk.{module}.{name}" for name in sorted(listed)]


def write(folder: Path) -> None:
    """Write the pages; those that are as they were are left alone, so that Sphinx reads only what has changed."""
    folder.mkdir(exist_ok=True)
    contents = "\n   ".join(pages())
    _write(folder / "index.rst", f"{_title('Reference')}\n.. toctree::\n   :maxdepth: 1\n\n   {contents}\n")
    for page, (title, names) in pages().items():
        listed = "\n   ".join(names)
        text = f"{_title(title)}\n.. autosummary::\n   :toctree: names\n\n   {listed}\n"
        _write(folder / f"{page}.rst", text)
    known = {name for _, names in pages().values() for name in names}
    for stale in folder.glob("names/*.rst"):
        if stale.stem not in known:
            stale.unlink()


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def complete(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Write out the parameters and attributes of a composed machine, and keep bars as they are.

    Sphinx calls this for every docstring.
    """
    end = lines.index("Examples") if "Examples" in lines else len(lines)
    lines[:end] = [_escaped(line) for line in lines[:end]]
    if what != "class" or "Parameters" in lines or not (isinstance(value, type) and issubclass(value, BASES)):
        return
    base = next(base for base in BASES if issubclass(value, base))
    taken = inspect.signature(value).parameters
    sections = _sections(inspect.getdoc(base) or "")
    own = [entry for entry in _entries(sections["Parameters"]) if entry[0].split(" :")[0] in taken]
    added = ["Parameters", "----------", *(line for entry in own for line in entry), ""]
    added += ["Attributes", "----------", *sections.get("Attributes", []), ""]
    lines[end:end] = [_escaped(line) for line in added]


def skip(app: Any, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out methods that scikit-learn gives to every estimator, such as ``set_output`` and ``set_fit_request``."""
    theirs = getattr(value, "__module__", None) or ""
    return True if theirs.startswith("sklearn.") or name.endswith("_request") else None


def _escaped(line: str) -> str:
    """Bars outside of code, which would stand for a substitution.

    >>> _escaped("1/2 |w|^2, ``a | b``")
    '1/2 \\\\|w\\\\|^2, ``a | b``'
    """
    parts = line.split("``")
    return "``".join(part if number % 2 else part.replace("|", r"\|") for number, part in enumerate(parts))


def _sections(text: str) -> dict[str, list[str]]:
    """The lines of each section of a numpydoc docstring."""
    lines, found, title = text.splitlines(), {}, ""
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if below and not below.strip("-") and len(below) == len(line):
            title = line
            found[title] = []
        elif title and (line.strip("-") or not line):
            found[title].append(line)
    return found


def _entries(lines: list[str]) -> list[list[str]]:
    """The entries of a section: a line at the margin, and what is indented below it."""
    found: list[list[str]] = []
    for line in lines:
        if line and not line.startswith(" "):
            found.append([line])
        elif found and line:
            found[-1].append(line)
    return found
