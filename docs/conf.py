"""How Sphinx makes the site; ``make docs`` runs it."""

from pathlib import Path

import empirisk
from tools import reference
from tools.gallery import FigureScraper

project = "Empirisk"
author = "The Empirisk developers"
copyright = author
version = release = empirisk.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "tools.mathml",
    "tools.gallery",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
templates_path = ["templates"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
toc_object_entries_show_parents = "hide"  # beside the page of a class there is room for names of methods alone
autodoc_typehints = "none"  # numpydoc tells types in words
autodoc_preserve_defaults = True  # defaults as they are written: functions have no other name
default_role = "py:obj"  # `Classifier` in a docstring is a link where it is a public name, else code
smartquotes = False  # formulas and values in docstrings are copied: A', "loo"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# Examples are copied without prompts and answers.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/course", "../examples/views"],
    "gallery_dirs": ["course", "gallery"],
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "reference/gallery",
    "doc_module": ("empirisk",),
    "image_scrapers": (FigureScraper(),),
    "ignore_repr_types": "Figure|NoneType",
    "reset_modules": (),  # views change no setting
    "write_computation_times": False,
    "show_signature": False,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "Empirisk"
html_show_sourcelink = False
html_show_search_summary = False  # a page that is opened from a file may not read others
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "../src/empirisk/studio/static/icon.svg"
html_context = {"default_mode": "auto"}  # light or dark as the reader's machine is; without it the theme logs an error
html_theme_options = {
    "show_nav_level": 1,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Beside lessons and views there is room for lines of code; their list is one click away.
#: Pages that stand alone have no list either.
ALONE = ("index", "glossary", "tested", "contributing", "course/plot_*", "gallery/*/plot_*")
html_sidebars = {page: [] for page in ALONE}


reference.write(Path(__file__).parent)  # autosummary lists the files that it reads before any event


def setup(app):
    """Link public names; complete docstrings before numpydoc, at 500, parses them; leave out scikit-learn's methods."""
    app.connect("source-read", reference.link_names)
    app.connect("autodoc-skip-member", reference.skip)
    app.connect("autodoc-process-docstring", reference.complete, priority=400)
