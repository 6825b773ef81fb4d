"""The parts of coordinate descent: chosen columns, their Gram matrix, and a quadratic on it."""

import numpy as np
import pytest
from scipy import sparse

from empirisk.linalg import chosen_columns
from empirisk.linalg.chosen_columns import columns_of
from empirisk.linalg.design import design_of
from empirisk.solvers.columns import quadratic
from empirisk.solvers.columns.quadratic import Quadratic
from empirisk.solvers.columns.working_set import WorkingSet

DESIGNS = {
    "rows": lambda X: (X, True),
    "columns": lambda X: (np.asfortranarray(X), True),
    "unshifted": lambda X: (X, False),
    "single precision": lambda X: (X.astype(np.float32), True),
    "sparse": lambda X: (sparse.csr_matrix(X), True),
    "sparse by columns": lambda X: (sparse.csc_matrix(X), False),
}


def design(kind: str, n: int, d: int, seed: int = 0):
    """A design, and the matrix that it is."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.4) + 0.5 * (random.random((n, d)) < 0.3)
    data, centre = DESIGNS[kind](X)
    made = design_of(data, centre)
    return made, made.dot(np.eye(d)) if made.shift is not None else X


@pytest.mark.parametrize("narrow", [0, 1000])
@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("kind", DESIGNS)
def test_chosen_columns_multiply_like_the_columns_they_are(kind, n, narrow, monkeypatch):
    monkeypatch.setattr(chosen_columns, "NARROW", narrow)  # sparse chosen_columns with and without being cut out
    made, A = design(kind, n, 300)
    random = np.random.default_rng(1)
    first, more = np.array([7, 3, 200]), random.permutation(np.arange(10, 170))
    part = columns_of(made, first)
    part.add(more)
    chosen = np.append(first, more)
    w, u, weights = random.normal(size=len(chosen)), random.normal(size=n), random.uniform(0, 2, n)
    assert part.count == len(chosen)
    assert np.allclose(part.dot(w), A[:, chosen] @ w, atol=1e-5)
    assert np.allclose(part.tdot(u), A[:, chosen].T @ u, atol=1e-4)
    gram = (A[:, chosen].T * weights) @ A[:, chosen]
    for known in (0, 3, 100):
        out = np.full((len(chosen), len(chosen) - known), np.nan)
        part.gram(weights, known, out)
        assert np.allclose(out, gram[:, known:], atol=1e-4)
    assert np.allclose(chosen_columns.correlations(made, chosen, u), A[:, chosen].T @ u, atol=1e-4)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", DESIGNS)
def test_the_gram_matrix_follows_the_set(kind, intercept):
    made, A = design(kind, 60, 50)
    A[:, 5] = A[:, 5].mean()
    made = design_of(A, True) if made.shift is not None else design_of(DESIGNS[kind](A)[0], False)
    random = np.random.default_rng(2)
    curvatures, nobody, everybody = random.uniform(0.5, 1.0, 60), np.zeros(50, bool), np.ones(50, bool)
    working = WorkingSet(made, intercept)

    def check(expected):
        assert np.array_equal(working.chosen, expected)
        B = A[:, working.chosen]
        total = working.curvatures.sum()
        means = working.curvatures @ B / total if intercept else np.zeros(B.shape[1])
        gram = (B.T * working.curvatures) @ B - total * np.outer(means, means)
        assert np.allclose(working.matrix[: len(working), : len(working)], gram, atol=1e-4)
        assert np.allclose(working.means, means - (0 if made.shift is None else made.shift[working.chosen]), atol=1e-5)

    working.update(np.array([9, 5]), curvatures, nobody, afresh=False)
    check([9, 5])
    if intercept:
        assert working.diagonal[1] == 0  # a constant column adds nothing to the intercept
    working.update(np.array([1, 30, 2]), curvatures, nobody, afresh=False)
    check([9, 5, 1, 30, 2])
    working.update(np.array([], dtype=int), 1.001 * curvatures, everybody, afresh=False)
    check([9, 5, 1, 30, 2])  # so small a change is not worth a new matrix
    assert working.curvatures is curvatures
    working.update(np.array([], dtype=int), 3 * curvatures**2, np.isin(np.arange(50), [5, 30]), afresh=False)
    check([9, 1, 2])
    working.update(np.array([8]), curvatures, nobody, afresh=True)
    check([9, 1, 2, 8])
    working.update(np.arange(10, 40), curvatures, nobody, afresh=False)
    check(np.arange(50))  # more than half: all of them


@pytest.mark.parametrize("l2", [0.0, 0.7])
@pytest.mark.parametrize("rank", [3, 30])
def test_the_minimum_of_a_quadratic_fulfils_its_conditions(rank, l2):
    random = np.random.default_rng(rank)
    B = random.normal(size=(rank, 20)) * np.logspace(-2, 2, 20)
    B[:, 7] = B[:, 3]
    G, q = B.T @ B, B.T @ random.normal(size=rank)
    l1 = 0.02 * np.abs(q).max()
    spare = np.full((25, 25), np.nan)
    spare[:20, :20] = G
    w, gradient = np.zeros(20), -q.copy()
    Quadratic(spare, np.diag(G).copy(), w, gradient, l1, l2).minimise(1e-13)
    assert np.allclose(gradient, G @ w - q, atol=1e-9 * np.abs(q).max())
    slopes = G @ w - q + l2 * w
    assert np.all(np.abs(slopes[w == 0]) <= l1 * (1 + 1e-9))
    assert np.allclose(slopes[w != 0], -l1 * np.sign(w[w != 0]), atol=1e-8 * l1)
    assert np.any(w != 0)


def test_a_quadratic_without_l1_is_a_linear_system():
    random = np.random.default_rng(0)
    B = random.normal(size=(40, 6))
    G, q, w = B.T @ B, random.normal(size=6), np.zeros(6)
    Quadratic(G, np.diag(G).copy(), w, -q.copy(), 0.0, 0.5).minimise(1e-14)
    assert np.allclose(w, np.linalg.solve(G + 0.5 * np.eye(6), q))


def test_the_step_of_a_quadratic_is_known_beyond_the_digits_of_its_weights():
    G, w = np.diag([1e12, 1.0]), np.array([1.0, 0.0])
    step = Quadratic(G, np.diag(G).copy(), w, np.array([-1.0 + 1e-6, 0.0]), 1.0, 0.0).step()
    assert step[0] == pytest.approx(-1e-18, rel=1e-6)
    assert step[1] == 0


def test_minimising_stops_when_told():
    G, w, gradient = np.eye(2), np.zeros(2), np.array([-3.0, 0.5])
    asked = []
    Quadratic(G, np.ones(2), w, gradient, 1.0, 0.0).minimise(-1.0, lambda: not asked.append(1))
    assert len(asked) == 1


def test_sweeps_over_a_large_matrix_ask_in_between_and_change_no_bit(monkeypatch):
    random = np.random.default_rng(0)
    B = random.normal(size=(60, 50)) + random.normal(size=(60, 1))
    G, q, found, asked = B.T @ B, B.T @ random.normal(size=60), [], []
    for swept in (quadratic.SWEPT, 1):
        monkeypatch.setattr(quadratic, "SWEPT", swept)
        w, questions = np.zeros(50), []
        model = Quadratic(G, np.diag(G).copy(), w, -q.copy(), 0.1, 0.0)
        model.minimise(1e-12, lambda questions=questions: bool(questions.append(1)))
        found.append(w)
        asked.append(len(questions))
    assert np.array_equal(*found)
    assert asked[1] > 3 * asked[0]
