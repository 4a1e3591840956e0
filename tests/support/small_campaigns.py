"""Campaigns of a second or two: real digits, a real model, a real plan, few of everything.

As a program: small_campaigns.py ACTION FOLDER [FILE], to be killed by tests.
"""

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import dpal
from dpal.campaign.campaign import Campaign
from dpal.data import Pool, from_arrays, load_dataset

RECORDS, INITIAL, QUERIES = 150, 40, (30, 20)


def small_pool(part: str = "train", records: int = RECORDS) -> Pool:
    digits = load_dataset("digits", part=part)
    return digits.take(digits.ids[:records], name=part)


def small_plan(**changed: Any) -> dpal.Plan:
    options: dict[str, Any] = {
        "target_epsilon": 8,
        "target_delta": 1e-3,
        "pool_size": RECORDS,
        "initial_size": INITIAL,
        "query_sizes": QUERIES,
        "batch_size": 10,
        "epochs": 1,
        "accountant": "rdp",
        # Scouting would say that choosing does not pay in so small a pool, and plan without queries.
        "planner": "step-amplification",
    }
    return dpal.plan(**(options | changed))


def linear_pool(records: int = 24) -> Pool:
    """So small that a whole phase takes milliseconds."""
    values = np.random.default_rng(3).normal(size=(records, 4)).astype(np.float32)
    labels = (values[:, 0] > 0).astype(np.int64)
    pool = from_arrays(values, classes=["no", "yes"], labels=labels, ids=[f"r{i:02d}" for i in range(records)])
    # Numbers without an order: tables for people have these ids, not opaque names.
    return replace(pool, ids_are_free_of_content=True)


def linear_held_out(records: int = 40) -> Pool:
    """Of the same kind as the linear pool's records, and none of them."""
    values = np.random.default_rng(4).normal(size=(records, 4)).astype(np.float32)
    labels = (values[:, 0] > 0).astype(np.int64)
    return from_arrays(values, classes=["no", "yes"], labels=labels, ids=[f"h{i:02d}" for i in range(records)])


def linear_plan(records: int = 24, **changed: Any) -> dpal.Plan:
    options = {"pool_size": records, "initial_size": 8, "query_sizes": (5, 4), "batch_size": 4, "epochs": 1}
    if not {"selection", "selections"} & set(changed):
        # One cut in twenty would ask nobody in so small a pool, and then nothing waits for labels.
        options |= {"selection": "random"}
    return small_plan(**(options | changed))


def linear_model() -> Any:
    import torch

    torch.manual_seed(1)
    return torch.nn.Linear(4, 2)


def linear_campaign(folder: Path, pool: Pool | None = None, **options: Any) -> Campaign:
    """A new campaign on the linear pool, or another pool, that labels itself."""
    chosen = {"plan": linear_plan(), "model": linear_model(), "oracle": "simulated"} | options
    return Campaign.create(folder, pool=linear_pool() if pool is None else pool, **chosen)


def linear_opened(folder: Path, pool: Pool | None = None, **options: Any) -> Campaign:
    """The same campaign, opened again."""
    pool = linear_pool() if pool is None else pool
    return Campaign.open(folder, pool=pool, **({"model": linear_model()} | options))


def blind_model() -> Any:
    """It answers the first class whatever the record."""
    model = linear_model()
    for parameter in model.parameters():
        parameter.data.zero_()
    model.bias.data[0] = 1.0
    return model


def blind_campaign(folder: Path, **options: Any) -> Campaign:
    """A private campaign that learns nothing, so every phase's model is at chance, and says so on a held-out set."""
    chosen = {"evaluation": linear_held_out(), "evaluation_is_public": True, "model": blind_model()}
    # Neither gradients nor noise move the weights by as much as rounding.
    training = {"learning_rate": 1e-30, "optimizer": "sgd"}
    return linear_campaign(folder, **(chosen | {"training": training} | options))


def blind_opened(folder: Path) -> Campaign:
    options = {"evaluation": linear_held_out(), "evaluation_is_public": True}
    return linear_opened(folder, model=blind_model(), oracle="simulated", **options)


def create(folder: Path, *, seed: int | None = 7, oracle: str = "simulated", **changed: Any) -> Campaign:
    return Campaign.create(
        folder,
        plan=small_plan(**changed),
        pool=small_pool(),
        model="small-cnn",
        oracle=oracle,
        evaluation=small_pool("test", 60),
        evaluation_is_public=True,
        training={"learning_rate": 2e-3},
        seed=seed,
        not_private=seed is not None,
    )


def reopened(folder: Path, oracle: str | None = None) -> Campaign:
    return Campaign.open(
        folder, pool=small_pool(), evaluation=small_pool("test", 60), evaluation_is_public=True, oracle=oracle
    )


def main() -> None:
    import torch

    torch.set_num_threads(1)
    action, folder = sys.argv[1], Path(sys.argv[2])
    if action == "create":
        create(folder, seed=json.loads(os.environ.get("SEED", "7")))
    elif action == "run":
        # These campaigns are so small that their models are at chance.
        print(json.dumps(reopened(folder).run(go_on=True).to_json()))
    elif action == "run-blind":
        go_on, settings = sys.argv[3:4] == ["--go-on"], sys.argv[4:]
        print(json.dumps(blind_opened(folder).run(go_on=go_on, settings=settings).to_json()))
    elif action == "give-up":
        print(json.dumps(asdict(Campaign(folder).give_up(reason="it never ends", settings=sys.argv[3:]))))
    elif action == "import":
        print(json.dumps(Campaign(folder).import_labels(sys.argv[3], small_pool())), flush=True)


if __name__ == "__main__":
    main()
