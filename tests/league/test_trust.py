"""Small made-up tables, each of which once led to a result that people would not trust."""

import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.learn import NOTHING_LEARNED
from empirisk.cli.main import app, told
from empirisk.errors import EmpiriskError
from empirisk.league.candidates.settings import NOTHING_TO_READ
from empirisk.league.contest.budget import TimeBudget
from empirisk.league.request import Request
from empirisk.league.rows.split import plan, rare_class
from empirisk.league.unsupervised import describe
from empirisk.league.verdict.judge import metric_for, rare_threshold
from empirisk.report.machine import coefficients
from empirisk.report.terms import terms_of
from empirisk.report.verdict import threshold as chooser
from empirisk.service.fields import Fields
from empirisk.tables.reading.sniff import without_title

random = np.random.default_rng(0)


# --- leaks and identifiers -----------------------------------------------------------------------------------------


def leaking():
    y = random.integers(0, 2, 400)
    copy = np.where(random.random(400) < 0.97, y, 1 - y)
    return pl.DataFrame({"x": random.normal(size=400), "paid": y * 3.0, "stamp": copy, "y": np.where(y, "yes", "no")})


def test_a_leak_with_errors_is_found_beside_a_perfect_one_and_nothing_is_praised():
    table = leaking()
    found = er.learn(table, "y", machines=["tree"])
    assert set(found.plan.leaks) == {"paid", "stamp"}
    assert found.summary().startswith("Too good to be true? 'paid' and 'stamp' may give y away")
    assert "drop=['paid', 'stamp']" in found.summary()
    assert not plan(Request(table, "y", drop=["paid"])).leaks  # a good column alone is no leak


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("InvoiceNo", [536365 + k // 3 for k in range(90)], "identifier"),
        ("order_number", [1000 + k // 2 for k in range(90)], "identifier"),
        ("customer", random.permutation(90) * 17, "identifier"),
        ("n", [500 + k for k in range(90)], "identifier"),
        ("orders", random.integers(0, 30, 90), "number"),
        ("order", [k % 5 for k in range(90)], "number"),
        ("area", random.permutation(90) * 17, "number"),
    ],
)
def test_numbers_of_papers_and_people_name_rows(name, values, kind):
    assert er.tables.understand({name: np.asarray(values)})[name].kind == kind


# --- rare events ---------------------------------------------------------------------------------------------------


def events(rows=3000, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 3))
    rare = draw.random(rows) < 1 / (1 + np.exp(-(1.2 * x[:, 0] + x[:, 1] - 5.5)))
    return pl.DataFrame(x, schema=["a", "b", "c"]).with_columns(pl.Series("fault", np.where(rare, "yes", "no")))


@pytest.fixture(scope="module")
def faults():
    return er.learn(events(), "fault", machines=["logistic"])


def test_the_headline_of_a_rare_event_counts_hits_among_the_highest_scores(faults):
    are = faults.test.truth == "yes"
    taken = max(int(are.sum()), 10)
    order = np.argsort(-faults.test.probabilities[:, 1], kind="stable")[:taken]
    words = (
        f"finds {int(are[order].sum())} of the {int(are.sum())} with fault yes among the {taken} rows that it scores"
    )
    assert words in faults.summary()
    assert "times as many as chance would" in faults.summary()
    assert "Hits among the rows that it scores highest" in faults.report().page


def test_a_rare_event_is_named_by_default(faults, tmp_path):
    assert faults.test.threshold is not None
    assert (faults.test.predictions == "yes").any()
    least = f"{faults.test.threshold[1]:.2g}"
    assert f"that it calls yes (from a probability of {least} on)" in faults.summary()
    assert f"yes is named where its probability is {least} or more" in faults.report().page
    new = events(2000, 1)
    said, shares = faults.predict(new), faults.predict_proba(new)[:, 1]
    assert np.array_equal(said == "yes", shares >= faults.test.threshold[1])
    expected = np.mean(faults.plan.y == "yes")
    assert 0.4 * expected < np.mean(said == "yes") < 2.5 * expected
    faults.save(tmp_path / "it.model")
    again = er.load(tmp_path / "it.model")
    assert np.array_equal(again.predict(new), said)
    assert again.answers(new)["fault"].to_list() == said.tolist()


def test_the_chooser_starts_where_rows_are_named(faults):
    found = chooser(faults)
    assert found is not None
    named = faults.test.predictions == "yes"
    assert found.counts["found"][found.start] == (named & (faults.test.truth == "yes")).sum()
    assert found.counts["alarms"][found.start] == (named & (faults.test.truth != "yes")).sum()


def test_the_threshold_does_not_look_at_the_truth(faults):
    shares = faults.test.probabilities
    assert rare_threshold(faults.plan, shares) == faults.test.threshold
    for equal in (0.9, 0.01):  # a half is right, or no threshold tells rows apart
        assert rare_threshold(faults.plan, np.tile([1 - equal, equal], (len(shares), 1))) is None


@pytest.mark.filterwarnings("error:No positive class")
def test_columns_that_find_nine_rows_of_many_are_told():
    """Of 2 000 rows drawn at random, most likely none is one of them, and no column would matter."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(30_000, 2))
    hit = np.zeros(30_000, bool)
    hit[np.argsort(-x[:, 0])[:12]] = True
    found = er.learn(pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "hit": hit}), "hit", machines=["logistic"])
    assert found.test.truth.sum() < 4
    falls = {name: fall for name, fall, _ in found.importances}
    assert falls["a"] > 0.5
    assert abs(falls["b"]) < 0.1


def test_nine_rows_of_a_hundred_thousand_do_not_choose_the_metric():
    y = np.array(["a", "b", "c"] * 33_333 + ["odd"] * 9)
    assert rare_class(y) is None
    assert metric_for(None, np.unique(y), balance=False, y=y).name == "accuracy"
    two = np.array(["ok"] * 99_991 + ["odd"] * 9)
    assert metric_for(None, np.unique(two), balance=False, y=two).name == "average_precision"


# --- time ----------------------------------------------------------------------------------------------------------


def test_time_for_the_report_is_set_aside_before_slow_machines_play():
    budget = TimeBudget(60.0, 0.0, 0.0, now=lambda: 10.0, worked=lambda: 10.0)
    budget.learned = True
    assert budget.deadline <= 60.0 - budget.writing - 3.0
    assert TimeBudget(10.0, 0.0, 0.0, now=lambda: 1.0, worked=lambda: 1.0).telling <= 1.2


def test_a_run_in_which_nothing_learned_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("empirisk.league.result.Learned.nothing_learned", property(lambda self: True))
    run = CliRunner().invoke(app, ["learn", "iris", "--machines", "centroid"])
    assert run.exit_code == NOTHING_LEARNED
    assert "No machine had the time to learn: the model says the same species for every row" in run.output


def test_what_learned_is_what_played():
    assert not er.learn("iris", machines=["centroid"]).nothing_learned
    assert er.learn("iris", machines=["baseline"]).nothing_learned


# --- wide tables and sequences -------------------------------------------------------------------------------------


def test_few_of_many_columns_are_found():
    X = random.normal(size=(150, 600))
    y = np.where(X[:, 0] + X[:, 1] - X[:, 2] > 0, "a", "b")
    found = er.learn(X, y, machines=["logistic", "l1_logistic"], folds=2)
    assert found.winner == "l1_logistic"
    assert found.best.mean > 0.8
    narrow = er.learn(X[:, :5], y, machines=["l1_logistic"])
    assert "many columns" in next(one for one in narrow.standings if one.name == "l1_logistic").remark


def test_sequences_are_learned_from():
    rows = ["".join(random.choice(list("ACGT"), 12)) for _ in range(300)]
    y = [row[4] == "G" for row in rows]
    found = er.learn({"dna": rows, "y": y}, "y", machines=["logistic"])
    assert found.model.schema["dna"].kind == "sequence"
    assert found.test.scores[0].value == 1.0
    proteins = ["".join(random.choice(list("ACDEFGHIKLMNPQRSTVWY"), 40)) for _ in range(60)]
    assert er.tables.understand({"x": proteins})["x"].kind == "sequence"
    assert er.tables.understand({"x": proteins}, types={"x": "category"})["x"].kind == "category"
    names = ["ANNA", "BERTA", "CARLO", "DORA", "EMIL", "FRIDA", "GUSTAV", "HANNA"]
    people = [f"{a}{b}" for a in names for b in names]
    assert er.tables.understand({"x": people})["x"].kind == "identifier"


def test_kernels_on_strings_compete_where_there_are_sequences(tmp_path):
    """A motif with a gap at any place: no letter at its place, and no short piece tells."""
    draw = np.random.default_rng(3)
    rows, y = draw.choice(list("ACGT"), (240, 24)), draw.random(240) < 0.5
    for row in np.flatnonzero(y):
        place = draw.integers(0, 15)
        rows[row, place : place + 9 : 2] = list("GATTC")
    table = {"dna": ["".join(row) for row in rows], "x": draw.normal(size=240), "y": np.where(y, "+", "-")}
    found = er.learn(table, "y", machines=["string_kernel"], folds=3, out=tmp_path / "dna")
    (entry,) = (one for one in found.standings if one.name == "string_kernel")
    assert entry.state == "done"
    assert "Spelled" in repr(entry.machine)
    assert [column.name for column in found.model.schema.used] == ["dna", "x"]
    assert {name for name, *_ in found.importances} == {"dna", "x"}
    new = [{"dna": "ACGTACGTACGTACGTACGTACGT", "x": 0.0}, {"dna": "AC", "x": None}, {"dna": None, "x": 1.0}]
    new += [{"dna": "ä" * 2000, "x": 1.0}]
    assert er.load(tmp_path / "dna.model").predict(new).tolist() == found.predict(new).tolist()
    (out,) = (one for one in er.learn("iris", machines=["string_kernel"]).standings if one.name == "string_kernel")
    assert out.remark == "it is for tables with sequences"


def test_a_number_is_learned_from_sequences_by_kernels_on_strings():
    draw = np.random.default_rng(4)
    rows = ["".join(draw.choice(list("ACGT"), draw.integers(8, 16))) for _ in range(150)]
    y = [row.count("AC") - row.count("GT") + 0.1 * draw.normal() for row in rows]
    found = er.learn({"dna": rows, "y": y}, "y", machines=["string_kernel"], folds=2)
    assert found.winner == "string_kernel"
    assert np.mean((found.test.predictions - found.test.truth) ** 2) < 0.5 * np.var(found.test.truth)


# --- reading and serving -------------------------------------------------------------------------------------------


def test_columns_that_are_not_learned_from_are_told_by_their_reason():
    table = pl.DataFrame(
        {
            "order_no": np.arange(60) + 1000,
            "who": [f"person {k}" for k in range(60)],
            "director": [{"age": k, "name": "x"} for k in range(60)],
            "x": random.normal(size=60),
            "y": random.normal(size=60),
        }
    )
    (told,) = (line for line in plan(Request(table, "y")).warnings if "not learned from" in line)
    assert told.startswith("3 columns are not learned from: 'order_no', 'who' (identifier: it names rows); 'director'")
    assert "missing" not in told


def test_tables_of_a_database(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (amount REAL, town TEXT)")
        database.executemany("INSERT INTO orders VALUES (?, ?)", [(1.5, "Ulm"), (None, "Bonn")])
        database.commit()
        assert er.tables.read(path).to_dict(as_series=False) == {"amount": [1.5, None], "town": ["Ulm", "Bonn"]}
        database.execute("CREATE TABLE towns (name TEXT)")
    database.close()
    assert er.tables.read(f"{path}::orders").height == 2
    with pytest.raises(EmpiriskError, match=r"holds the tables orders, towns; name one, such as .*shop.db::orders"):
        er.tables.read(path)
    with pytest.raises(EmpiriskError, match="did you mean 'orders'"):
        er.tables.read(f"{path}::order")


def test_a_title_above_the_header_is_left_out(tmp_path):
    path = tmp_path / "may.csv"
    path.write_text("Sales of May 2024\n\nday;shop;amount\n1;a;3,5\n2;b;4\n3;b;4\n")
    assert er.tables.read(path).columns == ["day", "shop", "amount"]
    assert without_title(b"note\nhello, you\nwell, well\nyes, no\n").startswith(b"note")  # one column of texts
    # A comma in the title does not make it the header, and a header that is too short stays one.
    path.write_text("Sales of May, all shops\n\nday;shop;amount\n1;a;3,5\n2;b;4,5\n3;b;4,0\n")
    assert er.tables.read(path).columns == ["day", "shop", "amount"]
    assert without_title(b"a,b\n1,2,3\n4,5,6\n7,8,9\n").startswith(b"a,b")


def test_trees_sit_out_where_no_word_is_met_twice():
    draw = np.random.default_rng(3)
    texts = [" ".join("".join(draw.choice(list("abcd"), 9)) for _ in range(4)) for _ in range(160)]
    table = {"said": texts, "y": [("no", "yes")["ab" in text] for text in texts]}
    found = er.learn(table, "y", machines=["logistic", "forest"], types={"said": "text"}, folds=2)
    (forest,) = (one for one in found.standings if one.name == "forest")
    assert (forest.state, forest.remark) == ("out", NOTHING_TO_READ)


ROWS = b"day,shop,amount\n1,a,3\n2,b,4\n3,b,4\n"


@pytest.mark.parametrize(
    "table",
    [
        b"name;x;y\na;0,5;0,25\nb;1,5;3,25\nc;2,5;6,25\n",
        b"name;x;y;z\n\na;0,5;0,25;1,5\nb;1,5;3,25;2,5\nc;2,5;6,25;3,5\n",
    ],
)
def test_a_header_above_numbers_with_decimal_commas_is_no_title(table):
    assert without_title(table) == table


@pytest.mark.parametrize("title", [b"Sales of May, all shops\n\n", b"Sales of May,,\n", b"Sales,,\nof May,,\n,,\n"])
def test_a_title_with_the_delimiter_of_the_table_is_left_out(title):
    assert without_title(title + ROWS) == ROWS


@pytest.mark.parametrize(
    "table", [b"day,,\n1,2,3\n4,5,6\n7,8,9\n", b"a,b\n\n1,2,3\n4,5,6\n7,8,9\n", b"a,b,c\n\nx,y,z\nx,y,z\nx,y,z\n"]
)
def test_a_header_that_lacks_names_is_no_title(table):
    assert without_title(table) == table


def test_readings_in_lists_of_one_length_are_columns(tmp_path):
    waves = random.normal(size=(200, 3))
    table = pl.DataFrame({"wave": waves.tolist(), "of": [[1] * (k % 3) for k in range(200)], "up": waves.sum(1) > 0})
    table.write_parquet(tmp_path / "waves.parquet")
    found = er.learn(tmp_path / "waves.parquet", "up", machines=["logistic"])
    assert [column.name for column in found.plan.schema.used] == ["wave 1", "wave 2", "wave 3"]
    assert found.test.scores[0].value > 0.9
    new = table.drop("up")
    assert found.predict(new).tolist() == found.predict(new.rows(named=True)).tolist()


def test_a_rare_class_is_ranked_and_told_where_there_are_no_probabilities():
    x = random.normal(size=4000)
    table = pl.DataFrame({"x": x, "y": np.where(x + random.normal(0, 0.5, 4000) > 3.2, "hit", "no")})
    found = er.learn(table, "y", machines=["svm"])
    assert 0 < (table["y"] == "hit").mean() < 0.01
    bare = replace(found, test=replace(found.test, probabilities=None, decisions=found.test.probabilities[:, 1]))
    assert bare.summary().split(";")[0] == found.summary().split(";")[0]  # the same rows come first
    assert "that it scores highest" in bare.summary()
    unscored = replace(bare, test=replace(bare.test, decisions=None)).summary()
    assert "model tells who is hit by name alone" in unscored
    (told,) = (line for line in found.warnings if "average precision decides" in line)
    assert "0.0 %" not in told


def test_no_lock_is_suggested_as_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.lock").touch()
    with pytest.raises(EmpiriskError, match="give a file"):
        er.tables.read("sales.lck")


def test_fields_that_are_not_sent_are_missing():
    fields = Fields(er.tables.understand({"age": [30.0, 41.0], "town": ["Ulm", "Bonn"]}))
    assert fields.check([{"age": 25}])[0].row(0) == (25.0, None)
    assert "rename 'towns'" in fields.check([{"age": 25, "towns": "Ulm"}])[1][0]["problem"]
    assert "send at least one" in fields.check([{}])[1][0]["problem"]


def test_messages_name_options_as_they_are_typed():
    assert told(EmpiriskError("time_order='x' is not a column.")) == "--time-order='x' is not a column."
    with pytest.raises(EmpiriskError, match=r"^target='x' is not a column"):
        er.learn("iris", "x")


def test_lists_in_cells_are_learned_from(tmp_path):
    tags = [random.choice(["red", "blue", "big", "old"], 2, replace=False).tolist() for _ in range(200)]
    table = pl.DataFrame({"tags": tags, "y": [3.0 * ("old" in some) + random.normal() / 9 for some in tags]})
    table.write_parquet(tmp_path / "lists.parquet")
    found = er.learn(str(tmp_path / "lists.parquet"), "y", machines=["ridge"])
    assert found.model.schema["tags"].kind == "several"
    assert found.test.scores[0].value < 0.3
    assert found.predict([{"tags": ["old", "big"]}])[0] > 2


def test_the_shell_is_told_options_and_not_parameters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leaking().write_csv("leak.csv")
    run = CliRunner().invoke(app, ["learn", "leak.csv", "--target", "y", "--machines", "tree"])
    assert "--drop paid,stamp" in run.output
    assert "drop=[" not in run.output


def test_clusters_are_told_in_units_and_not_made_by_dates_of_entry():
    kind = random.integers(0, 3, 300)
    table = pl.DataFrame(
        {
            "id": np.arange(300),
            "entered": [f"2024-{1 + k // 28:02}-{1 + k % 28:02}" for k in range(300)],
            "income": 20000 + 30000 * kind + random.normal(0, 3000, 300),
            "age": 25 + 15 * kind + random.normal(0, 3, 300),
        }
    )
    found = describe(table)
    assert len(found.clusters) == 3
    assert all(words.startswith(("income ", "age ")) for one in found.clusters for words in one.words)
    assert "They look at income, age alone." in found.summary()


# --- explanations --------------------------------------------------------------------------------------------------


def test_effects_of_columns_that_go_together_are_told_with_care_and_bars_have_signs():
    draw = np.random.default_rng(3)
    x = draw.normal(size=300)
    table = {"size": x, "weight": x + draw.normal(size=300) / 5, "age": draw.normal(size=300)}
    table["sold"] = np.where(x - table["age"] + draw.normal(size=300) / 2 > 0, "yes", "no")
    found = er.learn(table, "sold", machines=["logistic"])
    page = found.report().page
    assert any(f"With care: {pair} (+0.9" in page for pair in ("size and weight", "weight and size"))
    assert "How it says yes: a weighted sum of the columns" in page
    weights = coefficients(found, terms_of(found.model))[0]
    assert {cell.bar > 0 for _, cell, _ in weights.rows} == {True, False}
    assert all((cell.bar > 0) == (cell.key > 0) for _, cell, _ in weights.rows)


def test_a_table_of_texts_alone_has_no_example():
    texts = [
        f"{random.choice(['good', 'bad'])} {random.choice(['day', 'night', 'week'])} number {k}" for k in range(80)
    ]
    found = er.learn({"text": texts, "y": [text.startswith("good") for text in texts]}, "y", machines=["logistic"])
    assert found.model.schema["text"].kind == "text"
    assert found.model.example == {}
