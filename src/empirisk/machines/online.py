"""Learning from rows as they come: which machines have `partial_fit`, and what one call of it does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from empirisk import solvers, state
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.fits.choice import is_given
from empirisk.linalg.design import Design
from empirisk.messages import coded
from empirisk.problem import Array, Point, Problem
from empirisk.protocols import is_learning_map, takes_steps
from empirisk.solvers.base import Watch
from empirisk.solvers.stochastic.online import Memory, Seen

#: Rows in a step where no solver is asked for: each is seen once, and few in a step make many steps.
BATCH = 8
#: What a machine keeps between two calls of `partial_fit`, beside its weights.
MEMORY = state.record(
    solver=state.text(),
    shift=state.maybe(state.array("f8", "mapped")),
    buffers=state.array("f8", None, "outputs", None),
    numbers=state.array("f8", "problems", None, low=0),
)


def wrong_memory(its: Mapping[str, Any]) -> str | None:
    """What is wrong with the memory of a loaded machine: its arrays are like the weights."""
    if "stream_" not in its:
        return None
    fits = "coef_" in its and "seen_" in its and its["stream_"]["buffers"].shape[2] == its["coef_"].shape[-1] + 1
    return None if fits else "stream_ is not like the weights"


def can_go_on(machine: Any) -> bool:
    """Whether a machine has `partial_fit`; else an `AttributeError` with the reason."""
    try:
        solver = online_solver(machine.solver)
    except EmpiriskError as error:
        raise AttributeError(str(error)) from error
    features = machine.features
    if is_learning_map(machine.features):
        if not takes_steps(features):
            raise AttributeError(f"features={features!r} learns from all rows at once; use fit.")
    elif features is not None and not hasattr(features, "transform"):
        raise AttributeError(
            f"features={features!r} is a kernel, behind which the weights are those of rows that must be kept; use "
            "maps.Nystrom or maps.RandomFourier of it for partial_fit."
        )
    elif not solver.online:
        raise AttributeError(f"solver={machine.solver!r} needs all rows at once; use 'sgd' for partial_fit.")
    if not is_given(machine.C):
        raise AttributeError(f"C={machine.C!r} is chosen with all rows at hand; give a number for partial_fit.")
    return True


def online_solver(solver: Any) -> Any:
    """The solver that takes the steps of `partial_fit`: stochastic gradients unless another one is asked for."""
    return solvers.SGD(batch_size=BATCH) if isinstance(solver, str) and solver == "auto" else solvers.find(solver)


def seen(problems: list[Problem]) -> Array:
    """The rows of every problem and their weight."""
    return np.array([[len(problem.y), problem.weights.sum()] for problem in problems], dtype=np.float64)


@dataclass(frozen=True)
class Stream:
    """One call of `partial_fit` among those before.

    Attributes
    ----------
    classes : array or None
        The classes that the call was given.
    again : bool
        Whether the machine has learned something that it goes on from.
    shift : array or None
        What is subtracted from the columns while steps are taken, if an earlier call has noted it: their means then.
    """

    classes: ArrayLike | None
    again: bool
    shift: Array | None

    def placed(self, design: Design, weights: Array) -> Design:
        """The rows of the call less the shift, where they are dense."""
        counting = design if weights.min() > 0 else design.rows(np.flatnonzero(weights > 0))
        means = counting.centred().shift
        return design if means is None else design.shifted(means if self.shift is None else self.shift)


class OnlineSteps(NamedTuple):
    """What a call of `partial_fit` has come to.

    Attributes
    ----------
    problems, points : lists
        The problems of the rows of the call, and the weights after it.
    loss : float
        The mean loss of these rows before they were learned from.
    solver : str
        What took the steps.
    memory : dict or None
        What to keep for the next call, beside the weights; a map that learns keeps its own.
    """

    problems: list[Problem]
    points: list[Point]
    loss: float
    solver: str
    memory: dict[str, Any] | None = None


def take_steps(machine: Any, problems: list[Problem], stream: Stream, watch: Watch) -> OnlineSteps:
    """One pass over the rows of every problem."""
    solver = online_solver(machine.solver)
    refusal = next(filter(None, (solver.refusal(problem) for problem in problems)), "")
    if refusal:
        raise Unsuitable(f"solver={machine.solver!r} cannot take the steps of partial_fit: {refusal}.")
    before = machine.seen_ if stream.again else np.zeros((len(problems), 2))
    memories = _memories(machine, solver, problems, stream, before)
    losses = sum(_loss(*each) for each in zip(problems, map(solver.weights, memories), strict=True))
    for number, (problem, total) in enumerate(zip(problems, before + seen(problems), strict=True)):
        if len(problem.y):
            memories[number] = solver.advance(problem, memories[number], Seen(*total), watch)
    memory = {
        "solver": solver.name(),
        "shift": problems[0].design.shift,
        "buffers": np.concatenate([memory.buffers for memory in memories], axis=1),
        "numbers": np.stack([memory.numbers for memory in memories]),
    }
    if not np.isfinite(memory["buffers"]).all():
        raise EmpiriskError(
            coded(
                "ER007",
                f"The steps of {solver!r} have led beyond all numbers; scale the columns of X, or lower its rate.",
            )
        )
    points = [_point(*each) for each in zip(problems, map(solver.weights, memories), strict=True)]
    weight = sum(problem.weights.sum() for problem in problems)
    return OnlineSteps(problems, points, float(losses / weight) if weight else np.nan, solver.name(), memory)


def _memories(machine: Any, solver: Any, problems: list[Problem], stream: Stream, before: Array) -> list[Memory]:
    """The memory of every problem: that of the last call, or one that begins where the machine stands."""
    sizes = [max(problem.classes, 1) for problem in problems]
    cuts = np.cumsum(sizes)[:-1]
    kept = getattr(machine, "stream_", None)
    if kept is not None and kept["solver"] == solver.name() and _suits(kept, solver):
        buffers = np.split(kept["buffers"], cuts, axis=1)
        return [Memory(part, line) for part, line in zip(buffers, kept["numbers"], strict=True)]
    weights = np.zeros((sum(sizes), problems[0].design.shape[1] + 1))
    if stream.again:
        weights[:, :-1], weights[:, -1] = np.atleast_2d(machine.coef_), machine.intercept_
    return [solver.opening(part, Seen(*line)) for part, line in zip(np.split(weights, cuts), before, strict=True)]


def _suits(kept: dict[str, Any], solver: Any) -> bool:
    """Whether the memory, which may come from a file, is one of the solver."""
    return (len(kept["buffers"]), kept["numbers"].shape[1]) == solver.sizes


def _point(problem: Problem, weights: Array) -> Point:
    """The weights of a problem in the coordinates of its design."""
    w, b = weights[:, :-1].T, weights[:, -1]
    b = b if problem.design.shift is None else b + problem.design.shift @ w
    return Point(w.copy(), b.copy()) if problem.classes else Point(w[:, 0].copy(), float(b[0]))


def _loss(problem: Problem, weights: Array) -> float:
    """The weighted sum of the losses of the rows of a problem."""
    if not len(problem.y):
        return 0.0
    return float(problem.weights @ problem.loss.value(problem.y, problem.predict(_point(problem, weights))))
