"""The service: right answers, also to many at once; a sentence for everything that is wrong with a request."""

import gzip
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.service import pages
from empirisk.service.fields import Fields
from empirisk.service.openapi import describe
from tests.service.serving import Client, serving, table_model


@pytest.fixture(scope="module")
def tickets():
    return table_model()


@pytest.fixture(scope="module")
def port(tickets):
    with serving(tickets[0], limit=50_000, rows=50) as port:
        yield port


@pytest.fixture
def client(port):
    found = Client(port)
    yield found
    found.close()


def row_of(table, number=0, **changes):
    return {**table.row(number, named=True), **changes}


def test_one_row_and_many_rows(client, tickets):
    model, table = tickets
    expected = model.answers(table.head(20))
    status, answer = client.ask("/predict", row_of(table))
    assert status == 200
    assert answer["prediction"] == expected["escalated"][0]
    np.testing.assert_allclose(answer["probabilities"]["yes"], expected["P(escalated=yes)"][0], rtol=1e-12)
    status, answers = client.ask("/predict", table.head(20).to_dicts())
    assert status == 200
    assert [answer["prediction"] for answer in answers] == expected["escalated"].to_list()


def test_numbers_are_answered_as_numbers():
    model, table = table_model("diabetes", "progress", er.Ridge())
    with serving(model) as port:
        client = Client(port)
        status, answer = client.ask("/predict", row_of(table))
        assert status == 200
        np.testing.assert_allclose(answer["prediction"], model.predict(table.head(1))[0], rtol=1e-12)
        assert "probabilities" not in answer
        client.close()


