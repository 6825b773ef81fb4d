"""A studio in a thread, and a client that speaks plain HTTP to it."""

import socket
import threading
import time
from contextlib import contextmanager

import uvicorn

from empirisk.service.connections import OPTIONS
from empirisk.studio.app import make_studio


@contextmanager
def running(**options):
    """A running studio: its port, and the addresses that it has announced."""
    announced = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        app = make_studio(port, announced.append, **options)
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
