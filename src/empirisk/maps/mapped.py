"""phi(X), explicit or implicit: what a machine makes its problems of."""

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from empirisk.linalg.design import Design, design_of
from empirisk.maps.implicit import GramDesign


class Mapped(Protocol):
    """Samples after the feature map, however they are kept."""

    def design(self, rows: NDArray, centre: bool) -> Design:
        """The design of the chosen rows; ``centre`` shifts dense columns by their means."""
        ...


@dataclass(frozen=True)
class Explicit:
    """A matrix with a row phi(x_i) for each sample.

    >>> Explicit(np.eye(2)).design(np.array([1]), centre=False).shape
    (1, 2)
    """

    matrix: Any

    def design(self, rows: NDArray, centre: bool) -> Design:
        """The design of the chosen rows; ``centre`` shifts dense columns by their means."""
        whole = len(rows) == self.matrix.shape[0]
        return design_of(self.matrix if whole else self.matrix[rows], centre=centre)


@dataclass(frozen=True)
class Implicit:
    """Samples behind a kernel.

    >>> kernel = er.kernels.Linear()
    >>> Implicit(GramDesign(kernel, np.eye(2))).design(np.array([1]), centre=False).shape
    (1, 1)
    """

    whole: GramDesign

    def design(self, rows: NDArray, centre: bool) -> Design:
        """The design of the chosen rows; a kernel needs no shift."""
        return self.whole if len(rows) == self.whole.shape[0] else self.whole.rows(rows)
