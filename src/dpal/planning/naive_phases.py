"""Where all planners start: the naive phases of a setting, their common noise multiplier, and the decisive order."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpal.planning.setting import Setting
from dpal.privacy.accountants import Accountant
from dpal.privacy.calibration import noise_multiplier_for
from dpal.privacy.mechanisms import Mechanism, PoissonSampledGaussian
from dpal.privacy.renyi import DEFAULT_ORDERS, conversion, renyi_curve

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NaivePhases:
    """Naive phases (rates and steps), and the noise with which the initial group ends at its target."""

    setting: Setting
    rates: tuple[float, ...]
    steps: tuple[int, ...]
    noise_multiplier: float

    @classmethod
    def of(
        cls,
        setting: Setting,
        steps: tuple[int, ...] | None = None,
        accountant: Accountant | None = None,
    ) -> "NaivePhases":
        rates = cls.naive_rates(setting)
        steps = cls.naive_steps(setting) if steps is None else steps
        noise = noise_multiplier_for(
            target_epsilon=setting.target_epsilon,
            target_delta=setting.target_delta,
            phases=tuple(zip(rates, steps, strict=True)),
            accountant=setting.certifier if accountant is None else accountant,
            history=setting.before,
        )
        return cls(setting=setting, rates=rates, steps=steps, noise_multiplier=noise)

    @staticmethod
    def naive_rates(setting: Setting) -> tuple[float, ...]:
        # Algorithm 1: q_i = b / |D_i|.
        return tuple(min(1.0, setting.batch_size / labelled) for labelled in setting.labelled_by_phase)

    @staticmethod
    def naive_steps(setting: Setting) -> tuple[int, ...]:
        # Algorithm 1: n_i = e / q_i.
        return tuple(max(1, round(setting.epochs / rate)) for rate in NaivePhases.naive_rates(setting))

    def naive_history(self, phases: int) -> list[tuple[Mechanism, int]]:
        trained = [
            (PoissonSampledGaussian(sampling_probability=rate, noise_multiplier=self.noise_multiplier), steps)
            for rate, steps in zip(self.rates[:phases], self.steps[:phases], strict=True)
        ]
        return [*self.setting.before, *trained]

    def decisive_order(self) -> float:
        """The Rényi order that gives the initial group's ε."""
        orders = np.asarray(DEFAULT_ORDERS)
        curve = renyi_curve(self.naive_history(len(self.rates)))
        return float(orders[int((curve + conversion(orders, self.setting.target_delta)).argmin())])

    def epsilon_by_phase(self) -> Array:
        """ε of the initial group after each naive phase: what every group is to have spent by then."""
        certifier = self.setting.certifier
        delta = self.setting.target_delta
        due = [certifier.epsilon(self.naive_history(done), delta) for done in range(1, len(self.rates))]
        return np.array([*due, self.setting.target_epsilon])

    def with_noise(self, noise_multiplier: float) -> "NaivePhases":
        return replace(self, noise_multiplier=noise_multiplier)
