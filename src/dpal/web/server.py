"""The server: what is served where, under which addresses, and the links that people are given."""

import signal
import socket
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from dpal.data import Pool
from dpal.errors import InvalidArgument
from dpal.training.progress import doing
from dpal.web.access import Access, campaign_path, named_desks
from dpal.web.dashboard import dashboard_routes
from dpal.web.labelling import labelling_routes
from dpal.web.protection import Protection
from dpal.web.requests import handled, refused

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_TEMPLATES = Environment(loader=PackageLoader("dpal.web"), autoescape=True, undefined=StrictUndefined)


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the server listens, and the address that people type."""

    host: str
    port: int
    # As people reach it, if that differs: behind a reverse proxy, or from other machines.
    public_url: str | None = None

    @property
    def base(self) -> str:
        """What links start with."""
        if self.public_url is not None:
            return self.public_url
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def origins(self) -> frozenset[str]:
        """The addresses that a request may name."""
        local = {f"http://{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if self.port == 80:
            local |= {origin.removesuffix(":80") for origin in local}
        return frozenset({*local, self.base})


def checked_public_url(url: str | None, host: str) -> str | None:
    """The address that people type, as browsers name it; needed where others than this machine can reach the server."""
    if url is None:
        if host not in LOOPBACK:
            raise InvalidArgument(
                "--host",
                host,
                "127.0.0.1, unless --public-url says by which address people reach it, such as https://label.clinic.org",
            )
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query or "@" in url:
        raise InvalidArgument("--public-url", url, "an address such as https://label.clinic.org, without a path")
    try:
        name, port = str(parts.hostname).encode("idna").decode(), parts.port
    except (UnicodeError, ValueError) as error:
        raise InvalidArgument("--public-url", url, "an address such as https://label.clinic.org") from error
    name = f"[{name}]" if ":" in name else name
    is_usual = port in (None, {"http": 80, "https": 443}[parts.scheme])
    return f"{parts.scheme}://{name}" if is_usual else f"{parts.scheme}://{name}:{port}"


def links(access: Access, base: str) -> list[tuple[str, str]]:
    """Whom each link is for, and the link. The token is behind #, which browsers do not send."""
    operator = [("you, who run the campaigns", f"{base}/#token={access.operator_token}")]
    return operator + [
        (f"{person.name} ({person.role}, {name})", f"{base}{campaign_path(name)}#token={desk.token(person)}")
        for name, desk in access.desks.items()
        for person in desk.arrangement.people
    ]


def application(access: Access, origins: frozenset[str]) -> Starlette:
    """Everything that is served."""
    static = {
        file.name: file.read_bytes()
        for file in files("dpal.web").joinpath("static").iterdir()
        if Path(file.name).suffix in _TYPES
    }

    def static_file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static:
            return refused(404, "This is not there.")
        return Response(static[name], media_type=_TYPES[Path(name).suffix])

    def labelling_page(request: Request) -> Response:
        access.desk(request)
        return HTMLResponse(_TEMPLATES.get_template("label.html").render(campaign=request.path_params["campaign"]))

    def dashboard_page(request: Request) -> Response:
        return HTMLResponse(_TEMPLATES.get_template("dashboard.html").render())

    def public_page(request: Request) -> Response:
        access.desk(request)
        return HTMLResponse(_TEMPLATES.get_template("public.html").render(campaign=request.path_params["campaign"]))

    async def not_found(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return refused(status, "This is not there.")

    routes = [
        Route("/static/{name}", static_file),
        Route("/", handled(dashboard_page)),
        Route("/c/{campaign}/", handled(labelling_page)),
        Route("/c/{campaign}/public", handled(public_page)),
        *labelling_routes(access),
        *dashboard_routes(access),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Protection, origins=origins)],
        exception_handlers={HTTPException: not_found},
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said to be TCP, asyncio sends each small answer at once; otherwise it waits 40 ms for more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InvalidArgument(
            "--port", port, f"free on {host} ({error.strerror}); is dpal serve running already? Choose another one"
        ) from error
    return listening


@contextmanager
def stopped_by_ctrl_c(server: uvicorn.Server) -> Generator[None]:
    """Ctrl-C is how a server is stopped, also where it has just begun: uvicorn hears it only once it listens."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def serve(
    folders: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    public_url: str | None = None,
    pools: Mapping[Path, Pool] | None = None,
    ready: Callable[[Access, Address], None],
) -> None:
    """Serve these campaigns until it is stopped. `ready` is called once, when it listens.

    `pools` are those of campaigns that were made from objects in Python.
    """
    public_url = checked_public_url(public_url, host)
    desks = named_desks(list(folders), pools)
    listening = bound(host, port)
    try:
        for desk in desks.values():
            with doing(f"opening the data of {desk.folder.name}"):
                desk.open_pool()
        address = Address(host=host, port=listening.getsockname()[1], public_url=public_url)
        access = Access(desks=desks, is_https=address.base.startswith("https:"))
        config = uvicorn.Config(
            application(access, address.origins),
            log_level="warning",
            access_log=False,
            server_header=False,
            # Only a reverse proxy may say where a request comes from.
            proxy_headers=public_url is not None,
            lifespan="off",
            # Nothing here is a web socket, whichever libraries for them are installed.
            ws="none",
            timeout_graceful_shutdown=5,
        )
        server = uvicorn.Server(config)
        with stopped_by_ctrl_c(server):
            ready(access, address)
            server.run(sockets=[listening])
    finally:
        listening.close()
