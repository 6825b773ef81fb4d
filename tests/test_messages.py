"""Every message that tells of a decision has a code, and every code a page whose example brings it about."""

import ast
import contextlib
import io
import re
import warnings
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import empirisk as er
from empirisk import errors, messages, stop
from empirisk.notebook import html

#: Those of tables: each learns one.
SLOW = sorted(code for code in messages.CODES if code > "ER020" and code != "ER034")
QUICK = sorted(set(messages.CODES) - set(SLOW))


def told(code):
    """All that the example of a page says: its warnings, what it prints, and the error that ends it."""
    (example,) = re.findall(r"## Example\n```python\n(.*?)```", messages.page(code), flags=re.DOTALL)
    said = io.StringIO()
    with warnings.catch_warnings(record=True, action="always") as caught, contextlib.redirect_stdout(said):
        try:
            exec(example, {"__name__": code})
        except (er.errors.EmpiriskError, er.errors.Interrupted) as error:
            said.write(str(error))
    return " ".join([said.getvalue(), *(str(warning.message) for warning in caught)])


def test_examples_bring_their_messages_about():
    silent = {code: said for code in QUICK if f"[{code}]" not in (said := told(code))}
    assert not silent


@pytest.mark.long  # learns a table for each
def test_examples_with_tables_bring_their_messages_about():
    silent = {code: said for code in SLOW if f"[{code}]" not in (said := told(code))}
    assert not silent


def test_every_code_has_a_page_that_explains_it():
    pages = {
        file.name.removesuffix(".md") for file in files("empirisk.messages").iterdir() if file.name.endswith(".md")
    }
    assert pages == set(messages.CODES)
    for code, title in messages.CODES.items():
        heads = re.findall("^#+ (.*)$", messages.page(code), flags=re.MULTILINE)
        assert heads == [f"{code}: {title}", "What happened", "Why it matters", "What to do", "Example"]


def test_every_error_of_a_kind_and_every_ending_with_a_remedy_has_its_code():
    kinds = [getattr(errors, name) for name in errors.__all__ if name not in ("EmpiriskError", "Interrupted")]
    assert all(kind.code in messages.CODES for kind in kinds)
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert str(errors.TooLarge("It is.")) == "It is. [ER011]"
    assert str(errors.EmpiriskError("It is.")) == "It is."
    assert str(errors.Unsuitable(f"No: {errors.TooLarge('It is.')}")) == "No: It is. [ER011]"  # the reason has the page
    assert set(stop.REMEDIES) | set(stop.FUNCTION_REMEDIES) == set(stop.CODES)


def test_every_warning_of_a_table_has_its_code():
    rng = np.random.default_rng(0)
    x = rng.normal(size=90)
    table = {
        "x": np.append([-999.0] * 10, x[10:]),
        "day": (np.datetime64("2024-01-01") + np.arange(90)).astype(str),
        "who": [f"person {k // 3}" for k in range(90)],
        "grade": rng.integers(1, 5, 90),
        "after": np.where(x > 0, "R1", "none"),
        "same": ["here"] * 90,
        "y": np.where(x > 0, "yes", np.where(np.arange(90) == 3, "rare", "no")),
    }
    from empirisk.league.request import Request
    from empirisk.league.rows.split import plan

    said = plan(Request(table, "y")).warnings
    assert len(said) > 5
    assert [sentence for sentence in said if not re.search(r"\[ER\d{3}\]$", sentence)] == []


#: How sentences tell of a decision about data, time or memory, and not of an argument that is written wrongly.
DECISIONS = "|".join(
    (
        "not converge|were over before|in the time given|was interrupted|stalled|no lower bound",
        "overflow|vanish|as large as|so large|so small|beyond all numbers|beyond the range|too thin",
        "contains NaN|predicted NaN|returned NaN|holds NaT|missing (or infinite )?values|is masked|is missing in",
        "one class|one value only|the same for all rows|so rare|one row only",
        "separable|semidefinite|is singular|is constant|variance;|rows of X are equal|same codes for all",
        "sample only|one sample[ ;.]|distinct rows|rows with a target|need to be learned",
        "more memory|the limit of|file is damaged|this version of Empirisk|not a model file",
        "give the target away|not learned from|has learned nothing|is understood in",
    )
)
SOURCE = Path(er.__file__).parent


