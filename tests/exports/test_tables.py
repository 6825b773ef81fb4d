"""Learned tables as graphs: raw columns in, labels, probabilities or numbers out."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.errors import Unsuitable
from empirisk.exports import words
from empirisk.exports.graph import Graph
from empirisk.exports.onnx_file import onnx_model
from empirisk.exports.rows import rows_for
from empirisk.exports.tensor import entry
from empirisk.exports.write import graph_of, run_onnx
from empirisk.tables.kinds.date import DATE_FORMATS, parse_dates
from tests.exports.sweep import sweep
from tests.exports.tables import ALL, HOSTILE, PLAIN, TABLE, model_of

DIGITS = 1e-9
FORMS = (".onnx", ".py")
MACHINES = {
    "logistic": lambda: model_of(er.LogisticRegression()),
    "ridge": lambda: model_of(er.Ridge(), "price"),
    "kernel": lambda: model_of(er.SVM(features=er.kernels.Gaussian(3.0))),
    "neighbours": lambda: model_of(er.KNNClassifier()),
    "boosting": lambda: model_of(er.BoostingClassifier(n_estimators=20), trees=True),
    "forest": lambda: model_of(er.ForestRegressor(10, random_state=0), "price", trees=True),
    "vote": lambda: model_of(er.VoteClassifier([er.LogisticRegression(), er.TreeClassifier()], voting="soft")),
}


@pytest.fixture(scope="module", params=MACHINES)
def model(request):
    return MACHINES[request.param]()


@pytest.mark.parametrize("ending", FORMS)
def test_made_up_rows_hostile_rows_and_the_training_rows(model, ending, tmp_path):
    for rows in (None, HOSTILE, {name: TABLE[name] for name in ALL}):
        exported = er.export(model, tmp_path / f"model{ending}", rows)
        assert exported.labels == 0
        assert exported.difference < DIGITS


#: Machines for random models, and whether they are trees.
RANDOM_MACHINES = [
    (er.LogisticRegression(C=0.3), False),
    (er.SVM(features=er.kernels.Laplacian(4.0) + er.kernels.Polynomial(2)), False),
    (er.LogisticRegression(features=er.maps.Nystrom(er.kernels.Gaussian(3.0), rank=20, random_state=0)), False),
    (er.KNNClassifier(3, weights="distance"), False),
    (er.TreeClassifier(min_samples_split=5), True),
    (er.ForestClassifier(7, random_state=1), True),
    (er.BoostingClassifier(n_estimators=9, max_leaf_nodes=7), True),
    (er.AdditiveClassifier(max_iter=20, interactions=2, random_state=0), True),
    (er.BaggingClassifier(er.TreeClassifier(max_depth=3), 4, random_state=0), False),
    (er.LogisticRegression(features=er.maps.Polynomial(2)), False),
]


def test_random_models_on_hostile_rows(tmp_path):
    """Random columns, rows and machines; rows of missing values, words not met, empty texts, huge numbers."""
    wrong = []
    for seed in range(len(RANDOM_MACHINES) + 2):
        random = np.random.default_rng(seed)
        machine, trees = RANDOM_MACHINES[seed % len(RANDOM_MACHINES)]
        columns = [name for name in ALL if name == "size" or random.random() < 0.6]
        kept = np.flatnonzero(random.random(len(TABLE["spam"])) < 0.7)
        part = {name: [TABLE[name][row] for row in kept] for name in (*columns, "spam")}
        model = model_of(clone(machine), columns=columns, table=part, trees=trees)
        cells = {name: [*HOSTILE[name], *TABLE[name][:20]] for name in columns}
        cells["size"] += [1e308, -1e308, 1e-320, float("nan"), -0.0]
        rows = {name: [values[k] for k in random.integers(len(values), size=80)] for name, values in cells.items()}
        for ending in FORMS:
            exported = er.export(model, tmp_path / f"model{ending}", rows)
            if exported.labels or not exported.difference < DIGITS:
                wrong.append((seed, machine, ending, exported))
    assert not wrong


def test_inputs_are_the_raw_columns(model):
    graph = onnx_model(graph_of(model, rows_for(model))).graph
    kinds = {each.name: each.type.tensor_type.elem_type for each in graph.input}
    assert list(kinds) == list(ALL)
    assert (kinds["size"], kinds["town"], kinds["when"]) == (11, 8, 8)  # double, string, string


#: Texts as people send them, and as nobody does: letters of several parts, of other alphabets, and no letters.
STRANGE = [
    "good good GÖSSE",
    "",
    None,
    "l\u2019été\tnew\n\nbad",
    "x" * 50,
    " 42 \U0001f600 a b",
    "good\0bad",
    "½good \uff11\uff14\uff12 ﬁNE",
]
STRANGE += [
    "ΟΔΟΣ ΟΔΟΣ'\u0391 ΣΟΦΟΣ ΟΔΟ\u0301Σ Σ ΣΣ aΣ'Σ",
    "Gro\u0308ße GRÖSSE",
    "\u3000good\u2003bad\x85new",
    "日本語日本語",
    "N/A",
]


def test_texts_in_every_form(tmp_path):
    random = np.random.default_rng(0)
    words_of = ["good", "bad", "Größe", "cheap", "new", "l'été", "a-b", "42", "ΟΔΟΣ", "ﬁne", "日本語"]
    texts = [" ".join(random.choice(words_of, 5)) + f" {k}" for k in range(200)]
    table = {"text": texts, "spam": ["yes" if "good" in text else "no" for text in texts]}
    model = model_of(er.LogisticRegression(), columns=("text",), table=table)
    assert model.schema["text"].kind == "text"
    letters = [chr(code) for part in ((32, 1500), (0x1E00, 0x2100), (0xFB00, 0xFB10)) for code in range(*part)]
    letters += [*"\0\t\n", *["Σ"] * 60, *["\u0301"] * 30]
    mixed = ["".join(random.choice([*letters, *(f" {word} " for word in words_of * 30)], 12)) for _ in range(60)]
    new = {"text": [*STRANGE, *mixed, *(text.upper() for text in mixed)]}
    for ending in FORMS:
        exported = er.export(model, tmp_path / f"model{ending}", new)
        assert (exported.labels, exported.difference < DIGITS) == (0, True)


def test_sequences_in_every_form(tmp_path):
    random = np.random.default_rng(0)
    genes = ["".join(random.choice(list("ACGT"), 9 if k % 9 else 8)) for k in range(200)]
    table = {"gene": genes, "spam": ["yes" if "GA" in gene else "no" for gene in genes]}
    model = model_of(er.LogisticRegression(), columns=("gene",), table=table)
    assert model.schema["gene"].kind == "sequence"
    new = {"gene": [*genes[:20], "", None, "ACGT" * 90, "acgt", "  AC GT ", "ACGTN-*", "A", "日本"]}
    for ending in FORMS:
        exported = er.export(model, tmp_path / f"model{ending}", new)
        assert (exported.labels, exported.difference < DIGITS) == (0, True)


def test_a_rare_class_is_named_from_its_threshold(tmp_path):
    model = replace(model_of(er.LogisticRegression(), columns=PLAIN), threshold=(0, 0.05))
    rows = {name: TABLE[name] for name in PLAIN}
    assert any(model.predict(rows) != model.pipeline.predict(rows))
    for ending in (".onnx", ".py", ".sql"):
        assert er.export(model, tmp_path / f"model{ending}", rows).labels == 0


def test_a_model_in_order_of_time_is_refused(tmp_path):
    random = np.random.default_rng(0)
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 7, 1), "1d", eager=True)
    table = pl.DataFrame({"day": days, "sold": np.arange(len(days)) % 7 + random.normal(size=len(days))})
    found = er.learn(table, target="sold", time_order="day", time=20, machines=["ridge"])
    with pytest.raises(Unsuitable, match="reads what the target was in rows before"):
        er.export(found.model, tmp_path / "model.onnx")


@pytest.mark.long
def test_random_models_of_every_family():
    """`tests.exports.sweep` on some seeds: kernels, maps, ensembles, mixtures, candidates, any column."""
    count, wrong, refused = sweep(0, 90)
    assert (count, wrong) == (90, [])
    assert len(refused) < 30


#: What people and programs write in the fields of dates: days and hours that there are, and others.
WRITTEN = {
    "%Y": "2024 2023 1900 2000 0999 1000 9999 999 24", "%y": "00 24 69 70 99 3 2024", "%m": "1 01 02 2 2 12 13 00 006",
    "%d": "1 28 29 30 31 32 0 07 007", "%b": "Jan feb FEB Sept May February Foo jAn", "%B": "January feb Sept May jUne",
    "%H": "0 00 23 24 12 7", "%I": "0 00 12 11 13 7", "%M": "0 00 59 60 7", "%S": "0 00 59 60 7",
    "%S%.f": "0 00 59 60 61 7 07.5 5.1234567891 07.",
    "%p": "AM pm Pm A P.M.", "%:z": "+00:00 -05:30 +0530 +14:00 -25:00 +05:60 Z +05",
}  # fmt: skip


def _as_people_write(form, random, count=60):
    """Texts of a format with fields at random; some with more blanks than it has, or with none before AM."""
    found = []
    for _ in range(count):
        text = words.TOKEN.sub(lambda field: str(random.choice(WRITTEN[field[0]].split())), form)
        changes = [("", ""), (" ", "  "), (".", ". "), ("/", "/ "), (" A", "A"), ("x", "xx"), (", ", ",")]
        found.append(text.replace(*changes[random.integers(len(changes))]))
    return found


def test_dates_in_every_format():
    """Those that there are, and those that our own parser does not take: 31 February, 24:00, 13:00 pm, the year 999."""
    random = np.random.default_rng(0)
    moments = pl.Series((random.integers(0, 2**31, 40) * 1_000_000).tolist()).cast(pl.Datetime("us"))
    for form in DATE_FORMATS:
        plain = moments.dt.replace_time_zone("UTC").dt.strftime(form.replace("%.f", ""))
        text = pl.Series([*plain, *_as_people_write(form, random), "", "no date"])
        told = parse_dates(text, form).cast(pl.Int64).cast(pl.Float64).to_numpy() / 86_400e6
        assert np.isfinite(told[:40]).all()
        assert np.isnan(told[40:]).sum() > 10, form
        values = text.to_numpy().astype(object)[:, None]
        x = entry("when", values[:3])
        graph = Graph((x,), {"days": words.days(x, [form])})
        found = run_onnx(onnx_model(graph).SerializeToString(), {"when": values})["days"]
        np.testing.assert_allclose(found[:, 0], told, rtol=1e-14, atol=1e-10, err_msg=form)


def test_trimming_in_onnx_is_that_of_tables():
    values = np.array(["a", " a", "a  ", " a b ", "a b", "a  b", "", "  ", " a b c "], dtype=object)[:, None]
    x = entry("x", values[:2])
    graph = Graph((x,), {"code": words.lookup(words.trimmed(x, 1), {"a": 1.0, "a b": 2.0}, 0.0)})
    found = run_onnx(onnx_model(graph).SerializeToString(), {"x": values})["code"]
    assert found.ravel().tolist() == [1, 1, 1, 2, 2, 0, 0, 0, 0]


# --- the file of Python -----------------------------------------------------------------------------------------------


def test_the_file_of_python_runs_without_empirisk(tmp_path):
    model = model_of(er.LogisticRegression())
    er.export(model, tmp_path / "spam.py")
    rows = pl.DataFrame({name: TABLE[name][:20] for name in ALL})
    rows.write_csv(tmp_path / "rows.csv")
    # -S leaves out site-packages, in which Empirisk may be; NumPy's own folder is named.
    numpy_home = str(np.__path__[0]).removesuffix("/numpy")
    others = ("empirisk", "sklearn", "scipy", "polars", "onnx")
    blocked = f"import sys; sys.modules.update(dict.fromkeys({others!r}))\n"
    run = f"{blocked}sys.path.insert(0, {str(tmp_path)!r}); sys.path.append({numpy_home!r}); import spam; spam.main()"
    with (tmp_path / "rows.csv").open() as file:
        ran = subprocess.run([sys.executable, "-S", "-c", run], stdin=file, capture_output=True, text=True, check=True)
    found = pl.read_csv(ran.stdout.encode())
    assert found["label"].to_list() == model.predict(rows).tolist()
    told = model.predict_proba(rows)
    np.testing.assert_allclose(found.select("probabilities_0", "probabilities_1").to_numpy(), told, rtol=1e-9)


# --- SQL --------------------------------------------------------------------------------------------------------------

SQL = {
    "logistic": lambda: model_of(er.LogisticRegression(), columns=PLAIN),
    "svm": lambda: model_of(er.SVM(), columns=PLAIN),
    "ridge": lambda: model_of(er.Ridge(), "price", PLAIN),
    "poisson": lambda: model_of(er.Regressor(loss="poisson"), "price", PLAIN),
    "tree": lambda: model_of(er.TreeClassifier(max_depth=5), columns=PLAIN, trees=True),
    "numbers": lambda: model_of(er.TreeRegressor(max_depth=5), "price", PLAIN, trees=True),
}


@pytest.mark.parametrize("name", SQL)
def test_sql_by_sqlite(name, tmp_path):
    model = SQL[name]()
    for rows in (None, {key: HOSTILE[key][:5] for key in PLAIN}):
        exported = er.export(model, tmp_path / "model.sql", rows)
        assert exported.labels == 0
        assert exported.difference < DIGITS


def test_sql_of_several_classes_and_of_a_matrix(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for machine in (er.LogisticRegression(), er.SVM(), er.TreeClassifier(max_depth=3)):
        for classes in (y, np.arange(60) % 12):
            exported = er.export(machine.fit(X, classes), tmp_path / "model.sql", X)
            assert (exported.labels, exported.difference < DIGITS) == (0, True)


def test_members_stand_side_by_side_in_sql(tmp_path):
    """One step for each member after the other took SQLite 17 seconds for a hundred stumps."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    machine = er.AdaBoostClassifier(n_estimators=40).fit(X, X[:, 0] + X[:, 1] ** 2 > 1)
    assert er.export(machine, tmp_path / "model.sql", X).difference < DIGITS
    assert (tmp_path / "model.sql").read_text().count(" AS (\n") < 40


