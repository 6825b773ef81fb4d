"""Rows in order of time: noticed, learned from what is known before each, compared with the season before, forecast."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import EmpiriskError
from empirisk.league.request import Request
from empirisk.league.rows.seasons import seasonal_naive
from empirisk.league.rows.split import plan
from empirisk.service.fields import Fields
from empirisk.tables.history import STEPS, History, season_of
from empirisk.tables.understanding.column import Column

random = np.random.default_rng(0)


def sales(rows=300):
    days = [date(2023, 1, 2) + timedelta(days=k) for k in range(rows)]
    week = np.array([day.weekday() >= 5 for day in days])
    amount = 100 + 40 * week + np.cumsum(random.normal(0, 1, rows)) + random.normal(0, 4, rows)
    return pl.DataFrame({"day": [f"{day:%d.%m.%Y}" for day in days], "x": random.normal(size=rows), "amount": amount})


@pytest.fixture(scope="module")
def found():
    return er.learn(sales(), "amount", time_order="day", machines=["ridge"])


def test_months_without_a_day_and_nothing_else_are_learned_from():
    months = [f"{2012 + k // 12}-{1 + k % 12:02}" for k in range(120)]
    noise = np.random.default_rng(1).normal(0, 3, 120)
    trips = 100 + 2 * np.arange(120) + 30 * np.sin(np.arange(120) * np.pi / 6) + noise
    found = er.learn({"month": months, "trips": trips}, "trips", time_order="month", machines=["ridge"])
    assert found.plan.history.season == 12
    assert found.forecast(2)["month"].to_list() == [date(2022, 1, 1), date(2022, 2, 1)]
    with pytest.raises(EmpiriskError, match=r"time_order=.month. only orders the rows, .* as dates such as 2024-05-31"):
        er.learn({"month": [f"w{k:03}x" for k in range(120)], "trips": trips}, "trips", time_order="month")


def test_the_headline_and_the_luck_speak_of_one_mean(found):
    """That of the training rows: what rises has another one in the test."""
    truth, known = found.test.truth, found.plan.y[found.plan.train].mean()
    off = np.sqrt(np.mean((truth - known) ** 2))
    assert f"always predicting the mean would be off by {off:.3g}" in found.summary()
    ratio = np.mean((truth - found.test.predictions) ** 2) / off**2
    assert f"squared error is {100 * ratio:.0f} % of the mean's" in found.test.luck


def test_rows_in_order_of_time_are_noticed():
    assert any("time_order='day'" in told for told in plan(Request(sales(), "amount")).warnings)
    mixed = sales().sample(fraction=1.0, shuffle=True, seed=0)
    assert not any("time_order" in told for told in plan(Request(mixed, "amount")).warnings)


def test_the_last_rows_are_tested_and_what_is_known_before_is_learned_from(found):
    assert found.plan.test.tolist() == list(range(240, 300))
    names = [column.name for column in found.model.schema.used]
    assert names[:5] == ["x", "amount 1 before", "amount 2 before", "amount 3 before", "amount 7 before"]
    assert "amount, mean of 28 before" in names
    assert "day: weekday" in names
    assert any("'amount' is learned from what is known before the time of each row" in told for told in found.warnings)


def test_no_row_sees_its_own_or_a_later_value():
    table = sales()
    before = plan(Request(table, "amount", time_order="day")).frame
    changed = table.with_columns(amount=pl.when(pl.int_range(pl.len()) >= 280).then(1e6).otherwise(pl.col("amount")))
    after = plan(Request(changed, "amount", time_order="day")).frame
    assert after[:281].drop("x").equals(before[:281].drop("x"))  # what came before row 280 is all that it is given
    amount = table["amount"].to_numpy()
    assert np.allclose(before["amount 7 before"][50:].to_numpy(), amount[43:-7])
    assert np.allclose(before["amount, mean of 28 before"][50], amount[22:50].mean())


def test_rows_of_one_moment_do_not_see_each_other():
    table = pl.concat([sales(), sales()])  # two rows a day
    found = plan(Request(table, "amount", time_order="day"))
    day = table["amount"][:300] / 2 + table["amount"][300:] / 2
    assert np.allclose(found.frame["amount 1 before"][[100, 400]].to_numpy(), day[99])


def test_the_model_is_compared_with_the_season_before(found):
    y = found.plan.y
    naive = seasonal_naive(found.plan)
    assert naive.season == 7
    assert np.array_equal(naive.guesses, y[233:293])
    off = np.sqrt(np.mean((y[240:] - naive.guesses) ** 2))
    assert f"repeating the value 7 moments before by {off:.3g}" in found.summary()
    assert found.test.scores[0].value < off
    tried = found.backtest
    assert np.array_equal(tried.truth[0], y[240:264])
    assert np.array_equal(tried.naive[0], np.resize(y[233:240], 24))
    assert "Forecasts of 24 moments in one go are off by" in found.summary()
    page = found.report().page
    assert "Moments ahead" in page
    assert "Over time" in page


def test_a_forecast_goes_on_from_itself(found, tmp_path):
    said = found.forecast(20, 0.8)
    assert said["day"].to_list() == [date(2023, 10, 29) + timedelta(days=k) for k in range(20)]
    # By hand: one row after the other, each known once it is said.
    rows = pl.DataFrame({"day": said["day"].dt.strftime("%d.%m.%Y"), "x": [None] * 20}, schema_overrides={"x": float})
    for k in range(20):
        known = rows.head(k + 1).with_columns(amount=pl.Series([*said["amount"][:k], None], dtype=pl.Float64))
        assert np.isclose(found.predict(known)[-1], said["amount"][k])
    width = (said["amount high"] - said["amount low"]).to_numpy()
    assert np.all(np.diff(width) >= -1e-9)
    assert width[-1] > width[0]
    # A row far ahead is what the forecast says of it, for the days between are forecast too.
    assert np.isclose(found.predict(rows.tail(1))[0], said["amount"][-1])
    found.save(tmp_path / "it.model")
    assert er.load(tmp_path / "it.model").forecast(20, 0.8).equals(said)
    shell = CliRunner().invoke(app, ["predict", str(tmp_path / "it.model"), "--forecast", "2", "--interval", "80"])
    assert shell.stdout.splitlines()[1].startswith(f"2023-10-29,{said['amount'][0]:.6}"[:20])
    assert "taken as missing: x" in shell.stderr


def test_what_has_no_order_of_time_has_no_forecast():
    with pytest.raises(EmpiriskError, match="learn numbers with time_order"):
        er.learn("diabetes", machines=["ridge"]).forecast(3)
    with pytest.raises(EmpiriskError, match="lacks the column 'day'"):
        er.learn(sales(), "amount", time_order="day", machines=["ridge"]).predict({"x": [1.0]})


def test_a_service_asks_for_the_time_and_not_for_earlier_values(found):
    assert [column.name for column in found.model.asked.used] == ["day", "x"]
    frame, problems = Fields(found.model.asked).check([{"day": "2023-10-30", "x": 0.5}])
    assert not problems
    assert found.model.complete(frame)[STEPS].to_list() == [2]


def history(moments, kind="date"):
    return History(Column("t", kind), "y", np.asarray(moments, dtype=float), np.zeros(len(moments)), 1)


@pytest.mark.parametrize(
    ("days", "next_days"),
    [
        (["2023-01-31", "2023-02-28", "2023-03-31", "2023-04-30"], ["2023-05-31", "2023-06-30"]),
        (["2023-01-15", "2023-04-15", "2023-07-15"], ["2023-10-15", "2024-01-15"]),
        ([f"2024-01-{k:02}" for k in (2, 3, 4, 5, 8, 9, 10, 11, 12)], ["2024-01-15", "2024-01-16"]),
        (["2024-01-11", "2024-01-12", "2024-01-13"], ["2024-01-14", "2024-01-15"]),
    ],
)
def test_the_calendar_goes_on(days, next_days):
    moments = np.array(days, dtype="datetime64[us]").astype(np.int64)
    expected = np.array(next_days, dtype="datetime64[us]").astype(np.int64)
    assert history(moments).following(2).tolist() == expected.tolist()


def test_numbers_go_on_by_their_usual_gap():
    assert history([1, 2, 3, 5, 6], "number").following(2).tolist() == [7, 8]


def test_without_a_season_the_last_value_is_repeated():
    walk = np.cumsum(random.normal(size=400))
    assert season_of(walk) == 1
    found = plan(Request({"t": np.arange(400), "y": walk}, "y", time_order="t"))
    assert np.array_equal(seasonal_naive(found).guesses, walk[found.test - 1])
    assert found.history is not None
    assert found.schema["y 1 before"].used