def called(node):
    """The last part of the name of what is called, and the part before it."""
    return (["", *ast.unparse(node.func).split(".")])[-1:-3:-1] if isinstance(node, ast.Call) else ["", ""]


def uncoded(tree, plain):
    """Lines and words of errors of a plain kind, and of warnings and notes, that lack a code."""
    for node in ast.walk(tree):
        name, of = called(node)
        told = name in ("warn", "warn_explicit") or (name == "append" and of in ("warnings", "notes", "remarks"))
        if name not in plain and not told:
            continue
        words = "".join(
            part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
        if "coded" not in {called(part)[0] for part in ast.walk(node)} and (told or re.search(DECISIONS, words)):
            yield node.lineno, words


def test_every_decision_that_the_source_tells_of_has_a_code():
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCE.rglob("*.py")}
    classes = {
        one.name: {ast.unparse(base).rsplit(".", 1)[-1] for base in one.bases}
        for tree in trees.values()
        for one in ast.walk(tree)
        if isinstance(one, ast.ClassDef) and not hasattr(errors, one.name)
    }
    plain = {"EmpiriskError"} | {name for name, bases in classes.items() if "EmpiriskError" in bases}
    # `errors` writes the warnings that others gave a code; a solver's notes are part of the certificate's reason.
    elsewhere = {SOURCE / "errors.py", SOURCE / "solvers" / "base.py"}
    found = [
        f"{file.relative_to(SOURCE)}:{line} {words}"
        for file, tree in trees.items()
        if file not in elsewhere
        for line, words in uncoded(tree, plain)
    ]
    assert found == []


def test_the_scan_finds_what_lacks_a_code():
    seen = """
raise EmpiriskError(f"{name} holds one class only; check it.")
warnings.warn("Something.")
plan.warnings.append(f"{rows} rows were left out.")
raise EmpiriskError(coded("ER002", "max_time was over; they were over before."))
raise EmpiriskError("n_jobs=0 must be a number of threads.")
"""
    assert [line for line, _ in uncoded(ast.parse(seen), {"EmpiriskError"})] == [2, 3, 4]


def test_every_code_is_used_and_every_code_in_the_source_has_a_page():
    source = "".join(
        file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py") if file.parent.name != "messages"
    )
    assert set(re.findall(r"ER\d{3}", source)) == set(messages.CODES)


class Links(HTMLParser):
    """The places that a page links to, and those that it has."""

    def __init__(self, page):
        super().__init__()
        self.to, self.places = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.to += [found["href"].removeprefix("#")] if "href" in found else []
        self.places += [found["id"]] if "id" in found else []


def test_codes_are_links_to_what_their_pages_say():
    page = html("Certificate: max_iter [ER001]", ["a"], [["b"]], ["It was cut. [ER002] Twice. [ER002]"])
    found = Links(page)
    assert found.to == ["ER001", "ER002", "ER002"]
    assert found.places == ["ER001", "ER002"]
    assert "Raise <code>max_time</code>" in page
    assert messages.linked("<b>[ER999]") == '&lt;b&gt;[<a href="#ER999">ER999</a>]'


def test_a_certificate_links_to_its_page_unless_it_converged():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    assert "ER0" not in er.LogisticRegression().fit(X, y).certificate_._repr_html_()
    with pytest.warns(match=r"\[ER001\]$"):
        cut = er.LogisticRegression(solver="gradient_descent", max_iter=1, C=100.0, tol=1e-12).fit(X, y)
    assert '<a href="#ER001">' in cut.certificate_._repr_html_()
