"""Intervals that are wide where errors are large, and hold the truth as often as they say in every part."""

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.tables.spread import coverage_by_parts, ends, learn_spread


def prices(rows, seed):
    """Dear things are off by more: a tenth of the price, in whatever part."""
    random = np.random.default_rng(seed)
    size, kind = random.exponential(2.0, rows) + 0.2, random.integers(0, 2, rows)
    price = 40 * size * np.exp(0.15 * (1 + kind) * random.normal(size=rows))
    return pl.DataFrame({"size": size, "kind": np.where(kind == 0, "a", "b"), "price": price})


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("prices") / "it"
    return er.learn(prices(2500, 0), "price", machines=["ridge"], test=0.4, out=path), path


def test_where_there_is_no_time_to_learn_more_intervals_fit_the_prediction(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "empirisk.league.verdict.finish.OptionalSections.optional_section", lambda self, name, work: None
    )
    learned = er.learn(prices(2500, 0), "price", machines=["ridge"], test=0.4, out=tmp_path / "it")
    new = prices(4000, 1)
    truth, said = new["price"].to_numpy(), learned.predict(new)
    low, high = er.load(tmp_path / "it.model").predict_interval(new, 0.9)
    inside = (low <= truth) & (truth <= high)
    for part in np.array_split(np.argsort(said), 5):
        assert inside[part].mean() == pytest.approx(0.9, abs=0.06)
    assert low.min() >= learned.plan.y.min()
    assert high.max() <= learned.plan.y.max()


def test_intervals_fit_the_row(found):
    learned, path = found
    new = prices(4000, 1)
    truth, said = new["price"].to_numpy(), learned.model.predict(new)
    low, high = learned.model.predict_interval(new, 0.9)
    inside = (low <= truth) & (truth <= high)
    order = np.argsort(said)
    for part in np.array_split(order, 5):
        assert inside[part].mean() == pytest.approx(0.9, abs=0.06)
    assert (high - low)[order[-800:]].mean() > 4 * (high - low)[order[:800]].mean()
    assert low.min() >= learned.plan.y.min()
    assert high.max() <= learned.plan.y.max()
    # Of two rows with one prediction, the noisier kind has the wider interval.
    kinds, middle = new["kind"].to_numpy(), (said > 60) & (said < 120)
    wide, narrow = ((high - low)[middle & (kinds == kind)].mean() for kind in "ba")
    assert wide > 1.3 * narrow
    loaded = er.load(path.with_suffix(".model"))
    assert all(np.array_equal(a, b) for a, b in zip(loaded.predict_interval(new), (low, high), strict=True))


def test_the_report_tells_coverage_by_parts_of_the_prediction(found):
    learned, path = found
    parts = coverage_by_parts(learned.errors, 0.9, learned.model.limits)
    assert sum(part.rows for part in parts) == len(learned.test.truth)
    assert all(0.8 < part.inside <= 1.0 for part in parts)
    assert parts[-1].width > 3 * parts[0].width
    assert "Intervals of 90 %: how often they held the truth" in path.with_suffix(".report.html").read_text()


def test_errors_of_one_size_have_intervals_of_one_width():
    random = np.random.default_rng(0)
    x = random.normal(size=(600, 2))
    errors = learn_spread(x, x[:, 0], x[:, 0] + random.normal(size=600))
    low, high = ends(np.sort(errors.scaled), 0.9)
    assert errors.spread is None or np.ptp(errors.sizes) < 0.8 * errors.sizes.mean()
    assert 2.8 < (high - low) * errors.sizes.mean() < 3.8
