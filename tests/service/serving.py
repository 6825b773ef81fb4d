"""A service in a thread, and a client that speaks plain HTTP to it."""

import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager

from sklearn.pipeline import make_pipeline

import empirisk as er
from empirisk.service.app import make_app


def table_model(name="tickets", target="escalated", machine=None):
    """A model of a bundled table, and rows to ask it about."""
    table = er.tables.read(name)
    found = er.tables.Target.of(table, target)
    schema = er.tables.understand(table, without=[target])
    pipeline = make_pipeline(er.tables.TableEncoder(schema), machine or er.LogisticRegression(C=0.1))
    model = er.tables.TableModel(schema, pipeline.fit(table, found.values(table)), found, {"accuracy": 0.8})
    return model, table.drop(target)


@contextmanager
def serving(model, **options):
    """The port of a running service."""
    import uvicorn  # what makes models alone needs no server

    from empirisk.service.connections import OPTIONS

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        app = make_app(model, ["localhost", "127.0.0.1"], **options)
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", **OPTIONS))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(10)


class Client:
    """One connection that stays open."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, path, body=None, method=None, headers=None):
        """Status and parsed answer."""
        raw = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        self.connection.request(method or ("GET" if body is None else "POST"), path, raw, headers or {})
        reply = self.connection.getresponse()
        text = reply.read().decode()
        kind = reply.getheader("content-type", "")
        return reply.status, json.loads(text) if "json" in kind else text

    def close(self):
        self.connection.close()
