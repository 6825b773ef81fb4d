"""Who may use the studio: a browser on this machine that was given the address with the token."""

import hmac
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response

from empirisk.service.app import problem

SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
}
LETTERS = 24  # bytes of a token: nobody guesses one of 192 bits
SPENT = "This address was used before, or is not complete: take the one that the terminal shows now."
STRANGER = "Open the address that `empirisk studio` printed in the terminal: it holds the key to this page."


class Guard:
    """Middleware that lets nobody in without the token, which is exchanged for a cookie at the first visit.

    The token is worth one visit: after it, the terminal shows the address with another one. Requests under another
    host name (DNS rebinding) and those that a page of another origin sends are refused.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    port : int
        Where it listens.
    announce : callable
        Hears of a new address.
    """

    def __init__(self, app: Any, port: int, announce: Callable[[str], None]):
        self.app, self._announce = app, announce
        self._origins = [f"http://{host}:{port}" for host in ("127.0.0.1", "localhost")]
        self._cookie, self._key = f"empirisk_studio_{port}", secrets.token_urlsafe(LETTERS)
        self._token = ""
        self.renew()

    def renew(self) -> None:
        """Make another token, and announce the address with it."""
        self._token = secrets.token_urlsafe(LETTERS)
        self._announce(f"{self._origins[0]}/?token={self._token}")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                added = [(k.lower().encode(), v.encode()) for k, v in SAFE.items() if k.lower().encode() not in names]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await (self.app if refusal is None else refusal)(scope, receive, send_safely)

    def _refusal(self, scope: Any) -> Response | None:
        """The answer to a request that does not reach the application; None for one that does."""
        headers = Headers(scope=scope)
        if f"http://{headers.get('host', '')}" not in self._origins:
            return problem(421, "The studio answers to 127.0.0.1 alone.")
        if headers.get("origin", self._origins[0]) not in self._origins:
            return problem(403, "Another page asked for this; the studio answers to its own pages alone.")
        known = self._knows(headers.get("cookie", ""))
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given is None:
            return None if known else problem(403, STRANGER)
        fresh = hmac.compare_digest(given[0].encode(), self._token.encode())
        if fresh:
            self.renew()
        if not fresh and not known:
            return problem(403, SPENT)
        # "strict" would shut out who follows a link to the studio, such as that of the file which opens the browser; a
        # page of another origin can neither read what it leads to nor change anything by it.
        answer = RedirectResponse(scope["path"] or "/", 303)
        answer.set_cookie(self._cookie, self._key, httponly=True, samesite="lax", path="/")
        return answer

    def _knows(self, cookies: str) -> bool:
        try:
            given = SimpleCookie(cookies).get(self._cookie)
        except CookieError:
            return False
        return given is not None and hmac.compare_digest(given.value.encode(), self._key.encode())
