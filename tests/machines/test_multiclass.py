"""Coding matrices and how answers are read, by hand."""

import numpy as np
import pytest

from empirisk.losses import Hinge, Logistic, Squared
from empirisk.machines.multiclass import elected, error_correcting, one_vs_one, one_vs_rest, read, untied, winners

NONE = np.random.default_rng(0)
ABC = np.array(["a", "b", "c"])


@pytest.mark.row("E5")
def test_coding_matrices():
    np.testing.assert_array_equal(one_vs_rest(3, NONE), [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(one_vs_one(3, NONE), [[-1, 1, 0], [-1, 0, 1], [0, -1, 1]])
    np.testing.assert_array_equal(error_correcting(3, NONE), [[1, -1, -1], [-1, 1, -1], [1, 1, -1]])
    many = error_correcting(9, NONE)
    assert set(np.unique(many)) == {-1.0, 1.0}
    assert np.all(np.abs(many.sum(axis=1)) < 9)


@pytest.mark.row("E5")
def test_votes_of_pairs():
    # Machines: a or b, a or c, b or c; positive is the second of the two.
    f = np.array(
        [
            [-1.0, -2.0, 0.5],  # a beats b and c: 2, 0, 1
            [3.0, 1.0, -0.1],  # b beats a and c, c beats a: 0, 2, 1
            [1.0, -1.0, 2.0],  # b beats a, a beats c, c beats b: one vote each; the sums of answers are 0, -1, 1
            [0.0, 0.0, 0.0],  # an answer of 0 is a vote for the second: 0, 1, 2
        ]
    )
    scores = read("one_vs_one", one_vs_one(3, NONE), f, Hinge())
    np.testing.assert_array_equal(scores.round(), [[2, 0, 1], [0, 2, 1], [1, 1, 1], [0, 1, 2]])
    assert winners(scores, ABC).tolist() == ["a", "b", "c", "c"]
    # The third row: less than half a vote from the sums, s / (3 (|s| + 1)).
    np.testing.assert_allclose(scores[2], [1.0, 1.0 - 1 / 6, 1.0 + 1 / 6])


@pytest.mark.row("E5")
def test_votes_are_never_outweighed_by_answers():
    random = np.random.default_rng(1)
    codes = one_vs_one(5, NONE)
    f = random.normal(size=(200, 10)) * 10.0 ** random.integers(-3, 6, (200, 1))
    scores = read("one_vs_one", codes, f, Hinge())
    for row, found in zip(f, scores, strict=True):
        votes = np.zeros(5)
        for (first, second), answer in zip([(i, j) for i in range(5) for j in range(i + 1, 5)], row, strict=True):
            votes[second if answer >= 0 else first] += 1
        assert votes[found.argmax()] == votes.max()
        np.testing.assert_array_equal(np.floor(found + 0.5), votes)


@pytest.mark.row("E5")
def test_code_words_are_decoded_by_the_loss():
    codes = error_correcting(3, NONE)  # words of the classes: (+, -, +), (-, +, +), (-, -, -)
    f = np.array([[2.0, -1.0, 0.5], [-0.2, 0.3, 0.1]])
    # The first row by the hinge, max(0, 1 - t): a (2, 1, .5), b (-2, -1, .5), c (-2, 1, -.5).
    np.testing.assert_allclose(
        read("error_correcting", codes, f, Hinge()),
        [[-0.5, -(3 + 2 + 0.5), -(3 + 0 + 1.5)], [-(1.2 + 1.3 + 0.9), -(0.8 + 0.7 + 0.9), -(0.8 + 1.3 + 1.1)]],
    )
    assert winners(read("error_correcting", codes, f, Hinge()), ABC).tolist() == ["a", "b"]
    assert winners(read("error_correcting", codes, f, Logistic()), ABC).tolist() == ["a", "b"]
    np.testing.assert_allclose(read("error_correcting", codes, f[:1], Squared())[0, 0], -(1 + 0 + 0.25))


def test_one_vs_rest_is_read_as_it_is_and_zero_is_the_positive_class():
    f = np.array([[0.1, -2.0, 0.3]])
    np.testing.assert_array_equal(read("one_vs_rest", one_vs_rest(3, NONE), f, Hinge()), f)
    assert winners(np.array([-1e-300, 0.0, 2.0]), ABC[:2]).tolist() == ["a", "b", "b"]


def test_shares_of_votes():
    half = np.array([[0.5, 0.5], [0.6, 0.4]])
    assert elected(half, ABC[:2]).tolist() == ["b", "a"]
    assert elected(np.array([[0.4, 0.4, 0.2]]), ABC).tolist() == ["a"]
    assert untied(half).argmax(axis=1).tolist() == [1, 0]
    np.testing.assert_allclose(untied(half), half, rtol=1e-15)
