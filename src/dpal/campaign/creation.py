"""Creating a campaign: all is checked, every record is read once, and the folder appears complete or not at all."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpal import __version__
from dpal.campaign import fault_points
from dpal.campaign.block_look import look_at_blocks
from dpal.campaign.config import CampaignConfig, settings_hash
from dpal.campaign.encoding import synthetic_features
from dpal.campaign.facts import Created
from dpal.campaign.files import digest, require_new, sync_folder, write_text, write_whole
from dpal.campaign.fingerprints import CHUNK, Contents, fingerprints, stamps_of, text_fingerprints
from dpal.campaign.foreign_code import acquisition_name
from dpal.campaign.held_out import held_out_hash, require_held_out, require_separate_units
from dpal.campaign.large_choosing import require_large
from dpal.campaign.large_contents import BlockPrints
from dpal.campaign.layout import CHECKPOINTS, CONFIG, REPORTS, WEIGHTS
from dpal.campaign.network_folders import require_local
from dpal.campaign.parts import Parts
from dpal.campaign.reader import plan_hash
from dpal.campaign.rollback_guard import note_newest
from dpal.campaign.status import encoder_words
from dpal.campaign.store import Store
from dpal.data import Pool
from dpal.data.large_pool import LargePool
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument
from dpal.labels.oracles import SimulatedOracle
from dpal.planning.plan import Plan
from dpal.randomness import new_key
from dpal.training.learner import Learner
from dpal.training.pool_mean import centred
from dpal.training.progress import counted, doing
from dpal.training.sources import Readable
from dpal.training.threads import fastest_threads


def create_folder(folder: Path, config: CampaignConfig, parts: Parts, plan: Plan, initial: Sequence[str]) -> None:
    """Check everything, then make the campaign's folder."""
    folder = folder.absolute()
    require_local(folder)
    require_new(folder)
    _require_plan(plan, config, parts.pool, initial)
    if parts.encoder is not None:
        parts.tell(str(encoder_words(parts.encoder.facts())))
    key = new_key()
    if isinstance(parts.pool, LargePool):
        require_large(plan, parts.pool, parts, initial)
        contents: Contents | BlockPrints = _look_at_large_pool(parts, parts.pool, key)
    else:
        contents = _read_all_records(parts, key)
    inputs = parts.inputs
    if parts.encoder is not None:
        inputs = synthetic_features(parts.encoder, parts.pool, parts.evaluation_as_given)
    learner = parts.learner(inputs)
    if parts.evaluation is not None and parts.encoder is None:
        _require_same_shape(learner.records, parts.evaluation.records)
    if plan.setting.mean is not None:
        centred(learner.model)
    # On a busy machine, two threads may take minutes for what one does in seconds.
    with doing("trying one step on synthetic records"), fastest_threads():
        learner.try_one_step(len(parts.pool.classes), parts.acquisition.passes, rows_per_unit=parts.pool.rows_per_unit)
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _fill(draft, config, parts, plan, initial, contents=contents, learner=learner, key=key)
        if folder.exists():
            folder.rmdir()
        draft.replace(folder)
        sync_folder(folder.parent)
        fault_points.reached("create.moved")
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _require_plan(plan: Plan, config: CampaignConfig, pool: Pool, initial: Sequence[str]) -> None:
    if plan.setting.unit != pool.unit:
        allowed = f"{pool.unit}: that is what the pool's records belong to (data.unit, plan.unit)"
        raise InvalidArgument("the plan's unit", plan.setting.unit, allowed)
    if plan.setting.pool_size != pool.unit_count:
        raise InvalidArgument("the plan's pool size", plan.setting.pool_size, f"{pool.unit_count:,}, the pool's")
    if not plan.selection_is_private and not config.not_private:
        raise InvalidArgument(
            "not_private",
            False,
            "true, with a seed, for a plan whose selection is not private: that is only for simulations. Otherwise "
            "plan a private selection",
        )
    if initial:
        positions = pool.positions(initial)
        chosen = list(initial) if pool.units is None else pool.units.take(positions).names
        if len(chosen) != plan.groups[0].size or len(set(initial)) != len(initial):
            what = "records" if pool.units is None else f"units ({pool.unit})"
            allowed = f"{plan.groups[0].size:,}, as the plan says, each once"
            raise InvalidArgument(f"the number of initial {what}", len(chosen), allowed)


def _read_all_records(parts: Parts, key: bytes) -> Contents:
    """The pool's fingerprints. A held-out set that shares records with the pool is refused."""
    pool = parts.pool
    contents, broken = _read_all(pool, key)
    _warn_of(broken, parts)
    if parts.evaluation_as_given is not None:
        require_separate_units(parts.evaluation_as_given, pool, contents)
        held_out, _ = _read_all(parts.evaluation_as_given, key)
        require_held_out(parts.evaluation_as_given, pool, contents, held_out.fingerprints)
    if isinstance(parts.oracle, SimulatedOracle) and pool.labels is None:
        raise InvalidArgument("oracle", "simulated", f"files: the pool {pool.name} has no labels of its own")
    return contents


