"""Lessons and views as notebooks, each beside its script: ``make notebooks``. Git keeps those of the lessons."""

from pathlib import Path

from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
from sphinx_gallery.notebook import jupyter_notebook, save_notebook
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

from tools import gallery

EXAMPLES = Path(__file__).parents[1] / "examples"


def main() -> None:
    """Write all of them; `tools.gallery` has taught sphinx-gallery our directives."""
    conf = {**DEFAULT_GALLERY_CONF, "image_scrapers": (gallery.FigureScraper(),)}
    for script in sorted(EXAMPLES.rglob("plot_*.py")):
        _, blocks = split_code_and_text_blocks(str(script))
        notebook = jupyter_notebook(blocks, conf, str(script.parent))
        del notebook["metadata"]["language_info"]["version"]  # of the Python that writes, which says nothing
        save_notebook(notebook, str(script.with_suffix(".ipynb")))


if __name__ == "__main__":
    main()
