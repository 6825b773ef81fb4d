"""Whether every link inside a built site leads to a page and a place that it has, and nothing is loaded from elsewhere.

``make docs`` runs it: ``python -m tools.links docs/_build/html``.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser loads by itself, by tag and attribute.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The places of a page, and what it links to and loads."""

    def __init__(self, text: str):
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag holds."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.places.add(value)
            elif value and (tag, name) in LOADED:
                self.loads.add(value)
            elif value and (tag, name) == ("a", "href"):
                self.links.add(value)


def faults(site: Path) -> list[str]:
    """Links without an end, and what would be asked of the network."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in _written(site)}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name} loads {one}" for one in page.loads if urlsplit(one).scheme in ("http", "https")]
        for link in page.links | page.loads:
            there = urlsplit(link)
            if there.scheme or there.netloc:
                continue
            target = (path.parent / unquote(there.path)).resolve() if there.path else path
            if not target.exists():
                found.append(f"{name} links to {link}, which is not there")
            elif there.fragment and target in pages and unquote(there.fragment) not in pages[target].places:
                found.append(f"{name} links to {link}, which has no such place")
    return found


def _written(site: Path) -> list[Path]:
    """The pages; what the theme keeps among its own files are templates."""
    return sorted(path for path in site.rglob("*.html") if path.relative_to(site).parts[0] != "_static")


if __name__ == "__main__":
    told = faults(Path(sys.argv[1]))
    sys.exit("\n".join(told) or 0)
