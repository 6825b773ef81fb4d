"""Routes of the playground."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from empirisk.errors import EmpiriskError
from empirisk.studio.answers import answering
from empirisk.studio.playground import steps
from empirisk.studio.playground.controls import FAMILIES
from empirisk.studio.playground.fitting import fit
from empirisk.studio.playground.path import path
from empirisk.studio.playground.picture import answer
from empirisk.studio.playground.points import DATASETS, MOST_CLASSES, MOST_POINTS, REACH, dataset
from empirisk.studio.playground.question import Question
from empirisk.studio.playground.script import script


def _about(request: Request, body: Any) -> dict[str, Any]:
    """What can be set, and what there is to begin with."""
    return {
        "families": [family.to_dict() for family in FAMILIES.values()],
        "datasets": {task: list(found) for task, found in DATASETS.items()},
        "reach": REACH,
        "most": MOST_POINTS,
        "classes": MOST_CLASSES,
    }


def _data(request: Request, body: Any) -> Any:
    if not isinstance(body, dict) or not all(
        type(body.get(name)) in (int, float) for name in ("count", "noise", "seed")
    ):
        raise EmpiriskError("count, noise and seed must be numbers.")
    task, name = str(body.get("task")), str(body.get("name"))
    return {"points": dataset(task, name, int(body["count"]), float(body["noise"]), int(body["seed"]))}


def _fit(request: Request, body: Any) -> Any:
    question = Question.from_dict(body)
    return answer(question, fit(question))


def _film(request: Request, body: Any) -> Any:
    return steps.told(steps.film(Question.from_dict(body)))


def _step(request: Request, body: Any) -> Any:
    film = steps.film(Question.from_dict(body))
    number = body.get("step")
    if type(number) is not int or not 0 <= number < len(film):
        raise EmpiriskError(f"step must be a whole number from 0 to {len(film) - 1}.")
    return film[number].draw()


def routes() -> list[BaseRoute]:
    """All of them; fits run one after the other, so that a slider that is dragged does not start twenty at once."""
    worker = ThreadPoolExecutor(1, "playground")
    posts = {
        "data": _data,
        "fit": _fit,
        "path": lambda request, body: path(Question.from_dict(body)),
        "film": _film,
        "step": _step,
        "script": lambda request, body: {"script": script(Question.from_dict(body))},
    }
    return [
        Route("/playground/about", answering(_about, worker)),
        *(Route(f"/playground/{name}", answering(view, worker), methods=["POST"]) for name, view in posts.items()),
    ]
