"""One worker thread answers the requests: what arrives together is encoded together, each answered as if alone.

Reading, checking and predicting take turns with the event loop for Python's lock, so that the loop, which has next to
nothing to do, goes on accepting connections and answering `/health`.
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

from empirisk.service.bodies import Bodies, Refusal, Rows
from empirisk.tables.model import TableModel

TOGETHER = 256  # rows encoded at once


class ModelFailed(RuntimeError):
    """Whatever the model raised: told to the request that it concerns, and to no other."""


class Waiting(NamedTuple):
    """The body of a request, and where the JSON of its answer goes."""

    body: bytes
    answer: "Future[str]"


class Checked(NamedTuple):
    """The rows of a request that can be predicted, and where the JSON of its answer goes."""

    rows: Rows
    answer: "Future[str]"


class Batcher:
    """A queue of requests and the thread that answers them.

    Encoding treats rows one by one, so doing it together changes nothing. The machine is asked for each request on
    its own: sums in another order would make the last digits depend on who else asks.
    """

    def __init__(self, model: TableModel, bodies: Bodies):
        self._model, self._bodies = model, bodies
        self._labels = [str(label) for label in model.classes] if model.has_probabilities else []
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.rows = 0  # answered so far

    async def ask(self, body: bytes) -> str:
        """The JSON of the answers to a body; a request that is cancelled before its turn is dropped."""
        if self._thread is None:
            # The settings of the thread that serves are the worker's too.
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._work,), name="predict", daemon=True)
            self._thread.start()
        answer: Future[str] = Future()
        self._queue.put(Waiting(body, answer))
        return await asyncio.wrap_future(answer)

    def close(self) -> None:
        """Stop the worker after what it has begun."""
        self._queue.put(None)

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, count = [], 0
            for waiting in self._arrived(first):
                rows = settle(waiting.answer, lambda body=waiting.body: self._bodies.read(body))
                if rows is not None:
                    batch.append(Checked(rows, waiting.answer))
                    count += rows.frame.height
                if count >= TOGETHER:
                    break
            self._answer(batch)

    def _arrived(self, first: Waiting) -> Iterator[Waiting]:
        """The first request and those that are there already, without those whose clients have left."""
        waiting: Waiting | None = first
        while waiting is not None:
            if waiting.answer.set_running_or_notify_cancel():
                yield waiting
            try:
                waiting = self._queue.get_nowait()
            except Empty:
                return
        self._queue.put(None)  # closed: the loop around this ends with the next turn

    def _answer(self, batch: list[Checked]) -> None:
        """Answer the requests of a batch; where they fail together, each alone."""
        if len(batch) > 1:
            encoded = settle(None, lambda: self._model.encode(pl.concat([one.rows.frame for one in batch])))
        else:
            encoded = None
        start = 0
        for one in batch:
            end = start + one.rows.frame.height
            X = None if encoded is None else encoded[start:end]
            text = settle(one.answer, lambda rows=one.rows, X=X: self._json(rows, X))
            if text is not None:
                self.rows += one.rows.frame.height
                one.answer.set_result(text)
            start = end

    def _json(self, rows: Rows, X: Any) -> str:
        """The answers to the rows of one request."""
        answers = self._of_rows(self._model.encode(rows.frame) if X is None else X)
        for row, warnings in self._model.unusual(rows.frame).items():
            answers[row]["warnings"] = warnings
        return json.dumps(answers if rows.several else answers[0])

    def _of_rows(self, X: Any) -> list[dict[str, Any]]:
        machine = self._model.pipeline[-1]
        answers: list[dict[str, Any]] = [{"prediction": _plain(value)} for value in machine.predict(X).tolist()]
        if self._labels:
            for answer, row in zip(answers, machine.predict_proba(X).tolist(), strict=True):
                answer["probabilities"] = dict(zip(self._labels, row, strict=True))
        return answers


def settle(answer: "Future[str] | None", work: Callable[[], Any]) -> Any:
    """What some work gives; None if it fails, and then the request that it is for is answered with the error."""
    try:
        return work()
    except Refusal as refusal:
        error: Exception = refusal
    except BaseException as problem:  # noqa: BLE001 - even an exit must end one request, not the thread of all
        error = ModelFailed(f"{type(problem).__name__}: {problem}")
        error.__cause__ = problem
    if answer is not None:
        answer.set_exception(error)
    return None


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
