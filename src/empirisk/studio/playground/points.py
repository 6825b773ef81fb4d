"""The points of the plane: what the page sends, and data sets to begin with."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empirisk.errors import LETTERS, EmpiriskError, listed

Array = NDArray[np.float64]
#: The plane runs from -REACH to REACH in both directions.
REACH = 3.0
MOST_POINTS = 300  # more hide each other, and take longer than a thought
MOST_CLASSES = 4  # markers that are told apart at a glance
NOISY = 1.0  # the largest noise that can be asked for, in units of the plane
DIGITS = 3  # of a coordinate: finer than a pixel
#: Turns of a spiral, in radians.
TURNS = 3.2 * np.pi


def blobs(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """Three round clouds."""
    middles = np.array([[-1.3, -1.0], [1.4, -0.6], [0.0, 1.4]])
    labels = np.arange(count) % 3
    return middles[labels] + (0.25 + noise) * random.normal(size=(count, 2)), labels


def moons(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """Two half circles that reach into each other."""
    labels, angles = np.arange(count) % 2, random.uniform(0, np.pi, count)
    across = np.where(labels == 0, np.cos(angles), 1 - np.cos(angles))
    up = np.where(labels == 0, np.sin(angles), 0.5 - np.sin(angles))
    return _noisy(np.column_stack([1.5 * (across - 0.5), 1.5 * (up - 0.25)]), noise, random), labels


def circles(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """A ring around a ring."""
    labels, angles = np.arange(count) % 2, random.uniform(0, 2 * np.pi, count)
    radius = np.where(labels == 0, 2.0, 0.8)
    return _noisy(radius[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]), noise, random), labels


def spirals(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """Two arms that wind around each other."""
    labels, way = np.arange(count) % 2, np.sqrt(random.uniform(0.03, 1, count))
    angles = TURNS * way + np.pi * labels
    return _noisy(2.5 * way[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]), noise / 3, random), labels


def xor(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """Four quarters of two classes."""
    places = random.uniform(0.25, 2.2, (count, 2)) * random.choice([-1.0, 1.0], (count, 2))
    return _noisy(places, noise, random), (places.prod(axis=1) > 0).astype(int)


def overlapping(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """Two clouds that overlap: no machine is right everywhere."""
    labels = np.arange(count) % 2
    middles = np.array([[-0.7, -0.3], [0.7, 0.3]])
    return middles[labels] + (0.6 + noise) * random.normal(size=(count, 2)), labels


def line(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """A target that grows with x."""
    x = random.uniform(-2.7, 2.7, count)
    return np.column_stack([x, 0.6 * x + noise * random.normal(size=count)]), np.zeros(count, int)


def wave(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """A target that swings."""
    x = random.uniform(-2.7, 2.7, count)
    return np.column_stack([x, 1.3 * np.sin(1.9 * x) + noise * random.normal(size=count)]), np.zeros(count, int)


def outliers(count: int, noise: float, random: np.random.Generator) -> tuple[Array, NDArray]:
    """A target that grows with x, and every eighth value far off: losses differ in what they make of it."""
    places, labels = line(count, noise, random)
    places[::8, 1] = 2.4 + 0.2 * random.normal(size=len(places[::8]))
    return places, labels


Maker = Callable[[int, float, np.random.Generator], tuple[Array, NDArray]]
#: Data sets by task.
DATASETS: dict[str, dict[str, Maker]] = {
    "classes": {
        "moons": moons,
        "blobs": blobs,
        "circles": circles,
        "spirals": spirals,
        "xor": xor,
        "overlapping": overlapping,
    },
    "numbers": {"wave": wave, "line": line, "outliers": outliers},
    "clusters": {"blobs": blobs, "moons": moons, "circles": circles, "overlapping": overlapping},
}


def _noisy(places: Array, noise: float, random: np.random.Generator) -> Array:
    return places + noise * random.normal(size=places.shape)


def dataset(task: str, name: str, count: int, noise: float, seed: int) -> list[list[float]]:
    """Points of a data set, each as x, y and its class.

    >>> len(dataset("classes", "moons", 20, 0.1, 0)), dataset("classes", "moons", 20, 0.1, 0)[1][2]
    (20, 1)
    """
    known = DATASETS.get(task, {})
    if name not in known:
        raise EmpiriskError(f"dataset={str(name)[:LETTERS]!r} is not known; choose from {listed(list(known))}.")
    if not 0 <= noise <= NOISY or not 1 <= count <= MOST_POINTS or not 0 <= seed < 2**31:
        raise EmpiriskError(f"noise must be from 0 to {NOISY:g} and count from 1 to {MOST_POINTS}.")
    places, labels = known[name](int(count), float(noise), np.random.default_rng(seed))
    places = np.clip(places, -REACH, REACH).round(DIGITS)
    return [[*place, int(label)] for place, label in zip(places.tolist(), labels, strict=True)]


def checked_points(given: Any) -> tuple[tuple[float, float, int], ...]:
    """The points that a page has sent, or a sentence that says what is wrong with them."""
    if not isinstance(given, list) or len(given) > MOST_POINTS:
        raise EmpiriskError(f"points must be a list of at most {MOST_POINTS}; erase some.")
    found = []
    for point in given:
        if not isinstance(point, list) or len(point) != 3 or not all(type(part) in (int, float) for part in point):
            raise EmpiriskError(f"points hold {str(point)[:LETTERS]}; each is x, y and a class.")
        x, y, label = point
        if not (abs(x) <= 2 * REACH and abs(y) <= 2 * REACH and label in range(MOST_CLASSES)):
            raise EmpiriskError(f"points hold {str(point)[:LETTERS]}, which is outside the plane.")
        found.append((round(float(x), DIGITS), round(float(y), DIGITS), int(label)))
    return tuple(found)
