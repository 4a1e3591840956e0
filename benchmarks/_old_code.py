"""The constructions of `audit_old_code.py` against the dpal of an old commit, which must be on PYTHONPATH.

As a program: _old_code.py WORST_CASES_FILE [--quick]. It prints one JSON object. The constructions come from today's
file, which imports nothing of dpal; the code that is attacked, and how it is called, is the old one.
"""

import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

RECORDS, INITIAL, QUERY, WIDTH = 40, 16, 12, 4
# Released numbers are float32, and the noise is next to none: what both may add to a move is taken off.
ROUNDING, HIDDEN, NOISE = 2.0**-24, 1e-7, 1e-9


def constructions(worst_cases: ModuleType, *, quick: bool) -> dict[str, list[Any]]:
    """The same for the old code and for today's."""
    sizes = (255, 511) if quick else (255, 511, 1023, 2047, 4000)
    tunings = [(float(at), True) for at in np.linspace(0, worst_cases.TUNINGS, 100 if quick else 400)]
    return {
        "P1": [worst_cases.tied(others, tunings) for others in sizes],
        # All in one batch, as long as the batch has seats for all of them.
        "P2": [each for others in range(1, 5) for each in worst_cases.kinked(others) if each.physical > others],
    }


def largest(moves: Callable[[Any], float], made: list[Any]) -> dict[str, object]:
    """The construction with the largest move."""
    found = [(moves(each), each.what) for each in made]
    move, what = max(found, default=(0.0, "none: this machine rounds all rows alike"))
    return {"move": move, "what": what}


def moved(construction: Any) -> float:
    """How far the last record moved the sums that the old training released, at least, in units of the clip."""
    others = list(range(construction.others))
    there, absent = (_released(construction, group) for group in ([*others, len(others)], others))
    lengths = np.linalg.norm(there, axis=1) + np.linalg.norm(absent, axis=1)
    return float((np.linalg.norm(there - absent, axis=1) - ROUNDING * lengths).max()) - HIDDEN


def _released(construction: Any, group: list[int]) -> NDArray[np.float64]:
    from dpal.training.data import TensorSource

    from dpal.planning.plan import Phase
    from dpal.randomness import SeededRandomness
    from dpal.training.loop import TrainingSettings, train_phase
    from dpal.training.losses import cross_entropy

    inputs, targets = construction.inputs[0].clone(), construction.targets[0].clone()
    variants, model, releases = len(construction.inputs), construction.model, list[NDArray[np.float64]]()

    def exchange(step: int) -> None:
        releases.append(torch.cat([each.grad.flatten().double() for each in model.parameters()]).numpy())
        if step + 1 < variants:
            inputs.copy_(construction.inputs[step + 1])
            targets.copy_(construction.targets[step + 1])

    train_phase(
        model,
        Phase(steps=variants, noise_multiplier=NOISE, expected_batch_size=1.0, sampling_probabilities=(1.0,)),
        source=TensorSource(inputs, targets),
        groups=[group],
        loss=cross_entropy,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        settings=TrainingSettings(max_physical_batch_size=construction.physical),
        randomness=SeededRandomness(seed=1, nothing_is_private=True),
        after_step=exchange,
    )
    return np.stack(releases)


class Died(BaseException):
    """The process dies here, as far as one process can show it."""


class Answers:
    """The same answer for everyone, in so many rounds; later ones wait."""

    name = "made-up"

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def ask(self, ids: list[str], pool: object) -> dict[str, str] | None:
        self.rounds -= 1
        return None if self.rounds < 0 else dict.fromkeys(ids, "no")


