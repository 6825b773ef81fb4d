"""Results as HTML, for notebooks: a title, a table and some sentences."""

import webbrowser
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from tempfile import mkdtemp

from empirisk.messages import linked, notes

HEIGHT = 720  # pixels of a page inside a notebook: about a screen


class HtmlReport:
    """A page of HTML: shown in a notebook, opened in a browser, or written to a file.

    >>> HtmlReport("iris", "<p>Good.</p>")
    Report('iris'); show it with open(), or write it with save("report.html")
    """

    def __init__(self, title: str, page: str):
        self.title, self.page = title, page

    def __repr__(self) -> str:
        return f'Report({self.title!r}); show it with open(), or write it with save("report.html")'

    def _repr_html_(self) -> str:
        # In a frame of its own: neither style sheet reaches the other's page.
        return f'<iframe srcdoc="{escape(self.page)}" width="100%" height="{HEIGHT}" style="border:0"></iframe>'

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.page, encoding="utf-8")

    def open(self) -> None:
        """Show the page in the browser of this machine."""
        file = Path(mkdtemp(prefix="empirisk")) / "report.html"
        self.save(file)
        webbrowser.open(file.as_uri())


def html(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], sentences: Iterable[str] = ()) -> str:
    """A small page of HTML; all text is escaped.

    >>> html("Scores", ["name"], [["a<b"]])
    '<b>Scores</b><table><thead><tr><th>name</th></tr></thead><tbody><tr><td>a&lt;b</td></tr></tbody></table>'
    """
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    said = list(sentences)
    after = "".join(f"<p>{linked(sentence)}</p>" for sentence in said) + notes([title, *said])
    return f"<b>{linked(title)}</b><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{after}"
