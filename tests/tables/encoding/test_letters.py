"""Groups of letters inside words, as scikit-learn counts them."""

import numpy as np
import polars as pl
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import empirisk as er
from empirisk.tables.encoding import letters
from empirisk.tables.encoding.letters import Letters

random = np.random.default_rng(0)
ALPHABET = [*"abcdeABé \t\n\u00a0\u30a2", "  "]
TEXTS = ["".join(random.choice(ALPHABET, random.integers(0, 40))) for _ in range(200)] + ["", " ", "a"]


def truth(texts, least):
    counter = TfidfVectorizer(
        sublinear_tf=True, analyzer="char_wb", ngram_range=(2, 4), lowercase=False, min_df=least, norm="l2"
    )
    return counter.fit(texts)


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("block", [1, 300, 10**6])
def test_weights_are_those_of_scikit_learn(least, block, monkeypatch):
    monkeypatch.setattr(letters, "BLOCK", block)
    found, expected = Letters.fit(TEXTS, 10**6, least), truth(TEXTS, least)
    names = [letters._shown(group) for group in expected.get_feature_names_out()]
    assert sorted(found.names()) == sorted(names)
    order = [names.index(name) for name in found.names()]
    weights = expected.transform(TEXTS).toarray()[:, order]
    np.testing.assert_allclose(found.transform(TEXTS).toarray(), weights, atol=1e-12)


def test_the_most_frequent_are_kept_and_long_columns_are_read_in_part(monkeypatch):
    texts = ["aab"] * 30 + ["xyz"] * 10 + ["aab xyz"] * 3
    assert Letters.fit(texts, 3, 2).names() == Letters.fit(texts * 2, 3, 2).names()
    assert set(Letters.fit(texts, 3, 2).names()) <= {"a…", "…aa…", "…ab…", "…b", "aa…", "aab…", "…ab", "…aab"}
    monkeypatch.setattr(letters, "READ", 100)  # every other text
    assert Letters.fit(texts, 100, 9).names() == Letters.fit(texts[::2], 100, 9).names()


def test_strange_letters_and_no_texts():
    found = Letters.fit(["\U0001f600\U0001f601 a", "\x00b", ""], 50, 1)
    weights = found.transform(["\U0001f602\U0001f603", "\x00b", "never"])
    assert (weights.getnnz(axis=1) > 0).tolist() == [True, True, False]
    assert found.transform([]).shape == (0, len(found.groups))
    nothing = Letters.fit(["", " "], 50, 1)
    assert nothing.transform(["a"]).shape == (1, len(nothing.names())) == (1, 0)


def test_one_row_is_as_in_a_table():
    found = Letters.fit(TEXTS, 100, 2)
    together = found.transform(TEXTS)
    for number in (0, 7, 202):
        np.testing.assert_array_equal(found.transform([TEXTS[number]]).toarray(), together[number].toarray())


def test_a_sequence_is_learned_from_its_letters(tmp_path):
    kinds = random.integers(0, 2, 300)
    parts = [("".join(random.choice(list("acgt"), 20)), ["acca", "gatt"][kind]) for kind in kinds]
    table = pl.DataFrame({"sequence": [half + mark + half[::-1] for half, mark in parts], "kind": kinds.astype(bool)})
    found = er.learn(table, "kind", types={"sequence": "text"}, machines=["svm"], out=tmp_path / "dna")
    assert found.test.scores[0].value > 0.8
    loaded = er.load(tmp_path / "dna.model")
    np.testing.assert_array_equal(loaded.predict(table), found.model.predict(table))
    assert "…att…" in (tmp_path / "dna.report.html").read_text()
