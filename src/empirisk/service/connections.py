"""Time limits of connections: a client that sends its request, or reads the response, too slowly is disconnected."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds that a client has to send the head of a request, to send its body, and to read each part of the response.
CLIENT_SECONDS = 20.0
KEEP_ALIVE = 30  # seconds that an idle connection stays open
MAX_CONNECTIONS = 1000  # open at the same time; further ones are answered with status 503


class TimedConnection(H11Protocol):
    """A connection of Uvicorn that is cut when the head of a request takes longer than `CLIENT_SECONDS` seconds.

    Uvicorn limits only the time between two requests: a client that sends a byte now and then would hold its
    connection without limit.
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
        # Abort instead of close: closing would wait until the client has read the response.
        self.transport.abort()

    def _expect_head(self) -> None:
        if self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(CLIENT_SECONDS, self.transport.abort)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class TimedAnswers:
    """Middleware that ends a request whose client does not read a part of the response within `CLIENT_SECONDS`."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_in_time(message: Any) -> None:
            await asyncio.wait_for(send(message), CLIENT_SECONDS)

        await self.app(scope, receive, send_in_time)


#: Options with which Uvicorn runs the application.
OPTIONS: dict[str, Any] = {
    "http": TimedConnection,
    "ws": "none",
    "access_log": False,
    "timeout_keep_alive": KEEP_ALIVE,
    "limit_concurrency": MAX_CONNECTIONS,
}
