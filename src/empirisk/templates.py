"""Pages of HTML from Jinja templates that stand beside the code which fills them; every text is escaped."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(package: str, name: str, finalize: Callable[[Any], Any] | None = None, **parts: Any) -> str:
    """The template of a package, filled with the parts; ``finalize`` changes every value before it is written."""
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(**parts)


def text_of(package: str, name: str) -> str:
    """A style sheet or a script of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
