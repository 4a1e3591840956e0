"""Who may do what: links hold a token, a page exchanges it for a cookie, and every request is checked against it."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from starlette.requests import Request
from starlette.responses import Response

from dpal.campaign.labelling_desk import LabellingDesk
from dpal.data import Pool
from dpal.errors import InvalidArgument, NotForYou
from dpal.labels.people import Person
from dpal.web.protection import BadTokens

# A month: people label for weeks, and a link can be made useless at any time.
_COOKIE_SECONDS = 30 * 24 * 3600
OPERATOR = "dpal-operator"
# Where things are, with cookies that go nowhere else.
HOME = "/"


def campaign_path(name: str) -> str:
    return f"/c/{name}/"


class NotAllowed(Exception):
    """Nobody has this link, or not any more. With `wait`, after too many wrong ones."""

    def __init__(self, *, wait: bool = False) -> None:
        self.wait = wait


@dataclass(frozen=True, kw_only=True)
class Access:
    """The campaigns that are served, by the name in their address, and who may come in."""

    desks: Mapping[str, LabellingDesk]
    # Whether cookies are for TLS only.
    is_https: bool
    bad_tokens: BadTokens = field(default_factory=BadTokens)

    @property
    def operator_token(self) -> str:
        """The token of whoever runs these campaigns: it takes the keys of all of them to make it."""
        keys = b"".join(
            hashlib.sha256(desk.key + str(desk.arrangement.operator).encode()).digest()
            for _, desk in sorted(self.desks.items())
        )
        return hmac.new(keys, b"dpal operator", hashlib.sha256).hexdigest()

    def desk(self, request: Request) -> LabellingDesk:
        desk = self.desks.get(request.path_params.get("campaign", ""))
        if desk is None:
            raise NotForYou
        return desk

    def person(self, request: Request) -> tuple[LabellingDesk, Person]:
        """The campaign of this address and whose cookie came with the request."""
        desk = self.desk(request)
        token = request.cookies.get(self._cookie(request))
        person = desk.person_with(token) if token is not None and _is_token(token) else None
        if person is None:
            raise NotAllowed
        return desk, person

    def require_operator(self, request: Request) -> None:
        token = request.cookies.get(self._operator_cookie, "")
        if not hmac.compare_digest(token.encode(), self.operator_token.encode()):
            raise NotAllowed

    def person_let_in(self, request: Request, token: object, response: Response) -> Person:
        """Exchange a person's token for a cookie."""
        desk = self.desk(request)
        person = desk.person_with(str(token)) if _is_token(token) else None
        if person is None:
            self._refuse(request)
        self._set(response, self._cookie(request), str(token), campaign_path(request.path_params["campaign"]))
        return person

    def operator_let_in(self, request: Request, token: object, response: Response) -> None:
        """Exchange the operator's token for a cookie."""
        if not _is_token(token) or not hmac.compare_digest(str(token), self.operator_token):
            self._refuse(request)
        self._set(response, self._operator_cookie, str(token), HOME)

    def person_goes(self, request: Request, response: Response) -> None:
        response.delete_cookie(self._cookie(request), path=campaign_path(request.path_params["campaign"]))

    def _cookie(self, request: Request) -> str:
        """Browsers send a host's cookies to each of its ports: the name tells campaigns of one name apart."""
        name = request.path_params["campaign"]
        return f"dpal-{name}-{self.desks[name].mark}"

    @property
    def _operator_cookie(self) -> str:
        return f"{OPERATOR}-{hashlib.sha256(self.operator_token.encode()).hexdigest()[:8]}"

    def _set(self, response: Response, name: str, token: str, path: str) -> None:
        response.set_cookie(
            name, token, max_age=_COOKIE_SECONDS, path=path, httponly=True, samesite="strict", secure=self.is_https
        )

    def _refuse(self, request: Request) -> NoReturn:
        """A link that nobody has. Only such are counted: whoever has the right one, or had it before, need not wait."""
        address = request.client.host if request.client else ""
        if self.bad_tokens.must_wait(address):
            raise NotAllowed(wait=True)
        self.bad_tokens.note(address)
        raise NotAllowed


def _is_token(token: object) -> bool:
    return isinstance(token, str) and len(token) == 64 and token.isascii()


def named_desks(folders: list[Path], pools: Mapping[Path, Pool] | None = None) -> dict[str, LabellingDesk]:
    """The campaigns by the names that their addresses have: from the folders' names, all different."""
    desks: dict[str, LabellingDesk] = {}
    for folder in folders:
        plain = re.sub(r"[^a-z0-9]+", "-", folder.absolute().name.lower()).strip("-") or "campaign"
        name, number = plain, 1
        while name in desks:
            number += 1
            name = f"{plain}-{number}"
        if any(desk.folder == folder.absolute() for desk in desks.values()):
            raise InvalidArgument("CAMPAIGN", str(folder), "given once")
        desks[name] = LabellingDesk(folder.absolute(), pool=(pools or {}).get(folder))
    return desks
