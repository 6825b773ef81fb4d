"""The site as text: its code runs, its links lead somewhere, and every public name is shown at work."""

import ast
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from time import perf_counter

import pytest
from matplotlib.figure import Figure

import empirisk as er
from tests.public import EXPORTS
from tools import links, pages, reference
from tools.gallery import FigureScraper
from tools.mathml import mathml

ROOT = Path(__file__).parents[1]
DOCS, LESSONS = ROOT / "docs", sorted((ROOT / "examples" / "course").glob("plot_*.py"))
#: Written when the site is built, from the code; their examples are tested where they are.
MADE = ("_build", "reference", "messages", "course", "gallery")
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE)
#: Run by tests/test_repository.py and tests/maps/test_recipes.py.
RUN_ELSEWHERE = {
    *("index.md", "problems.md", "library.md", "certificates.md"),
    *("evaluation.md", "model-file.md", "recipes.md"),
}
CODE = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
RUN_HERE = [page for page in PAGES if page.name not in RUN_ELSEWHERE | {"scale.md"} and CODE.search(page.read_text())]
SECONDS = 120.0  # for all lessons together, on two cores that do nothing else


def run(script, timeout=600):
    """The seconds that a script takes in a process of its own, where warnings are errors; or what it says."""
    begin = perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-W", "ignore:os.fork:RuntimeWarning", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=timeout)
    return perf_counter() - begin if done.returncode == 0 else f"{script.name}: {done.stderr[-800:]}"


@pytest.mark.long  # a process for each lesson
def test_every_lesson_runs_with_its_assertions():
    begin = perf_counter()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, LESSONS))
    assert [said for said in found if isinstance(said, str)] == []
    assert all("assert " in lesson.read_text(encoding="utf-8") for lesson in LESSONS)
    if os.getloadavg()[0] < 3:  # of a busy machine seconds say nothing
        assert perf_counter() - begin < SECONDS


def pictures(lesson):
    """How many blocks of a lesson end in a picture."""
    ends = [ast.parse(block).body[-1:] for block in re.split("^# %%.*$", lesson.read_text(), flags=re.MULTILINE)]
    shown = [ast.unparse(end[0].value) for end in ends if end and isinstance(end[0], ast.Expr)]
    return sum(said == "figure" or said.startswith("er.plots.") for said in shown)


def test_sixteen_lessons_have_three_to_six_pictures():
    assert len(LESSONS) == 16
    assert {lesson.name: count for lesson in LESSONS if not 3 <= (count := pictures(lesson)) <= 6} == {}


#: What a notebook has in other words: where links lead, and the names of directives and roles.
MARKUP = re.compile(r"\s<[^>`]*>`|:(?:doc|class|func|mod|math):|^(?:# )?\.\. .*?::", flags=re.MULTILINE)


def words(*texts):
    """The longer words of some texts."""
    return set(re.findall("[A-Za-z]{4,}", MARKUP.sub("", "\n".join(texts))))


def test_notebooks_of_the_lessons_say_what_the_scripts_say():
    """``make notebooks`` writes them again."""
    for lesson in LESSONS:
        script = lesson.read_text(encoding="utf-8")
        cells = json.loads(lesson.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
        sources = [("".join(cell["source"]), cell["cell_type"]) for cell in cells]
        (about, *code) = ast.parse(script).body
        read = ast.parse("\n".join(text for text, kind in sources if kind == "code")).body
        assert [ast.dump(one) for one in read] == [ast.dump(one) for one in code], lesson.name
        comments = [line for line in script.splitlines() if line.startswith("# ")]
        assert words(about.value.value, *comments) <= words(*(text for text, _ in sources)), lesson.name


def test_exercises_have_folded_solutions_that_end():
    for lesson in LESSONS:
        text = lesson.read_text(encoding="utf-8")
        marks = re.findall(r"^# \.\. ((?:end-)?solution)::", text, flags=re.MULTILINE)
        assert marks == ["solution", "end-solution"] * (len(marks) // 2), lesson.name
        assert len(re.findall(r"^# \.\. admonition:: Exercise", text, flags=re.MULTILINE)) <= len(marks) // 2, (
            lesson.name
        )


@pytest.mark.long  # learns tables
@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.stem)
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    execute(page.read_text(encoding="utf-8"))


def execute(text):
    """Run the blocks of a page, and give its names."""
    names: dict = {}
    for block in CODE.findall(text):
        exec(block, names)
    return names


