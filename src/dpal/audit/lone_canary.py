"""A short training on a few known records and one more, or a blank in its place, again and again.

Here one record matters most to everything but its own gradient: to how many are drawn, and to whatever is divided by
that. So the adversary looks at all coordinates, and learns on some of the runs what tells the two cases apart.
"""

import math
import time
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dpal.audit.attack import Attack, Effort, Evidence, Finding, Target, finding, randomness_of
from dpal.audit.canary_campaign import TOO_LONG, log_ratio, pull
from dpal.audit.claims import Claim, require_private
from dpal.planning.spending import training_history
from dpal.privacy.campaign_history import CampaignHistory
from dpal.randomness import Randomness
from dpal.training.loop import train_phase
from dpal.training.sampling import BLANK
from dpal.training.settings import ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource

_STEPS = 10
# Coordinates without any record's gradient show how large the noise is, to about six percent.
_SILENT = 500
_DRAWN = 4


class LoneCanaryAttack(Attack):
    """Short runs with one worst-case record. The claim is that of so many steps."""

    name: ClassVar[str] = "lone-canary"
    what: ClassVar[str] = (
        "Someone who knows all other records sees every noisy gradient of a short training, and guesses whether one "
        "more record was there."
    )

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        require_private(target.plan)
        phase = replace(target.plan.phases[0], steps=min(_STEPS, target.plan.phases[0].steps))
        history = CampaignHistory(training=(training_history((phase,), 0),))
        delta = target.plan.setting.target_delta
        epsilon = target.plan.setting.certifier.epsilon(history.training[0], delta)
        randomness = randomness_of(effort, stream=4)
        runs = max(16, effort.looks // (2 * phase.steps))
        seen = [_features(target, phase.steps, runs, there, randomness) for there in (True, False)]
        learn, trial = ([side[half::2] for side in seen] for half in (0, 1))
        direction = _telling_apart(*learn)
        return finding(
            self,
            Claim.of_history(history, epsilon=epsilon, delta=delta),
            trial[0] @ direction,
            trial[1] @ direction,
            runs=2 * runs,
            seconds=time.monotonic() - start,
        )


def _features(target: Target, steps: int, runs: int, is_there: bool, randomness: Randomness) -> NDArray[np.float64]:
    """What the adversary computes from each run: (runs, features).

    The weights do not matter to the gradients, so the runs follow one another in one long phase.
    """
    planned = target.plan.phases[0]
    rate, noise = planned.sampling_probabilities[0], planned.noise_multiplier
    crowd = max(1, round(_DRAWN / rate))
    expected = rate * (crowd + 1)
    rows = target.rows_per_unit
    # The canary pulls at the first weight, everyone else at the second.
    inputs = torch.zeros(crowd + 1, 2 + _SILENT)
    inputs[0, 0], inputs[1:, 1] = 1.0, 1.0
    inputs = inputs.repeat_interleave(rows, dim=0).to(target.torch_device)
    model = nn.Linear(2 + _SILENT, 1, bias=False).to(target.torch_device)
    looks: list[tuple[float, float, float]] = []

    def look(step: int) -> None:
        del step
        assert model.weight.grad is not None  # noqa: S101 (a step has just been made)
        seen = -model.weight.grad[0].double().cpu().numpy() * expected / target.max_grad_norm
        own = float(log_ratio(seen[:1], rate, noise)[0])
        looks.append((own, math.log(float(np.mean(seen[2:] ** 2)) + 1e-300), float(seen[1])))

    train_phase(
        model,
        replace(planned, steps=steps * runs, expected_batch_size=expected, sampling_probabilities=(rate,)),
        source=TensorSource(inputs, torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)),
        groups=[np.array([0 if is_there else BLANK, *range(1, crowd + 1)])],
        loss=partial(pull, strength=TOO_LONG * target.max_grad_norm),
        settings=TrainingSettings(
            optimizer="sgd", learning_rate=1e-3, max_grad_norm=target.max_grad_norm, average=None
        ),
        compute=ComputeSettings(engine=target.engine, precision=target.precision),
        randomness=randomness,
        after_step=look,
        description="attacking short trainings",
        units=None if rows == 1 else np.arange(len(inputs)).reshape(-1, rows),
    )
    own, scale, crowded = np.array(looks).reshape(runs, steps, 3).transpose(2, 0, 1)
    return np.stack(
        [own.sum(axis=1), scale.mean(axis=1), scale.std(axis=1), crowded.mean(axis=1), np.abs(crowded).mean(axis=1)],
        axis=1,
    )


def _telling_apart(present: NDArray[np.float64], absent: NDArray[np.float64]) -> Evidence:
    """Fisher's discriminant: the direction in which the two cases lie furthest apart for their spread."""
    spread = np.cov(present, rowvar=False) + np.cov(absent, rowvar=False)
    scale = np.diag(np.diag(spread)) * 1e-6 + np.eye(len(spread)) * 1e-12
    return np.linalg.solve(spread + scale, present.mean(axis=0) - absent.mean(axis=0))
