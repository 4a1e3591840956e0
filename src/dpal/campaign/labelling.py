"""Answers from functions and from the table that people fill in."""

from collections.abc import Mapping
from pathlib import Path

from dpal.campaign import fault_points
from dpal.campaign.campaign_pool import campaign_pool, checked_records
from dpal.campaign.facts import Closed
from dpal.campaign.fingerprints import Contents
from dpal.campaign.guidelines import read_guidelines
from dpal.campaign.intake import take_in
from dpal.campaign.reader import Reader
from dpal.campaign.recorded_answers import asked_units, record_answers
from dpal.campaign.state import State, WaitForLabels, next_step
from dpal.campaign.writer import Writer, writing
from dpal.data import Pool
from dpal.errors import InvalidArgument
from dpal.labels.answers import Answer, read_answer
from dpal.labels.label_files import Question, labels_refused, read_label_file, write_label_files


def add_answers(
    writer: Writer, answers: Mapping[str, object], *, source: str, units: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """Check answers and record them, all or none; returns the counts of `record_answers`.

    They are by record id or, where people give one label for a whole unit, by a unit of `units`.
    """
    state, created = writer.state, writer.state.created
    known = {*state.withdrawn, *(record_id for group in state.groups for record_id in group), *units}
    checked: dict[str, Answer] = {}
    problems = [f"the id {name!r} was not asked for" for name in answers if name not in known]
    for name, given in answers.items():
        try:
            answer = read_answer(given, name, created.classes, created.multi_label)
        except InvalidArgument as error:
            problems.append(str(error))
            continue
        checked |= dict.fromkeys(units.get(name, (name,)), answer)
    if problems:
        raise labels_refused(f"the answers from {source}", problems)
    return record_answers(writer, checked, source=source)


def import_labels(reader: Reader, file: Path, pool: Pool) -> dict[str, int]:
    """Take the answers of a filled-in table, all or none; returns the counts of `record_answers`."""
    contents = reader.contents()
    state = reader.known_state()
    pool = campaign_pool(pool, state, contents, folder=reader.folder)
    with writing(reader) as writer:
        take_in(writer, lambda: contents)
        state = writer.state
        units = asked_units(state, contents)
        if units:
            gone = frozenset(unit for unit, ids in units.items() if state.withdrawn.issuperset(ids))
            names = reader.unit_names(contents)
            by_unit = read_label_file(file, pool, set(units), names=names, withdrawn=gone)
            answers = {record_id: answer for unit, answer in by_unit.items() for record_id in units[unit]}
        else:
            asked = {record_id for group in state.groups for record_id in group}
            answers = read_label_file(file, pool, asked, names=reader.names(contents), withdrawn=state.withdrawn)
        fault_points.reached("import.checked")
        counts = record_answers(writer, answers, source=file.name)
        fault_points.reached("import.recorded")
    return counts


def export_labels(reader: Reader, folder: Path, pool: Pool, kind: str) -> tuple[int, Path | None]:
    """Write the records that wait for an answer to a folder; returns how many there are, and the file to fill in."""
    contents = reader.contents()
    state = reader.known_state()
    pool = campaign_pool(pool, state, contents, folder=reader.folder)
    waiting = [record_id for group in range(len(state.groups)) for record_id in state.missing(group)]
    if waiting:
        # People must see exactly the records that the model will be trained on.
        checked_records(pool, contents, folder=reader.folder).check(pool.positions(waiting))
        questions = _questions(reader, state, contents, waiting)
        guidelines = read_guidelines(reader.folder).text
        file = write_label_files(
            pool, questions, folder.absolute(), unit_heading=pool.unit, kind=kind, guidelines=guidelines
        )
        return len(waiting), file
    return 0, None


def _questions(reader: Reader, state: State, contents: Contents, waiting: list[str]) -> list[Question]:
    """A line for each record, next to the others of its unit; or one for each unit that gets one label."""
    names = reader.names(contents)
    if contents.units is None:
        return [Question(name=names.name_of(record_id), ids=(record_id,)) for record_id in waiting]
    unit_names, unit_of = reader.unit_names(contents), dict(zip(contents.ids, contents.units, strict=True))
    if units := asked_units(state, contents):
        due = dict.fromkeys(unit_of[record_id] for record_id in waiting)
        # All of the unit's records, also those with an answer: the label is for all of them.
        kept = {unit: tuple(name for name in units[unit] if name not in state.withdrawn) for unit in due}
        return [Question(name=unit_names.name_of(unit), ids=ids) for unit, ids in kept.items()]
    return [
        Question(name=names.name_of(record_id), ids=(record_id,), unit=unit_names.name_of(unit_of[record_id]))
        for record_id in waiting
    ]


def close_round(reader: Reader) -> int:
    """Continue without the missing answers, which may still come later; returns how many are missing."""
    with writing(reader) as writer:
        take_in(writer, reader.contents)
        step = next_step(writer.state, reader.schedule)
        if not isinstance(step, WaitForLabels):
            return 0
        missing = len(writer.state.missing(step.group))
        writer.add(Closed(group=step.group))
        return missing
