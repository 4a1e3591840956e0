"""The audit's statistics against jax-privacy's, from the same scores.

    python benchmarks/audit_statistics.py --quick
    python benchmarks/audit_statistics.py --peer-python OTHER_ENVIRONMENT/bin/python --json FILE

Made scores of canaries that were there and of others that were not; a threshold; the bound on ε by the theorem of one
run (Steinke, Nasr, Jagielski 2023, Theorem 5.2), by intervals for the rates (Clopper and Pearson) in one direction and
in both. jax-privacy needs an environment of its own (`pip install jax-privacy`), named with --peer-python. With or
without it, our numbers are checked against sums with 40 digits. Left out of jax-privacy 2.0.0 are its bound for
Gaussian trade-offs, which takes the absolute value of a negative μ and so proves ε of scores that know nothing (its
pull request 270), and its area under the curve, which is that of the convex hull.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np
from _report import Report
from numpy.typing import NDArray

from dpal.audit.bounds import Guesses, Rates, epsilon_from_rates, epsilon_of_one_run

CLOSE = 0.01
# Runs in the other environment: it must not import anything of ours.
PEER = """
import json, sys
import numpy as np
from importlib.metadata import version
from jax_privacy.auditing import CanaryScoreAuditor, Explicit
answers = []
for case in json.load(sys.stdin):
    there, gone = np.array(case["present"]), np.array(case["absent"])
    auditor, at = CanaryScoreAuditor(there, gone), Explicit(case["threshold"])
    risk, delta = case["risk"], case["delta"]
    both = dict(threshold_strategy=at, one_sided=False)
    found = {
        "one run": auditor.epsilon_one_run(risk, delta, threshold_strategy=at),
        "rates": auditor.epsilon_clopper_pearson(risk, delta, threshold_strategy=at),
        "rates, both directions": auditor.epsilon_clopper_pearson(risk, delta, **both),
    }
    answers.append({kind: float(bound) for kind, bound in found.items()})
