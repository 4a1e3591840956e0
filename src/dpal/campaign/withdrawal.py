"""Withdrawing records for good, such as after a withdrawn consent. The campaign continues without them."""

from collections.abc import Iterable

from dpal.campaign.campaign_pool import open_data
from dpal.campaign.facts import Withdrawn
from dpal.campaign.fingerprints import Contents, few
from dpal.campaign.large_contents import blank_withdrawn
from dpal.campaign.reader import Reader
from dpal.campaign.step_randomness import fresh_key
from dpal.campaign.writer import writing
from dpal.data.id_lookup import unknown_in
from dpal.data.large_pool import LargePool
from dpal.errors import BadData


def withdraw(reader: Reader, ids: Iterable[str], *, units: Iterable[str] = (), reason: str) -> int:
    """Record the withdrawal of these records, and of all records of these units; returns how many are new."""
    contents = reader.contents()
    wanted = list(dict.fromkeys([*ids, *_records_of(reader, contents, list(units))]))
    known = set(contents.ids)
    unknown = [record_id for record_id in wanted if record_id not in known]
    is_large = reader.known_state().created.large
    if is_large and unknown:
        unknown = _unknown_in_large_pool(reader, unknown)
    if unknown:
        raise BadData(
            f"{len(unknown):,} id(s) are not in the campaign {reader.folder}: {few(unknown, 20)}. No record was "
            "withdrawn; correct them and give all ids again."
        )
    with writing(reader) as writer:
        state = writer.state
        new = tuple(record_id for record_id in wanted if record_id not in state.withdrawn)
        if not new:
            return 0
        seal = unseal = None
        if state.open_charge is not None and state.produced is None:
            # A step is charged, and nothing of it was ever released: it may be done on other records, as long as it is
            # done only once. Its key is replaced, and with it the noise that was drawn for the earlier records. With
            # the same noise, anything left of the first attempt (a draft, a copy of memory) and the coming model would
            # differ only by the withdrawn records' gradients.
            seal = fresh_key(state.created.seed, len(state.charges) - 1, len(state.withdrawn) + len(new))
            unseal = state.sealed_with
        writer.add(Withdrawn(ids=new, reason=reason), seal=seal, unseal=unseal)
        if is_large:
            blank_withdrawn(reader.folder, writer.state)
        return len(new)


def _unknown_in_large_pool(reader: Reader, ids: list[str]) -> list[str]:
    """Those of the ids that are nowhere in the pool, of which the folder knows only the records asked for."""
    pool = open_data(reader.config(), folder=reader.folder)
    return unknown_in(pool.table, ids) if isinstance(pool, LargePool) else ids


def _records_of(reader: Reader, contents: Contents, units: list[str]) -> list[str]:
    if not units:
        return []
    if contents.units is None:
        raise BadData(f"The campaign {reader.folder} names no units: give the ids of records. No record was withdrawn.")
    if unknown := sorted(set(units) - set(contents.units)):
        raise BadData(
            f"{len(unknown):,} unit(s) are not in the campaign {reader.folder}: {few(unknown, 20)}. No record was "
            "withdrawn; correct them and give all again."
        )
    wanted = set(units)
    return [record_id for record_id, unit in zip(contents.ids, contents.units, strict=True) if unit in wanted]
