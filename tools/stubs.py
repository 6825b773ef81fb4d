"""Write the stubs that type checkers and editors read: ``python -m tools.stubs``, or ``make stubs``.

Some packages import their names when they are first used, and machines that `composed` makes have a signature that is
computed. Neither can be read from the source, so both are written down beside it, from what Python itself says.
"""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import empirisk

ROOT = Path(__file__).parent.parent
#: Rooms whose names are imported when they are first used.
LAZY = ("evaluation", "nets", "plots", "selection", "theory")
#: Modules of composed machines.
COMPOSED = ("classifiers", "perceptron", "regressors")


def package_stub(package: ModuleType) -> str:
    """Imports of all public names from where they live."""
    modules = getattr(package, "_MODULES", ())
    homes = dict.fromkeys(modules, package.__name__) | package._HOMES
    lines = [f"from {home} import {name} as {name}" for name, home in homes.items()]
    if modules:
        private = ["__version__: str", "_MODULES: tuple[str, ...]", "_HOMES: dict[str, str]"]
        lines += [*private, "def homes_of(package: str, names: dict[str, str]) -> dict[str, str]: ..."]
    return "\n".join(
        [f'"""The public names of {package.__name__}, and where they live."""', *lines, "__all__: list[str]"]
    )


def machine_stub(module: ModuleType) -> str:
    """Classes with the signatures that `composed` computes, and the properties that they have."""
    source = ast.parse(inspect.getsource(module))
    classes = [getattr(module, node.name) for node in source.body if isinstance(node, ast.ClassDef)]
    imports: dict[str, str] = {}
    lines = [f'"""The signatures of {module.__name__.rpartition(".")[2]}, which `composed` computes."""']
    for cls in classes:
        (base,) = cls.__bases__
        if base not in classes:
            imports[base.__name__] = base.__module__
        lines += [f"class {cls.__name__}({base.__name__}):", "    def __init__(", "        self,"]
        keywords = False
        for one in list(inspect.signature(cls).parameters.values()):
            if one.kind is one.KEYWORD_ONLY and not keywords:
                lines.append("        *,")
                keywords = True
            lines.append(f"        {one.name}: {annotation(cls, one, imports)} = ...,")
        lines.append("    ) -> None: ...")
        for name, value in vars(cls).items():
            if isinstance(value, property):
                imports["Any"] = "typing"
                lines += ["    @property", f"    def {name}(self) -> Any: ..."]
    needed = [f"from {home} import {name}" for name, home in imports.items()]
    return "\n".join([lines[0], *needed, *lines[1:]])


def annotation(cls: type, parameter: inspect.Parameter, imports: dict[str, str]) -> str:
    """The type of a parameter as the class that has it writes it; of one that `composed` adds, that of its default."""
    for base in cls.__mro__:
        if base.__module__.startswith("empirisk") and parameter.name in vars(base).get("__annotations__", {}):
            file = ast.parse(inspect.getsource(sys.modules[base.__module__]))
            (body,) = (node.body for node in file.body if getattr(node, "name", "") == base.__name__)
            stated = (node for node in body if isinstance(node, ast.AnnAssign))
            found = next(node.annotation for node in stated if ast.unparse(node.target) == parameter.name)
            for node in (node for node in file.body if isinstance(node, ast.ImportFrom)):
                used = {name.id for name in ast.walk(found) if isinstance(name, ast.Name)}
                imports |= {alias.name: str(node.module) for alias in node.names if alias.name in used}
            return ast.unparse(found)
    return type(parameter.default).__name__


def formatted(text: str, file: Path) -> str:
    """The text with its imports in order, as ``make check`` wants it."""
    for command in (["check", "--fix", "--select", "I"], ["format"]):
        ruff = [str(Path(sys.executable).with_name("ruff")), *command, "--quiet", "--stdin-filename", str(file), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def stubs() -> dict[Path, str]:
    """The text of every stub, by its file."""
    found = {}
    for package in (empirisk, *(import_module(f"empirisk.{room}") for room in LAZY)):
        found[Path(str(package.__file__)).with_suffix(".pyi")] = package_stub(package)
    for name in COMPOSED:
        module = import_module(f"empirisk.machines.{name}")
        found[Path(str(module.__file__)).with_suffix(".pyi")] = machine_stub(module)
    return {file: formatted(text, file) for file, text in found.items()}


if __name__ == "__main__":
    for file, text in stubs().items():
        file.write_text(text)
