"""A proxy that passes every request on and loses some replies: what was asked is done, and nobody hears of it."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

_HOP = {
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "content-encoding",
    "keep-alive",
    "accept-encoding",
}


@contextmanager
def losing_proxy(target: str) -> Generator[tuple[str, list[str]]]:
    """Its address, and the requests whose replies were lost: the first of every kind that makes something."""
    lost: list[str] = []
    guard = threading.Lock()

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            self.close_connection = True
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            try:
                reply = httpx.request(self.command, f"{target}{self.path}", content=body, headers=headers, timeout=60)
            except httpx.HTTPError:
                return
            what = f"{self.command} {self.path.partition('?')[0]}"
            with guard:
                if self.command != "GET" and what not in lost:
                    lost.append(what)
                    return
            self.send_response(reply.status_code)
            self.send_header("Content-Type", reply.headers.get("Content-Type", "application/json"))
            self.send_header("Content-Length", str(len(reply.content)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(reply.content)

        do_GET = do_POST = do_PATCH = do_DELETE = _pass_on  # noqa: N815 - the base class's names

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", lost
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
