"""The codes of messages that tell of a decision, and the page of each: what happened, why it matters, what to do.

The pages are files of this folder, so that they come with the library: ``empirisk message ER001`` prints one, reports
and notebooks unfold what it says, and the site shows them all.
"""

import re
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files

#: What each code is about, in the order of the site. A code that is gone is never used for something else.
CODES = {
    "ER001": "A fit came to its limit of iterations",
    "ER002": "A fit came to its limit of time",
    "ER003": "A fit was interrupted",
    "ER004": "A fit stalled",
    "ER005": "Separable classes and no penalty: there is no minimiser",
    "ER006": "Targets of zero and no penalty: there is no minimiser",
    "ER007": "Steps led beyond all numbers",
    "ER008": "A machine learned nothing: all weights are zero",
    "ER009": "A function without a lower bound",
    "ER010": "Something will change its name or go away",
    "ER011": "More memory would be needed than is allowed",
    "ER012": "A hard margin, and classes that are not separable",
    "ER013": "Not a kernel: no positive semidefinite matrix",
    "ER014": "A file could not be written",
    "ER015": "Parts that have no meaning together",
    "ER016": "A parameter that the machine does not have",
    "ER017": "A package that comes with an extra is missing",
    "ER018": "Compiled loops could not be kept",
    "ER021": "A column may give the target away",
    "ER022": "Columns that are not learned from",
    "ER023": "Rows in order of time",
    "ER024": "Rows that belong together",
    "ER025": "Whole numbers: amounts or classes",
    "ER026": "A rare class",
    "ER027": "Equal rows",
    "ER028": "Few rows to test on",
    "ER029": "Rows or classes that were left out",
    "ER030": "Values taken as missing, or as words",
    "ER031": "Predictions from the past",
    "ER032": "Fewer folds than asked for",
    "ER033": "The time or the memory given was short",
    "ER034": "A part of the report could not be made",
    "ER035": "The model in the file learned from all rows",
    "ER036": "Numbers too large or too small to compute with",
    "ER037": "Missing values where numbers must stand",
    "ER038": "One class or one value only",
    "ER039": "A covariance without an inverse",
    "ER040": "Too few rows for what was asked",
    "ER041": "A model file that is not loaded",
}
CODE = re.compile(r"\[(ER\d{3})\]")


def coded(code: str, sentence: str) -> str:
    """The sentence with the code of its page; one that has a code already keeps that.

    >>> coded("ER002", "It was cut; raise max_time.")
    'It was cut; raise max_time. [ER002]'
    """
    return sentence if not (code and sentence) or CODE.search(sentence) else f"{sentence} [{code}]"


@cache
def page(code: str) -> str:
    """The page of a code, as Markdown.

    >>> page("ER002").splitlines()[0]
    '# ER002: A fit came to its limit of time'
    """
    return files("empirisk.messages").joinpath(f"{code}.md").read_text(encoding="utf-8")


def linked(text: str) -> str:
    """Text as HTML, its codes as links to the `notes` of the same page.

    >>> linked("a < b [ER002]")
    'a &lt; b [<a href="#ER002">ER002</a>]'
    """
    return CODE.sub(r'[<a href="#\1">\1</a>]', escape(text, quote=False))


def notes(texts: Iterable[str]) -> str:
    """What the pages of all codes in some texts say, as HTML: folded, and opened by the links to them.

    >>> notes(["It was cut. [ER002]"])[:58], notes(["all is well"])
    ('<details><summary>ER002: A fit came to its limit of time</', '')
    """
    told = dict.fromkeys(code for text in texts for code in CODE.findall(text) if code in CODES)
    return "".join(
        f'<details><summary>{code}: {escape(CODES[code])}</summary><div id="{code}">{_paragraphs(code)}</div></details>'
        for code in told
    )


def _paragraphs(code: str) -> str:
    """The sections of a page before its example."""
    found = []
    for section in page(code).split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        if title != "Example":
            written = re.sub("`([^`]+)`", r"<code>\1</code>", escape(text.strip(), quote=False))
            found.append(f"<p><b>{escape(title)}.</b> {written}</p>")
    return "".join(found)
