"""Kinds of columns: every kind is recognised, read alike from tables and from JSON, encoded, compared and asked for."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.service.bodies import Bodies
from empirisk.tables.kinds import KINDS, USED
from empirisk.tables.kinds.several import Items
from empirisk.tables.understanding.profile import profile, unusual

random = np.random.default_rng(0)
#: A column of each kind that machines learn from, as text.
TEXTS = {
    "number": [f"{value},5" for value in range(60)],
    "boolean": ["yes", "no", "no"] * 20,
    "date": [f"{day % 28 + 1:02d}.12.2020" for day in range(60)],
    "category": ["red", "green", "blue"] * 20,
    "several": ["web;phone", "phone; web", "web", "shop;web;phone", "phone", ""] * 10,
    "sequence": ["".join("ACGT"[(k * 7 + place * (k % 5 + 1)) % 4] for place in range(6 + k % 3)) for k in range(60)],
    "text": [f"the {word} thing number {k} broke today" for k, word in enumerate(["red", "old", "new"] * 20)],
}


def schema_of(kind):
    return er.tables.understand({"x": TEXTS[kind]})


def test_there_is_a_column_of_every_kind():
    assert set(TEXTS) == set(USED)


@pytest.mark.parametrize("kind", USED)
def test_a_column_of_text_is_recognised(kind):
    column = schema_of(kind)["x"]
    assert column.kind == kind
    assert column.type is KINDS[kind]
    assert er.tables.understand({"x": TEXTS[kind]}, types={"x": kind})["x"].kind == kind
    assert str(column).startswith(f"x: {kind}")


@pytest.mark.parametrize("kind", USED)
def test_json_is_read_as_the_table_is(kind):
    schema = schema_of(kind)
    rows = [{"x": value or None} for value in TEXTS[kind]]
    frame = Bodies(schema, 100).read(json.dumps(rows).encode()).frame
    assert frame.equals(schema.features({"x": TEXTS[kind]}))


@pytest.mark.row("F7")
@pytest.mark.parametrize("kind", USED)
@pytest.mark.parametrize("codes", [False, True])
def test_numbers_have_names_and_sources(kind, codes):
    schema = schema_of(kind)
    encoder = er.tables.TableEncoder(schema, codes=codes).fit({"x": TEXTS[kind]})
    encoded = encoder.transform({"x": TEXTS[kind]})
    assert encoded.shape == (60, len(encoder.names_))
    assert len(set(encoder.names_)) == len(encoder.names_)
    assert set(encoder.sources_) == {0}
    gaps = encoder.transform(pl.DataFrame({"x": [None, None]}, schema={"x": pl.String}))
    assert gaps.shape == (2, encoded.shape[1])


@pytest.mark.parametrize("kind", USED)
def test_an_example_can_be_predicted(kind):
    schema = schema_of(kind)
    column = schema["x"]
    example = column.type.example(column, ["red"])
    assert example is not None
    Bodies(schema, 1).read(json.dumps({"x": example}).encode())


@pytest.mark.parametrize("kind", USED)
def test_training_rows_are_not_unusual(kind):
    schema = schema_of(kind)
    frame = schema.features({"x": TEXTS[kind]})
    assert unusual(profile(frame, schema), schema, frame) == {}


@pytest.mark.parametrize("kind", USED)
def test_effects_are_tried_at_values_of_the_column(kind):
    frame = schema_of(kind).features({"x": TEXTS[kind]})
    values = KINDS[kind].trial_values(frame["x"], 5)
    assert set(values) <= set(frame["x"].to_list())
    assert bool(values) == bool(KINDS[kind].drawn)


def table(n=400):
    """Calls come through some channels, and those through the shop are sold."""
    chosen = random.random((n, 3)) < 0.5
    cells = [";".join(random.permutation(np.array(["web", "phone", "shop"])[row])) for row in chosen]
    sold = np.where(chosen[:, 2] ^ (random.random(n) < 0.05), "yes", "no")
    return pl.DataFrame({"channels": cells, "age": random.integers(20, 60, n) + 0.5, "sold": sold})


def test_several_values_are_a_set():
    kind = KINDS["several"]
    read = kind.parse(pl.Series(["b; a", "a;b;b", ";", " c", None]), ";")
    assert read.to_list() == ["a;b", "a;b", None, "c", None]
    lists = pl.Series("tags", [["b", "a"], [], None, ["x;y"]])
    assert er.tables.understand({"tags": lists}).columns[0].kind == "several"
    assert kind.parse(lists, ";").to_list() == ["a;b", None, None, "x y"]


@pytest.mark.parametrize(
    "values",
    [
        [f"Smith{k}, John" for k in range(60)],  # names: each different
        ["Ulm, Germany", "Bonn, Germany"] * 30,  # every cell has the mark: one value that is written so
        [f"part {k}; part {k + 1} of a longer description" for k in range(60)],  # values do not repeat
        ["1,5", "2,25", "3"] * 20,  # numbers
    ],
    ids=["names", "places", "descriptions", "numbers"],
)
def test_a_mark_alone_does_not_make_several_values(values):
    assert er.tables.understand({"x": values})["x"].kind != "several"


def test_each_value_has_an_indicator():
    cells = pl.Series(["a;b", "b", None, "c"])
    block = Items.fit(cells, ";", most=2, least=1)
    assert block.names() == ["b", "a"]
    assert block.transform(cells).toarray().tolist() == [[1, 1], [1, 0], [0, 0], [0, 0]]


def test_several_values_from_the_table_to_the_report(tmp_path):
    rows = table()
    found = er.learn(rows, "sold", machines=["logistic", "tree"], out=tmp_path / "sold", seed=0)
    assert found.model.schema["channels"].kind == "several"
    assert found.test.scores[0].value > 0.9
    assert {"channels: shop", "channels: web"} <= set(found.model.pipeline[0].names_)
    loaded = er.load(tmp_path / "sold.model")
    np.testing.assert_array_equal(loaded.predict(rows), found.model.predict(rows))
    turned = rows.with_columns(pl.col("channels").str.split(";").list.reverse())  # a column of lists
    np.testing.assert_array_equal(loaded.predict(turned), found.model.predict(rows))
    new = loaded.unusual(pl.DataFrame({"channels": ["web;fax"], "age": [30.5]}))
    assert new == {0: ["channels='fax' was not met in training"]}
    assert "channels" in (tmp_path / "sold.report.html").read_text()


def test_several_values_are_served():
    rows = table()
    target = er.tables.Target.of(rows, "sold")
    schema = er.tables.understand(rows, without=["sold"])
    pipeline = make_pipeline(er.tables.TableEncoder(schema), er.LogisticRegression()).fit(rows, target.values(rows))
    model = er.tables.TableModel(schema, pipeline, target)
    bodies = Bodies(schema, 10)
    asked = [{"channels": ["shop", "web"], "age": 30}, {"channels": "web;shop", "age": 30}]
    first, second = model.predict_proba(bodies.read(json.dumps(asked).encode()).frame)
    np.testing.assert_array_equal(first, second)


def test_a_column_of_another_form_is_another_column():
    column = schema_of("several")["x"]
    assert replace(column, form="|").parse(pl.Series(["a|b"])).to_list() == ["a|b"]
