"""Whole campaigns on large pools, quick ones."""

from pathlib import Path
from typing import Any

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config

ROWS = 3000


def config(pool: Path | str, **changed: Any) -> Any:
    """A configuration; `options` are further ones of the data, `plan` of the plan."""
    options = {"path": str(pool), "features": "features", "label": "label", "classes": 4}
    plan = {
        "target_epsilon": 8,
        "initial_size": 60,
        "query_sizes": [60],
        "epochs": 1,
        "accountant": "rdp",
        "planner": "step-amplification",
    }
    document: dict[str, Any] = {
        "data": {"source": "parquet", "options": options | changed.pop("options", {})},
        "plan": plan | changed.pop("plan", {}),
        "model": {"name": "large_pools:head"},
        "oracle": "simulated",
        # A simulation repeats.
        "seed": 5,
        "not_private": True,
        **changed,
    }
    return checked_config(document)


def create(folder: Path, pool: Path | str, **changed: Any) -> Campaign:
    return Campaign.from_config(folder, config(pool, **changed))
