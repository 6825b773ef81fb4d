"""An encoder that learns from blocks has learned what one does from the whole table."""

import numpy as np
import polars as pl
import pytest

import empirisk as er
from empirisk.tables.encoding import in_blocks
from empirisk.tables.encoding.in_blocks import MedianSketch, OwnEncoder

random = np.random.default_rng(0)
ROWS = 3000
holes = random.normal(size=ROWS) * 3 + 1e6
TABLE = pl.DataFrame(
    {
        "number": random.normal(size=ROWS) * 1e200,
        "holes": pl.Series(np.where(random.random(ROWS) < 0.1, np.nan, holes)).fill_nan(None),
        "town": pl.Series(random.integers(0, 5, ROWS)).cast(pl.String).replace("4", None),
        "street": [f"s{k}" for k in random.geometric(0.02, ROWS)],
        "late": ["", "x"] * 1000 + ["y"] * 1000,
    }
)
Y = random.normal(size=ROWS) + (TABLE["town"] == "1").fill_null(False).to_numpy()


def blocks(y, size):
    return [(TABLE[start : start + size], y[start : start + size]) for start in range(0, ROWS, size)]


@pytest.mark.parametrize("classes", [None, 3])
def test_what_is_learned_is_that_of_the_whole_table(classes):
    y = Y if classes is None else np.digitize(Y, [-1, 1]).astype(float)
    given = Y if classes is None else np.array(["a", "b", "c"])[y.astype(int)]
    schema = er.tables.understand(TABLE)
    expected = er.tables.TableEncoder(schema).fit(TABLE, given)
    start = er.tables.TableEncoder(schema).fit(TABLE.head(300), given[:300])
    names = list(start.names_)
    found = OwnEncoder(start, blocks(y, 700), classes).encoder
    assert start.names_ == names != found.names_  # it stays as it was
    for name in ("middle", "mean", "scale", "flagged"):
        np.testing.assert_allclose(getattr(found.numbers_, name), getattr(expected.numbers_, name), rtol=1e-9)
    assert found.words_.levels == expected.words_.levels
    assert found.many_ == expected.many_ != []
    assert found.names_ == expected.names_
    np.testing.assert_allclose(found.transform(TABLE), expected.transform(TABLE), rtol=1e-9, atol=1e-8)


def test_no_row_sees_its_own_target():
    """Its means are those of the other folds, and the same for any blocks."""
    start = er.tables.TableEncoder(er.tables.understand(TABLE)).fit(TABLE, Y)

    def means(y, sizes):
        own = OwnEncoder(start, blocks(y, 1000), None)
        place = own.encoder.names_.index("street mean target")
        return np.concatenate([own.transform(frame)[:, place] for frame, _ in blocks(y, sizes)])

    plain = means(Y, 1000)
    np.testing.assert_array_equal(plain, means(Y, 77))
    other = Y.copy()
    other[5] += 1000
    changed = np.abs(means(other, 1000) - plain) > 1e-9
    assert not changed[5]
    assert changed[(TABLE["street"] == TABLE["street"][5]).to_numpy()].any()


def test_the_rarest_of_too_many_words_are_others(monkeypatch):
    monkeypatch.setattr(in_blocks, "MOST_WORDS", 20)
    start = er.tables.TableEncoder(er.tables.understand(TABLE), max_categories=5).fit(TABLE, Y)
    found = OwnEncoder(start, blocks(Y, 300), None).encoder
    assert found.levels("street")[:2] == start.levels("street")[:2]
    assert found.words_.others[found._coded.index("street")]


def test_medians_of_few_numbers_are_exact_and_of_many_nearly_so():
    for count, off in ((0, 0), (7, 0), (4096, 0), (300_000, 1e-3)):
        values, sketch = random.permutation(count).astype(float), MedianSketch()
        for part in np.array_split(values, 17):
            sketch.add(part)
        expected = np.median(values) if count else 0.0
        assert abs(sketch.median() - expected) <= off * count
