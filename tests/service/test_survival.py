"""What the service survives: errors of the model, clients that leave or are slow, long work."""

import asyncio
import json
import socket
import threading
import time
from contextlib import suppress

import pytest

import empirisk as er
from empirisk.service import batching, bodies, connections
from tests.service.serving import Client, serving, table_model

HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


class Scripted:
    """A machine that does what a test asks for when it predicts."""

    def __init__(self, machine):
        self.machine, self.script = machine, lambda X: None

    def predict(self, X):
        self.script(X)
        return self.machine.predict(X)

    def __getattr__(self, name):
        return getattr(self.machine, name)


@pytest.fixture(scope="module")
def iris():
    return table_model("iris", "species", er.NearestCentroid())


@pytest.fixture
def scripted(iris):
    """The model with a scripted machine, the machine, and rows to ask about."""
    model, table = iris
    pipeline = model.pipeline[:]
    machine = Scripted(pipeline.steps[-1][1])
    pipeline.steps[-1] = ("machine", machine)
    return er.tables.TableModel(model.schema, pipeline, model.target), machine, table.to_dicts()


@pytest.fixture
def gate(scripted):
    """Two events: the machine is at work, and it may go on."""
    _, machine, _ = scripted
    at_work, go_on = threading.Event(), threading.Event()

    def wait(X):
        at_work.set()
        assert go_on.wait(60)

    machine.script = wait
    return at_work, go_on


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, AssertionError, OSError, StopIteration, SystemExit])
def test_an_error_of_the_model_ends_one_request_and_no_other(scripted, error):
    model, machine, rows = scripted

    def fail(X):
        raise error("broken")

    with serving(model) as port:
        machine.script = fail
        client = Client(port)
        status, answer = client.ask("/predict", rows[0])
        assert status == 500
        assert "could not answer" in answer["error"]
        client.close()
        machine.script = lambda X: None
        client = Client(port)
        assert client.ask("/predict", rows[0])[0] == 200
        assert client.ask("/health")[1]["rows"] == 1
        client.close()


def test_a_request_that_fails_does_not_fail_those_beside_it(scripted, gate):
    model, machine, rows = scripted
    at_work, go_on = gate
    statuses = {}

    def ask(count):
        client = Client(port)
        statuses[count] = client.ask("/predict", rows[:count])[0]
        client.close()

    with serving(model) as port:
        first = in_thread(lambda: ask(1))
        assert at_work.wait(60)  # the two that come now wait together

        def fail_on_three(X):
            if len(X) == 3:
                raise RuntimeError("three rows")

        others = [in_thread(lambda count=count: ask(count)) for count in (2, 3)]
        time.sleep(0.2)
        machine.script = fail_on_three
        go_on.set()
        for thread in (first, *others):
            thread.join(60)
    assert statuses == {1: 200, 2: 200, 3: 500}


def test_health_is_answered_while_the_model_works(scripted, gate):
    model, _, rows = scripted
    at_work, go_on = gate
    with serving(model) as port:
        asking = Client(port)
        thread = in_thread(lambda: asking.ask("/predict", rows[:100]))
        assert at_work.wait(60)
        client = Client(port)
        assert client.ask("/health")[0] == 200
        client.close()
        go_on.set()
        thread.join(60)
        asking.close()


def test_bodies_are_read_outside_the_event_loop(iris, monkeypatch):
    model, table = iris
    threads = []
    read = bodies.Bodies.read

    def noticed(self, body):
        threads.append(threading.current_thread().name)
        return read(self, body)

    monkeypatch.setattr(bodies.Bodies, "read", noticed)
    with serving(model) as port:
        client = Client(port)
        assert client.ask("/predict", table.to_dicts())[0] == 200
        client.close()
    assert threads == ["predict"]


def test_requests_whose_clients_have_left_are_dropped(scripted, gate):
    model, machine, rows = scripted
    at_work, go_on = gate
    seen = []
    with serving(model) as port:
        staying = Client(port)
        thread = in_thread(lambda: staying.ask("/predict", rows[0]))
        assert at_work.wait(60)
        for _ in range(5):  # while the first is worked on, five more ask and leave
            leaving = socket.create_connection(("127.0.0.1", port))
            body = json.dumps(rows[:7])
            leaving.sendall(HEAD % len(body) + body.encode())
            time.sleep(0.1)
            leaving.close()
        time.sleep(0.5)
        machine.script = lambda X: seen.append(len(X))
        go_on.set()
        thread.join(60)
        assert staying.ask("/predict", rows[:2])[0] == 200
        staying.close()
    assert seen == [2]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(connections, "CLIENT_SECONDS", 0.3)


def received(connection):
    """All that comes until the service closes the connection."""
    parts = []
    while part := connection.recv(4096):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("sent", [b"", b"POST /predict HT", b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_head_that_does_not_arrive_ends_the_connection(iris, impatient, sent):
    with serving(iris[0]) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            assert received(connection) == b""


def test_a_body_that_does_not_arrive_is_answered_by_a_sentence(iris, impatient):
    with serving(iris[0]) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(HEAD % 100 + b"{")
        answer = received(connection)
    assert b" 408 " in answer.splitlines()[0]
    assert b"did not arrive in time" in answer


def test_slow_clients_do_not_hinder_others(iris, impatient):
    model, table = iris
    with serving(model) as port:
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for connection in slow:
            connection.sendall(HEAD % 100 + b"{")
        client = Client(port)
        assert client.ask("/predict", table.row(0, named=True))[0] == 200
        client.close()
        for connection in slow:
            connection.close()


def test_an_answer_that_is_not_taken_is_given_up(impatient):
    given_up = []

    async def never_taken(message):
        await asyncio.Event().wait()

    async def app(scope, receive, send):
        try:
            await send({"type": "http.response.start"})
        except TimeoutError:
            given_up.append(True)

    asyncio.run(connections.TimedAnswers(app)({}, None, never_taken))
    assert given_up == [True]


def test_values_written_in_the_way_of_the_column_are_read_together(monkeypatch):
    schema = er.tables.understand(
        {"price": ["1,5", "2,25"] * 20, "when": ["31.12.2020", "01.02.2021"] * 20, "zip": ["01234", "04321"] * 20}
    )
    calls = []
    parse = er.tables.Column.parse

    def counted(self, series):
        calls.append(len(series))
        return parse(self, series)

    monkeypatch.setattr(er.tables.Column, "parse", counted)
    rows = [{"price": f" {n},5", "when": f"{n % 28 + 1:02d}.12.2020", "zip": 1000 + n} for n in range(500)]
    frame = bodies.Bodies(schema, 1000).read(json.dumps(rows).encode()).frame
    assert len(calls) < 10
    assert frame["price"].to_list() == [n + 0.5 for n in range(500)]
    assert frame["when"].dt.day().to_list() == [n % 28 + 1 for n in range(500)]
    assert frame["zip"].to_list() == [f"0{1000 + n}" for n in range(500)]


def test_a_worker_that_was_closed_ends(iris):
    batcher = batching.Batcher(iris[0], bodies.Bodies(iris[0].schema, 10))
    batcher.close()
    batcher._work()  # returns
