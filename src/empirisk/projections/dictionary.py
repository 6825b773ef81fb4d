"""Dictionaries: atoms of which every row is a sparse combination."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from empirisk import state
from empirisk.contract.arguments import check_count, check_number, check_time
from empirisk.contract.features import FLOATS, FORMATS
from empirisk.contract.inputs import Array, check_size, check_weights, generator
from empirisk.contract.transaction import all_or_nothing
from empirisk.errors import EmpiriskError, Unsuitable
from empirisk.linalg.design import DenseDesign, Design, design_of
from empirisk.linalg.hashes import distinct_rows
from empirisk.linalg.threads import single_threaded_blas
from empirisk.names import Estimator
from empirisk.projections.coding import Coding, Products, coding
from empirisk.projections.descent import DescentLog
from empirisk.stop import Ending, Stopped, check_stop, interruptible, stopping
from empirisk.validation import check_array, validate_data

METHODS = ("alternating", "ksvd")
THRESHOLDS = ("hard", "soft")
#: Passes over the atoms under the l1 penalty; each lowers the objective, and the first ones most.
PASSES = 5
#: Rounds of the power method for one atom of K-SVD, and the change at which it has settled.
POWERS, SETTLED = 30, 1e-10
#: Projections of rows that differ by less, relative to the largest, are those of equal rows.
EQUAL = 1e-9
#: Rows drawn for each atom wanted, in case some of them are equal.
DRAWS = 8
#: Without a number of entries, codes have one for this many columns.
COLUMNS_PER_ENTRY = 10


@dataclass(eq=False, repr=False)
class Dictionary(ClassNamePrefixFeaturesOutMixin, CallbackSupportMixin, TransformerMixin, Estimator):
    """Dictionary learning: atoms a_1..a_p and sparse codes z_i with  x_i = z_i1 a_1 + ... + z_ip a_p, nearly:

        minimise  sum_i c_i |x_i - z_i A|^2   over atoms of unit length and codes with few entries,

    or with coding="l1"  sum_i c_i ( |z_i|_1 + C |x_i - z_i A|^2 )  over atoms of length at most one. Codes and atoms
    take turns, and the objective never rises. It is a map: ``transform`` gives the codes of new rows.

    Parameters
    ----------
    n_atoms : int
        The number of atoms p.
    method : {"alternating", "ksvd"}
        "alternating" finds all atoms at once by least squares; "ksvd" one after the other, each with its codes, as the
        leading singular vectors of what the others leave over.
    coding : {"l1", "omp", "top_k", "indicator"}
        How codes are found: by the l1 penalty; by orthogonal matching pursuit; by the largest of the least-squares
        codes; or as one entry 1 for the nearest atom, which makes the dictionary k-means.
    C : float
        With "l1": what the error weighs: the C of `Lasso`.
    nonzeros : int or None
        With "omp" and "top_k": the number of entries of a code; None is one for ten columns.
    threshold : {"hard", "soft"}
        With "top_k": whether the entries that stay keep their size, or lose that of the largest one that goes.
    init : "rows" or array, p x d
        The first atoms: rows drawn at random, or these.
    max_iter, tol, max_time : int, float, float or None
        When to stop: after so many rounds; when one lowers the objective by less than this part of it; after seconds.
    random_state : int, RandomState or None
        Seed of the draw.

    Attributes
    ----------
    components_ : array, p x d
        The atoms.
    n_iter_, history_, stopped_ : int, dict, str
        The number of rounds, ``objective`` and ``seconds`` from the start on, and why the fit ended.

    Examples
    --------
    >>> X = np.array([[2.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, 1.0]])
    >>> er.Dictionary(2, "ksvd", "omp", nonzeros=1, random_state=0).fit(X).transform(X).shape
    (4, 2)
    >>> means = er.Dictionary(2, coding="indicator", init=X[[0, 2]]).fit(X).components_
    >>> means[1]
    array([0., 2.])
    """

    _state = state.State(
        n_atoms=state.size("width"),
        components_=state.array("f", "width", "columns"),
        n_iter_=state.whole(),
        history_=state.mapping(state.array("f8", None, finite=False)),
        stopped_=state.text(),
    )

    n_atoms: int = 64
    method: str = "alternating"
    coding: str = "l1"
    _: KW_ONLY
    C: float = 1.0
    nonzeros: int | None = None
    threshold: str = "hard"
    init: str | ArrayLike = "rows"
    max_iter: int = 300
    tol: float = 1e-4
    max_time: float | None = None
    random_state: Any = None

    @with_callbacks
    @all_or_nothing
    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Dictionary:
        """Learn the atoms.

        Parameters
        ----------
        X : array or sparse matrix, n x d
            The rows.
        y : ignored
            For scikit-learn's interface.
        sample_weight : array of n, optional
            Weight of each row; weight 2 equals the row twice.
        """
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        matrix: Any = validate_data(self, X, accept_sparse=FORMATS, dtype=FLOATS)
        check_size("X", matrix)
        weights = check_weights(sample_weight, matrix.shape[0])
        way = self._way(matrix.shape[1])
        rows, weights = distinct_rows(matrix, weights)
        design = design_of(matrix).rows(rows)
        atoms = Atoms(design, weights, way, self._first(design, weights, way.normed))
        with interruptible():
            log = DescentLog(self, data)
            self._take_turns(atoms, log)
        log.close(atoms.fitted(matrix.dtype))
        return self

    def _take_turns(self, atoms: Atoms, log: DescentLog) -> None:
        """Atoms for the codes, codes for the atoms, until the objective settles."""
        improve = atoms.improve_atoms if self.method == "alternating" else atoms.improve_one_by_one
        try:
            with stopping(log.stops):
                value = atoms.find_codes()
        except Stopped:
            return
        log.note(value)
        for _ in range(self.max_iter):
            kept = atoms.atoms.copy()
            try:
                with stopping(log.stops):
                    check_stop()
                    improve()
                    before, value = value, atoms.find_codes()
            except Stopped:
                atoms.atoms = kept
                return
            if log.ended(value, lambda: atoms.fitted(np.float64)) or before - value <= self.tol * before:
                return
        log.reason = Ending.MAX_ITER

    def _way(self, columns: int) -> Coding:
        """The coding, its arguments checked."""
        check_count("n_atoms", self.n_atoms)
        check_number("C", self.C, 0.0, above=True)
        check_count("nonzeros", self.nonzeros, optional=True)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, 0.0)
        check_time(self.max_time)
        if self.method not in METHODS:
            raise EmpiriskError(f"method={self.method!r} must be one of {METHODS}.")
        if self.threshold not in THRESHOLDS:
            raise EmpiriskError(f"threshold={self.threshold!r} must be one of {THRESHOLDS}.")
        count = max(1, columns // COLUMNS_PER_ENTRY) if self.nonzeros is None else int(self.nonzeros)
        if self.nonzeros is not None and count > self.n_atoms:
            raise EmpiriskError(f"nonzeros={count} must be at most the number of atoms, n_atoms={self.n_atoms}.")
        way = coding(self.coding, float(self.C), min(count, int(self.n_atoms)), self.threshold)
        if self.method == "ksvd" and not (way.counted and way.normed):
            raise Unsuitable(
                f"method='ksvd' changes the codes along with the atoms, which coding={self.coding!r} does not allow; "
                "use coding='omp' or 'top_k', or method='alternating'."
            )
        return way

    def _first(self, design: Design, weights: Array, normed: bool) -> Array:
        """The atoms to begin with."""
        if not isinstance(self.init, str):
            atoms = check_array(self.init, dtype=np.float64, input_name="init")
            wanted = (int(self.n_atoms), design.shape[1])
            if atoms.shape != wanted:
                raise EmpiriskError(
                    f"init has shape {atoms.shape}; give n_atoms rows of as many columns as X: {wanted}."
                )
        elif self.init == "rows":
            random = generator(self.random_state)
            atoms = drawn_rows(design, weights, int(self.n_atoms), random)
            missing = int(self.n_atoms) - len(atoms)
            if missing and not normed:
                raise EmpiriskError(
                    f"n_atoms={self.n_atoms} is more than the {len(atoms)} rows of X that differ, of "
                    f"n_samples={design.shape[0]} with weight; give fewer."
                )
            atoms = np.vstack([atoms, random.normal(size=(missing, design.shape[1]))])
        else:
            raise EmpiriskError(f"init={self.init!r} must be 'rows' or an array of atoms.")
        return unit_length(atoms) if normed else np.array(atoms)

    @single_threaded_blas()
    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The codes of each row, n x p."""
        check_is_fitted(self)
        matrix: Any = validate_data(self, X, accept_sparse=FORMATS, dtype=FLOATS, reset=False)
        atoms = self.components_.astype(np.float64)
        codes = self._way(matrix.shape[1]).codes(products_of(design_of(matrix), atoms), None)
        return codes.astype(matrix.dtype, copy=False)

    @single_threaded_blas()
    def inverse_transform(self, Z: ArrayLike) -> NDArray[Any]:
        """The rows z A that codes stand for.

        Parameters
        ----------
        Z : array, n x p
            Codes, as `transform` gives them.
        """
        check_is_fitted(self)
        codes = check_array(Z, dtype=FLOATS, input_name="Z")
        if codes.shape[1] != len(self.components_):
            raise EmpiriskError(
                f"Z has {codes.shape[1]} columns for {len(self.components_)} atoms; give what transform gives."
            )
        return codes @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Atoms:
    """The current atoms and codes.

    Parameters
    ----------
    design : Design
        The rows.
    weights : array
        Their weights.
    way : Coding
        How codes are found.
    atoms : array, p x d
        The first ones.
    """

    def __init__(self, design: Design, weights: Array, way: Coding, atoms: Array):
        self._design, self._weights, self._way, self.atoms = design, weights, way, atoms
        self._squares = design.squared_rows()
        self._codes: Any = None

    def find_codes(self) -> float:
        """Codes for the atoms, none of them worse than before; returns the objective."""
        products = products_of(self._design, self.atoms, self._squares)
        self._codes = self._way.codes(products, self._codes)
        self._costs = self._way.costs(self._codes, products.errors(self._codes))
        return float(self._weights @ self._costs)

    def fitted(self, dtype: Any) -> dict[str, Any]:
        """The attributes of the model so far."""
        return {"components_": self.atoms.astype(dtype)}

    def improve_atoms(self) -> None:
        """All atoms by least squares for the codes there are."""
        codes = self._codes
        weighted = self._weights[:, None] * codes
        gram, sums = DenseDesign(codes).gram(self._weights), self._design.tdot(weighted).T
        if self._way.counted:
            found = np.linalg.pinv(gram, hermitian=True) @ sums
        else:
            found = bounded_atoms(gram, sums, self.atoms)
        used = np.diag(gram) > 0
        self.atoms = np.where(used[:, None], found, self.atoms)
        if self._way.normed and self._way.counted:
            sizes = np.linalg.norm(self.atoms, axis=1)
            self._codes = codes * np.where(sizes > 0, sizes, 1.0)
            self.atoms = unit_length(self.atoms)
        self._replace(~used)

    def improve_one_by_one(self) -> None:
        """K-SVD: every atom with its codes, as the leading singular pair of what the other atoms leave over."""
        codes = self._codes
        for j in range(len(self.atoms)):
            rows = np.flatnonzero(codes[:, j])
            if len(rows):
                self._improve(j, rows)
        self._replace(~codes.any(axis=0))

    def _improve(self, j: int, rows: NDArray[np.intp]) -> None:
        """One atom and its codes by the power method: each half-step is the best for the other half."""
        part, weights = self._design.rows(rows), self._weights[rows]
        others = self._codes[rows]
        own, others[:, j] = others[:, j].copy(), 0.0
        atom = self.atoms[j]
        for _ in range(POWERS):
            pulled = weights * own
            found = unit_length((part.tdot(pulled) - (others.T @ pulled) @ self.atoms)[None])[0]
            own = part.dot(found) - others @ (self.atoms @ found)
            change, atom = float(np.sum((found - atom) ** 2)), found
            if change <= SETTLED**2:
                break
        self.atoms[j], self._codes[rows, j] = atom, own

    def _replace(self, unused: NDArray[np.bool_]) -> None:
        """Atoms that no row uses become the rows that are fitted worst; no code changes, and so no error."""
        places = np.flatnonzero(unused)
        worst = np.argsort(-self._costs, kind="stable")[: len(places)]
        for place, row in zip(places, worst, strict=False):
            atom = np.ravel(self._design.rows(np.array([row])).dot(np.eye(self._design.shape[1])))
            if self._costs[row] > 0 and atom.any():
                self.atoms[place] = unit_length(atom[None])[0] if self._way.normed else atom


