"""Public records that take the place of a private pool in a rehearsal, and others on which its models are measured."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.config import CampaignConfig, read_config
from dpal.campaign.encoding import features_in_memory, kind_of
from dpal.campaign.parts import Parts, resolved_config
from dpal.data import Pool, load_dataset
from dpal.data.named.registry import DATASETS
from dpal.data.records import ArrayRecords, Form, Records, TextRecords
from dpal.data.sources import open_pool
from dpal.errors import BadData, InvalidArgument
from dpal.models.encoder import IMAGES, Encoder
from dpal.rehearsal.mixed_rows import MixedRows
from dpal.rehearsal.synthetic_features import BEST_ACCURACY, as_targets, synthetic_features

HELD_OUT, SYNTHETIC, DIGITS = "held-out", "synthetic", "digits"
# Fewer records than this teach and tell too little.
_FEWEST = 20
_SYNTHETIC_RECORDS = 4_000
_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """Records to train on, repeated until they fill the pool, and records to measure on."""

    # In words that finish the sentence "a rehearsal on …".
    name: str
    pool: Pool
    test: Pool
    # Whether its accuracy says something about the pool's own records, and not only about the plan.
    is_like_the_pool: bool

    def filling(self, size: int, seed: int) -> Pool:
        """A pool of this size: each record as often as any other, or once more, in an order of its own."""
        if self.pool.labels is None:
            raise BadData(f"{self.pool.name} has no labels, so nothing can be learned from it.")
        rng = np.random.default_rng(seed)
        rounds = -(-size // len(self.pool))
        positions = np.concatenate([rng.permutation(len(self.pool)) for _ in range(rounds)])[:size]
        if _is_rows(self.pool.records.form if not isinstance(self.pool.records, TextRecords) else {}):
            records: Records = MixedRows.of(self.pool, positions, rng)
        else:
            records = self.pool.records.subset(positions)
        return replace(
            self.pool,
            name="stand-in",
            ids=np.array([f"{number:09d}" for number in range(size)], dtype=np.str_),
            records=records,
            labels=self.pool.labels[positions],
            ids_are_places=False,
            # Whoever the public records belonged to: here each copy is somebody by itself.
            units=None,
        )


def stand_in_for(
    config: CampaignConfig, parts: Parts, on: str | None, *, base: Path, tell: Callable[[str], None]
) -> StandIn:
    """The stand-in that is named by `on`, or else the nearest one to the pool: the public held-out set, digits.

    `on` is held-out, synthetic, a published dataset, or a YAML file whose sections data and evaluation are public.
    """
    chosen = _nearest(parts) if on is None else on
    if chosen == SYNTHETIC:
        return _synthetic(parts)
    if chosen == HELD_OUT:
        if parts.evaluation_as_given is None:
            raise InvalidArgument("--on", on, "something else: the configuration has no public held-out set")
        halves = _halves(parts.evaluation_as_given)
        name = "half of the public held-out set"
        stand_in = StandIn(name=name, pool=halves[0], test=halves[1], is_like_the_pool=True)
    elif chosen in DATASETS:
        dataset = DATASETS[chosen]
        first, last = (load_dataset(chosen, part=part) for part in (dataset.parts[0], dataset.parts[-1]))
        stand_in = StandIn(name=f"the public dataset {chosen}", pool=first, test=last, is_like_the_pool=False)
    else:
        stand_in = _from_file(base / Path(chosen).expanduser(), chosen)
    return _readable(stand_in, config, parts, tell)


def _is_rows(form: Form) -> bool:
    """Whether records are rows of numbers, such as features, which can be mixed."""
    return "" in form and len(form[""].shape) == 1 and form[""].dtype.kind == "f"


def _nearest(parts: Parts) -> str:
    if parts.evaluation_as_given is not None:
        return HELD_OUT
    if kind_of(parts.pool.records) == IMAGES and not parts.pool.multi_label:
        return DIGITS
    if parts.encoder is None:
        allowed = "given for a model without an encoder and without a public held-out set: a YAML file with public data"
        raise InvalidArgument("--on", None, allowed)
    return SYNTHETIC


def _from_file(file: Path, given: str) -> StandIn:
    if file.suffix not in (".yaml", ".yml"):
        allowed = f"{HELD_OUT}, {SYNTHETIC}, a YAML file, or one of {', '.join(DATASETS)}"
        raise InvalidArgument("--on", given, allowed)
    config = resolved_config(read_config(file), file.parent)
    if config.data is None:
        raise InvalidArgument("--on", given, "a YAML file with a section data")
    pool = open_pool(config.data.source, config.data.options)
    if config.evaluation is None:
        pool, test = _halves(pool)
    else:
        test = open_pool(config.evaluation.source, config.evaluation.options)
    return StandIn(name=f"the public records of {file.name}", pool=pool, test=test, is_like_the_pool=False)


def _halves(pool: Pool) -> tuple[Pool, Pool]:
    """Labelled records in two halves. Records with equal contents, or of one unit, are on the same side: otherwise the
    rehearsal would measure memory.
    """
    labelled = np.flatnonzero(pool.labelled())
    if len(labelled) < _FEWEST:
        raise BadData(f"{pool.name} has {len(labelled):,} labelled records. A rehearsal needs at least {_FEWEST}.")
    order = np.random.default_rng(0).permutation(labelled)
    distinct = order[_first_of_each(pool.records, order)]
    is_first = np.arange(len(distinct)) < -(-len(distinct) // 2)
    if pool.units is not None:
        is_first = _whole_units(pool.units.of_records[distinct])
        if is_first.all():
            raise BadData(
                f"All labelled records of {pool.name} are of one {pool.unit}. A rehearsal needs at least two."
            )
    return pool.take(pool.ids[distinct[is_first]]), pool.take(pool.ids[distinct[~is_first]])


def _whole_units(units: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Which records are in the first half: those of whole units, as they come, whose middle is in it."""
    _, first, unit, records = np.unique(units, return_index=True, return_inverse=True, return_counts=True)
    in_order = np.argsort(first)
    before = np.cumsum(records[in_order]) - records[in_order]
    return np.isin(unit, in_order[2 * before + records[in_order] <= len(units)])


