"""Changing who labels, while the campaign runs or not: each change waits in the inbox like an answer."""

from dataclasses import asdict

from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import Intake, arrangement_entry, rearranged
from dpal.campaign.reader import Reader
from dpal.errors import InvalidArgument
from dpal.labels.people import EXPERT, Arrangement, Person
from dpal.randomness import new_key


def current_arrangement(reader: Reader) -> Arrangement:
    """Who labels now, with what waits in the inbox."""
    state = reader.state()
    intake = Intake(state=state, questions={}, key=b"")
    for entry in Inbox(reader.folder).after(state.inbox):
        intake.take(entry)
    return intake.arrangement


def add_person(reader: Reader, name: str, role: str = EXPERT) -> Person:
    """Add someone, with a link that nobody had before: also where a person of this name was removed."""
    person = Person(name=name, role=role, generation=_drawn(), identity=_drawn())
    _change(reader, current_arrangement(reader), add=asdict(person))
    # Somebody may have added the same name at the same moment: the first one counts.
    if current_arrangement(reader).person(name) != person:
        raise InvalidArgument("the name", name, "of nobody who is there already")
    return person


def _drawn() -> int:
    return int.from_bytes(new_key()[:4], "big")


def remove_person(reader: Reader, name: str) -> Arrangement:
    """Their link stops working; what they answered stays."""
    return _change(reader, _with(reader, name), remove=name)


def renew_link(reader: Reader, name: str) -> Person:
    """A new link for someone; the old one stops working."""
    person = _change(reader, _with(reader, name), renew=name).person(name)
    if person is None:
        raise InvalidArgument("the name", name, "of someone who is there")
    return person


def renew_operators_link(reader: Reader) -> Arrangement:
    """A new link for whoever runs the campaign; the old one stops working."""
    return _change(reader, current_arrangement(reader), operator=_drawn())


def arrange(
    reader: Reader, *, see: str | None = None, overlap: float | None = None, rule: str | None = None
) -> Arrangement:
    """Change who sees what, the share that two experts answer, or the rule for several answers."""
    given = {"see": see, "overlap": overlap, "rule": rule}
    change = {name: value for name, value in given.items() if value is not None}
    known = current_arrangement(reader)
    return _change(reader, known, **change) if change else known


def _with(reader: Reader, name: str) -> Arrangement:
    known = current_arrangement(reader)
    if known.person(name) is None:
        there = ", ".join(person.name for person in known.people) or "nobody yet"
        raise InvalidArgument("the name", name, f"of someone who is there ({there})")
    return known


def _change(reader: Reader, known: Arrangement, **change: object) -> Arrangement:
    body = arrangement_entry(**change)
    # Refused before it is written, because what is written stays.
    changed = rearranged(known, body)
    Inbox(reader.folder).add(body, person="", key=new_key().hex(), above=reader.known_state().inbox)
    return changed
