"""How fast ε is computed and noise is calibrated, beside Opacus and dp-accounting, in one run.

The history is a campaign of five phases: q 1/2, 1/4, 1/5, 1/5, 1/6; steps 60, 120, 150, 150, 180; noise
multiplier 4.11; δ 1e-5.
"""

import logging
import warnings

import dp_accounting
from _report import Report, arguments, timed
from opacus.accountants import RDPAccountant
from opacus.accountants.utils import get_noise_multiplier

from dpal.privacy import renyi
from dpal.privacy.accountants import PldAccountant, RdpAccountant
from dpal.privacy.calibration import noise_multiplier_for
from dpal.privacy.mechanisms import PoissonSampledGaussian
from dpal.privacy.renyi import DEFAULT_ORDERS

PHASES = ((1 / 2, 60), (1 / 4, 120), (1 / 5, 150), (1 / 5, 150), (1 / 6, 180))
NOISE = 4.11
DELTA = 1e-5
OPACUS_ORDERS = tuple(RDPAccountant.DEFAULT_ALPHAS)


def cold() -> None:
    """Forget the curves of earlier calls: every call is to do all of its work."""
    renyi._known_curves.clear()


def our_epsilon(accountant: RdpAccountant | PldAccountant) -> float:
    cold()
    return accountant.epsilon(our_history(), DELTA)


def our_history() -> list[tuple[PoissonSampledGaussian, int]]:
    return [(PoissonSampledGaussian(sampling_probability=q, noise_multiplier=NOISE), steps) for q, steps in PHASES]


def opacus_rdp() -> float:
    accountant = RDPAccountant()
    accountant.history = [(NOISE, q, steps) for q, steps in PHASES]
    return accountant.get_epsilon(DELTA)


def dp_accounting_epsilon(accountant: dp_accounting.PrivacyAccountant) -> float:
    for q, steps in PHASES:
        accountant.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(NOISE)), steps)
    return float(accountant.get_epsilon(DELTA))


def main() -> None:
    options = arguments(__doc__)
    warnings.filterwarnings("ignore")
    logging.getLogger("absl").setLevel(logging.ERROR)
    few, many = (3, 30) if options.quick else (9, 200)
    report = Report(name="accounting", packages=("opacus", "dp-accounting", "torch"))
    calls = {
        "dpal RDP, Opacus's orders": (lambda: our_epsilon(RdpAccountant(orders=OPACUS_ORDERS)), many),
        "dpal RDP, default orders": (lambda: our_epsilon(RdpAccountant()), many),
        "Opacus RDP": (opacus_rdp, few),
        "dp-accounting RDP": (
            lambda: dp_accounting_epsilon(dp_accounting.rdp.RdpAccountant(OPACUS_ORDERS)),
            few,
        ),
        "dpal PLD": (lambda: our_epsilon(PldAccountant()), few),
        "dp-accounting PLD": (lambda: dp_accounting_epsilon(dp_accounting.pld.PLDAccountant()), few),
    }
    medians: dict[str, float] = {}
    for what, (call, repetitions) in calls.items():
        timing = timed(call, repetitions=repetitions)
        medians[what] = timing.median
        report.row(what=what, answer=float(call()), milliseconds=1e3 * timing.median, fastest=1e3 * timing.fastest)

    calibrations = {
        "dpal noise for ε = 8, RDP": (RdpAccountant(), many),
        "dpal noise for ε = 8, PLD": (PldAccountant(), few),
    }
    for what, (accountant, repetitions) in calibrations.items():

        def calibrate(accountant: RdpAccountant | PldAccountant = accountant) -> float:
            cold()
            return noise_multiplier_for(target_epsilon=8, target_delta=DELTA, phases=PHASES, accountant=accountant)

        timing = timed(calibrate, repetitions=repetitions)
        medians[what] = timing.median
        report.row(what=what, answer=calibrate(), milliseconds=1e3 * timing.median, fastest=1e3 * timing.fastest)

    # Opacus calibrates one phase only: the same number of steps at one rate, as a yardstick.
    def opacus_noise() -> float:
        return get_noise_multiplier(
            target_epsilon=8, target_delta=DELTA, sample_rate=1 / 4, steps=660, accountant="rdp", epsilon_tolerance=1e-4
        )

    timing = timed(opacus_noise, repetitions=1, warm_up=0)
    report.row(
        what="Opacus noise for ε = 8, RDP, one phase",
        answer=float(opacus_noise()),
        milliseconds=1e3 * timing.median,
        fastest=1e3 * timing.fastest,
    )

    ratio = medians["Opacus RDP"] / medians["dpal RDP, Opacus's orders"]
    report.claim("RDP ε: times faster than Opacus's RDPAccountant at the same orders", ratio, "≥ 100", ratio >= 100)
    noise_ms = 1e3 * medians["dpal noise for ε = 8, RDP"]
    report.claim("RDP noise calibration, milliseconds", noise_ms, "< 30", noise_ms < 30)
    pld_s = medians["dpal PLD"]
    report.claim("PLD ε, seconds", pld_s, "< 0.5", pld_s < 0.5)
    pld_ratio = medians["dp-accounting PLD"] / medians["dpal PLD"]
    report.claim("PLD ε: times faster than dp-accounting", pld_ratio, "> 1", pld_ratio > 1)
    assert len(DEFAULT_ORDERS) > len(OPACUS_ORDERS)
    report.finish(options.json)


if __name__ == "__main__":
    main()
