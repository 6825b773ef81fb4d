"""The commands as a user types them: right output, one sentence when something is wrong, help at once."""

import json
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import COMMANDS, app
from tests.service.serving import Client, table_model

NAME = [sys.executable, "-m", "empirisk"]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    model, table = table_model()
    er.save(model, folder / "tickets.model")
    table.write_csv(folder / "new.csv")
    return folder, model, table


def test_help_names_every_command_and_loads_nothing_heavy():
    code = "import sys; from empirisk.cli.main import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in COMMANDS:
        assert f"  {name} " in shown
    loaded = set(shown.splitlines()[-1].split())
    assert {"numpy", "polars", "sklearn", "numba", "starlette", "rich"}.isdisjoint(loaded)


def test_every_command_has_help_of_its_own():
    for name in COMMANDS:
        found = run(name, "--help")
        assert found.exit_code == 0
        assert f"{name} [OPTIONS]" in found.output


def test_the_module_is_the_command():
    shown = subprocess.run([*NAME, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown == f"empirisk {er.__version__}\n"
    wrong = subprocess.run([*NAME, "pedict"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "Did you mean 'predict'" in wrong.stderr


def test_an_answer_for_which_there_is_no_room_is_one_sentence():
    with open("/dev/full", "w") as full:
        ended = subprocess.run([*NAME, "datasets"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == (
        "empirisk: reading or writing failed (No space left on device); make room, or choose another place.\n"
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ImportError("x.so: failed to map segment"), "could not be loaded .x.so: failed to map segment.; allow more"),
        (OSError("Could not find/load shared object"), "could not be loaded .*; allow more memory"),
        (OSError(5, "Input/output error", "t.csv"), "reading or writing 't.csv' failed .Input/output error."),
        (MemoryError(), "not enough memory; give fewer rows"),
    ],
)
def test_what_a_machine_cannot_do_is_one_sentence(monkeypatch, error, sentence):
    def fail(name):
        raise error

    monkeypatch.setattr("empirisk.cli.main.load", fail)
    ended = run("datasets")
    assert ended.exit_code == 1
    assert re.fullmatch(f"empirisk: .*{sentence}.*\n", ended.stderr)


def test_datasets():
    listed = json.loads(run("datasets", "--json").output)
    assert {entry["name"] for entry in listed} >= {"iris", "wine", "breast_cancer", "digits", "diabetes", "tickets"}
    assert "iris" in run("datasets").output


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl"])
def test_predict_writes_every_format(files, tmp_path, ending):
    folder, model, table = files
    out = tmp_path / f"out.{ending}"
    found = run("predict", folder / "tickets.model", folder / "new.csv", "-o", out)
    assert found.exit_code == 0, found.output
    read = er.tables.read(out)
    assert read["ticket_id"].to_list() == table["ticket_id"].to_list()
    assert read["escalated"].to_list() == model.predict(table).tolist()
    np.testing.assert_allclose(read["P(escalated=yes)"].to_numpy(), model.predict_proba(table)[:, 1], rtol=1e-12)


def test_predict_prints_to_a_dash(files):
    model, table = files[0] / "tickets.model", files[0] / "new.csv"
    assert run("predict", model, table, "-o", "-").stdout == run("predict", model, table).stdout


def test_predict_prints_and_keeps(files):
    folder, model, table = files
    found = run("predict", folder / "tickets.model", "tickets", "--keep")
    assert found.exit_code == 0
    read = pl.read_csv(found.output.encode())
    assert read.columns == [*table.columns, "escalated", "predicted escalated", *read.columns[-2:]]
    assert read["predicted escalated"].to_list() == model.predict(table).tolist()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["predict", "none.model", "iris"], "'none.model' is not a file"),
        (["predict", "MODEL", "none.csv"], "There is no table"),
        (["predict", "MODEL", "iris"], "lacks the columns"),
        (["predict", "MODEL", "tickets", "-o", "out.xls"], "ending that is not known"),
        (["predict", "MODEL", "tickets", "-o", "nowhere/out.csv"], "cannot be written"),
        (["show", "PLAIN"], "holds a SVM that was saved without a table"),
        (["serve", "BROKEN"], "not a whole model file"),
    ],
    ids=str,
)
def test_what_is_wrong_is_one_sentence(files, tmp_path, monkeypatch, words, match):
    monkeypatch.chdir(tmp_path)
    er.save(er.SVM(), "plain.model")
    (tmp_path / "broken.model").write_bytes(b"PK")
    places = {"MODEL": str(files[0] / "tickets.model"), "PLAIN": "plain.model", "BROKEN": "broken.model"}
    found = run(*[places.get(word, word) for word in words])
    assert found.exit_code == 1
    assert match in found.stderr
    assert found.stderr.startswith("empirisk: ")
    assert found.stderr.count("\n") == 1
    assert {file.name for file in tmp_path.iterdir()} == {"plain.model", "broken.model"}


def test_predict_names_the_column_that_changed(files, tmp_path):
    folder, _, table = files
    table.with_columns(customer_age=pl.lit("old")).write_csv(tmp_path / "bad.csv")
    found = run("predict", folder / "tickets.model", tmp_path / "bad.csv")
    assert found.exit_code == 1
    assert "Column 'customer_age' holds 'old' in row 1" in found.stderr


def test_show_tells_what_a_model_is(files):
    found = run("show", files[0] / "tickets.model")
    assert found.exit_code == 0
    for text in ("LogisticRegression", "'escalated': 2 classes (no, yes)", "accuracy: 0.8", "customer_age: number"):
        assert text in found.output
    assert "equation: f = " in found.output
    assert "certificate: converged" in found.output
    about = json.loads(run("show", files[0] / "tickets.model", "--json").output)
    assert about["target"]["classes"] == ["no", "yes"]
    assert {"name": "ticket_id", "kind": "identifier", "missing": 0, "unused": "it names rows"} in about["columns"]


def test_serve_starts_answers_and_ends(files):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [*NAME, "serve", str(files[0] / "tickets.model"), "--port", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert f"http://127.0.0.1:{port}/" in process.stdout.readline()
        status = None
        for _ in range(600):
            client = Client(port)
            try:
                status, answer = client.ask("/predict", files[2].row(0, named=True))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
            finally:
                client.close()
        assert status == 200
        assert answer["prediction"] in ("yes", "no")
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors


def test_completion_is_offered(monkeypatch):
    monkeypatch.setenv("_EMPIRISK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "empirisk pre")
    monkeypatch.setenv("COMP_CWORD", "1")
    found = CliRunner().invoke(app, [], prog_name="empirisk")
    assert found.output.split() == ["predict"]
