"""The reference of the site: a page for every room of public names, and docstrings with all their parameters.

A composed machine (`SVM`, `Ridge`) says in its own docstring what it minimises, and that its parameters are those of
`Classifier` or `Regressor`; on the site they are written out, each as the machine's own constructor takes it.
"""

import inspect
import re
import sys
import types
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import empirisk as er
from empirisk import messages
from empirisk.errors import EmpiriskError
from tools import pages as site_pages

#: Title and names of each page, in the order of a reader's questions; what is not named here stands on the last page.
PAGES = {
    "machines": (
        "Machines",
        "Classifier Regressor SVM SVR OneClassSVM LogisticRegression LeastSquares LeastSquaresClassifier Ridge Lasso "
        "ElasticNet LeastAbsolute QuantileRegressor Perceptron NearestCentroid KNNClassifier KNNRegressor Parametric "
        "Network LearnedKernel",
    ),
    "ensembles": (
        "Trees and ensembles",
        "TreeClassifier TreeRegressor ForestClassifier ForestRegressor BoostingClassifier BoostingRegressor "
        "BaggingClassifier BaggingRegressor AdaBoostClassifier VoteClassifier VoteRegressor "
        "AdditiveClassifier AdditiveRegressor",
    ),
    "unsupervised": (
        "Clusters, densities, projections",
        "KMeans Hierarchical GaussianMixture GaussianDensity PCA Dictionary ContrastiveMetric LargeMarginMetric",
    ),
    "job": ("The whole job", "learn evaluate compare luck score save load export scan config"),
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


def write(docs: Path) -> None:
    """Write the pages; those that are as they were are left alone, so that Sphinx reads only what has changed."""
    folder = docs / "reference"
    folder.mkdir(exist_ok=True)
    contents = "\n   ".join([*pages(), "command-line", "../catalogue", "../model-file"])
    # All names at once, so that each is two clicks from every page.
    tables = "\n".join(
        f".. rubric:: {title}\n\n.. autosummary::\n   :nosignatures:\n\n   {_lines(names)}\n"
        for title, names in pages().values()
    )
    hidden = f".. toctree::\n   :hidden:\n   :maxdepth: 1\n\n   {contents}\n"
    _write(folder / "index.rst", f"{_title('Reference')}\n{hidden}\n{tables}")
    for page, (title, names) in pages().items():
        text = f"{_title(title)}\n.. autosummary::\n   :toctree: names\n\n   {_lines(names)}\n"
        _write(folder / f"{page}.rst", text)
    known = {name for _, names in pages().values() for name in names}
    for stale in folder.glob("names/*.rst"):
        if stale.stem not in known:
            stale.unlink()
    messages, command_line = docs / "messages", docs / "reference" / "command-line.md"
    messages.mkdir(exist_ok=True)
    for name, text in site_pages.messages().items():
        _write(messages / name, text)
    _write(command_line, site_pages.command_line())


def _lines(names: list[str]) -> str:
    """Names below each other, as a directive takes them."""
    return "\n   ".join(names)


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def complete(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Write out parameters and attributes that a docstring takes from another one, and keep bars as they are.

    Errors have the example of their page. Sphinx calls this for every docstring.
    """
    if code := vars(value).get("code") if isinstance(value, type) and issubclass(value, EmpiriskError) else "":
        about = len(_blocks(lines)[0][1])  # lines before the first section
        lines[about:] = ["", f"What to do: :doc:`/messages/{code}`.", "", *lines[about:], *_example_of_page(code)]
    if what == "property" and value.fget.__doc__ is None:  # else that of the type of the value of a base class
        lines[:] = _stated_as_attribute(name) or lines
    written = _expanded(_borrowed(value, _with_examples(lines)) if what == "class" else _with_examples(lines), value)
    end = written.index("Examples") if "Examples" in written else len(written)
    lines[:] = [_escaped(line) for line in written[:end]] + written[end:]


def _stated_as_attribute(name: str) -> list[str]:
    """What a class, or one that it comes from, says of an attribute that is a property here.

    >>> _stated_as_attribute("empirisk.kernels.Normalised.sparse")
    ['Whether a sparse table is accepted.']
    """
    owner, _, attribute = name.rpartition(".")
    stated = re.compile(rf"^{attribute} : .*\n((?:    .*\n?)+)", re.MULTILINE)
    texts = [inspect.cleandoc(base.__doc__ or "") for base in _value(owner).__mro__]
    return next((inspect.cleandoc(found[1]).splitlines() for text in texts if (found := stated.search(text))), [])


def _example_of_page(code: str) -> list[str]:
    """The example of the page of a code, which brings its message about.

    >>> _example_of_page("ER012")[1:3]
    ['Examples', '--------']
    """
    example = re.findall("^## Example\n```python\n(.*?)```", messages.page(code), flags=re.DOTALL | re.MULTILINE)[0]
    block = [f"    {line}".rstrip() for line in example.splitlines()]
    return ["", "Examples", "--------", ".. code-block:: python", "", *block, ""]


def _with_examples(lines: list[str]) -> list[str]:
    """The lines with a title above an example that stands below the last section, whose entry it would be.

    >>> _with_examples(["Parameters", "----------", "n : int", "    A number.", "", ">>> 1"])[-3:]
    ['Examples', '--------', '>>> 1']
    """
    first = next((number for number, line in enumerate(lines) if line.startswith(">>> ")), None)
    if first is None or "Examples" in lines[:first] or len(_blocks(lines[:first])) == 1:
        return lines
    return [*lines[:first], "Examples", "--------", *lines[first:]]


def _borrowed(value: Any, lines: list[str]) -> list[str]:
    """The docstring of a machine with the parameters of its bases that its constructor takes, and their attributes."""
    if issubclass(value, BaseException):  # one of Python's own states no signature
        return lines
    own = dict(_blocks(lines))
    written = {name for names, _, _ in _entries(own.get("Parameters", [])[2:]) for name in names}
    taken = [name for name in inspect.signature(value).parameters if name not in written]
    added: dict[str, list[str]] = {"Parameters": [], "Attributes": []}
    for base in value.__mro__[1:]:
        sections = _sections(inspect.cleandoc(vars(base).get("__doc__") or ""))
        if not taken or not sections.get("Parameters") or not base.__module__.startswith("empirisk."):
            continue
        for names, kind, text in _entries(sections["Parameters"]):
            if borrowed := [name for name in names if name in taken]:
                added["Parameters"] += [", ".join(borrowed) + kind, *text]
                taken = [name for name in taken if name not in borrowed]
        known = {name for names, _, _ in _entries(own.get("Attributes", [])[2:]) for name in names}
        for names, kind, text in _entries(sections.get("Attributes", [])):
            if borrowed := [name for name in names if name not in known]:
                added["Attributes"] += [", ".join(borrowed) + kind, *text]
    found = own.pop("")
    for title, entries in added.items():
        block = [line for line in own.pop(title, [title, "-" * len(title)]) if line] + entries
        found += [*block, ""] if len(block) > 2 else []
    return [*found, *(line for block in own.values() for line in block)]


def _expanded(lines: list[str], value: Any) -> list[str]:
    """The lines, each entry "As for `Other`" replaced by what the docstring of the other says."""
    found, section = [], ""
    for title, block in _blocks(lines):
        section = title or section
        if section not in ("Parameters", "Attributes"):
            found += block
            continue
        found += block[:2]
        for names, kind, text in _entries(block[2:]):
            found += _written_out(names, kind, text, section, value)
        found.append("")
    return found


def _written_out(names: list[str], kind: str, text: list[str], section: str, value: Any) -> list[str]:
    other = re.match(r"    As (?:for|in) `(\w+)`[.;,]? ?(.*)", text[0]) if text else None
    source = _find(other[1], value) if other else None
    if other is None or source is None or source is value:
        return [", ".join(names) + kind, *text]
    known = _sections("\n".join(_expanded((inspect.getdoc(source) or "").splitlines(), source))).get(section, [])
    rest = [f"    {other[2][0].upper()}{other[2][1:]}", *text[1:]] if other[2] else text[1:]
    found: list[str] = []
    for theirs, kind_there, text_there in _entries(known):
        if own := [name for name in names if name in theirs]:
            found += [", ".join(own) + kind_there, *text_there]
    return [*found, *rest] if found else [", ".join(names) + kind, *text]


def _find(name: str, value: Any) -> Any:
    """What a docstring calls by a name: of its own module, of the package, or of one of its public modules."""
    places = [sys.modules[value.__module__], er, *(getattr(er, module) for module in MODULES)]
    return next((getattr(place, name) for place in places if hasattr(place, name)), None)


def link_names(app: Any, page: str, source: list[str]) -> None:
    """Make public names in the text of a page of Markdown links to their pages; Sphinx calls this for every page."""
    if str(app.env.doc2path(page)).endswith(".md"):
        source[0] = linked(source[0])


def linked(text: str) -> str:
    """Markdown whose public names, outside of code and headings, lead to the reference.

    >>> linked("`er.Ridge` and `er.nothing`")
    '[`er.Ridge`](/reference/names/empirisk.Ridge.rst) and `er.nothing`'
    """
    known = {name for _, names in pages().values() for name in names}

    def link(found: re.Match[str]) -> str:
        name = f"empirisk.{found[1]}"
        return f"[{found[0]}](/reference/names/{name}.rst)" if name in known else found[0]

    parts = re.split(r"(^```.*?^```|^#.*?$)", text, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [re.sub(r"(?<![\[`])`er\.([\w.]+)`(?!`)", link, part) for part in parts[::2]]
    return "".join(parts)


def skip(app: Any, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out methods that scikit-learn gives to every estimator, such as ``set_output`` and ``set_fit_request``."""
    theirs = getattr(value, "__module__", None) or ""
    return True if theirs.startswith("sklearn.") or name.endswith("_request") or name == "set_params" else None


def _escaped(line: str) -> str:
    """Bars outside of code, which would stand for a substitution.

    >>> _escaped("1/2 |w|^2, ``a | b``")
    '1/2 \\\\|w\\\\|^2, ``a | b``'
    """
    parts = line.split("``")
    return "``".join(part if number % 2 else part.replace("|", r"\|") for number, part in enumerate(parts))


def _blocks(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The sections of a numpydoc docstring: title and lines, with the title and its rule; the first has no title."""
    starts = [
        number
        for number, (line, below) in enumerate(pairwise(lines))
        if line and below and not below.strip("-") and len(below) == len(line)
    ]
    ends = [*starts, len(lines)]
    return [("", lines[: ends[0]]), *((lines[a], lines[a:b]) for a, b in pairwise(ends))]


def _sections(text: str) -> dict[str, list[str]]:
    """The lines of each section, without its title."""
    return {title: block[2:] for title, block in _blocks(text.splitlines()) if title}


def _entries(lines: list[str]) -> list[tuple[list[str], str, list[str]]]:
    """The names of each entry of a section, what stands behind them, and the text below.

    >>> _entries(["a, b : int", "    Two numbers."])
    [(['a', 'b'], ' : int', ['    Two numbers.'])]
    """
    found: list[tuple[list[str], str, list[str]]] = []
    for line in lines:
        if line and not line.startswith(" "):
            names, colon, kind = line.partition(" : ")
            found.append((names.split(", "), colon + kind, []))
        elif found and line:
            found[-1][2].append(line)
    return found
