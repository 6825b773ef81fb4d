"""Results as HTML, for notebooks: a title, a table and some sentences."""

from collections.abc import Iterable, Sequence
from html import escape


def html(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], sentences: Iterable[str] = ()) -> str:
    """A small page of HTML; all text is escaped.

    >>> html("Scores", ["name"], [["a<b"]])
    '<b>Scores</b><table><thead><tr><th>name</th></tr></thead><tbody><tr><td>a&lt;b</td></tr></tbody></table>'
    """
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    after = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return f"<b>{escape(title)}</b><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{after}"
