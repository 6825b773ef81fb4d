"""What a page is made of: sections of texts, tables, pictures and code, and how they become HTML."""

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

#: Tables with more rows can be filtered.
LONG = 12


class Head(NamedTuple):
    """The head of a column of a table.

    ``number`` puts its cells to the right, ``extra`` leaves it out on a phone.
    """

    title: str
    number: bool = False
    extra: bool = False


class Cell(NamedTuple):
    """A cell that is more than text: what it is sorted by, a bar, a shade (both from 0 to 1), a small picture."""

    text: str
    key: float | str | None = None
    bar: float | None = None
    shade: float | None = None
    drawing: str = ""


class Text(NamedTuple):
    """A paragraph."""

    text: str
    soft: bool = False
    kind: str = "text"


class Table(NamedTuple):
    """A table; the first cell of each row names it, the rows in ``marked`` stand out."""

    caption: str
    head: Sequence[Head]
    rows: Sequence[Sequence[str | Cell]]
    marked: Sequence[int] = ()
    dense: bool = False
    kind: str = "table"

    @property
    def long(self) -> bool:
        """Whether it can be filtered."""
        return len(self.rows) > LONG and not self.dense

    @property
    def titled(self) -> bool:
        """Whether its columns have titles."""
        return any(head.title for head in self.head)

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, every cell with all its parts."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]


class Figure(NamedTuple):
    """A picture, its title and what to see in it."""

    svg: str
    title: str
    caption: str
    wide: bool = False
    kind: str = "figure"


class Figures(NamedTuple):
    """Pictures side by side."""

    figures: Sequence[Figure]
    kind: str = "figures"


class Code(NamedTuple):
    """Lines to copy."""

    text: str
    kind: str = "code"


class Chooser(NamedTuple):
    """The threshold of two classes, to be moved: what the script counts with, and where it starts."""

    positive: str
    counts: dict[str, Any]
    start: int
    kind: str = "chooser"


class Section(NamedTuple):
    """A part of the page with a heading of its own."""

    id: str
    title: str
    blocks: Sequence[Any]


def sections(makers: dict[str, Callable[[], Section]]) -> tuple[list[Section], list[str]]:
    """The sections that could be made, and a sentence for each that could not: no result is lost for one of them."""
    made, lost = [], []
    for title, make in makers.items():
        try:
            section = make()
        except Exception as problem:  # noqa: BLE001
            lost.append(f"The section “{title}” could not be made ({type(problem).__name__}: {problem}).")
            continue
        if section.blocks:
            made.append(section)
    return made, lost


def render(**parts: Any) -> str:
    """The page, whole in one file."""
    environment = Environment(
        loader=PackageLoader("empirisk.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    room = files("empirisk.report")
    return environment.get_template("template.html").render(
        style=room.joinpath("style.css").read_text(), script=room.joinpath("script.js").read_text(), **parts
    )
