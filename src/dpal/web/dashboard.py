"""The dashboard: what whoever runs the campaigns sees and does, and the public view that an officer has."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dpal.campaign.arranging import add_person, arrange, remove_person, renew_link
from dpal.campaign.background import last_output, start_run
from dpal.campaign.campaign import Campaign
from dpal.campaign.labelling_desk import LabellingDesk
from dpal.campaign.progress_file import progress_of, request_stop
from dpal.campaign.reader import Reader
from dpal.campaign.status import FINISHED
from dpal.errors import DpalError, InvalidArgument, NotForYou
from dpal.labels.people import EXPERT, OFFICER
from dpal.planning.unit_words import plural
from dpal.web.access import Access, campaign_path
from dpal.web.downloads import CERTIFICATE, MODEL, PUBLIC_REPORT, REPORT, curve_svg, written
from dpal.web.requests import body_of, handled
from dpal.web.what_if import what_if

# What an officer may have: the same that may be passed on.
_PUBLIC_FILES = (PUBLIC_REPORT, CERTIFICATE)


def dashboard_routes(access: Access) -> list[Route]:
    """Addresses for the operator, and a campaign's public ones for its officers."""
    as_of_model = AsOfModel()

    def session(request: Request, body: Mapping[str, Any]) -> Response:
        response = JSONResponse({})
        access.operator_let_in(request, body.get("token"), response)
        return response

    def operators_desk(request: Request) -> LabellingDesk:
        access.require_operator(request)
        return access.desk(request)

    def campaigns(request: Request) -> Response:
        access.require_operator(request)
        return JSONResponse([_summary(name, desk) for name, desk in access.desks.items()])

    def campaign(request: Request) -> Response:
        desk = operators_desk(request)
        name = request.path_params["campaign"]
        return JSONResponse(_summary(name, desk) | _internal(name, desk) | {"others": _others(access, name)})

    def start(request: Request, body: Mapping[str, Any]) -> Response:
        start_run(operators_desk(request).folder, go_on=body.get("go_on") is True)
        return JSONResponse({})

    def stop(request: Request, body: Mapping[str, Any]) -> Response:
        return JSONResponse({"stopping": request_stop(operators_desk(request).folder)})

    def close_round(request: Request, body: Mapping[str, Any]) -> Response:
        return JSONResponse({"left_out": Campaign(operators_desk(request).folder).close_round()})

    def people(request: Request, body: Mapping[str, Any]) -> Response:
        _change_people(Reader(operators_desk(request).folder), body)
        return JSONResponse({})

    def plan_picture(request: Request) -> Response:
        desk, given = operators_desk(request), request.query_params
        numbers = {name: given[name] for name in ("epsilon", "labels", "phases") if name in given}
        return JSONResponse(what_if(desk.folder, numbers))

    def curve(request: Request) -> Response:
        desk = operators_desk(request)
        baseline = access.desks.get(request.query_params.get("baseline", ""))
        return _svg(curve_svg(desk.folder, baseline=None if baseline is None else baseline.folder))

    def download(request: Request) -> Response:
        return _file(operators_desk(request), request.path_params["file"], (REPORT, PUBLIC_REPORT, CERTIFICATE, MODEL))

    def officers_desk(request: Request) -> LabellingDesk:
        desk, person = access.person(request)
        if person.role != OFFICER:
            raise NotForYou
        return desk

    def public(request: Request) -> Response:
        desk, name = officers_desk(request), request.path_params["campaign"]
        return JSONResponse(as_of_model.get(desk, "status", lambda: _coarse(name, desk)))

    def public_curve(request: Request) -> Response:
        desk = officers_desk(request)
        return as_of_model.get(desk, "curve", lambda: _svg(curve_svg(desk.folder, baseline=None)))

    def public_download(request: Request) -> Response:
        desk, file = officers_desk(request), request.path_params["file"]
        return as_of_model.get(desk, file, lambda: _file(desk, file, _PUBLIC_FILES))

    place = "/api/campaigns/{campaign}"

    def change(path: str, handler: Callable[[Request, Mapping[str, Any]], Response]) -> Route:
        return Route(path, handled(body_of(handler)), methods=["POST"])

    return [
        change("/session", session),
        Route("/api/campaigns", handled(campaigns)),
        Route(place, handled(campaign)),
        change(f"{place}/start", start),
        change(f"{place}/stop", stop),
        change(f"{place}/close-round", close_round),
        change(f"{place}/people", people),
        Route(f"{place}/what-if", handled(plan_picture)),
        Route(f"{place}/curve", handled(curve)),
        Route(f"{place}/download/{{file}}", handled(download)),
        Route("/c/{campaign}/api/public", handled(public)),
        Route("/c/{campaign}/api/public/curve", handled(public_curve)),
        Route("/c/{campaign}/api/public/download/{file}", handled(public_download)),
    ]


