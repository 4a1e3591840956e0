"""The labelling page: what a person's browser asks for, and the answers that it sends."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dpal.campaign.guidelines import example_picture, read_guidelines
from dpal.campaign.labelling_desk import LabellingDesk
from dpal.data.deep_images import Window, window_of
from dpal.errors import InvalidArgument, NotForYou
from dpal.labels.answers import Answer
from dpal.labels.people import ARBITER, EXPERT, Opinion, Person
from dpal.web.access import Access
from dpal.web.requests import body_of, handled, number_in, refused


def labelling_routes(access: Access) -> list[Route]:
    """All addresses below a campaign's that experts, arbiters and officers use."""

    def session(request: Request, body: Mapping[str, Any]) -> Response:
        response = JSONResponse({})
        person = access.person_let_in(request, body.get("token"), response)
        response.body = response.render({"role": person.role})
        response.headers["content-length"] = str(len(response.body))
        return response

    def leave(request: Request, body: Mapping[str, Any]) -> Response:
        response = JSONResponse({})
        access.desk(request)
        access.person_goes(request, response)
        return response

    def task(request: Request) -> Response:
        desk, person = access.person(request)
        return JSONResponse(_task(request.path_params["campaign"], desk, person))

    def queue(request: Request) -> Response:
        desk, person = _labeller(access, request)
        waiting, said = desk.queue(person)
        progress = desk.progress()
        return JSONResponse(
            {
                "waiting": waiting,
                "done": [_opinion(desk.name_of(opinion), opinion) for opinion in said],
                "all": {"decided": progress.decided, "asked": progress.asked},
                "finished": desk.state.finished,
            }
        )

    def question(request: Request) -> Response:
        desk, person = _labeller(access, request)
        shown = desk.shown(person, request.query_params.get("name", ""))
        return JSONResponse(
            {
                "name": shown.name,
                "texts": [list(texts) for texts in shown.texts],
                "pictures": shown.pictures,
                "said": None if shown.opinion is None else _opinion(shown.name, shown.opinion),
                "others": [_plain(answer) for answer in shown.others],
            }
        )

    def picture(request: Request) -> Response:
        desk, person = _labeller(access, request)
        name, number = request.query_params.get("name", ""), number_in(request.query_params.get("number", "0"))
        window = _window(request) if desk.window is not None else None
        return Response(desk.picture(person, name, number, window), media_type="image/png")

    def example(request: Request) -> Response:
        desk, _ = _labeller(access, request)
        return Response(
            example_picture(desk.folder, number_in(request.query_params.get("number", "0"))), media_type="image/png"
        )

    def answer(request: Request, body: Mapping[str, Any]) -> Response:
        desk, person = _labeller(access, request)
        if not {"question", "answer", "key"} <= set(body) <= {"question", "answer", "key", "note"}:
            raise InvalidArgument("the request", "this one", "a question, an answer, a key and perhaps a note")
        name, note, key = body["question"], body.get("note", ""), body["key"]
        if not (isinstance(name, str) and isinstance(note, str) and isinstance(key, str)):
            raise InvalidArgument("question, note and key", "these", "texts")
        try:
            entry = desk.answer(person, name, body["answer"], note=note, key=key)
        except (InvalidArgument, NotForYou) as error:
            # For good: the page need not send this answer again, and whatever else goes wrong it must.
            return refused(404 if isinstance(error, NotForYou) else 400, str(error), final=True)
        return JSONResponse({"saved": entry.number})

    place = "/c/{campaign}"
    return [
        Route(f"{place}/session", handled(body_of(session)), methods=["POST"]),
        Route(f"{place}/leave", handled(body_of(leave)), methods=["POST"]),
        Route(f"{place}/api/answer", handled(body_of(answer)), methods=["POST"]),
        Route(f"{place}/api/task", handled(task)),
        Route(f"{place}/api/queue", handled(queue)),
        Route(f"{place}/api/question", handled(question)),
        Route(f"{place}/api/picture", handled(picture)),
        Route(f"{place}/api/example", handled(example)),
    ]


def _labeller(access: Access, request: Request) -> tuple[LabellingDesk, Person]:
    """An expert or arbiter. An officer has no business with records."""
    desk, person = access.person(request)
    if person.role not in (EXPERT, ARBITER):
        raise NotForYou
    return desk, person


def _task(name: str, desk: LabellingDesk, person: Person) -> dict[str, Any]:
    """What the page needs to know once. Nothing of the plan, of models or of others' answers."""
    state = desk.state
    # Unsent answers are kept under the owner: nobody else's page sends them, also in the same browser.
    facts = {"campaign": name, "person": person.name, "role": person.role, "owner": f"{desk.mark}-{person.who}"}
    if person.role not in (EXPERT, ARBITER):
        return facts
    guidelines, unit = read_guidelines(desk.folder), state.created.unit
    return facts | {
        "classes": list(state.created.classes),
        "multi_label": state.created.multi_label,
        "shows": desk.shows,
        "window": None if desk.window is None else [desk.window.center, desk.window.width],
        "unit": unit["word"] if unit is not None and unit["one_label"] else None,
        "guidelines": {"text": guidelines.text, "examples": list(guidelines.examples)},
        "rule": desk.arrangement.in_words(),
    }


def _window(request: Request) -> Window | None:
    """The window that a person has chosen, if any."""
    given = [request.query_params[name] for name in ("center", "width") if name in request.query_params]
    if not given:
        return None
    try:
        return window_of([float(number) for number in given])
    except ValueError as error:
        raise InvalidArgument("the window", "this one", "two numbers, with a width above 0") from error


def _opinion(name: str, opinion: Opinion) -> dict[str, Any]:
    return {"name": name, "answer": _plain(opinion.answer), "note": opinion.note}


def _plain(answer: Answer | None) -> object:
    return list(answer) if isinstance(answer, tuple) else answer
