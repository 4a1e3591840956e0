"""Requests and errors: JSON bodies in, one sentence out for whatever went wrong, and never a traceback."""

import inspect
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from dpal.errors import CampaignBusy, DpalError, InvalidArgument, MissingData, NotForYou, RecordsChanged
from dpal.web.access import NotAllowed
from dpal.web.protection import BodyRefused

Handler = Callable[[Request], Response | Awaitable[Response]]
_CHANGED = "This record is not as it was when the campaign began. Tell whoever runs the campaign; go on with the next."
_NOT_SAVED = "Something went wrong on the server, and nothing was saved. Its log says what. Try again in a moment."


def body_of(handler: Callable[[Request, Mapping[str, Any]], Response]) -> Handler:
    """A handler that gets the request's JSON object, and runs in a thread."""

    async def with_body(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError) as error:
            raise InvalidArgument("the request", "this one", "JSON") from error
        if not isinstance(body, dict):
            raise InvalidArgument("the request", "this one", "a JSON object")
        return await run_in_threadpool(handler, request, cast("dict[str, Any]", body))

    return with_body


def handled(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The handler with every error as a status and a sentence. What is private goes to the server's log only."""

    async def safely(request: Request) -> Response:
        try:
            if inspect.iscoroutinefunction(handler):
                return await handler(request)
            return await run_in_threadpool(cast("Callable[[Request], Response]", handler), request)
        except NotAllowed as error:
            if error.wait:
                return refused(429, "Too many wrong links came from here. Wait a minute and try again.")
            return refused(401, "This link is not valid any more. Ask whoever runs the campaign for a new one.")
        except NotForYou as error:
            return refused(404, str(error))
        except InvalidArgument as error:
            return refused(400, str(error))
        except RecordsChanged as error:
            _log(request, error)
            return refused(409, _CHANGED)
        except CampaignBusy as error:
            return refused(503, str(error))
        except MissingData as error:
            _log(request, error)
            return refused(404, "This is not there.")
        except (DpalError, OSError) as error:
            _log(request, error)
            return refused(500, _NOT_SAVED)
        except ClientDisconnect:
            return refused(400, "The request broke off. Nothing was saved.")
        except BodyRefused:
            raise
        except Exception as error:
            # A mistake of ours. Who sent the request learns nothing about the inside from it.
            _log(request, error)
            traceback.print_exc()
            return refused(500, _NOT_SAVED)

    return safely


def refused(status: int, words: str, *, final: bool = False) -> Response:
    """An error in words; `final` if the same request can never succeed."""
    return JSONResponse({"error": words} | ({"final": True} if final else {}), status_code=status)


def number_in(text: str) -> int:
    """A whole number from an address."""
    if not text.isdecimal() or len(text) > 6:
        raise NotForYou
    return int(text)


def _log(request: Request, error: Exception) -> None:
    # Only the path: what stands behind it may name a record.
    print(f"{request.method} {request.url.path}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
