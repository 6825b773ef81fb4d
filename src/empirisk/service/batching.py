"""Requests that come together are encoded together, each answered as if it had come alone."""

import asyncio
import math
from typing import Any, NamedTuple

import polars as pl

from empirisk.tables.model import TableModel

TOGETHER = 256  # rows encoded at once


class Waiting(NamedTuple):
    """Rows of one request, and where its answers go."""

    frame: pl.DataFrame
    answers: "asyncio.Future[list[dict[str, Any]]]"


class Batcher:
    """One worker thread asks the machine; what arrives meanwhile is the next batch.

    Encoding treats rows one by one, so doing it together changes nothing. The machine is asked for each request on
    its own: sums in another order would make the last digits depend on who else asks.
    """

    def __init__(self, model: TableModel):
        self._model = model
        self._labels = [str(label) for label in model.classes] if model.has_probabilities else []
        self._queue: asyncio.Queue[Waiting] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self.rows = 0  # answered so far

    async def ask(self, frame: pl.DataFrame) -> list[dict[str, Any]]:
        """The answers to the rows of a request."""
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        answers: asyncio.Future[list[dict[str, Any]]] = asyncio.get_running_loop().create_future()
        await self._queue.put(Waiting(frame, answers))
        return await answers

    async def close(self) -> None:
        """Stop the worker."""
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None

    async def _work(self) -> None:
        while True:
            batch = [await self._queue.get()]
            count = batch[0].frame.height
            while count < TOGETHER and not self._queue.empty():
                batch.append(self._queue.get_nowait())
                count += batch[-1].frame.height
            try:
                found = await asyncio.to_thread(self._answer, [waiting.frame for waiting in batch])
            except (ValueError, TypeError, ArithmeticError, LookupError, pl.exceptions.PolarsError) as error:
                for waiting in batch:
                    if not waiting.answers.done():
                        waiting.answers.set_exception(error)
                continue
            self.rows += count
            for waiting, answers in zip(batch, found, strict=True):
                if not waiting.answers.done():  # the client may be gone
                    waiting.answers.set_result(answers)

    def _answer(self, frames: list[pl.DataFrame]) -> list[list[dict[str, Any]]]:
        encoded = self._model.encode(pl.concat(frames) if len(frames) > 1 else frames[0])
        found, start = [], 0
        for frame in frames:
            answers = self._of_rows(encoded[start : start + frame.height])
            for row, warnings in self._model.unusual(frame).items():
                answers[row]["warnings"] = warnings
            found.append(answers)
            start += frame.height
        return found

    def _of_rows(self, X: Any) -> list[dict[str, Any]]:
        machine = self._model.pipeline[-1]
        answers: list[dict[str, Any]] = [{"prediction": _plain(value)} for value in machine.predict(X).tolist()]
        if self._labels:
            for answer, row in zip(answers, machine.predict_proba(X).tolist(), strict=True):
                answer["probabilities"] = dict(zip(self._labels, row, strict=True))
        return answers


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
