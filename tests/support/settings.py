"""The paper's settings (its table of hyperparameters and its example figures, epochs per phase), and a small one."""

import json

import dpal

PAPER = {
    "cifar10": {
        "target_delta": 1e-5,
        "pool_size": 50_000,
        "initial_size": 10_000,
        "query_sizes": (10_000, 3_000, 1_000, 1_000),
        "batch_size": 4096,
        "epochs": 30,
    },
    "bloodcell": {
        "target_delta": 1 / 2500,
        "pool_size": 11_959,
        "initial_size": 1024,
        "query_sizes": (1024, 300, 100, 52),
        "batch_size": 512,
        "epochs": 21,
    },
    "snli": {
        "target_delta": 1 / 50_000,
        "pool_size": 550_152,
        "initial_size": 20_000,
        "query_sizes": (20_000, 6_000, 2_000, 2_000),
        "batch_size": 4096,
        "epochs": 15,
    },
    "figures": {
        "target_delta": 1 / 25_000,
        "pool_size": 60_000,
        "initial_size": 10_000,
        "query_sizes": (3_750, 3_750, 3_750, 3_750),
        "batch_size": 4096,
        "epochs": 30,
    },
}
PAPERS_SELECTION = {"selection": "laplace", "selection_epsilon": 2.0, "accounting": "basic"}
SMALL = {
    "target_epsilon": 8.0,
    "pool_size": 2_000,
    "initial_size": 400,
    "query_sizes": (300, 100),
    "batch_size": 100,
    "epochs": 10,
    "accountant": "rdp",
}


def edited(plan: dpal.Plan, change) -> str:
    document = json.loads(plan.to_text())
    change(document)
    return json.dumps(document)