def reordered(folder: Path) -> dict[str, object]:
    """P3: a file whose rows are ids is sorted between two phases."""
    values, plan = _values(), _plan((QUERY,), INITIAL // 2)
    _create(folder, values, plan, Answers(1)).run()
    before = _opened(folder, values, Answers(0)).state()
    order = np.arange(RECORDS)[::-1]
    try:
        _opened(folder, values[order], Answers(2)).run()
    except _refusals():
        return {"refused": True, "twice": 0}
    after = _opened(folder, values[order], Answers(0)).state()
    first = {int(name): name for name in before.trainable(0)}
    second = {int(order[int(name)]): name for group in range(len(after.groups)) for name in after.trainable(group)}
    return {"refused": False, "twice": sum(second.get(record, name) != name for record, name in first.items())}


def made_twice(folder: Path) -> dict[str, object]:
    """P6: killed when the model is written, the model taken away, one record edited under its id, resumed."""
    from safetensors.numpy import load_file

    from dpal.campaign import faults

    values, plan, true = _values(), _plan((), INITIAL), faults.reached

    def dying(point: str) -> None:
        if point == "train.checkpoint-written":
            raise Died

    campaign = _create(folder, values, plan, Answers(1))
    faults.reached = dying
    try:
        campaign.run()
    except Died:
        pass
    finally:
        faults.reached = true
    (written,) = (folder / "checkpoints").glob("phase-1*")
    seen = written.replace(folder.parent / "seen.safetensors")
    edited = values.copy()
    edited[int(_opened(folder, values, Answers(0)).state().trainable(0)[0])] *= -1
    try:
        _opened(folder, edited, Answers(1)).run()
    except _refusals():
        return {"refused": True, "apart": 0.0}
    first, second = load_file(seen), load_file(written)
    distance = np.sqrt(sum(np.square(first[name].astype(np.float64) - second[name]).sum() for name in first))
    return {"refused": False, "apart": float(distance) * plan.phases[0].expected_batch_size}


def _values() -> NDArray[np.float32]:
    return 10 * np.random.default_rng(3).normal(size=(RECORDS, WIDTH)).astype(np.float32)


def _plan(query_sizes: tuple[int, ...], batch_size: int) -> Any:
    import dpal

    return dpal.plan(
        target_epsilon=8,
        target_delta=1e-3,
        pool_size=RECORDS,
        initial_size=INITIAL,
        query_sizes=query_sizes,
        batch_size=batch_size,
        epochs=1,
        accountant="rdp",
        planner="step-amplification",
        selection="random",
    )


def _create(folder: Path, values: NDArray[np.float32], plan: Any, answers: Answers) -> Any:
    from dpal.campaign.campaign import Campaign

    training = {"optimizer": "sgd", "learning_rate": 1.0, "average": None, "device": "cpu"}
    return Campaign.create(folder, plan=plan, pool=_pool(values), model=_model(), oracle=answers, training=training)


def _opened(folder: Path, values: NDArray[np.float32], answers: Answers) -> Any:
    from dpal.campaign.campaign import Campaign

    return Campaign.open(folder, pool=_pool(values), model=_model(), oracle=answers)


def _pool(values: NDArray[np.float32]) -> Any:
    from dpal.data import from_arrays

    return from_arrays(values, classes=["no", "yes"])


def _model() -> nn.Module:
    model = nn.Linear(WIDTH, 2)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


def _refusals() -> type[Exception]:
    from dpal.errors import DpalError

    return DpalError


def loaded(file: Path) -> ModuleType:
    """Today's constructions, without today's package."""
    specification = importlib.util.spec_from_file_location("worst_cases", file)
    if specification is None or specification.loader is None:
        raise FileNotFoundError(file)
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look their own module up.
    sys.modules["worst_cases"] = module
    specification.loader.exec_module(module)
    return module


def campaigns() -> Iterator[tuple[str, dict[str, object]]]:
    """P3 and P6, each in a folder of its own."""
    for name, attack in (("P3", reordered), ("P6", made_twice)):
        with tempfile.TemporaryDirectory() as folder:
            yield name, attack(Path(folder) / "campaign")


def main() -> None:
    torch.set_num_threads(1)
    made = constructions(loaded(Path(sys.argv[1])), quick="--quick" in sys.argv)
    print(json.dumps({name: largest(moved, each) for name, each in made.items()} | dict(campaigns())))


if __name__ == "__main__":
    main()
