"""What every request must pass and every response carries, whatever page it is for.

The pages run in browsers that have other sites open. So a request must name this server (against DNS rebinding), a
change must come from a page of this server (against cross-site requests), and a page may load nothing from elsewhere.
"""

import asyncio
import json
import time
from collections import OrderedDict, deque
from threading import Lock

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 64 * 1024
_TOO_LARGE = f"More than {BODY_LIMIT // 1024} KiB were sent. Nothing was saved."
# From one part of a body to the next.
BODY_SECONDS = 20.0
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "manifest-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    # Records of people: neither a browser nor a proxy keeps a copy.
    "Cache-Control": "no-store",
}


class Protection:
    """Refuses requests that no page of this server makes, and adds the headers above to every response."""

    def __init__(self, app: ASGIApp, *, origins: frozenset[str]) -> None:
        """`origins` are the addresses that this server goes by, such as http://127.0.0.1:8000."""
        self.app, self.origins = app, origins
        self.hosts = {origin.partition("://")[2] for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(guarded, *refusal)
            return
        try:
            await self.app(scope, _limited(receive), guarded)
        except BodyRefused as error:
            if not started:
                await _refuse(guarded, error.status, str(error))
        except asyncio.CancelledError:
            # The server is stopped, and a long request is not waited for: no mistake that a traceback should tell of.
            if not started:
                await _refuse(guarded, 503, "The server is stopping. Try again in a moment.")

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """The status and words for a request that is refused, before anything else looks at it."""
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self.hosts:
            return 400, "This server goes by another name. Open the link that you were given."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET and POST are answered here."
        site = headers.get("sec-fetch-site", "same-origin")
        if scope["method"] == "POST":
            if headers.get("origin") not in self.origins:
                return 403, "This request does not come from a page of this server."
            if site != "same-origin":
                return 403, "This request comes from another site."
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return 415, "Requests are JSON (Content-Type: application/json)."
            length = headers.get("content-length", "0")
            if not length.isdecimal() or len(length) > 12 or int(length) > BODY_LIMIT:
                return 413, _TOO_LARGE
        elif site not in ("same-origin", "none") and headers.get("sec-fetch-mode") != "navigate":
            # Another site may link to a page, which shows nothing without a link of one's own; it may not read.
            return 403, "This request comes from another site."
        return None


class BodyRefused(Exception):
    """More was sent than any page sends, or it was sent too slowly."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def _limited(receive: Receive) -> Receive:
    """Reads no more than the limit, also where a request does not say how long it is, and waits only so long."""
    read = 0

    async def limited() -> Message:
        nonlocal read
        try:
            message = await asyncio.wait_for(receive(), BODY_SECONDS)
        except TimeoutError as error:
            raise BodyRefused(408, "The request did not arrive in time. Nothing was saved.") from error
        read += len(message.get("body", b""))
        if read > BODY_LIMIT:
            raise BodyRefused(413, _TOO_LARGE)
        return message

    return limited


async def _refuse(send: Send, status: int, words: str) -> None:
    body = json.dumps({"error": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class BadTokens:
    """Counts links that nobody has, by address. After some, the address has to wait: guessing takes for ever anyway,
    and this keeps it from costing time.
    """

    def __init__(self, most: int = 20, seconds: float = 60.0, addresses: int = 10_000) -> None:
        self._most, self._seconds, self._addresses = most, seconds, addresses
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def must_wait(self, address: str) -> bool:
        with self._lock:
            times = self._times.get(address, deque())
            now = time.monotonic()
            while times and now - times[0] > self._seconds:
                times.popleft()
            return len(times) >= self._most

    def note(self, address: str) -> None:
        with self._lock:
            times = self._times.setdefault(address, deque(maxlen=self._most))
            times.append(time.monotonic())
            self._times.move_to_end(address)
            while len(self._times) > self._addresses:
                self._times.popitem(last=False)
