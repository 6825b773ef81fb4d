"""Connections that do not wait for ever: a client that sends its request, or takes its answer, too slowly is left."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds in which a client must have sent the head of a request, then its body, then taken each part of the answer.
SLOWEST = 20.0
KEEP_ALIVE = 30  # seconds that an idle connection stays open
CONNECTIONS = 1000  # at the same time; more are answered with status 503


class TimedConnection(H11Protocol):
    """A connection of Uvicorn that is cut when the head of a request takes longer than `SLOWEST` seconds.

    Uvicorn limits only the time between two requests: a client that sends a byte now and then would stay for ever.
    """

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect_head()
        else:
            self._forget_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        # An answer that was not taken in this time is dropped; closing would wait for the client to take it.
        self.transport.abort()

    def _expect_head(self) -> None:
        if self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(SLOWEST, self.transport.abort)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class TimedAnswers:
    """Middleware that gives a request up when the client does not take a part of the answer in `SLOWEST` seconds."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_in_time(message: Any) -> None:
            await asyncio.wait_for(send(message), SLOWEST)

        await self.app(scope, receive, send_in_time)


#: How Uvicorn runs the application.
OPTIONS: dict[str, Any] = {
    "http": TimedConnection,
    "ws": "none",
    "access_log": False,
    "timeout_keep_alive": KEEP_ALIVE,
    "limit_concurrency": CONNECTIONS,
}
