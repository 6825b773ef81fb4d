"""A table without a target: clusters, directions, strange rows; the command, its report and its model."""

import json
import signal
import threading

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import empirisk as er
from empirisk.cli.main import app
from empirisk.clusters.kmeans import KMeans
from empirisk.errors import EmpiriskError
from empirisk.league.unsupervised import describe
from empirisk.report.unsupervised import page
from empirisk.stop import Ending

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def table():
    """Two kinds of customers, and one row that is like neither."""
    age = np.concatenate([RANDOM.normal(25, 2, 60), RANDOM.normal(60, 2, 40), [200.0]])
    town = ["Ulm"] * 60 + ["Bonn"] * 40 + ["Ulm"]
    return pl.DataFrame({"age": age, "income": RANDOM.normal(size=101) + age / 10, "town": town})


def test_what_is_found(table):
    found = describe(table)
    sizes = sorted(cluster.size for cluster in found.clusters)
    assert sum(sizes) == 101
    assert sizes[-2:] == [40, 60]
    largest = found.clusters[0]
    assert largest.share == pytest.approx(60 / 101)
    assert "town=Ulm" in dict(largest.apart)
    assert dict(largest.apart)["town=Ulm"] > 0
    assert found.strange[0][0] == 100
    shares = [direction.share for direction in found.directions]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1 + 1e-9
    assert found.silhouette > 0.5
    assert "101 rows in" in found.summary()


def test_what_was_left_out_or_is_in_doubt_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw, rows = np.random.default_rng(1), 300
    weight = [f"{value:.2f}" for value in np.repeat([10.0, 50.0], rows // 2) + draw.normal(size=rows)]
    weight[3] = weight[200] = "ERR"
    table = {"id": np.arange(rows) + 700, "weight": weight, "shop": ["north", "south"] * (rows // 2)}
    table["temperature"] = np.where(draw.random(rows) < 0.05, -999.0, draw.normal(20, 2, rows))
    table["entered"] = np.datetime64("2024-01-01") + np.arange(rows)
    pl.DataFrame(table).write_csv("shops.csv")
    run = CliRunner().invoke(app, ["learn", "shops.csv", "--no-target", "--missing", "-999"])
    assert "weight': 2 cells such as 'ERR'" in run.output
    assert "'id' (identifier" in run.output
    assert "'entered': rows are not alike, or strange, for their dates" in run.output
    page = (tmp_path / "shops.report.html").read_text()
    assert "cells such as" in page
    assert '<span class="whole">2024-' in page  # a narrow column breaks no date
    assert any("holds -999" in told for told in describe("shops.csv").warnings)
    # Of two shops one share is told: the other follows.
    words = [word for cluster in describe("shops.csv", missing=["-999"]).clusters for word in cluster.words]
    assert any("shop=" in word for word in words)
    assert not any(word.startswith("shop=") and ": 0 %" in word for word in words)


def test_columns_that_do_not_set_a_cluster_apart_are_not_told_of_it():
    draw = np.random.default_rng(5)
    side = np.repeat([-10.0, 10.0], 100)
    rows = {name: side * apart + draw.normal(size=200) for name, apart in (("a", 1), ("b", 1), ("c", 0))}
    found = describe(pl.DataFrame(rows))
    assert len(found.clusters) == 2
    assert all({name for name, _ in cluster.apart} == {"a", "b"} for cluster in found.clusters)


def test_what_compiling_cut_is_tried_again(table, monkeypatch):
    """The first fit ends at its limit, as where its loops are compiled."""
    whole, ended = KMeans.fit, []

    def first_cut(machine, X, y=None):
        fitted = whole(machine, X)
        if not ended:
            machine.stopped_ = Ending.MAX_TIME
        ended.append(machine.stopped_)
        return fitted

    monkeypatch.setattr(KMeans, "fit", first_cut)
    found = describe(table, time=60)
    assert len(ended) == 8
    assert "The search ended before" not in found.summary()


def test_directions_are_those_of_the_covariance(table):
    found = describe(table, drop=["town"])
    X = found.model.encode(table)
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    np.testing.assert_allclose([d.share for d in found.directions], values / values.sum())


def test_the_page_says_it_all(table):
    text = page(describe(table.with_columns(town=pl.lit("<b>Ulm</b>"), note=pl.Series(range(101)))))
    assert "Rows that fit nowhere" in text
    assert "<b>Ulm</b>" not in text
    assert "http" not in text.replace("http://www.w3.org", "")


def test_the_command_writes_a_model_that_predicts(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.write_csv("people.csv")
    shell = CliRunner()
    result = shell.invoke(app, ["learn", "people.csv", "--no-target"])
    assert result.exit_code == 0, result.output
    assert "clusters, which are clear" in result.output
    assert (tmp_path / "people.report.html").stat().st_size > 5000
    model = er.load("people.model")
    labels = describe("people.csv").labels
    np.testing.assert_array_equal(model.predict(table), labels)
    answers = shell.invoke(app, ["predict", "people.model", "people.csv"])
    assert answers.exit_code == 0, answers.output
    assert answers.output.splitlines()[0] == "cluster"
    assert [int(line) for line in answers.output.splitlines()[1:]] == labels.tolist()
    assert shell.invoke(app, ["show", "people.model"]).exit_code == 0


def test_the_command_keeps_to_the_time_and_prints_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = CliRunner()
    result = shell.invoke(app, ["learn", "iris", "--no-target", "--drop", "species", "--json"])
    found = json.loads(result.output)
    assert (found["rows"], len(found["clusters"]), sum(cluster["size"] for cluster in found["clusters"])) == (
        150,
        2,
        150,
    )
    assert found["directions"][0]["share"] > 0.7
    assert 1 <= found["strange"][0]["row"] <= 150
    assert er.load(found["model"]).predict(er.tables.read("iris")).size == 150
    hurried = describe("iris", drop=["species"], time=1e-6)
    assert hurried.hurried
    assert len(hurried.clusters) == 2
    assert "The search ended before" in hurried.summary()
    with pytest.raises(EmpiriskError, match="time=-1"):
        describe("iris", time=-1)


@pytest.mark.parametrize("way", ["Ctrl-C", "callable"])
def test_a_request_to_stop_ends_the_search_with_what_is_there(table, monkeypatch, way):
    fit, asked = er.KMeans.fit, threading.Event()
    ask = asked.set if way == "callable" else lambda: signal.raise_signal(signal.SIGINT)

    def pressed(machine, *args, **kwargs):
        if machine.n_clusters == 4:
            ask()
        return fit(machine, *args, **kwargs)

    monkeypatch.setattr(er.KMeans, "fit", pressed)
    with er.config(stop=asked.is_set):
        found = describe(table)
    assert found.hurried
    assert 2 <= len(found.clusters) <= 4
    assert len(found.directions) > 1  # what follows the search is done as a whole


def test_what_makes_no_sense_is_refused(table):
    with pytest.raises(EmpiriskError, match="at least 10"):
        describe(table.head(5))
    with pytest.raises(EmpiriskError, match="distinct rows"):
        describe(pl.DataFrame({"x": [1.0, 2.0] * 10}))
    result = CliRunner().invoke(app, ["learn", "iris", "--no-target", "--target", "species"])
    assert result.exit_code != 0