def _look_at_large_pool(parts: Parts, pool: LargePool, key: bytes) -> BlockPrints:
    """The fingerprints of a large pool's row groups, each of which is read once."""
    digests, broken = look_at_blocks(pool, key, held_out=parts.evaluation_as_given)
    _warn_of(broken, parts)
    if isinstance(parts.oracle, SimulatedOracle) and pool.labels is None:
        raise InvalidArgument("oracle", "simulated", "files, or name the column of labels (data.options.label)")
    return BlockPrints.of(pool.table, digests)


def _held_out_hash(parts: Parts, key: bytes) -> str | None:
    return None if parts.evaluation_as_given is None else held_out_hash(parts.evaluation_as_given, key)


def _warn_of(broken: int, parts: Parts) -> None:
    if broken:
        parts.tell(
            f"{broken:,} records hold values that are not finite: nothing can be learnt from them, and their labels "
            "would be wasted. Repair them first if possible. (This is about private records.)"
        )


def _read_all(pool: Pool, key: bytes) -> tuple[Contents, int]:
    """Read every record once: a broken one is better found now than in week 2, when the error would reveal it.

    Returns the fingerprints, and how many records hold values that are not finite.
    """
    records = pool.records
    positions = np.arange(len(records))
    stamps = stamps_of(records, positions, key)
    by_record: list[bytes] = []
    broken = 0
    starts = range(0, len(records), CHUNK)
    if isinstance(records, TextRecords):
        by_record, starts = text_fingerprints(records.texts, key), range(0)
    for start in counted(starts, f"checking {pool.name}", total=len(records), each=CHUNK):
        rows = records.read(positions[start : start + CHUNK])
        by_record += fingerprints(rows, key)
        for values in rows.values() if isinstance(rows, dict) else (rows,):
            if values.dtype.kind == "f":
                broken += int((~np.isfinite(values.reshape(len(values), -1)).all(axis=1)).sum())
    contents = Contents(
        ids=tuple(pool.ids.tolist()),
        fingerprints=tuple(by_record),
        stamps=tuple(stamps),
        key=key,
        units=None if pool.units is None else tuple(pool.units.of_records.tolist()),
    )
    return contents, broken


def _require_same_shape(records: Readable, others: Readable) -> None:
    wanted, given = ({name: form.shape for name, form in source.form.items()} for source in (records, others))
    if given != wanted:
        shown, allowed = (shapes.get("", shapes) for shapes in (given, wanted))
        raise InvalidArgument("the shape of the evaluation's records", shown, f"{allowed}, the pool's")


def _fill(
    draft: Path,
    config: CampaignConfig,
    parts: Parts,
    plan: Plan,
    initial: Sequence[str],
    *,
    contents: Contents | BlockPrints,
    learner: Learner,
    key: bytes,
) -> None:
    # Only the owner may look inside: there are labels and, while a step is under way, its key.
    draft.mkdir(mode=0o700, parents=True)
    for name in (CHECKPOINTS, REPORTS):
        (draft / name).mkdir()
    fault_points.reached("create.folder")
    write_whole(draft / WEIGHTS, learner.save)
    fault_points.reached("create.weights")
    contents.write(draft)
    fault_points.reached("create.contents")
    Store.create(draft, secret=key)
    store = Store(draft)
    document = plan.to_json()
    fact = Created(
        dpal_version=__version__,
        plan=document,
        plan_hash=plan_hash(document),
        contents=contents.hash(),
        pool_size=parts.pool.unit_count,
        unit=None if parts.pool.units is None else parts.pool.units.facts(),
        classes=parts.pool.classes,
        multi_label=parts.pool.multi_label,
        acquisition=acquisition_name(parts.acquisition),
        initial=tuple(initial),
        weights=digest(draft / WEIGHTS),
        settings=settings_hash(config),
        seed=config.seed,
        foreign_code=tuple(sorted({*parts.foreign_code, *plan.foreign_code})),
        ids_are_free_of_content=parts.pool.ids_are_free_of_content,
        encoder=None if parts.encoder is None else parts.encoder.facts(),
        large=isinstance(contents, BlockPrints),
        held_out=_held_out_hash(parts, key) if isinstance(contents, BlockPrints) else None,
    )
    try:
        note_newest(draft, store.append(fact, after=None))
    finally:
        store.close()
    fault_points.reached("create.database")
    write_text(draft / CONFIG, config.to_yaml())
    fault_points.reached("create.configuration")