@pytest.mark.parametrize(
    ("make", "words_of_error"),
    [
        (MACHINES["boosting"], "cannot be exported as SQL"),
        (lambda: model_of(er.SVM(features=er.kernels.Gaussian(3.0)), columns=PLAIN), "too many terms"),
        (lambda: model_of(er.BoostingRegressor(n_estimators=3), "price", PLAIN, trees=True), "Many trees"),
        (lambda: er.TreeClassifier().fit(pl.DataFrame({"town": ["a\0b", "c", "d"] * 9}), [0, 1, 0] * 9), "NUL"),
    ],
    ids=["dates", "kernel", "trees", "nul"],
)
def test_what_sql_does_not_have_is_refused(make, words_of_error, tmp_path):
    with pytest.raises(Unsuitable, match=words_of_error):
        er.export(make(), tmp_path / "model.sql")
    assert list(tmp_path.iterdir()) == []


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path):
    model = model_of(er.LogisticRegression(), columns=PLAIN)
    er.save(model, tmp_path / "spam.model")
    pl.DataFrame({name: TABLE[name][:9] for name in PLAIN}).write_csv(tmp_path / "rows.csv")
    told = ["export", str(tmp_path / "spam.model"), "--onnx", "--python", "--sql", "--rows", str(tmp_path / "rows.csv")]
    ran = CliRunner().invoke(app, told)
    assert ran.exit_code == 0, ran.output
    assert ran.output.count("on 9 rows the largest difference is") == 3
    assert {path.name for path in tmp_path.iterdir()} >= {"spam.onnx", "spam.py", "spam.sql"}
    ran = CliRunner().invoke(app, ["export", str(tmp_path / "spam.model"), "--sql", "--out", str(tmp_path / "x.py")])
    assert (ran.exit_code, "has not the ending" in ran.output) == (1, True)