@pytest.mark.long  # begins a cluster
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_code_of_the_page_on_more_rows_runs(tmp_path, monkeypatch):
    """With JAX on the processor in place of an accelerator, and workers of this process in place of others."""
    distributed = pytest.importorskip("distributed")
    from empirisk.scale import workers

    monkeypatch.chdir(tmp_path)
    page = (DOCS / "scale.md").read_text(encoding="utf-8").replace('"gpu"', '"jax:cpu"')
    here = {"processes": False, "protocol": "tcp", "n_workers": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**here) as cluster:
        execute(page.replace("tcp://scheduler:8786", cluster.scheduler_address))["client"].close()
        workers.close(cluster.scheduler_address)


def test_every_page_with_code_is_run_somewhere():
    assert {page.name for page in PAGES} >= RUN_ELSEWHERE


def test_links_between_pages_lead_somewhere():
    made = {"reference/command-line.md", "reference/index.md", "gallery/index.md"}
    made |= {f"messages/{name}" for name in pages.messages()} | {"course/index.rst"}
    made |= {f"course/{lesson.stem}.rst" for lesson in LESSONS}
    broken = []
    for page in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            place = (page.parent / target).resolve()
            name = place.relative_to(DOCS).as_posix() if place.is_relative_to(DOCS) else ""
            if not place.exists() and name not in made:
                broken.append(f"{page.name}: {target}")
    assert not broken
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), flags=re.DOTALL)
    assert {"course/index", "gallery/index", "howto/index", "messages/index"} <= set(" ".join(trees).split())


def test_every_public_name_is_in_an_example():
    """In a lesson, a view, a page, or the doctest that its own docstring must have."""
    sources = [*PAGES, ROOT / "README.md", *(ROOT / "examples").rglob("*.py")]
    text = "\n".join([*(source.read_text(encoding="utf-8") for source in sources), *pages.messages().values()])
    shown = set(re.findall(r"\w+", text))
    lacking = []
    for name in EXPORTS:
        value = er
        for part in name.split("."):
            value = getattr(value, part)
        last = name.rsplit(".", 1)[-1]
        if last not in shown and not isinstance(value, types.ModuleType) and ">>> " not in (value.__doc__ or ""):
            lacking.append(name)
    assert not lacking


def test_every_view_is_in_the_gallery():
    scripts = "\n".join(script.read_text(encoding="utf-8") for script in (ROOT / "examples" / "views").rglob("*.py"))
    assert [name for name in er.plots.__all__ if f"er.plots.{name}(" not in scripts] == []


def test_the_command_line_page_has_every_option():
    from empirisk.cli import main

    page = pages.command_line()
    for name in main.COMMANDS:
        section = page.split(f"## empirisk {name}\n")[1].split("\n## ")[0]
        for parameter in main.load(name).params:
            if not getattr(parameter, "hidden", False) and parameter.param_type_name == "option":
                assert f"`{', '.join([*parameter.opts, *parameter.secondary_opts])}`" in section


#: What a reader may type, in a block or in a line: a command of ours, of make, or a module that runs.
COMMAND = r"(?:empirisk|make|python -m) [a-z][^`\n]*"
TYPED = re.compile(f"^({COMMAND})$|`({COMMAND})`", flags=re.MULTILINE)


def test_commands_in_the_text_exist_with_their_options():
    from empirisk.cli import main

    texts = {page.name: page.read_text(encoding="utf-8") for page in [*PAGES, ROOT / "README.md"]} | pages.messages()
    lines = [(name, found[1] or found[2]) for name, text in texts.items() for found in TYPED.finditer(text)]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    wrong = []
    for page, line in lines:
        program, *words = shlex.split(line, comments=True)
        if program == "empirisk":
            known = words[0] in main.COMMANDS
            command = main.load(words[0]) if known else None
            if command is not None:
                command.make_parser(command.context_class(command)).parse_args(words[1:])  # names an unknown option
        elif program == "make":
            known = all(word in targets or "=" in word for word in words)
        else:
            module = words[1].replace(".", "/")
            places = [ROOT / f"{module}.py", ROOT / module / "__main__.py"]
            if words[1] == "benchmarks" and len(words) > 2:
                places = [ROOT / "benchmarks" / f"{words[2]}.py"]
            known = words[1] == "venv" or any(place.exists() for place in places)
        wrong += [] if known else [(page, line)]
    assert len(lines) > 60
    assert wrong == []


def written(value):
    """The sections of a docstring as the site has it, each as entries: names, kind, text."""
    lines = (inspect.getdoc(value) or "").splitlines()
    reference.complete(None, "class" if isinstance(value, type) else "function", value.__name__, value, None, lines)
    found = reference._sections("\n".join(lines))
    sections = {title: reference._entries(found.get(title, [])) for title in ("Parameters", "Attributes")}
    return sections, " ".join(lines)


