"""Requests a second of a served linear model, and how long its health takes to tell while it works on long requests."""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import empirisk as er

#: People at the same time, what each asks for, and answers a second that are wanted.
CLIENTS, REQUESTS, RATE = 32, 100, 300
#: Long requests at the same time, and the rows of each; meanwhile the health is asked for.
LONG, ROWS = 50, 1000
PORT = 8765  # beside the one of the command, which may be in use


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        learned = er.learn("iris", machines=["logistic"], out=Path(folder) / "iris")
        command = [sys.executable, "-m", "empirisk", "serve", f"{folder}/iris.model", "--port", str(PORT)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as service:
            try:
                _wait()
                _measure(learned)
                _health()
            finally:
                service.terminate()


def _wait() -> None:
    for _ in range(300):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the service did not start")


def _measure(learned) -> None:
    table = er.tables.read("iris")
    rows, expected = table.drop("species").to_dicts(), learned.model.predict(table)

    def client(number: int, pause: float) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
        seconds = []
        start = time.perf_counter() + pause * number / CLIENTS
        for step in range(REQUESTS):
            place = (number * 7 + step) % len(rows)
            time.sleep(max(0.0, start + step * pause - time.perf_counter()))
            begin = time.perf_counter()
            connection.request("POST", "/predict", json.dumps(rows[place]))
            answer = json.loads(connection.getresponse().read())
            seconds.append(time.perf_counter() - begin)
            if str(expected[place]) not in json.dumps(answer.get("prediction", answer)):
                raise SystemExit(f"a wrong answer: {answer}")
        return seconds

    for words, pause in (("as fast as they can", 0.0), (f"{RATE} a second", CLIENTS / RATE)):
        begin = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as pool:
            times = np.concatenate(list(pool.map(client, range(CLIENTS), [pause] * CLIENTS)))
        rate = len(times) / (time.perf_counter() - begin)
        middle, high = np.quantile(times, [0.5, 0.99])
        print(
            f"  {CLIENTS} clients, {words}: {rate:.0f} a second, median {middle * 1e3:.1f} ms, p99 {high * 1e3:.1f} ms"
        )


def _health() -> None:
    """Seconds until `/health` is answered while long requests are worked on."""
    rows = (er.tables.read("iris").drop("species").to_dicts() * ROWS)[:ROWS]
    body = json.dumps(rows)

    def long_request(_: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        connection.request("POST", "/predict", body)
        return len(json.loads(connection.getresponse().read()))

    seconds = []
    begin = time.perf_counter()
    with ThreadPoolExecutor(LONG) as pool:
        asked = [pool.submit(long_request, number) for number in range(LONG)]
        while not all(one.done() for one in asked):
            start = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
            connection.request("GET", "/health")
            connection.getresponse().read()
            seconds.append(time.perf_counter() - start)
            time.sleep(0.01)
        if {one.result() for one in asked} != {ROWS}:
            raise SystemExit("a long request was not answered whole")
    print(
        f"  {LONG} requests of {ROWS} rows in {time.perf_counter() - begin:.2f} s; meanwhile /health: median "
        f"{np.median(seconds) * 1e3:.1f} ms, slowest of {len(seconds)} {max(seconds) * 1e3:.1f} ms"
    )