def _first_of_each(records: Records, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of the first record with each content."""
    seen: dict[bytes, int] = {}
    for start in range(0, len(positions), _CHUNK):
        chunk = positions[start : start + _CHUNK]
        if isinstance(records, TextRecords):
            contents = [repr(records.texts[position]).encode() for position in chunk.tolist()]
        else:
            rows = records.read(chunk)
            arrays = list(rows.values()) if isinstance(rows, dict) else [rows]
            contents = [b"".join(array[row].tobytes() for array in arrays) for row in range(len(chunk))]
        for place, content in enumerate(contents, start):
            seen.setdefault(content, place)
    return np.fromiter(seen.values(), dtype=np.int64)


def _readable(stand_in: StandIn, config: CampaignConfig, parts: Parts, tell: Callable[[str], None]) -> StandIn:
    """The stand-in's records as the model reads them: features, or images of the pool's form."""
    pools = (stand_in.pool, stand_in.test)
    if parts.encoder is not None:
        encoder, cache = parts.encoder, config.training.features_cache
        changed = [_encoded(pool, encoder, cache, tell) for pool in pools]
    elif isinstance(parts.pool.records, TextRecords):
        changed = list(pools)
    else:
        form = parts.pool.records.form
        changed = [pool if pool.records.form == form else _reshaped(pool, form) for pool in pools]
    return replace(stand_in, pool=changed[0], test=changed[1])


def _encoded(pool: Pool, encoder: Encoder, cache: str | None, tell: Callable[[str], None]) -> Pool:
    if kind_of(pool.records) != encoder.reads:
        raise InvalidArgument("--on", pool.name, f"records that {encoder.name} can read: {encoder.reads}")
    return replace(pool, records=ArrayRecords(features_in_memory(encoder, pool.records, cache=cache, tell=tell)))


def _reshaped(pool: Pool, form: Form) -> Pool:
    """Images of the form that the model reads. Each pixel is the nearest one of the original."""
    wanted, given = form.get(""), pool.records.form.get("")
    if (
        wanted is None
        or given is None
        or len(wanted.shape) != 3
        or len(given.shape) != 3
        or wanted.dtype != given.dtype
    ):
        raise InvalidArgument("--on", pool.name, "records of the same form as the pool's")
    images = pool.records.read(np.arange(len(pool)))
    if not isinstance(images, np.ndarray):
        raise InvalidArgument("--on", pool.name, "records of the same form as the pool's")
    channels, height, width = wanted.shape
    rows, columns = (np.arange(side) * old // side for side, old in zip((height, width), images.shape[2:], strict=True))
    resized = images[:, :, rows][:, :, :, columns]
    if resized.shape[1] != channels:
        grey = resized.mean(axis=1, keepdims=True).astype(images.dtype)
        resized = np.repeat(grey, channels, axis=1)
    return replace(pool, records=ArrayRecords(resized))


def _synthetic(parts: Parts) -> StandIn:
    if parts.encoder is None:
        raise InvalidArgument("--on", SYNTHETIC, f"{HELD_OUT} or a dataset: synthetic features are for encoders")
    several, classes = parts.pool.multi_label, parts.pool.classes
    pools = [
        synthetic_features(width=parts.encoder.width, classes=classes, records=_SYNTHETIC_RECORDS, seed=0, part=part)
        for part in ("train", "test")
    ]
    if several:
        pools = [
            replace(pool, multi_label=True, labels=as_targets(np.asarray(pool.labels, dtype=np.int64), len(classes)))
            for pool in pools
        ]
    name = f"synthetic features, of which the best classifier gets {BEST_ACCURACY:.0%} right"
    return StandIn(name=name, pool=pools[0], test=pools[1], is_like_the_pool=False)
