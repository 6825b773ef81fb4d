"""Shapes as they are told: centred, pairs without what a column alone could say, means and bands over bags."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empirisk.trees.additive.terms import SIDE
from empirisk.trees.binned.bins import WIDTH, Codes

Array = NDArray[np.float64]
#: Passes in which the means of a grid along its rows and columns are taken out: each shrinks what is left.
PASSES = 50
#: What is left of the means of a grid, relative to its values, at which they count as zero.
LEVEL = 1e-12


@dataclass
class Shapes:
    """The function of a bag: constants, columns x 256 x outputs, and pairs x cells x cells x outputs."""

    intercept: Array
    columns: Array
    grids: Array

    def purify(self, mass: Array, pairs: NDArray, grid_mass: Array, coarse: Codes) -> None:
        """Move the means of grids along rows and columns to the columns, and those of columns to the constant.

        Means are over the training rows: ``mass`` is their weight in each bin of each column, ``grid_mass`` in each
        cell of each pair. f stays the same in every bin.
        """
        for number, (left, right) in enumerate(pairs):
            grid, weight = self.grids[number], grid_mass[number]
            reach = np.abs(grid).max(initial=0.0)
            for _ in range(PASSES):
                rows = _means(grid, weight, 1)
                grid -= rows[:, None]
                self.columns[left] += rows[coarse[left]]
                columns = _means(grid, weight, 0)
                grid -= columns[None]
                self.columns[right] += columns[coarse[right]]
                if np.abs(columns).max(initial=0.0) <= LEVEL * reach:
                    break
        for column, weight in enumerate(mass):
            mean = weight @ self.columns[column] / weight.sum()
            self.columns[column] -= mean
            self.intercept += mean


def _means(grid: Array, weight: Array, axis: int) -> Array:
    """Weighted means along an axis of a grid; zero where there is no weight."""
    total = weight.sum(axis=axis)
    return (
        np.einsum("abo,ab->" + ("ao" if axis == 1 else "bo"), grid, weight) / np.where(total > 0, total, 1.0)[:, None]
    )


def shapes_of(start: Array, mains: list[Array], grids: list[Array]) -> Shapes:
    """The shapes of a bag, from arrays of (outputs, cells)."""
    outputs = len(start)
    return Shapes(
        start.copy(),
        np.array([shape.T for shape in mains]).reshape(len(mains), WIDTH, outputs),
        np.array([shape.T.reshape(SIDE, SIDE, outputs) for shape in grids]).reshape(len(grids), SIDE, SIDE, outputs),
    )
