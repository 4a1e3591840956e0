"""The history of every answer: who gave it, when, and from what to what. Internal, like all about labels."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from dpal.campaign.facts import Answered
from dpal.campaign.reader import Reader
from dpal.labels.answers import Answer, answer_in_words
from dpal.labels.people import Opinion


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer in the history. `before` and `after` are in words; empty: none, or taken back."""

    at: str
    who: str
    name: str
    before: str = field(repr=False)
    after: str = field(repr=False)
    note: str = field(repr=False)

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def answer_history(reader: Reader) -> list[Said]:
    """All answers in the order in which they came, from the page, tables and oracles; chained facts hold them."""
    contents = reader.contents()
    state = reader.known_state()
    by_unit = state.created.unit is not None and state.created.unit["one_label"]
    names, units = reader.names(contents), reader.unit_names(contents)
    classes, newest = state.created.classes, dict[tuple[str, str], str]()

    def said(at: str, who: str, question: str, answer: Answer | None, note: str, *, is_unit: bool) -> Said:
        after = "" if answer is None else answer_in_words(answer, classes)
        name = (units if is_unit else names).name_of(question)
        before = newest.get((who, question), "")
        newest[who, question] = after
        return Said(at=at, who=who, name=name, before=before, after=after, note=note)

    def all_of_them() -> Iterator[Said]:
        for entry in reader.recorded:
            if not isinstance(entry.fact, Answered):
                continue
            opinions = [Opinion.from_json(document) for document in entry.fact.opinions]
            for one in opinions:
                yield said(one.at, one.person, one.question, one.answer, one.note, is_unit=bool(by_unit))
            if not entry.fact.inbox:
                for record_id, answer in entry.fact.answers.items():
                    yield said(entry.at, entry.fact.source, record_id, answer, "", is_unit=False)

    return list(all_of_them())