print(json.dumps({"version": version("jax-privacy"), "answers": answers}))
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Scores, and what is asked of them."""

    name: str
    present: NDArray[np.float64]
    absent: NDArray[np.float64]
    threshold: float
    delta: float
    risk: float

    @property
    def guesses(self) -> Guesses:
        # As jax-privacy says "there": at the threshold or above it.
        return Guesses(
            right=int((self.present >= self.threshold).sum()),
            present=len(self.present),
            wrong=int((self.absent >= self.threshold).sum()),
            absent=len(self.absent),
        )

    def to_json(self) -> dict[str, object]:
        plain = {name: getattr(self, name) for name in ("threshold", "delta", "risk")}
        return {**plain, "present": self.present.tolist(), "absent": self.absent.tolist()}


def cases(quick: bool) -> list[Case]:
    """Gaussian scores from weak to strong, few and many, a threshold in the middle and in the tail."""
    generator = np.random.default_rng(5)
    made: list[Case] = []
    for canaries in (200, 1_000) if quick else (200, 1_000, 5_000):
        for mu in (0.5, 1.5, 4.0):
            there = generator.random(canaries) < 0.5
            scores = generator.normal(size=canaries) + mu * there
            for threshold, where in ((mu / 2, "middle"), (mu + 1.0, "tail")):
                for delta, risk in ((1e-5, 0.05), (1e-3, 0.01)):
                    name = f"{canaries:,} canaries, μ = {mu:g}, {where}, δ = {delta:g}, risk {risk:g}"
                    made.append(
                        Case(
                            name=name,
                            present=scores[there],
                            absent=scores[~there],
                            threshold=threshold,
                            delta=delta,
                            risk=risk,
                        )
                    )
    return made


def ours(case: Case) -> dict[str, float]:
    counted = case.guesses
    guessed, canaries = counted.right + counted.wrong, counted.present + counted.absent
    # One direction: guesses "there" alone.
    right, wrong = Rates.of(counted, risk=case.risk).pairs[0]
    return {
        "one run": epsilon_of_one_run(counted.right, guessed, canaries, delta=case.delta, risk=case.risk),
        "rates": max(0.0, math.log((right - case.delta) / wrong)) if right > case.delta else 0.0,
        "rates, both directions": epsilon_from_rates(counted, delta=case.delta, risk=case.risk),
    }


def exact(case: Case) -> dict[str, float]:
    """The same by binomial sums with 40 digits, from the definitions alone."""
    counted = case.guesses
    guessed, canaries = counted.right + counted.wrong, counted.present + counted.absent
    with mpmath.workdps(40):
        low = _root(lambda p: _at_least(counted.present, counted.right, p) - case.risk / 2) if counted.right else 0
        high = _root(lambda p: _at_least(counted.absent, counted.wrong + 1, p) - (1 - case.risk / 2))
        pairs = ((low, high), (1 - high, 1 - low))
        rates = [max(0.0, float(mpmath.log((a - case.delta) / b))) if a > case.delta else 0.0 for a, b in pairs]

        def chance(epsilon: mpmath.mpf) -> mpmath.mpf:
            tails = _tails(guessed, 1 / (1 + mpmath.exp(-epsilon)))
            first = tails[counted.right]
            growth = max([(tails[counted.right - i] - first) / i for i in range(1, counted.right + 1)], default=0)
            return first + 2 * canaries * mpmath.mpf(case.delta) * growth

        one_run = 0.0
        if guessed and chance(mpmath.mpf(0)) < case.risk:
            one_run = float(_root(lambda share: chance(100 * share) - case.risk) * 100)
    return {
        "one run": one_run,
        "rates": rates[0],
        "rates, both directions": max(rates),
    }


def _at_least(trials: int, successes: int, rate: mpmath.mpf) -> mpmath.mpf:
    if successes <= 0:
        return mpmath.mpf(1)
    return mpmath.mpf(0) if successes > trials else _tails(trials, rate)[successes]


def _tails(trials: int, rate: mpmath.mpf) -> list[mpmath.mpf]:
    """P(Binomial(trials, rate) ≥ k) for k from 0 to trials."""
    term, odds = rate**trials, (1 - rate) / rate
    tails = [term]
    for k in range(trials, 0, -1):
        term = term * k / (trials - k + 1) * odds
        tails.append(tails[-1] + term)
    return tails[::-1]


def _root(function: Callable[[mpmath.mpf], mpmath.mpf]) -> mpmath.mpf:
    """Where a rising function on [0, 1] crosses 0, by bisection."""
    low, high = mpmath.mpf(10) ** -30, 1 - mpmath.mpf(10) ** -30
    for _ in range(36):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


def peer_answers(python: Path, asked: list[Case]) -> tuple[str, list[dict[str, float]]]:
    done = subprocess.run(  # noqa: S603 (an interpreter that was named for this)
        [python, "-c", PEER], input=json.dumps([case.to_json() for case in asked]), capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{python} failed:\n{done.stderr}")
    document = json.loads(done.stdout)
    return document["version"], document["answers"]


def apart(one: float, other: float) -> float:
    """By how much two numbers differ, as a share of the second; two zeros do not."""
    return 0.0 if one == other else abs(one - other) / max(abs(other), 1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="at most 1,000 canaries: ends within 50 s on two cores")
    parser.add_argument("--peer-python", type=Path, metavar="FILE", help="an interpreter that has jax-privacy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write claims, rows, device and versions")
    options = parser.parse_args()
    report, asked = Report(name="Statistics of an audit", packages=("mpmath",)), cases(options.quick)
    peer_version, theirs = None, [dict[str, float]()] * len(asked)
    if options.peer_python is None:
        print("No --peer-python: jax-privacy is left out, and our numbers meet sums with 40 digits alone.")
    else:
        peer_version, theirs = peer_answers(options.peer_python, asked)
    from_exact, from_theirs = dict[str, float](), dict[str, float]()
    for case, answers in zip(asked, theirs, strict=True):
        sums = exact(case)
        for kind, bound in ours(case).items():
            from_exact[kind] = max(from_exact.get(kind, 0.0), apart(bound, sums[kind]))
            if answers:
                from_theirs[kind] = max(from_theirs.get(kind, 0.0), apart(bound, answers[kind]))
            peer = answers.get(kind, "")
            ratio = "" if peer == "" else 1.0 if bound == peer else bound / peer if peer else "theirs is 0"
            report.row(what=f"{kind}: {case.name}", ours=bound, sums=sums[kind], jax_privacy=peer, ratio=ratio)
    for words, differences in (("sums with 40 digits", from_exact), (f"jax-privacy {peer_version}", from_theirs)):
        for kind, largest in differences.items():
            text = f"{kind}: largest relative difference from {words}, {len(asked)} cases"
            report.claim(text, largest, f"at most {CLOSE}", largest <= CLOSE)
    report.finish(options.json, peer=None if peer_version is None else f"jax-privacy {peer_version}")
    if not all(claim["holds"] for claim in report.claims):
        sys.exit("The statistics disagree.")


if __name__ == "__main__":
    main()
