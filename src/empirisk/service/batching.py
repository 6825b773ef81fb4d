"""One worker thread answers all requests: rows of waiting requests are encoded in one batch, and predicted separately.

Parsing, checking and predicting happen in the worker, so that the event loop stays free to accept connections and to
answer `/health`.
"""

import asyncio
import contextvars
import json
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import polars as pl

from empirisk.errors import EmpiriskError
from empirisk.explain.contributions import reasons
from empirisk.service.bodies import Bodies, BodyRows, Refusal
from empirisk.settings import config, settings
from empirisk.tables.model import TableModel
from empirisk.tables.predictions import beside
from empirisk.tables.reading.read import read_bytes
from empirisk.tables.reading.spreadsheet import harmless

COVERAGE = 0.9  # of the intervals of numbers
UNPACKED = 10_000_000  # bytes that a packed file may unpack to: ten times the longest body
BATCH_ROWS = 256  # rows after which a batch is closed: enough to share the cost of encoding, few enough to wait for


class ModelFailed(RuntimeError):
    """An exception that the model raised for one request; other requests of the batch are not affected."""


class Waiting(NamedTuple):
    """A request in the queue: its body, whether reasons are asked for, and the future for the text of the answer.

    ``file`` is the name of a table, where the body is one; without a name it is JSON.
    """

    body: bytes
    explain: bool
    answer: "Future[str]"
    file: str = ""


class Checked(NamedTuple):
    """A request whose rows passed the checks: the rows, whether reasons are asked for, and the future of the answer."""

    rows: BodyRows
    explain: bool
    answer: "Future[str]"


class Batcher:
    """A queue of requests and the thread that answers them.

    Encoding treats rows one by one, so that a batch gives the same numbers. Predictions are computed for each request
    separately: matrix products of other shapes may round differently, and the last digits would depend on the requests
    that happen to arrive at the same time.
    """

    def __init__(self, model: TableModel, bodies: Bodies):
        self._model, self._bodies = model, bodies
        rows = 0 if model.residuals is None else len(model.residuals)
        self._intervals = 1 - 2 / (rows + 1) >= COVERAGE  # as many rows as the quantiles need
        self._labels = [str(label) for label in model.classes] if model.has_probabilities else []
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.rows = 0  # rows predicted since the start

    async def ask(self, body: bytes, explain: bool = False, file: str = "") -> str:
        """The answers to a body, with reasons if asked for, as JSON, or as CSV where the body is a table of that name.

        What is cancelled meanwhile is not computed.
        """
        if self._thread is None:
            # The worker runs with the `er.config` of the thread that serves, which is a context variable.
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._work,), name="predict", daemon=True)
            self._thread.start()
        answer: Future[str] = Future()
        self._queue.put(Waiting(body, explain, answer, file))
        return await asyncio.wrap_future(answer)

    def close(self) -> None:
        """Stop the worker after the current batch."""
        self._queue.put(None)

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, count = [], 0
            for waiting in self._arrived(first):
                if waiting.file:
                    text = settle(waiting.answer, lambda one=waiting: self._table(one.body, one.file))
                    if text is not None:
                        waiting.answer.set_result(text)
                    continue
                rows = settle(waiting.answer, lambda body=waiting.body: self._bodies.read(body))
                if rows is not None:
                    batch.append(Checked(rows, waiting.explain, waiting.answer))
                    count += rows.frame.height
                if count >= BATCH_ROWS:
                    break
            self._answer(batch)

    def _arrived(self, first: Waiting) -> Iterator[Waiting]:
        """The first request and those that wait in the queue, without those that were cancelled."""
        waiting: Waiting | None = first
        while waiting is not None:
            if waiting.answer.set_running_or_notify_cancel():
                yield waiting
            try:
                waiting = self._queue.get_nowait()
            except Empty:
                return
        self._queue.put(None)  # the batcher was closed: the loop of `_work` ends at its next `get`

    def _answer(self, batch: list[Checked]) -> None:
        """Answer the requests of a batch. If the batch cannot be encoded, each request is encoded separately."""
        if len(batch) > 1 and self._model.history is None:  # rows in order of time go on from each other
            encoded = settle(None, lambda: self._model.encode(pl.concat([one.rows.frame for one in batch])))
        else:
            encoded = None
        start = 0
        for one in batch:
            end = start + one.rows.frame.height
            X = None if encoded is None else encoded[start:end]
            text = settle(one.answer, lambda one=one, X=X: self._json(one, X))
            if text is not None:
                self.rows += one.rows.frame.height
                one.answer.set_result(text)
            start = end

    def _json(self, asked: Checked, X: Any) -> str:
        """The answers to the rows of one request."""
        rows, frame = asked.rows, self._model.complete(asked.rows.frame)
        answers = self._of_rows(self._model.encode(frame) if X is None else X, self._model.wider(frame))
        for row, warnings in self._model.unusual(frame).items():
            answers[row]["warnings"] = warnings
        for answer, reason in zip(answers, self._reasons(frame) if asked.explain else (), strict=False):
            answer["because"] = reason
        return json.dumps(answers if rows.several else answers[0])

    def _table(self, body: bytes, name: str) -> str:
        """The rows of a file with their predictions, and intervals of numbers, as CSV that a spreadsheet may open."""
        try:
            with config(memory=min(settings().memory, UNPACKED)):
                frame = read_bytes(body, name)
            answers = beside(self._model, frame, keep=True, interval=100 * COVERAGE if self._intervals else None)
        except EmpiriskError as error:
            raise Refusal(422, str(error)) from error
        self.rows += frame.height
        return harmless(answers).write_csv()

    def _reasons(self, frame: pl.DataFrame) -> list[str]:
        """Why each row is predicted so; nothing for machines that have no reasons."""
        try:
            return reasons(self._model, frame)
        except EmpiriskError:
            return []

    def _of_rows(self, X: Any, wider: Any) -> list[dict[str, Any]]:
        machine = self._model.pipeline[-1]
        answers: list[dict[str, Any]] = [
            {"prediction": _plain(value)} for value in self._model.predict_encoded(X).tolist()
        ]
        if self._labels:
            for answer, row in zip(answers, machine.predict_proba(X).tolist(), strict=True):
                answer["probabilities"] = dict(zip(self._labels, row, strict=True))
        if self._intervals:
            for answer, low, high in zip(answers, *self._model.interval_of(X, COVERAGE, wider), strict=True):
                answer["interval"] = {"coverage": COVERAGE, "low": _plain(float(low)), "high": _plain(float(high))}
        return answers


def settle(answer: "Future[str] | None", work: Callable[[], Any]) -> Any:
    """The result of ``work``. If it raises, the future ``answer`` receives the exception, and the result is None."""
    try:
        return work()
    except Refusal as refusal:
        error: Exception = refusal
    except BaseException as problem:  # noqa: BLE001 - a SystemExit in a model must not end the worker thread
        error = ModelFailed(f"{type(problem).__name__}: {problem}")
        error.__cause__ = problem
    if answer is not None:
        answer.set_exception(error)
    return None


def _plain(value: Any) -> Any:
    """The value, or None for NaN and infinity, which JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
