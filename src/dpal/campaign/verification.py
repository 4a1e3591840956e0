"""Everything a campaign claims, recomputed from its facts."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

from dpal.campaign.facts import to_text
from dpal.campaign.files import digest
from dpal.campaign.ledger import Ledger, planned_charge
from dpal.campaign.state import State
from dpal.campaign.store import Store
from dpal.errors import DpalError
from dpal.planning.certify import read_plan
from dpal.planning.plan import Plan, Schedule

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    what: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All checks, and the ε that the facts give."""

    checks: tuple[Check, ...]
    epsilon_spent: float
    epsilon_budget: float
    target_delta: float
    is_private: bool
    ledger_hash: str

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    def to_json(self) -> dict[str, object]:
        return {"holds": self.holds, **asdict(self)}


def verified(folder: Path, store: Store, state: State, plan_text: str) -> Verification:
    """Recompute every ε from the facts and compare. Reading the facts has checked their chain and order already."""
    plan = read_plan(plan_text)
    schedule = Schedule(phases=plan.phases, selections=plan.selections)
    spent = Ledger.of(state).spending(plan.setting)
    epsilon = 0.0 if spent is None else max(*spent.groups, spent.unselected, spent.campaign)
    checks = [
        Check(what="facts", holds=True, detail=f"{state.last:,} facts, each chained to the one before"),
        _plan_check(plan),
        _charges_check(state, schedule),
        Check(
            what="budget",
            holds=epsilon <= plan.setting.target_epsilon,
            detail=f"ε {epsilon:.6f} of {plan.setting.target_epsilon:g} at δ {plan.setting.target_delta:g}",
        ),
        _agreement(state, plan, epsilon),
        _releases_check(store, state),
        _files_check(folder, state),
    ]
    return Verification(
        checks=tuple(checks),
        epsilon_spent=epsilon,
        epsilon_budget=plan.setting.target_epsilon,
        target_delta=plan.setting.target_delta,
        is_private=state.created.seed is None and plan.selection_is_private,
        ledger_hash=state.last_hash,
    )


def _plan_check(plan: Plan) -> Check:
    return Check(what="plan", holds=True, detail=f"certified anew: ε {plan.epsilon:.6f} at its end")


def _charges_check(state: State, schedule: Schedule) -> Check:
    wrong: list[int] = []
    for number, charge in state.charges:
        try:
            same = to_text(planned_charge(charge, schedule)) == to_text(charge)
        except (IndexError, DpalError):
            same = False
        if not same:
            wrong.append(number)
    detail = f"facts {wrong} are not what the plan says" if wrong else f"{len(state.charges)} charges, each as planned"
    return Check(what="charges", holds=not wrong, detail=detail)


def _agreement(state: State, plan: Plan, epsilon: float) -> Check:
    charged = sum(charge.kind == "charged-training" for _, charge in state.charges)
    selections = sum(charge.kind == "charged-selection" for _, charge in state.charges)
    if charged < len(plan.phases) or selections < len(plan.groups):
        detail = f"{charged} of {len(plan.phases)} phases are charged; so far ε {epsilon:.6f}"
        return Check(what="agreement", holds=epsilon <= plan.epsilon + _TOLERANCE, detail=detail)
    agrees = math.isclose(epsilon, plan.epsilon, rel_tol=0.0, abs_tol=_TOLERANCE)
    detail = f"the facts give ε {epsilon:.9f}, the plan {plan.epsilon:.9f}"
    return Check(what="agreement", holds=agrees, detail=detail)


def _releases_check(store: Store, state: State) -> Check:
    """The fold refuses a release without a charge; here: no key outlives its release."""
    pending = [] if state.open_charge is None else [state.open_charge[0]]
    left = sorted(store.seals())
    detail = f"{len(state.selected) + len(state.trained)} releases, each after its own charge"
    if pending:
        detail += f"; charge {pending[0]} waits for its release"
    if left != pending:
        detail = f"the sealed keys {left} should be {pending}"
    return Check(what="releases", holds=left == pending, detail=detail)


def _files_check(folder: Path, state: State) -> Check:
    wrong = [each.file for each in state.trained if not _is_whole(folder / each.file, each.sha256)]
    detail = f"damaged or missing: {', '.join(wrong)}" if wrong else f"{len(state.trained)} models, each as recorded"
    return Check(what="models", holds=not wrong, detail=detail)


def _is_whole(path: Path, sha256: str) -> bool:
    return path.is_file() and digest(path) == sha256
