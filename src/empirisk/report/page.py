"""Result in, HTML out."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from empirisk import __version__
from empirisk.files.atomic import whole_file
from empirisk.report import figures, words


def page(learned: Any, model_file: str = "table.model") -> str:
    """The report of a result of `learn` as one HTML page that needs no network.

    Parameters
    ----------
    learned : Learned
        What `learn` returns.
    model_file : str
        The name under which the model is saved, for the lines that load it.

    Examples
    --------
    >>> found = er.learn("iris", machines=["centroid"])
    >>> "Nearest centroid" in page(found)
    True
    """
    environment = Environment(loader=PackageLoader("empirisk.report", "."), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("template.html").render(
        title=f"{learned.name}: {learned.target}",
        summary=learned.summary(),
        cards=words.cards(learned),
        warnings=learned.warnings,
        league=words.league(learned),
        metric=words.plain(learned.metric),
        rows=words.rows(learned),
        test=words.test(learned),
        scores=words.scores(learned),
        test_figures=list(figures.of_test(learned)),
        machine=words.machine(learned),
        equation=words.equation(learned),
        machine_figures=list(figures.of_machine(learned)),
        data=words.data(learned),
        columns=words.columns(learned),
        code=words.code(model_file),
        footer=f"Written by Empirisk {__version__} in {learned.seconds:.0f} seconds.",
    )


def write(learned: Any, path: str | Path, model_file: str = "table.model") -> Path:
    """Write the report; an earlier file is replaced only once the new one is complete."""
    return write_text(page(learned, model_file), path)


def write_text(text: str, path: str | Path) -> Path:
    """Write a page, whole or not at all."""
    path = Path(path)
    with whole_file(path) as file:
        file.write(text.encode())
    return path
