"""What attacks find: five plans, the claimed ε and the best lower bound of each attack; and bugs that are planted.

Every bound must be below the claim. Planted bugs must be found with the effort of `dpal audit --quick`.
"""

import sys
import time
from pathlib import Path

from _report import Report, arguments

from dpal.audit.attack import FULL, QUICK, Effort, Target
from dpal.audit.audits import ATTACKS, audit
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from planted_bugs import PLANTED, PLANTED_IN_CHOICES, PLANTED_IN_UNITS

POOL, ROWS = 20_000, 4
# Attacks in which the adversary chooses records that are worst for them, and sees every gradient.
WORST_CASE = ("training", "units", "campaign", "replay")


def plan(epsilon: float, *, released: bool = False, unit: str | None = None) -> Plan:
    kinds = {"selections": "released", "selection": "threshold", "query_sizes": (600, 600)} if released else {}
    options = kinds or {"query_sizes": (1200,)}
    return PlanRequest(target_epsilon=epsilon, initial_size=800, unit=unit, **options).plan(POOL)


def plans() -> dict[str, Target]:
    return {
        "record, cut, ε 1": Target(plan=plan(1)),
        "record, cut, ε 3": Target(plan=plan(3)),
        "record, cut, ε 8": Target(plan=plan(8)),
        "record, threshold, ε 3": Target(plan=plan(3, released=True)),
        "patient, cut, ε 3": Target(plan=plan(3, unit="patient"), rows_per_unit=ROWS),
    }


def attack_plans(report: Report, effort: Effort) -> None:
    best: dict[str, float] = {}
    above: list[str] = []
    for name, target in plans().items():
        result = audit(target, effort, tell=lambda words, name=name: print(f"{name}: {words}", flush=True))
        for found in result.findings:
            report.row(
                what=f"{name}: {found.attack}",
                claimed=found.claimed_epsilon,
                bound=found.epsilon_bound,
                if_Gaussian="" if found.gaussian_bound is None else found.gaussian_bound,
                guesses=found.guesses,
                runs=found.runs,
                seconds=found.seconds,
            )
            if found.broken or found.epsilon_bound > found.claimed_epsilon:
                above.append(f"{name}: {found.attack}")
            if found.attack in WORST_CASE:
                best[name] = max(best.get(name, 0.0), found.epsilon_bound)
    report.claim("bounds above their claim", len(above), "0", not above)
    if effort is not QUICK:
        for name, target in plans().items():
            wanted = min(4.0, target.plan.epsilon / 2)
            report.claim(
                f"worst-case canaries, {name}: bound", best[name], f"at least {wanted:.3g}", best[name] >= wanted
            )


def find_planted_bugs(report: Report) -> None:
    targets = {
        "record": (Target(plan=plan(3)), PLANTED),
        "patient": (Target(plan=plan(3, unit="patient"), rows_per_unit=ROWS), PLANTED_IN_UNITS),
        "released": (Target(plan=plan(3, released=True)), PLANTED_IN_CHOICES),
    }
    missed: list[str] = []
    for target, bugs in targets.values():
        for name, (plant, attacks) in bugs.items():
            for attack in attacks:
                start = time.monotonic()
                with plant():
                    found = ATTACKS[attack]().run(target, QUICK)
                report.row(
                    what=f"planted, {name}: {attack}",
                    claimed=found.claimed_epsilon,
                    bound=found.epsilon_bound,
                    if_Gaussian="" if found.gaussian_bound is None else found.gaussian_bound,
                    guesses=found.guesses,
                    runs=found.runs,
                    seconds=time.monotonic() - start,
                )
                if not found.broken:
                    missed.append(f"{name}: {attack}")
    report.claim("planted bugs that an attack missed", len(missed), "0", not missed)


def main() -> None:
    given = arguments(__doc__)
    report = Report(name="audit", packages=["torch"])
    if given.quick:
        find_planted_bugs(report)
    else:
        attack_plans(report, FULL)
        find_planted_bugs(report)
    report.finish(given.json)


if __name__ == "__main__":
    main()
