"""What holds for the repository as a whole: a light public face, typed names, small files, pinned versions."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

import empirisk as er
from tests.public import EXPORTS
from tools import reference
from tools.stubs import stubs

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "benchmarks").rglob("*.py"))
SOURCES += sorted((ROOT / "tools").rglob("*.py"))
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


# --- the public face ------------------------------------------------------------------------------------------------


def test_import_loads_nothing_heavy():
    loaded = python("import sys, empirisk; print(*sys.modules)").split()
    assert "empirisk" in loaded
    assert {"numpy", "scipy", "numba", "sklearn", "matplotlib", "polars"}.isdisjoint(loaded)


#: Public names that work with tables or networks, and so load the libraries of those.
HEAVY = {"learn", "score", "Network", "nets", "tables"}


def test_names_load_no_library_that_their_work_does_without():
    names = [name for name in er.__all__ if name not in HEAVY]
    code = f"import sys, empirisk as er; [getattr(er, name) for name in {names}]; print(*sys.modules)"
    loaded = python(code).split()
    assert "numba" in loaded
    assert {"polars", "matplotlib", "jax", "optax", "typer", "numba.np.linalg"}.isdisjoint(loaded)


#: Characters of a type as ``help()`` and notebooks show it; an array-like that NumPy writes out has 300.
ANNOTATION_CHARACTERS = 80


def signatures():
    """The signatures of all public functions, classes and their public methods, by name."""
    for name in EXPORTS:
        value = attrgetter(name)(er)
        methods = [method for method in dir(value) if not method.startswith("_")] if inspect.isclass(value) else []
        named = {name: value} | {f"{name}.{method}": getattr(value, method, None) for method in methods}
        for called, function in named.items():
            if callable(function):
                with suppress(ValueError):  # exceptions and their methods are written in C
                    yield called, inspect.signature(function)


def test_signatures_are_short():
    long, seen = [], 0
    for name, signature in signatures():
        annotations = [one.annotation for one in signature.parameters.values()] + [signature.return_annotation]
        seen += len(annotations)
        long += [name for one in annotations if len(inspect.formatannotation(one)) > ANNOTATION_CHARACTERS]
    assert seen > 3000
    assert long == [], "begin their files with: from __future__ import annotations"
    assert "X: 'ArrayLike'" in str(inspect.signature(er.SVM().fit))


def test_stubs_say_what_python_says():
    stale = [str(file.relative_to(ROOT)) for file, text in stubs().items() if file.read_text() != text]
    assert stale == [], "run make stubs"


@pytest.mark.parametrize("package", [er, er.plots], ids=lambda package: package.__name__)
def test_names_are_found_where_type_checkers_look_for_them(package):
    stub = Path(package.__file__).with_suffix(".pyi").read_text()
    imports = [statement for statement in ast.parse(stub).body if isinstance(statement, ast.ImportFrom)]
    seen = {alias.asname: statement.module for statement in imports for alias in statement.names}
    assert sorted(seen) == sorted(package.__all__)
    for name, home in seen.items():
        assert getattr(package, name) is getattr(import_module(home), name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"empirisk has no 'nonsense'; dir\(empirisk\)"):
        er.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'Lasso'"):
        er.Laso  # noqa: B018
    assert not hasattr(er, "kernels_of_the_future")


def test_every_public_name_loads():
    for name in er.__all__:
        assert getattr(er, name) is getattr(er, name)
    assert set(er.__all__) < set(dir(er))


def test_config_stays_callable():
    assert python("import empirisk.settings, empirisk as er; er.config(memory='2GB'); print(er.config.__name__)") == (
        "config\n"
    )


# --- imports --------------------------------------------------------------------------------------------------------


def steps(body) -> list[tuple[list[tuple[str, str]], set[str]]]:
    """Of each statement that a module runs: what it takes from modules of ours, and the names that it binds."""
    found = []
    for statement in body:
        if isinstance(statement, (*FUNCTION, ast.ClassDef)):
            found.append(([], {statement.name}))
        elif "TYPE_CHECKING:" not in ast.unparse(statement):
            nodes = list(ast.walk(statement))
            ours = [n for n in nodes if isinstance(n, ast.ImportFrom) and n.module.partition(".")[0] == "empirisk"]
            stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            bound = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
            found.append(([(node.module, alias.name) for node in ours for alias in node.names], stored | bound))
    return found


def circles_from(first: str, modules: dict[str, list]) -> list[str]:
    """What is not there yet where it is imported if this module is the first: Python's rules, and nothing runs."""
    names: dict[str, set[str]] = {}
    finished, missing = set(), []

    def load(module):
        if "." in module:
            load(module.rpartition(".")[0])
        if module in names:
            return
        names[module] = set()
        for taken, bound in modules[module]:
            for home, name in taken:
                load(home)
                inner = f"{home}.{name}"
                if inner in modules:
                    load(inner)
                if inner not in finished and not {name, "__getattr__"} & names[home]:
                    missing.append(inner)
            names[module] |= bound
        finished.add(module)

    load(first)
    return missing


