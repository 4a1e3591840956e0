"""Whom the initial set and a query ask for where the pool is large: two passes over its blocks."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dpal.campaign.block_scores import BlockScores
from dpal.campaign.block_worker import Job, Scorer
from dpal.campaign.campaign_pool import nothing_charged
from dpal.campaign.choosing import blank_ids
from dpal.campaign.facts import Scored
from dpal.campaign.large_contents import BlockPrints, write_asked
from dpal.campaign.large_selection import choose_from_blocks
from dpal.campaign.layout import SCORES
from dpal.campaign.parts import Parts
from dpal.campaign.state import State
from dpal.campaign.writer import Writer
from dpal.data.id_lookup import lookup_of
from dpal.data.large_pool import LargePool
from dpal.errors import DamagedCampaign, InvalidArgument
from dpal.planning.plan import Plan
from dpal.randomness import IdColumn, Randomness
from dpal.selection.baselines import RandomSelection
from dpal.selection.by_blocks import BlockSelection
from dpal.selection.selection import Chosen
from dpal.training.block_prediction import BlockPredictor
from dpal.training.learner import Learner


def require_large(plan: Plan, pool: LargePool, parts: Parts, initial: Iterable[str]) -> None:
    """Refuse what cannot be done with a pool that is not in memory."""
    for selection in plan.selections:
        if not isinstance(selection, BlockSelection):
            allowed = "cut, threshold or random with the source parquet: the others need all scores at once"
            raise InvalidArgument("selection", selection.kind(), allowed)
        if selection.has_own_choice:
            allowed = "one without a choice of its own (_choose): in a large pool only counts and coins would be used"
            raise InvalidArgument("selection", selection.kind(), allowed)
    if plan.setting.mean is not None:
        allowed = "null with the source parquet: only records that were asked for are at hand"
        raise InvalidArgument("mean_noise_multiplier", "given", allowed)
    if parts.encoder is not None:
        allowed = "one that reads the records themselves. Compute features once, and make them a column (features)"
        raise InvalidArgument("model with the source parquet", "features", allowed)
    if list(initial):
        raise InvalidArgument("initial with a large pool", "given", "left out: it is drawn at random")


def choose_large(
    writer: Writer,
    charge: int,
    group: int,
    seen: State,
    *,
    plan: Plan,
    parts: Parts,
    learner: Learner | None,
    key: bytes,
    randomness: Randomness,
) -> tuple[Chosen, str]:
    """The choice, and the hash of the copies that were made of the records to label. `learner` scores, if any does."""
    pool, folder = parts.pool, writer.folder
    if not isinstance(pool, LargePool):
        raise TypeError(type(pool).__name__)
    selection = _selection(plan, group)
    expected = known_blocks(folder, seen, pool)
    # As for a pool in memory: first what the scores draw, then the coins.
    scorer = None
    if learner is not None and selection.reads_scores:
        scorer = scorer_of(learner, parts, randomness.bytes(7))
    excluded = np.asarray([*seen.taken(), *seen.withdrawn], dtype=np.str_)
    job = Job(
        table=pool.table,
        selection=selection,
        coins=randomness.record_coins(),
        largest=selection.largest_score(parts.acquisition.highest, parts.acquisition.clip),
        scorer=scorer,
        excluded=lookup_of(IdColumn.of(excluded)),
        expected=expected,
        key=key,
    )

    def scored(scores: BlockScores) -> None:
        if scorer is not None:
            _note(writer, charge, scores.fingerprint(key))

    result = choose_from_blocks(
        job,
        randomness=randomness,
        scratch=folder / SCORES,
        workers=pool.workers,
        scored=scored,
        blanks=lambda records: blank_ids(max(0, selection.smallest_pool - records)),
    )
    return result.chosen, write_asked(folder, group, pool, result.rows, key)


def known_blocks(folder: Path, state: State, pool: LargePool, *, charged: str = nothing_charged()) -> tuple[bytes, ...]:
    """The fingerprint of each of the pool's row groups. Others than the campaign was created with are refused."""
    return BlockPrints.read(folder, expected=state.created.contents).for_table(pool.table, charged=charged)


def scorer_of(learner: Learner, parts: Parts, seed: bytes) -> Scorer:
    """The model as it predicts now, and what makes scores of its predictions."""
    predictor = BlockPredictor(
        model=learner.predictor(),
        device=str(learner.device),
        precision=learner.compute.precision,
        scaling=learner.settings.scaling,
        seed=seed,
    )
    return Scorer(predictor=predictor, acquisition=parts.acquisition, multi_label=learner.multi_label)


def _selection(plan: Plan, group: int) -> BlockSelection:
    if group == 0:
        return RandomSelection(query_size=plan.groups[0].size, unlabelled=plan.setting.pool_size)
    selection = plan.schedule.selections[group - 1]
    if not isinstance(selection, BlockSelection):
        raise TypeError(selection.kind())
    return selection


def _note(writer: Writer, charge: int, fingerprint: str) -> None:
    """Record the scores' fingerprint before anything is chosen by them; a repeated step must have the same scores."""
    known = writer.state.scored
    if known is None:
        writer.add(Scored(charge=charge, scores=fingerprint))
    elif known.scores != fingerprint:
        raise DamagedCampaign(
            "The step under way was scored before, with other scores: another version of torch or another kind of "
            "machine rounds differently. Run it where it was started. The step stays charged, and nothing was chosen."
        )
