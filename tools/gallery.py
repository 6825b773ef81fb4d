"""The galleries of the site: pictures of scripts whose blocks end in a figure, and solutions that are folded.

Scripts are sphinx-gallery's: text in comments, code between. What a block ends in is shown: a figure as a picture, an
animation, a slider or a table as HTML.
"""

import re
from pathlib import PurePosixPath
from textwrap import indent
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from matplotlib.figure import Figure
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx_gallery import notebook
from sphinx_gallery.scrapers import figure_rst

WIDE = 2.0  # times its height: a picture that is wider would be too small to read on a phone, where it can be scrolled
DPI = 130  # of a picture: sharp on a phone, and a page of six of them stays below a megabyte


class FigureScraper:
    """Saves the figure, or the figures, in which a block ends; they belong to no window, so pyplot has none of them."""

    def __repr__(self) -> str:
        return "FigureScraper"  # sphinx-gallery compares it with that of the last build

    def __call__(self, block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
        """The pictures of one block, as reStructuredText."""
        names = block_vars["example_globals"]
        last = names.get("___")  # the value of the last expression
        shown = list(last) if isinstance(last, (list, tuple)) else [last]
        if not shown or not all(isinstance(one, Figure) for one in shown):
            return ""
        names["___"] = None  # a later block may end without an expression
        return "\n".join(_saved(figure, block_vars, gallery_conf) for figure in shown)


def _saved(figure: Figure, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    path = PurePosixPath(next(block_vars["image_path_iterator"]))
    figure.savefig(path, dpi=DPI)
    titles = [axes.get_title(loc) for axes in figure.axes for loc in ("left", "center", "right")]
    heading = getattr(figure, "get_suptitle", str)()
    alternative = ", ".join(" ".join(text.split()) for text in [heading, *titles] if text)
    picture = figure_rst([path], gallery_conf["src_dir"], alternative)
    width, height = figure.get_size_inches()
    return f"\n.. container:: wide-picture\n{indent(picture, '    ')}" if width > WIDE * height else picture


#: What notebooks, which know Markdown alone, have instead of our directives and of links within the site.
IN_NOTEBOOKS = (
    (r"^\.\. solution::[ ]*(.*)$", r"**Solution** \1"),
    (r"^\.\. end-solution::[ ]*$", "---"),
    (
        r"^\.\. admonition:: (.*)\n((?:\n|[ ]+.*\n?)*)",
        lambda found: f"**{found[1]}**\n{re.sub('(?m)^[ ]+', '', found[2])}",
    ),
    (r":(?:doc|class|func|meth|ref):`~?([^`<]*?)(?: ?<[^`]*>)?`", r"\1"),
)
#: A table with rules of "=" above its head, below it, and below its last row; their gaps are those of the columns.
TABLE = re.compile(r"^(=+(?: +=+)+)\n(.+)\n\1\n((?:.+\n)+?)\1$", flags=re.MULTILINE)
_their_rst2md = notebook.rst2md


def table(found: re.Match[str]) -> str:
    """A table as Markdown.

    >>> table(TABLE.match("===  ===\\na    b\\n===  ===\\n1    2\\n===  ==="))
    '| a | b |\\n|---|---|\\n| 1 | 2 |'
    """
    columns = [one.span() for one in re.finditer("=+", found[1])]
    starts, ends = [start for start, _ in columns], [*(start for start, _ in columns[1:]), None]
    head, *rows = (
        "| " + " | ".join(line[a:b].strip() for a, b in zip(starts, ends, strict=True)) + " |"
        for line in (found[2], *found[3].splitlines())
    )
    return "\n".join([head, "|---" * len(columns) + "|", *rows])


def rst2md(text: str, *arguments: Any, **options: Any) -> str:
    """Text of a block as Markdown, with our directives in words."""
    text = TABLE.sub(table, text)
    for pattern, written in IN_NOTEBOOKS:
        text = re.sub(pattern, written, text, flags=re.MULTILINE)
    return _their_rst2md(text, *arguments, **options)


notebook.rst2md = rst2md  # the only place where sphinx-gallery turns text into cells


class Mark(nodes.Element):
    """Where a solution begins or ends, until it is folded."""


class Details(nodes.Element):
    """A part of a page that is folded below its title."""


class Solution(Directive):
    """``.. solution::`` folds what follows, code and pictures too, up to ``.. end-solution::``."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The mark, with what stands behind the two colons."""
        mark = Mark(begins=self.name == "solution", title=" ".join(["Solution", *self.arguments]))
        mark.line = self.lineno
        return [mark]


class Fold(SphinxTransform):
    """Put what stands between two marks into a `Details`; they stand in one section, without a heading between."""

    default_priority = 400

    def apply(self, **options: Any) -> None:
        """Fold all solutions of a page."""
        for mark in [mark for mark in self.document.findall(Mark) if mark["begins"]]:
            around, start = mark.parent, mark.parent.index(mark)
            ends = (k for k in range(start + 1, len(around)) if isinstance(around[k], (Mark, nodes.section)))
            end = next(ends, None)
            if end is None or not isinstance(around[end], Mark) or around[end]["begins"]:
                raise ExtensionError(
                    f"{self.document['source']}: {mark['title']!r} has no .. end-solution:: in its section."
                )
            around[start : end + 1] = [Details("", *around[start + 1 : end], title=mark["title"])]
        if (lost := next(self.document.findall(Mark), None)) is not None:
            raise ExtensionError(f"{self.document['source']}: an .. end-solution:: near line {lost.line} ends nothing.")


def _open(translator: Any, node: Details) -> None:
    summary = f"<summary>{translator.encode(node['title'])}</summary>"
    translator.body.append(f'<details class="solution">{summary}<div>')


def _close(translator: Any, node: Details) -> None:
    translator.body.append("</div></details>")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_node(Details, html=(_open, _close))
    app.add_directive("solution", Solution)
    app.add_directive("end-solution", Solution)
    app.add_transform(Fold)
    return {"parallel_read_safe": True}