def test_every_module_may_be_the_first_that_is_imported():
    modules = {}
    for file in sorted((ROOT / "src").rglob("*.py")):
        parts = file.relative_to(ROOT / "src").with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = steps(ast.parse(file.read_text()).body)
    met = {module: circles_from(module, modules) for module in modules}
    assert {module: missing for module, missing in met.items() if missing} == {}


def test_per_cent_is_written_one_way():
    """By `formats.percent`, as in 32.8 %: two ways stood in one sentence."""
    found = [str(file) for file in (ROOT / "src").rglob("*.py") if re.search(r":[,+]?(\.\d)?%[}\"]", file.read_text())]
    assert found == []


# --- text and types -------------------------------------------------------------------------------------------------


def annotations(function) -> tuple[list[bool], bool]:
    """Whether each parameter after self is annotated, by position, and whether the result is."""
    signature = inspect.signature(function)
    given = [parameter.annotation is not inspect.Parameter.empty for parameter in signature.parameters.values()]
    return given, signature.return_annotation is not inspect.Signature.empty


def untyped(cls: type, name: str) -> bool:
    """Whether a method lacks a type that no class it inherits from states either."""
    versions = [vars(base)[name] for base in cls.__mro__ if name in vars(base)]
    plain = [getattr(version, "__func__", version) for version in versions]
    stated = [annotations(version) for version in plain if inspect.isfunction(version)]
    count = len(stated[0][0])
    parameters = all(any(given[i] for given, _ in stated if i < len(given)) for i in range(1, count))
    return not (parameters and (name == "__init__" or any(result for _, result in stated)))


