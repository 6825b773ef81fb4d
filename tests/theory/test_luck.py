"""The binomial tail and its inversion: sums by hand, and coverage without simulation."""

from math import comb

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import empirisk as er

pytestmark = pytest.mark.row("V7")


@pytest.mark.parametrize(("errors", "n", "rate"), [(0, 5, 0.5), (2, 10, 0.5), (7, 30, 0.1), (30, 30, 0.9)])
def test_luck_is_the_sum_from_zero(errors, n, rate):
    by_hand = sum(comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(errors + 1))
    assert er.luck(errors, n, rate).value == pytest.approx(by_hand, rel=1e-12)


def test_luck_says_what_it_means():
    assert er.luck(5, 10).vacuous
    assert "shows nothing" in str(er.luck(5, 10))
    assert "hardly luck" in er.luck(1, 20).meaning
    assert "could be luck" in er.luck(4, 10).meaning
    assert er.luck is er.theory.luck


@pytest.mark.parametrize(("errors", "n"), [(0, 20), (3, 50), (50, 50)])
def test_the_bound_turns_the_tail_round(errors, n):
    bound = er.theory.error_bound(errors, n, confidence=0.9)
    if errors == n:
        assert bound.value == 1
    else:
        assert er.luck(errors, n, bound.value).value == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("method", ["clopper_pearson", "wilson"])
@pytest.mark.parametrize(("errors", "n"), [(0, 10), (3, 40), (25, 25), (140, 1000)])
def test_intervals_are_those_of_scipy(method, errors, n):
    name = {"clopper_pearson": "exact", "wilson": "wilson"}[method]
    expected = binomtest(errors, n).proportion_ci(0.95, method=name)
    found = er.theory.error_interval(errors, n, method=method)
    assert tuple(found) == pytest.approx((expected.low, expected.high), abs=1e-10)
    assert found.interval == (found.low, found.high)
    assert found.value == errors / n


@pytest.mark.parametrize("n", [100, 200, 500])
@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3, 0.5])
def test_coverage_of_the_interval_is_exact_and_not_wasteful(n, rate):
    held = sum(
        binom.pmf(k, n, rate) for k in range(n + 1) if er.theory.error_interval(k, n).low <= rate
        and rate <= er.theory.error_interval(k, n).high
    )  # fmt: skip
    assert 0.95 <= held <= 0.98


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((3, 2), "errors=3 exceeds n=2"),
        ((-1, 2), "errors=-1 must be a whole number of at least 0"),
        ((1.5, 2), "errors=1.5 must be a whole number"),
        ((0, 0), "n=0 must be a whole number of at least 1"),
    ],
)
def test_bad_counts_are_refused(arguments, sentence):
    for function in (er.luck, er.theory.error_bound, er.theory.error_interval):
        with pytest.raises(er.errors.EmpiriskError, match=sentence):
            function(*arguments)


def test_bad_rates_are_refused():
    with pytest.raises(ValueError, match=r"rate=1\.2 must be a rate"):
        er.luck(1, 2, rate=1.2)
    with pytest.raises(ValueError, match="confidence=1 must lie between 0 and 1"):
        er.theory.error_interval(1, 2, confidence=1)
    with pytest.raises(ValueError, match="method='exact' is not known"):
        er.theory.error_interval(1, 2, method="exact")
    assert er.luck(np.int64(1), np.int64(4)).value == er.luck(1, 4).value
