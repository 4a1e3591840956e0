"""The choice of a selection step, from a pool in memory or from a large one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.campaign_units import CampaignUnits
from dpal.campaign.choosing import initial_set, queried
from dpal.campaign.large_choosing import choose_large, known_blocks
from dpal.campaign.parts import Parts
from dpal.campaign.recorded_model import RecordedModel
from dpal.campaign.state import State
from dpal.campaign.writer import Writer
from dpal.data import Pool
from dpal.data.large_pool import LargePool
from dpal.planning.plan import Plan
from dpal.randomness import Randomness
from dpal.selection.selection import Chosen

Scores = Callable[[State, Randomness], NDArray[np.float64]]


def require_known_blocks(folder: Path, state: State, pool: Pool, *, charged: str) -> None:
    """Refuse a large pool that was written again: before the charge, as far as that can be seen without reading it."""
    if isinstance(pool, LargePool):
        known_blocks(folder, state, pool, charged=charged)


def chosen_records(
    writer: Writer,
    charge: int,
    group: int,
    seen: State,
    *,
    plan: Plan,
    units: CampaignUnits,
    parts: Parts,
    model: RecordedModel,
    scores: Scores,
    randomness: Randomness,
) -> tuple[Chosen, str | None]:
    """Whom a charged selection asks for; where the pool is large, also the hash of their copies."""
    if isinstance(parts.pool, LargePool):
        return choose_large(
            writer,
            charge,
            group,
            seen,
            plan=plan,
            parts=parts,
            learner=model.at(seen) if group > 0 else None,
            key=writer.store.secret(),
            randomness=randomness,
        )
    if group == 0:
        return initial_set(seen, plan, units, parts, randomness), None
    selection = plan.schedule.selections[group - 1]
    of_all = queried(seen, selection, units, parts, scores=lambda: scores(seen, randomness), randomness=randomness)
    return of_all, None
