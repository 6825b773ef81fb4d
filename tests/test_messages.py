"""Every message that tells of a decision has a code, and every code a page whose example brings it about."""

import contextlib
import io
import re
import warnings
from html.parser import HTMLParser
from importlib.resources import files

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