def products_of(design: Design, atoms: Array, squares: Array | None = None) -> Products:
    """X A', A A' and |x|^2."""
    return Products(design.dot(atoms.T), atoms @ atoms.T, design.squared_rows() if squares is None else squares)


def unit_length(atoms: Array) -> Array:
    """The atoms divided by their lengths; one without length stays as it is."""
    sizes = np.linalg.norm(atoms, axis=1, keepdims=True)
    return atoms / np.where(sizes > 0, sizes, 1.0)


def bounded_atoms(gram: Array, sums: Array, atoms: Array) -> Array:
    """Least squares over atoms of length at most one, one atom after the other."""
    atoms = atoms.copy()
    for _ in range(PASSES):
        for j in np.flatnonzero(np.diag(gram) > 0):
            atom = atoms[j] + (sums[j] - gram[j] @ atoms) / gram[j, j]
            atoms[j] = atom / max(float(np.linalg.norm(atom)), 1.0)
    return atoms


def drawn_rows(design: Design, weights: Array, count: int, random: np.random.Generator) -> Array:
    """At most ``count`` different rows, drawn by weight.

    The rows are put in the order of a random projection first: what is drawn depends neither on the order in which they
    come nor on whether a row comes twice or has weight 2.
    """
    places = design.dot(random.normal(size=design.shape[1]))
    order = np.argsort(places, kind="stable")
    reached = np.cumsum(weights[order])
    draws = order[np.searchsorted(reached, random.random(DRAWS * count) * reached[-1], side="right")]
    rounded = np.round(places[draws] / (EQUAL * max(float(np.abs(places).max()), np.finfo(float).tiny)))
    draws = draws[np.sort(np.unique(rounded, return_index=True)[1])]
    rows = design.rows(draws).dot(np.eye(design.shape[1]))
    return rows[rows.any(axis=1)][:count]