def test_values_may_be_written_in_other_ways(client, tickets):
    row = row_of(tickets[1])
    _, answer = client.ask("/predict", row)
    other = {**row, "customer_age": f" {row['customer_age']} ", "vip": False, "opened": "2023-12-12T10:15:00"}
    assert client.ask("/predict", other) == (200, answer)
    gaps = {name: None for name in row if name not in ("ticket_id", "office")}
    assert client.ask("/predict", gaps)[0] == 200
    assert client.ask("/predict", dict.fromkeys(gaps, ""))[0] == 200


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"customer_age": "old"}, "Field 'customer_age': 'old' is not a number"),
        ({"customer_age": [1]}, "is not a number"),
        ({"customer_age": True}, "True is not a number"),
        ({"customer_age": 10**400}, "is not a finite number"),
        ({"vip": "perhaps"}, "'perhaps' is neither true nor false"),
        ({"opened": "soon"}, "'soon' is not a date"),
        ({"opened": 5}, "5 is not a date"),
        ({"plan": {"a": 1}}, "is not a text"),
        ({"message": "x" * 40_000 + "\ud800"}, "half a character"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_fields_are_named(client, tickets, change, match):
    status, answer = client.ask("/predict", row_of(tickets[1], **change))
    assert status == 422
    assert re.search(re.escape(match), answer["error"])
    assert answer["problems"][0]["field"] == next(iter(change))


def test_fields_beyond_those_of_the_model_are_not_used(client, tickets):
    expected = client.ask("/predict", row_of(tickets[1]))
    assert expected[0] == 200
    assert client.ask("/predict", row_of(tickets[1], colour="red", note=None)) == expected
    misspelt = row_of(tickets[1], plann="free")
    del misspelt["plan"]
    status, answer = client.ask("/predict", misspelt)
    assert status == 422
    assert "Field 'plan': is missing" in answer["error"]
    assert "rename 'plann' if it is that" in answer["error"]


def test_every_problem_is_told(client, tickets):
    row = row_of(tickets[1], customer_age="old", vip="perhaps")
    del row["plan"]  # what is not sent is missing
    status, answer = client.ask("/predict", [row_of(tickets[1]), row, 5])
    assert status == 422
    assert {(problem["row"], problem["field"]) for problem in answer["problems"]} == {
        (1, "customer_age"),
        (1, "vip"),
        (2, None),
    }


@pytest.mark.parametrize(
    ("body", "status", "match"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b'{"customer_age": NaN}', 400, "NaN is no number"),
        (b"[" * 20_000, 400, "nested too deeply"),
        (b"[]", 422, "empty"),
        (b"5", 422, "a row must be an object"),
        (b"null", 422, "a row must be an object"),
        (b"[{}]", 422, "is missing"),
        (json.dumps([{}] * 51).encode(), 413, "51 rows are more than 50"),
        (b" " * 50_001, 413, "longer than 50000 bytes"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bodies_that_are_no_rows(client, body, status, match):
    found, answer = client.ask("/predict", body)
    assert found == status
    assert match in answer["error"]


def test_a_long_body_is_refused_before_it_is_read(port):
    client = Client(port)
    client.connection.putrequest("POST", "/predict")
    client.connection.putheader("Content-Length", str(10**12))
    client.connection.endheaders()
    assert client.connection.getresponse().status == 413
    client.close()


def test_pages(client, tickets):
    status, page = client.ask("/")
    assert status == 200
    for name in tickets[0].schema.of_kind("number", "date", "category", "text", "boolean"):
        assert f'name="{name}"' in page
    assert "http" not in page.replace("http-equiv", "")  # nothing from elsewhere
    status, document = client.ask("/openapi.json")
    assert document["openapi"] == "3.1.0"
    body = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert client.ask("/predict", body["example"])[0] == 200
    assert "customer_age" in client.ask("/docs")[1]
    assert client.ask("/form.js")[0] == 200
    status, health = client.ask("/health")
    assert (status, health["status"]) == (200, "ok")


def test_names_with_marks_are_escaped():
    table = pl.DataFrame({"<b>&\"'": [1.0, 2.0, 3.0, 4.0] * 10, "y<script>": ["a", "b"] * 20})
    target = er.tables.Target.of(table, "y<script>")
    schema = er.tables.understand(table, without=["y<script>"])
    pipeline = make_pipeline(er.tables.TableEncoder(schema), er.NearestCentroid()).fit(table, target.values(table))
    model = er.tables.TableModel(schema, pipeline, target)
    with serving(model) as port:
        client = Client(port)
        for path in ("/", "/docs"):
            page = client.ask(path)[1]
            assert "<b>" not in page
            assert "y<script>" not in page
        client.close()


def test_wrong_pages_methods_and_hosts(client):
    assert client.ask("/nothing")[0] == 404
    assert client.ask("/predict")[0] == 405
    assert client.ask("/health", headers={"Host": "evil.example"})[0] == 400


def test_fuzzed_bodies_never_break_the_service(port, tickets):
    chance = random.Random(0)
    good = json.dumps(row_of(tickets[1])).encode()
    odd = [None, [], {}, 1e308, -1, "", "\ud83d", "é" * 50, True, [[]], {"a": {}}, 10**30]
    client = Client(port)
    seen = set()
    for _ in range(60):
        if chance.random() < 0.5:
            body = bytearray(good)
            for _ in range(chance.randint(1, 5)):
                body[chance.randrange(len(body))] = chance.randrange(256)
        else:
            row = row_of(tickets[1])
            row[chance.choice(list(row))] = chance.choice(odd)
            body = json.dumps(row).encode()
        status, _ = client.ask("/predict", bytes(body))
        seen.add(status)
        assert status in (200, 400, 422)
    assert seen == {200, 400, 422}
    assert client.ask("/health")[0] == 200
    client.close()


def test_many_clients_get_their_own_answers(port, tickets):
    model, table = tickets
    rows = table.to_dicts()
    alone = [model.answers([row]) for row in rows[:64]]

    def work(number):
        client = Client(port)
        for k in range(number, 64, 4):
            status, answer = client.ask("/predict", rows[k])
            assert status == 200
            assert answer["prediction"] == alone[k]["escalated"][0]
            # The same bits as alone, whoever else asks.
            assert answer["probabilities"]["yes"] == alone[k]["P(escalated=yes)"][0]
        client.close()
        return True

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(work, [k % 4 for k in range(32)]))


def test_fields_take_numbers_with_commas():
    schema = er.tables.understand({"price": ["1,5", "2,25"], "when": ["31.12.2020", "01.02.2021"]})
    frame, problems = Fields(schema).check([{"price": "3,5", "when": "05.01.2020"}])
    assert problems == []
    assert frame["price"].to_list() == [3.5]
    _, problems = Fields(schema).check([{"price": "x", "when": "32.01.2020"}])
    assert [problem["field"] for problem in problems] == ["price", "when"]


def test_a_file_of_rows_is_answered_with_a_table(client, tickets):
    model, table = tickets
    some = table.head(30)
    status, text = client.ask("/table?name=new.csv", some.write_csv())
    assert status == 200
    answers = pl.read_csv(text.encode(), infer_schema_length=None)
    assert answers["escalated"].to_list() == model.predict(some).tolist()
    assert answers.columns[: some.width] == some.columns
    status, answer = client.ask("/table?name=new.csv", some.drop("customer_age").write_csv())
    assert status == 422
    assert "lacks the column 'customer_age'" in answer["error"]
    assert client.ask("/table?name=new.csv", "x" * 60_000)[0] == 413


def test_a_packed_file_of_more_than_the_service_unpacks_is_refused(client):
    status, answer = client.ask("/table?name=new.csv.gz", gzip.compress(b"a\n" + b"0\n" * 6_000_000))
    assert status == 422
    assert "more than the 10 MB allowed" in answer["error"]


def test_the_example_is_a_row_that_exists_and_can_be_asked():
    frame = er.tables.read("tickets").with_columns(day=pl.date(2024, 1, 1) + pl.duration(days=pl.int_range(pl.len())))
    found = er.learn(frame, "escalated", machines=["logistic"])
    known = found.plan.frame[found.plan.train]
    checked, problems = Fields(found.model.asked).check([found.model.example])
    assert problems == []
    shown = [name for name in known.columns if name in found.model.example]
    assert set(known.columns) - set(shown) == {"message"}  # a text is nobody else's business
    told = checked.select(shown).with_columns(cs.float().round_sig_figs(3))
    assert told.row(0) in known.select(shown).with_columns(cs.float().round_sig_figs(3)).rows()
    assert pages.docs(found.model, describe(found.model, 1, 1)).count(str(found.model.example["customer_age"]))


def test_a_form_with_a_file_in_it_is_told_how_to_send_it(client):
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\na,b\n1,2\n\r\n--x--\r\n'
    status, answer = client.ask("/table", form, headers={"content-type": "multipart/form-data; boundary=x"})
    assert status == 415
    assert "send what is in it alone, as curl --data-binary @rows.csv does" in answer["error"]
