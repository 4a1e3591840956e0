"""One step on a few known records and one more, or a blank in its place, again and again.

Here one record matters most to everything but its own gradient: to how many take part, and to whatever is divided by
that. So the adversary looks at all coordinates, and learns on some of the steps what tells the two cases apart.
"""

import math
import time
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dpal.audit.attack import Attack, Effort, Evidence, Finding, Target, finding, randomness_of
from dpal.audit.canary_campaign import TOO_LONG, pull
from dpal.audit.claims import Claim, require_private
from dpal.planning.plan import Phase
from dpal.privacy.campaign_history import CampaignHistory
from dpal.privacy.mechanisms import Gaussian
from dpal.randomness import Randomness
from dpal.training.loop import train_phase
from dpal.training.sampling import BLANK
from dpal.training.settings import ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource

# Coordinates without any record's gradient show how large the noise is, to about six percent.
_SILENT = 500
_CROWD = 3
# Of so many steps one is for learning what to look at.
_EVERY = 4


class LoneCanaryAttack(Attack):
    """Single steps in which everyone takes part, with the noise of the plan. The claim is that of such a step."""

    name: ClassVar[str] = "lone-canary"
    what: ClassVar[str] = (
        "Someone who knows all other records sees the noisy gradient of one step in which everyone takes part, and "
        "guesses whether one more record was there."
    )

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        require_private(target.plan)
        noise = min(phase.noise_multiplier for phase in target.plan.phases)
        history = CampaignHistory(training=(((Gaussian(noise_multiplier=noise), 1),),))
        delta = target.plan.setting.target_delta
        epsilon = target.plan.setting.certifier.epsilon(history.training[0], delta)
        randomness, runs = randomness_of(effort, stream=4), max(16, effort.looks // 2)
        seen = [_features(target, noise, runs, there, randomness) for there in (True, False)]
        to_learn = np.arange(runs) % _EVERY == 0
        direction = _telling_apart(*(side[to_learn] for side in seen))
        trial = [side[~to_learn] for side in seen]
        return finding(
            self,
            Claim.of_history(history, epsilon=epsilon, delta=delta),
            trial[0] @ direction,
            trial[1] @ direction,
            runs=2 * runs,
            seconds=time.monotonic() - start,
            is_about_plan=False,
        )


def _features(
    target: Target, noise_multiplier: float, runs: int, is_there: bool, randomness: Randomness
) -> NDArray[np.float64]:
    """What the adversary computes from each step: (runs, features).

    The weights do not matter to the gradients, so all steps belong to one long phase.
    """
    expected = 1.0 + _CROWD
    rows = target.rows_per_unit
    # The canary pulls at the first weight, everyone else at the second.
    inputs = torch.zeros(_CROWD + 1, 2 + _SILENT)
    inputs[0, 0], inputs[1:, 1] = 1.0, 1.0
    inputs = inputs.repeat_interleave(rows, dim=0).to(target.torch_device)
    model = nn.Linear(2 + _SILENT, 1, bias=False).to(target.torch_device)
    looks: list[tuple[float, float, float]] = []

    def look(step: int) -> None:
        del step
        assert model.weight.grad is not None  # noqa: S101 (a step has just been made)
        seen = -model.weight.grad[0].double().cpu().numpy() * expected / target.max_grad_norm
        looks.append((float(seen[0]), math.log(float(np.mean(seen[2:] ** 2)) + 1e-300), float(seen[1])))

    train_phase(
        model,
        Phase(
            steps=runs,
            noise_multiplier=noise_multiplier,
            expected_batch_size=expected,
            sampling_probabilities=(1.0,),
        ),
        source=TensorSource(inputs, torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)),
        groups=[np.array([0 if is_there else BLANK, *range(1, _CROWD + 1)])],
        loss=partial(pull, strength=TOO_LONG * target.max_grad_norm),
        settings=TrainingSettings(
            optimizer="sgd", learning_rate=1e-3, max_grad_norm=target.max_grad_norm, average=None
        ),
        compute=ComputeSettings(engine=target.engine, precision=target.precision),
        randomness=randomness,
        after_step=look,
        description="attacking single steps",
        units=None if rows == 1 else np.arange(len(inputs)).reshape(-1, rows),
    )
    return np.array(looks)


def _telling_apart(present: NDArray[np.float64], absent: NDArray[np.float64]) -> Evidence:
    """Fisher's discriminant: the direction in which the two cases lie furthest apart for their spread."""
    spread = np.cov(present, rowvar=False) + np.cov(absent, rowvar=False)
    scale = np.diag(np.diag(spread)) * 1e-6 + np.eye(len(spread)) * 1e-12
    return np.linalg.solve(spread + scale, present.mean(axis=0) - absent.mean(axis=0))
