"""What a page is made of: sections of texts, tables, pictures and code, and how they become HTML."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from empirisk import messages, templates
from empirisk.errors import listed
from empirisk.formats import printable
from empirisk.messages import coded
from empirisk.templates import text_of

ROOM = "empirisk.report"

#: Tables with more rows can be filtered.
LONG = 12


class Cell(NamedTuple):
    """A cell that is more than text: its number, a bar (from -1 to 1), a shade (from 0 to 1), a small picture."""

    text: str
    key: float | None = None
    bar: float | None = None
    shade: float | None = None
    drawing: str = ""


class Paragraph(NamedTuple):
    """A paragraph."""

    text: str


class Table(NamedTuple):
    """A table; the first cell of each row names it, the rows in ``marked`` stand out.

    Columns of numbers stand to the right and are sorted by them; those in ``extra`` are left out on a phone.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    marked: Sequence[int] = ()
    extra: Sequence[int] = ()
    dense: bool = False

    @property
    def long(self) -> bool:
        """Whether it can be filtered."""
        return len(self.rows) > LONG and not self.dense

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, every cell with all its parts."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    @property
    def looks(self) -> list[str]:
        """The words of the style sheet for each column."""
        columns = list(zip(*self.cells, strict=True)) or [()] * len(self.head)
        numbers = [any(cell.key is not None for cell in column) for column in columns]
        return ["number " * number + "extra" * (place in self.extra) for place, number in enumerate(numbers)]


class Figure(NamedTuple):
    """A picture, its title and what to see in it."""

    svg: str
    title: str
    caption: str
    wide: bool = False


#: What stands for a picture that there was no time to draw; none is left on the page, and a warning counts them.
NO_TIME = "The time given left no room for this picture."


class Figures(NamedTuple):
    """Pictures side by side."""

    figures: Sequence[Figure]


class Code(NamedTuple):
    """Lines to copy."""

    text: str


class Chooser(NamedTuple):
    """The threshold of two classes, to be moved: what the script counts with, and where it starts."""

    positive: str
    counts: dict[str, Any]
    start: int


class Section(NamedTuple):
    """A part of the page with a heading of its own."""

    id: str
    title: str
    blocks: Sequence[Any]


def sections(makers: dict[str, Callable[[], Section]]) -> tuple[list[Section], list[str]]:
    """The sections that could be made, and a sentence for each that could not: no result is lost for one of them."""
    made, lost, late = [], [], []
    for title, make in makers.items():
        try:
            section = make()
        except Exception as problem:  # noqa: BLE001
            told = f"The section “{title}” could not be made ({type(problem).__name__}: {problem})."
            lost.append(coded("ER034", told))
            continue
        blocks = [
            block._replace(figures=_in_time(block.figures)) if isinstance(block, Figures) else block
            for block in section.blocks
        ]
        late += [one.title for block in section.blocks for one in _figures(block) if one.caption == NO_TIME]
        blocks = [block for block in blocks if not _figures(block) or _in_time(_figures(block))]
        blocks = [block for block in blocks if block != Figures([])]
        if blocks:
            made.append(section._replace(blocks=blocks))
    if late:
        pictures = "the picture" if len(late) == 1 else f"{len(late)} pictures:"
        lost.append(coded("ER033", f"The time given left no room for {pictures} {listed(late)}."))
    return made, lost


def _figures(block: Any) -> Sequence[Figure]:
    """The pictures of a block."""
    return block.figures if isinstance(block, Figures) else [block] if isinstance(block, Figure) else []


def _in_time(figures: Sequence[Figure]) -> list[Figure]:
    """Those that there was time to draw."""
    return [one for one in figures if one.caption != NO_TIME]


def _shown(value: Any) -> Any:
    """What the page shows of a value: letters of a text that are none are codes; drawings are as they are."""
    return printable(value, lines=True) if type(value) is str else value


def render(makers: dict[str, Callable[[], Section]], warnings: Sequence[str] = (), **parts: Any) -> str:
    """The page, whole in one file."""
    made, lost = sections(makers)
    parts |= {
        "style": text_of("empirisk", "palette.css") + text_of(ROOM, "style.css"),
        "script": text_of(ROOM, "script.js"),
        "linked": lambda text: Markup(messages.linked(text)),
        "notes": lambda texts: Markup(messages.notes(texts)),
    }
    return templates.render(ROOM, "template.html", _shown, sections=made, warnings=[*warnings, *lost], **parts)