def methods(cls: type) -> list[str]:
    """The public methods that the class or its ancestors in Empirisk define."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("empirisk")]
    names = {name for base in ours for name, value in vars(base).items() if inspect.isfunction(value)}
    return sorted(name for name in names if name == "__init__" or not name.startswith("_"))


def test_every_public_name_is_typed():
    missing = []
    for name in EXPORTS:
        value = attrgetter(name)(er)
        if inspect.isclass(value):
            missing += [f"{name}.{method}" for method in methods(value) if untyped(value, method)]
        else:
            given, result = annotations(value)
            missing += [] if all(given) and result else [name]
    assert missing == []


def test_every_public_method_is_documented():
    silent = []
    for name in (name for name in EXPORTS if name.rpartition(".")[2][0].isupper()):
        cls = attrgetter(name)(er)
        named = (method for method in methods(cls) if method != "__init__")
        silent += [f"{name}.{method}" for method in named if not inspect.getdoc(getattr(cls, method))]
    assert silent == []


# --- the shape of the code ------------------------------------------------------------------------------------------


def body_lines(function) -> int:
    """Lines of a function without its docstring."""
    text = function.body[0] if ast.get_docstring(function) is not None else None
    return function.end_lineno - function.lineno + 1 - (text.end_lineno - text.lineno + 1 if text else 0)


def test_files_hold_one_idea_and_functions_one_step():
    """A hint, not a rule: an idea is not cut in two for these limits, but nothing grows without bounds."""
    assert [str(file) for file in SOURCES if file.read_text().count("\n") >= 700] == []
    long, wide = [], []
    for file in SOURCES:
        for function in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, FUNCTION)):
            positional = {argument.arg for argument in function.args.posonlyargs + function.args.args}
            long += [f"{file}: {function.name}"] if body_lines(function) >= 80 else []
            wide += [f"{file}: {function.name}"] if len(positional - {"self", "cls"}) > 9 else []
    assert long == []
    assert wide == []


def _is_number(value) -> bool:
    if isinstance(value, ast.Tuple):
        return any(map(_is_number, value.elts))
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) or _is_number(value.right)
    return type(getattr(getattr(value, "operand", value), "value", None)) in (int, float)


def test_numbers_have_a_reason():
    assert {str(file): found for file in SOURCES if (found := numbers_without_a_reason(file))} == {}


def numbers_without_a_reason(file: Path) -> list[str]:
    """The lines of constants, and in the package of lengths, that no comment explains."""
    lines, module, found = file.read_text().splitlines(), ast.parse(file.read_text()), []
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).isupper() and _is_number(node.value):
            above, here = lines[node.lineno - 2], lines[node.lineno - 1 : node.end_lineno]
            found += [] if above.startswith("#") or any("  # " in line for line in here) else here[:1]
    for node in ast.walk(module) if file.is_relative_to(ROOT / "src") else ():
        if any(
            isinstance(part, ast.Constant) and part.value not in (None, 0, 1, 2, 3, 4, 8) for part in _lengths(node)
        ):
            said = "  # " in lines[node.end_lineno - 1] or "# " in lines[node.lineno - 2]
            found += [] if said else [lines[node.lineno - 1]]
    return found


def _lengths(node):
    """What says how large a picture is, how long a shortened name, or how much of a text or list is shown."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.lower is None:
        return [node.slice.upper]
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("canvas", "panels", "plain", "wrapped"):
        return [part for given in node.args[1:] for part in ([given] if ast.unparse(given)[0] != "(" else given.elts)]
    return []


def test_pins_are_plain_and_complete():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert all(re.fullmatch(r"[a-z0-9-]+", name) and re.fullmatch(r"[\w.]+", pins[name]) for name in pins)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [each for extra in extras if extra not in ("clients", "automatic") for each in extras[extra]]
    named = {re.match(r"[\w-]+", requirement)[0] for requirement in [*project["dependencies"], *wanted]}
    assert named - {"empirisk"} <= set(pins)


#: Pages whose blocks of Python run one after the other, as a reader would paste them.
RUNNING = ["README.md", "docs/index.md", "docs/problems.md", "docs/start/library.md", "docs/start/certificates.md"]


@pytest.mark.parametrize("page", RUNNING)
def test_the_code_on_the_page_runs(page):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
        exec(block, names)


def test_every_public_name_has_a_page_of_the_reference():
    listed = {name: value for _, names in reference.pages().values() for name, value in map(_named, names)}
    public = dict(map(_named, (f"empirisk.{name}" for name in EXPORTS)))
    missing = {name for name, value in public.items() if name not in listed and value not in listed.values()}
    assert not missing


def _named(name):
    return name, attrgetter(name.removeprefix("empirisk."))(er)


def test_the_readme_begins_with_what_an_analyst_types_and_sees():
    text = (ROOT / "README.md").read_text()
    order = ["make learn", "make test", "pip install", "empirisk learn", "docs/report.png", "minimise", "```python"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert (ROOT / "docs" / "report.png").stat().st_size < 200_000


def test_serve_works_after_make_learn():
    """What is served with is installed before anything is learned, and no other extra is."""
    steps = subprocess.run(["make", "-nB", "learn"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    [install] = [line for line in steps.splitlines() if "pip install" in line]
    assert install.endswith("-e '.[serve]'")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras["serve"]) == {"empirisk[learn]", "starlette", "uvicorn"}


def test_continuous_integration_runs_make_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-2:] == ["make test", "make test-all"]