def test_parameters_are_written_out_with_their_text():
    """All of a public name; none is told by a machine's name alone, and no example stands among them."""
    faults = []
    for name in [name for _, names in reference.pages().values() for name in names]:
        value = reference._value(name)
        if not callable(value) or (isinstance(value, type) and issubclass(value, BaseException)):
            continue
        sections, words = written(value)
        entries = [*sections["Parameters"], *sections["Attributes"]]
        told = {one.strip("*") for names, _, _ in entries for one in names}
        usual = [one for one in inspect.signature(value).parameters.values() if one.kind not in (2, 4)]
        # A name of few words may tell its parameters in a sentence; the fields of a dataclass begin as they are.
        lacking = [one.name for one in usual if one.name not in told and not re.search(rf"\b{one.name}\b", words)]
        if sections["Parameters"]:
            lacking = [one.name for one in usual if one.name not in told and one.name[0] != "_" and one.kind != 2]
        empty = [names for names, _, text in entries if not "".join(text).strip()]
        passed_on = [names for names, _, text in entries if re.search(r"\b[Aa]s for `", " ".join(text))]
        if (lacking and name != "empirisk.solvers.Watch") or empty or passed_on:  # a watch keeps its own fields
            faults.append((name, lacking, empty, passed_on))
    assert faults == []


def test_errors_have_the_example_of_their_page():
    sections, words = written(er.errors.NotSeparable)
    assert words.index(":doc:`/messages/ER012`") < words.index("Attributes") < words.index("er.SVM(C=np.inf).fit(")
    assert [names for names, _, _ in sections["Attributes"]] == [["rows"]]


def test_attributes_of_a_composed_machine_are_written_out_once():
    lines = ["Least squares.", "", "Attributes", "----------", "rank_ : int", "    Rank.", "", "Examples", "--------"]
    reference.complete(None, "class", "LeastSquares", er.LeastSquares, None, lines)
    assert lines.count("Attributes") == lines.count("Parameters") == 1
    assert lines.index("Attributes") < lines.index("rank_ : int") < lines.index("Examples")
    assert any(line.startswith("coef_") for line in lines)


def test_a_machine_with_parameters_of_its_own_has_those_of_its_bases_too():
    sections, _ = written(er.SVR)
    names = [name for names, _, _ in sections["Parameters"] for name in names]
    assert set(names) == set(inspect.signature(er.SVR).parameters)
    assert "certificate_" in [name for names, _, _ in sections["Attributes"] for name in names]
    assert "positive" in [name for names, _, _ in written(er.Ridge)[0]["Parameters"] for name in names]


def test_every_public_name_is_two_clicks_away(tmp_path):
    """The head of every page leads to the reference, and its first page to every name."""
    reference.write(tmp_path)
    listed = set((tmp_path / "reference" / "index.rst").read_text(encoding="utf-8").split())
    assert {name for _, names in reference.pages().values() for name in names} <= listed


def test_links_of_a_built_site_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="#here">1</a><a href="b.html#there">2</a><a href="c.html">3</a><a href="https://x.y">4</a>'
    )
    (tmp_path / "b.html").write_text('<script src="https://x.y/z.js"></script><img src="no.png">')
    found = links.faults(tmp_path)
    assert len(found) == 4
    for part in (
        "b.html#there, which has no such place",
        "c.html, which is not",
        "loads https://x.y/z.js",
        "no.png, which",
    ):
        assert sum(part in fault for fault in found) == 1


def test_properties_have_the_text_of_the_attribute_that_they_are():
    for name in ("kernels.Normalised.takes", "maps.SeveralKernels.sparse", "LearnedKernel.certain"):
        owner, _, attribute = name.rpartition(".")
        lines = (bool.__doc__ or "").splitlines()
        reference.complete(None, "property", f"empirisk.{name}", getattr(attrgetter(owner)(er), attribute), None, lines)
        assert len(lines) > 0
        assert "builtins" not in " ".join(lines)


def test_formulas_have_primes_on_the_line_and_room_behind_functions():
    assert "msup" not in mathml("X'X w")
    assert "<msub><mi>x</mi><mi>i</mi></msub><mo" in mathml("x_i'w")
    assert mathml(r"\sin x + \ln(2)").count("mspace") == 1
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in mathml("x^2")
    assert "<msub><mi>log</mi><mn>2</mn></msub><mspace" in mathml(r"\log_2 K")
    assert mathml(r"\Big\| x \Big\|").count("\u2016") == 2
    with pytest.raises(ValueError, match="does not know"):
        mathml(r"\nosuchsign x")


def test_wide_pictures_can_be_scrolled(tmp_path):
    def written(*size):
        block = {"example_globals": {"___": Figure(size)}, "image_path_iterator": iter([str(tmp_path / "it.png")])}
        return FigureScraper()(None, block, {"src_dir": str(tmp_path)})

    assert ".. container:: wide-picture" in written(12, 4)
    assert "container" not in written(6, 4)