class AsOfModel:
    """What officers see, made once for each released model: what changes with every label would tell how many come."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], tuple[object, Any]] = {}
        self._lock = Lock()

    def get(self, desk: LabellingDesk, what: str, make: Callable[[], Any]) -> Any:
        """What was made when the newest model was released, or else is made now."""
        state = desk.state
        # A model's measurements come a moment after it.
        moment = (state.phases_ended, len(state.evaluated), state.finished)
        with self._lock:
            if self._made.get((desk.mark, what), (None, None))[0] != moment:
                self._made[desk.mark, what] = (moment, make())
            return self._made[desk.mark, what][1]


def _coarse(name: str, desk: LabellingDesk) -> dict[str, Any]:
    """The public view without when labels are waited for."""
    document = _public(name, desk)
    status = document["status"]
    if status["stage"] != FINISHED:
        phase = min(status["phases_done"] + len(status["phases_given_up"]) + 1, status["phases"])
        status |= {"stage": "under way", "next_step": f"phase {phase} of {status['phases']}"}
    return document


def _public(name: str, desk: LabellingDesk) -> dict[str, Any]:
    """What may be passed on: the status without its internal part, and the plan's own numbers."""
    status = desk.status()
    document = status.to_json()
    del document["internal"], document["folder"]
    return {"name": name, "status": document | {"units": plural(status.unit)}}


def _summary(name: str, desk: LabellingDesk) -> dict[str, Any]:
    """A campaign at a glance. The part called internal is not covered by the promise."""
    try:
        progress = desk.progress()
    except (DpalError, OSError) as error:
        return {"name": name, "problem": str(error)}
    running = progress_of(desk.folder)
    return _public(name, desk) | {
        "internal": {
            "asked": progress.asked,
            "decided": progress.decided,
            "differ": progress.differ,
            "waiting": {name: count for name, count in progress.waiting.items() if count},
            "running": None if running is None else {"since": running["since"], "lines": running["lines"]},
        }
    }


def _internal(name: str, desk: LabellingDesk) -> dict[str, Any]:
    """What only whoever runs the campaign sees: people and their links, agreement, the last output."""
    progress, arrangement = desk.progress(), desk.arrangement
    people = [
        {
            "name": person.name,
            "role": person.role,
            "link": f"{campaign_path(name)}#token={desk.token(person)}",
            "answered": progress.answered.get(person.name),
            "waiting": progress.waiting.get(person.name),
        }
        for person in arrangement.people
    ]
    return {
        "people": people,
        "arrangement": {"see": arrangement.see, "overlap": arrangement.overlap, "rule": arrangement.rule},
        "rule": arrangement.in_words(),
        "agreement": desk.agreement(),
        "output": last_output(desk.folder),
        "plan": _planned(desk),
    }


def _planned(desk: LabellingDesk) -> dict[str, Any]:
    plan = desk.reader.plan
    return {
        "epsilon": plan.setting.target_epsilon,
        "labels": sum(group.size for group in plan.groups),
        "phases": len(plan.phases),
        "pool_size": plan.setting.pool_size,
    }


def _others(access: Access, name: str) -> list[str]:
    """Campaigns whose curve may be drawn next to this one's."""
    return [other for other in access.desks if other != name]


def _change_people(reader: Reader, body: Mapping[str, Any]) -> None:
    name = body.get("name", "")
    if not isinstance(name, str):
        raise InvalidArgument("the name", "this one", "a text")
    match body.get("do"):
        case "add":
            role = body.get("role", EXPERT)
            add_person(reader, name.strip(), role if isinstance(role, str) else "")
        case "remove":
            remove_person(reader, name)
        case "renew":
            renew_link(reader, name)
        case "arrange":
            overlap = body.get("overlap")
            if overlap is not None and (isinstance(overlap, bool) or not isinstance(overlap, int | float)):
                raise InvalidArgument("the overlap", "this one", "a share from 0 to 1")
            see, rule = body.get("see"), body.get("rule")
            arrange(reader, see=see and str(see), overlap=overlap, rule=rule and str(rule))
        case _:
            raise InvalidArgument("the change", "this one", "add, remove, renew or arrange")


def _svg(content: str | None) -> Response:
    if content is None:
        raise NotForYou
    return Response(content, media_type="image/svg+xml")


def _file(desk: LabellingDesk, kind: str, allowed: tuple[str, ...]) -> Response:
    """Write the file now, from the campaign as it is, and send it."""
    if kind not in allowed:
        raise NotForYou
    with tempfile.TemporaryDirectory() as place:
        file = written(desk.folder, kind, Path(place))
        content = file.read_bytes()
    # Not the folder's name, which may have letters that a header cannot.
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    return Response(content, headers=headers, media_type="application/octet-stream")
