"""A studio in a thread, and a client that speaks plain HTTP to it."""

import http.client
import json
import os
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from empirisk.service.connections import OPTIONS
from empirisk.studio.app import make_studio
from empirisk.studio.workbench import job
from empirisk.studio.workbench.folder import StudioFolder


@contextmanager
def running(parent):
    """A running studio: its port, and the addresses that it has announced."""
    announced = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        app = make_studio(port, announced.append, StudioFolder(parent))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", **OPTIONS))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield port, announced
        finally:
            server.should_exit = True
            thread.join(10)


def ask(port, path, headers=None, body=None):
    """Status, headers and text of an answer; a body that is not bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, sent, headers or {})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, dict(reply.getheaders()), text


def enter(studio):
    """The cookie of a first visit."""
    port, announced = studio
    status, headers, _ = ask(port, announced[-1].partition(str(port))[2])
    assert status == 303
    return {"Cookie": headers["set-cookie"].partition(";")[0]}


def learned_runs(parent, data="tickets", target="escalated", machines=("logistic", "tree")):
    """Runs on one table that are over; made here, without the start of processes and without pictures."""
    folder, found = StudioFolder(parent), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "obey", lambda job: None)
        patch.setattr("empirisk.report.page.page", lambda learned, file: f"report of {learned.name}")
        for machine in machines:
            request = {"data": data, "target": target, "machines": [machine]}
            made = folder.new_run({"name": machine, "table": data, "request": request})
            job.work(made)
            found.append(made.name)
    return found


def process_of(folder):
    """The number of the process of a run."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if str(folder.absolute()).encode() in words:
                return int(entry)
    raise AssertionError("no process")
