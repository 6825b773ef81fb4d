"""Rows in order of time: noticed, learned from their date, and compared with the season before."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.league.request import Request
from empirisk.league.seasons import season_of, seasonal_naive
from empirisk.league.split import plan

random = np.random.default_rng(0)


def sales(rows=300):
    days = [date(2023, 1, 2) + timedelta(days=k) for k in range(rows)]
    week = np.array([day.weekday() >= 5 for day in days])
    amount = 100 + 40 * week + 0.1 * np.arange(rows) + random.normal(0, 5, rows)
    return pl.DataFrame({"day": [f"{day:%d.%m.%Y}" for day in days], "x": random.normal(size=rows), "amount": amount})


@pytest.fixture(scope="module")
def found():
    return er.learn(sales(), "amount", time_order="day", machines=["ridge"])


def test_rows_in_order_of_time_are_noticed():
    assert any("time_order='day'" in told for told in plan(Request(sales(), "amount")).warnings)
    mixed = sales().sample(fraction=1.0, shuffle=True, seed=0)
    assert not any("time_order" in told for told in plan(Request(mixed, "amount")).warnings)


def test_the_last_rows_are_tested_and_the_date_is_learned_from(found):
    assert found.plan.test.tolist() == list(range(240, 300))
    assert found.plan.schema["day"].used
    assert found.test.scores[0].value < 10  # the weekend is known


def test_the_model_is_compared_with_the_season_before(found):
    naive = seasonal_naive(found.plan.y[:240], 60)
    assert naive.season == 7
    off = np.sqrt(np.mean((found.plan.y[240:] - naive.guesses) ** 2))
    assert f"repeating the last 7 rows, again and again, by {off:.3g}" in found.summary()


def test_without_a_season_the_last_value_is_repeated():
    walk = np.cumsum(random.normal(size=400))
    assert season_of(walk) == 1
    assert np.all(seasonal_naive(walk, 3).guesses == walk[-1])
