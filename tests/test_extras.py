"""What comes with extras: without them the core works, and each entry says in a sentence what to install."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = {"numpy", "scipy", "numba", "scikit-learn", "narwhals", "threadpoolctl"}
#: What extras bring, as modules.
HIDDEN = [
    *("polars", "matplotlib", "jinja2", "typer", "click", "rich", "starlette", "uvicorn", "jax", "jaxlib", "optax"),
    *("safetensors", "dask", "distributed", "onnx", "onnxruntime", "fastexcel", "pandas", "pyarrow"),
]
#: Every public entry that needs an extra, and the extra that its sentence names.
ENTRIES = {
    "er.learn([[0.0]], [0])": "learn",
    "er.tables.read('t.csv')": "learn",
    "er.tables": "learn",
    "er.load('table.model')": "learn",
    "er.TreeClassifier().fit(X, y).rules()": "learn",
    "er.TreeClassifier().fit(X, y).cost_complexity_path()": "learn",
    "er.ForestClassifier(5).fit(X, y).importances(X, y)": "learn",
    "importlib.import_module('empirisk.report')": "learn",
    "importlib.import_module('empirisk.cli.main')": "learn",
    "er.plots": "plots",
    "er.plots.roc": "plots",
    "from empirisk.plots import regions": "plots",
    "importlib.import_module('empirisk.plots.style')": "plots",
    "importlib.import_module('empirisk.service.app')": "serve",
    "importlib.import_module('empirisk.studio.app')": "serve",
    "er.Network([3])": "nets",
    "er.nets.Dense(3)": "nets",
    "er.kernels.Tangent": "nets",
    "er.config(device='gpu') and er.SVM(features='gaussian').fit(X, y)": "nets",
    "er.minimise(lambda x: x @ x, [1.0], gradient='jax')": "nets",
    "er.scan('t.csv')": "scale",
    "er.Ridge().fit(Dask(), y)": "scale",
    "er.export(er.Ridge().fit(X, y), 'm.onnx')": "export",
}
BEGIN = f"""
import importlib, json, os, sys
from importlib.machinery import PathFinder
class Finder(PathFinder):
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in {HIDDEN!r} else PathFinder.find_spec(name, path, target)
sys.meta_path = [Finder if each is PathFinder else each for each in sys.meta_path]
import numpy as np
import empirisk as er
X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
"""


def run(code, *arguments, folder=None):
    command = [sys.executable, "-W", "error", "-c", BEGIN + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_the_core_has_few_dependencies_and_no_bound_from_above():
    assert {re.split("[><=]", each)[0] for each in PROJECT["dependencies"]} == CORE
    extras = PROJECT["optional-dependencies"]
    asked = [each for packages in extras.values() for each in packages] + PROJECT["dependencies"]
    assert [each for each in asked if re.search(r"[<~!]|==", each)] == []
    assert "empirisk[learn,plots,serve,nets,scale,export,excel]" in extras["all"]


def test_the_pages_list_every_extra():
    extras = [
        name
        for name in PROJECT["optional-dependencies"]
        if name not in ("dev", "docs", "clients", "automatic", "rivals")
    ]
    page = (ROOT / "docs" / "start" / "install.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == extras


def test_every_entry_names_its_extra(tmp_path):
    import empirisk as er

    table = "x,y\n" + "".join(f"{row % 7},{'no' if row % 7 < 3 else 'yes'}\n" for row in range(60))
    (tmp_path / "t.csv").write_text(table)
    er.learn(str(tmp_path / "t.csv"), "y", machines=["tree"]).save(tmp_path / "table.model")
    code = """
Dask, sys.modules["dask"] = type("Array", (), {"__module__": "dask.array.core"}), type(sys)("dask")  # dask alone
said = {}
for entry in json.loads(sys.argv[1]):
    try:
        exec(entry)
    except er.errors.MissingExtra as error:
        said[entry] = str(error)
    finally:
        er.config(device="cpu")
print(json.dumps(said))
"""
    ended = run(code, json.dumps(list(ENTRIES)), folder=tmp_path)
    assert not ended.stderr
    said = json.loads(ended.stdout)
    wrong = {
        entry: said.get(entry)
        for entry, extra in ENTRIES.items()
        if not re.fullmatch(
            rf".+ needs [\w, ]+; install (it|them) with: pip install 'empirisk\[{extra}\]'\. \[ER017\]",
            said.get(entry, ""),
        )
    }
    assert wrong == {}


def test_the_core_alone_fits_saves_and_explains(tmp_path):
    code = """
for name in sorted(set(er.__all__) - {"learn", "score", "tables", "plots", "nets", "Network"}):
    getattr(er, name)
machines = [er.LogisticRegression(), er.SVM(features="gaussian"), er.Ridge(), er.KNNClassifier(3), er.PCA(2)]
machines += [er.TreeClassifier(), er.ForestClassifier(10), er.KMeans(2), er.GaussianMixture(2)]
for machine in machines:
    er.save(machine.fit(X, y), "a.model")
    again = er.load("a.model")
    answer = "predict" if hasattr(machine, "predict") else "transform"
    assert np.array_equal(getattr(again, answer)(X), getattr(machine, answer)(X))
print(er.evaluate(er.Ridge(), X, y).score.value <= 1, er.export(machines[0], "m.py").difference < 1e-9)
"""
    ended = run(code, folder=tmp_path)
    assert (ended.stdout, ended.stderr) == ("True True\n", "")


def test_the_command_says_what_to_install():
    ended = run("sys.argv = ['empirisk', 'learn', 't.csv']\nfrom empirisk.__main__ import run\nrun()")
    assert ended.returncode == 1
    assert ended.stderr == (
        "empirisk: The shell needs typer, rich, polars, matplotlib and jinja2; install them with: "
        "pip install 'empirisk[learn]'. [ER017]\n"
    )


def test_serve_and_studio_say_what_to_install():
    for command, *arguments in (("serve", "a.model"), ("studio",)):
        code = "import sys\nfor name in ('starlette', 'uvicorn'):\n    sys.modules[name] = None\n"
        code += "from empirisk.__main__ import run\nrun()"
        started = [sys.executable, "-c", code, command, *arguments]
        ended = subprocess.run(started, capture_output=True, text=True, check=False)
        sentence = f"empirisk {command} needs starlette and uvicorn; install them with: pip install 'empirisk[serve]'."
        assert (ended.returncode, ended.stderr) == (1, f"empirisk: {sentence} [ER017]\n")
