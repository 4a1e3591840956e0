"""The one door by which answers become facts, whoever brings them."""

from collections.abc import Mapping, Sequence

from dpal.campaign import fault_points
from dpal.campaign.facts import Answered
from dpal.campaign.fingerprints import Contents
from dpal.campaign.state import State
from dpal.campaign.writer import Writer
from dpal.data import Pool
from dpal.errors import BadData
from dpal.labels.answers import Answer, read_answer
from dpal.labels.label_files import labels_refused
from dpal.labels.oracles import Oracle, SimulatedOracle, answers_of, oracle_name, pairs_of
from dpal.labels.people import Opinion


def record_answers(
    writer: Writer,
    answers: Mapping[str, Answer | None],
    *,
    source: str,
    opinions: Sequence[Opinion] = (),
    inbox: int = 0,
) -> dict[str, int]:
    """Record checked answers, all or none; returns how many were new, corrected, unchanged, or about withdrawn records.

    Every answer enters a campaign here. Answers about withdrawn records are counted and not recorded. Those from the
    page come with what each person said, and with the number up to which the inbox is taken in; None takes one back.
    """
    state = writer.state
    asked = {record_id for group in state.groups for record_id in group}
    checked = {record_id: answer for record_id, answer in answers.items() if record_id not in state.withdrawn}
    if strangers := [f"the id {record_id!r} was not asked for" for record_id in checked if record_id not in asked]:
        raise labels_refused(f"the answers from {source}", strangers)
    changed = {record_id: answer for record_id, answer in checked.items() if state.answers.get(record_id) != answer}
    # A table counts also where it says what people on the page said before: they may change their minds.
    confirmed = {} if inbox else {name: answer for name, answer in checked.items() if state.filed.get(name) != answer}
    if changed or confirmed or inbox:
        said = tuple(opinion.to_json() for opinion in opinions)
        writer.add(Answered(source=source, answers=confirmed | changed, opinions=said, inbox=inbox))
    new = sum(record_id not in state.answers for record_id in changed)
    return {
        "new": new,
        "corrected": len(changed) - new,
        "unchanged": len(checked) - len(changed),
        "withdrawn": len(answers) - len(checked),
    }


def ask_oracle(writer: Writer, group: int, oracle: Oracle, pool: Pool) -> bool:
    """Ask about a group; False if answers come later. Answers that were given before the oracle failed are kept."""
    fault_points.reached("labels.asked")
    missing = writer.state.missing(group)
    if group == 0 and writer.state.created.initial and pool.labels is not None:
        # Records that were labelled from the start bring their own labels.
        oracle = SimulatedOracle()
    name, given = oracle_name(oracle), answers_of(oracle, missing, pool)
    if given is None:
        return False
    answers: dict[str, Answer] = {}
    asked = set(missing)
    try:
        for record_id, answer in pairs_of(oracle, given):
            if record_id not in asked:
                raise BadData(f"The oracle {name} answered about {record_id!r}, which it was not asked about.")
            # The checked value at once: the oracle may use one array for all of its answers.
            answers[record_id] = read_answer(answer, record_id, pool.classes, pool.multi_label)
    finally:
        if answers:
            fault_points.reached("labels.answered")
            record_answers(writer, answers, source=name)
            fault_points.reached("labels.recorded")
    return bool(answers)


def asked_units(state: State, contents: Contents) -> dict[str, tuple[str, ...]]:
    """The records that were asked for of each unit, where people give one label for all of them; otherwise nothing."""
    if contents.units is None or state.created.unit is None or not state.created.unit["one_label"]:
        return {}
    unit_of = dict(zip(contents.ids, contents.units, strict=True))
    records: dict[str, tuple[str, ...]] = {}
    for record_id in (record_id for group in state.groups for record_id in group):
        records[unit_of[record_id]] = (*records.get(unit_of[record_id], ()), record_id)
    return records
