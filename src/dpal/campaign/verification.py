"""Everything that a campaign claims, recomputed from its facts."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dpal.campaign.changed_config import current_config
from dpal.campaign.config import settings_hash
from dpal.campaign.facts import ChargedMean, ChargedSelection, ChargedTraining, Finished, to_text
from dpal.campaign.files import draft_of, is_whole
from dpal.campaign.fingerprints import Contents
from dpal.campaign.large_contents import asked_is_whole
from dpal.campaign.layout import ASKED, CONFIG, CONTENTS, SPENT, WEIGHTS, checkpoint_name, models_in
from dpal.campaign.ledger import Ledger, epsilon_spent, noted_epsilon, planned_charge
from dpal.campaign.leftovers import needed_keys
from dpal.campaign.state import Charge, Finish, ReleaseMean, Select, State, Train, after, fold, next_step
from dpal.campaign.store import Recorded
from dpal.errors import DpalError
from dpal.planning.certification import read_plan
from dpal.planning.plan import Plan, Schedule, stated_plan
from dpal.privacy.rounding import rounded_up
from dpal.selection.selection import INSIDE

_TOLERANCE = 1e-9
_FEW_PHASES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked."""

    what: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All checks, and the ε that follows from the facts."""

    checks: tuple[Check, ...]
    epsilon_spent: float
    epsilon_budget: float
    target_delta: float
    is_private: bool
    # The promise: whether what selections chose stays inside or is released.
    selections: str
    ledger_hash: str

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    def to_json(self) -> dict[str, object]:
        return {"holds": self.holds, **asdict(self)}


def verified(
    folder: Path, recorded: Sequence[Recorded], sealed: Sequence[int], *, recompute: bool | None = True
) -> Verification:
    """Recompute every ε from the facts and compare. Reading the facts has checked their chain and order already.

    Without `recompute`, the plan and the ε spent are taken as they were certified before; None recomputes if that is
    quick.
    """
    # Details may be passed on, so they leave out the number of facts: it shows how often labels were late or corrected.
    state = fold(recorded)
    if recompute is None:
        recompute = _is_quick(stated_plan(state.created.plan))
    plan = read_plan(json.dumps(state.created.plan)) if recompute else stated_plan(state.created.plan)
    schedule = plan.schedule
    epsilon = Ledger.of(state).epsilon(plan.setting) if recompute else epsilon_spent(folder, state, plan)
    how = "certified again" if recompute else "as certified when it was made, not recomputed here"
    checks = [
        Check(what="facts", holds=True, detail="each chained to the one before"),
        Check(what="plan", holds=True, detail=f"{how}: ε {rounded_up(plan.epsilon, 6):.6f} at its end"),
        _charges_check(state, schedule),
        _order_check(recorded, schedule),
        Check(
            what="budget",
            holds=epsilon <= plan.setting.target_epsilon,
            detail=f"ε {rounded_up(epsilon, 6):.6f} of {plan.setting.target_epsilon:g} "
            f"at δ {plan.setting.target_delta:g}",
        ),
        _agreement(state, plan, epsilon, noted_epsilon(folder, state)),
        _releases_check(state, sealed),
        _sizes_check(state, plan),
        _files_check(folder, state),
    ]
    return Verification(
        checks=tuple(checks),
        epsilon_spent=epsilon,
        epsilon_budget=plan.setting.target_epsilon,
        target_delta=plan.setting.target_delta,
        is_private=state.created.seed is None and plan.selection_is_private,
        selections=plan.setting.promise,
        ledger_hash=state.last_hash,
    )


def _is_quick(plan: Plan) -> bool:
    """Whether recomputing every ε takes seconds and not minutes."""
    return plan.setting.accountant == "rdp" or len(plan.phases) <= _FEW_PHASES


def _order_check(recorded: Sequence[Recorded], schedule: Schedule) -> Check:
    """Replay the facts: every charge, and the end, must have been the next step at that time."""
    wrong: list[str] = []
    state = fold(recorded[:1])
    for entry in recorded[1:]:
        expected = None
        match entry.fact:
            case ChargedMean() | ChargedSelection() | ChargedTraining():
                expected = _step_of(entry.fact)
            case Finished():
                expected = Finish()
            case _:
                pass
        if expected is not None and next_step(state, schedule) != expected:
            wrong.append(_words(expected))
        state = after(state, entry.number, entry.at, entry.hash, entry.fact)
    detail = f"not the next step: {', '.join(wrong)}" if wrong else "every charge was the next step of the plan"
    return Check(what="order", holds=not wrong, detail=detail)


def _step_of(charge: Charge) -> ReleaseMean | Select | Train:
    match charge:
        case ChargedMean():
            return ReleaseMean()
        case ChargedSelection(group=group):
            return Select(group)
        case ChargedTraining(phase=phase):
            return Train(phase)


def _words(step: ReleaseMean | Select | Train | Finish) -> str:
    """A step by its place in the plan, which is public; the number of its fact would show how often labels came."""
    match step:
        case ReleaseMean():
            return "the mean"
        case Select(group):
            return "the initial set" if group == 0 else f"query {group}"
        case Train(phase):
            return f"phase {phase + 1}"
        case Finish():
            return "the end"


def _sizes_check(state: State, plan: Plan) -> Check:
    """No selection took more than it may; the initial set is as large as planned, except for withdrawn records.

    A cut may ask for everyone, and a check that failed when it asks for many would tell about records.
    """
    inside, pool_size = plan.setting.promise == INSIDE, state.created.pool_size
    sizes = [len(chosen) for chosen in state.asked]
    allowed = [plan.groups[0].size, *(selection.largest_number(pool_size) for selection in plan.selections)]
    holds = all(size <= most for size, most in zip(sizes, allowed, strict=False)) and len(sizes) <= len(allowed)
    holds = holds and (not sizes or sizes[0] >= allowed[0] - len(state.withdrawn))
    holds = holds and len(state.taken()) <= pool_size
    detail = f"{sizes} records selected, planned at most {allowed[: len(sizes)]}"
    if inside:
        detail = "no selection took more records than its plan allows; the numbers are internal (dpal status)"
    if inside and not holds:
        detail = "a selection took more than it may, or the initial set is not as large as planned"
    return Check(what="sizes", holds=holds, detail=detail)


def _charges_check(state: State, schedule: Schedule) -> Check:
    wrong: list[str] = []
    for _, charge in state.charges:
        try:
            same = to_text(planned_charge(charge, schedule)) == to_text(charge)
        except (IndexError, DpalError):
            same = False
        if not same:
            wrong.append(_words(_step_of(charge)))
    detail = (
        f"not what the plan says: {', '.join(wrong)}" if wrong else f"{len(state.charges)} charges, each as planned"
    )
    return Check(what="charges", holds=not wrong, detail=detail)


def _agreement(state: State, plan: Plan, epsilon: float, noted: float | None) -> Check:
    if noted is not None and not math.isclose(noted, epsilon, rel_tol=0.0, abs_tol=_TOLERANCE):
        detail = f"the file {SPENT} says ε {noted!r}, but the facts give {epsilon!r}; remove that file"
        return Check(what="agreement", holds=False, detail=detail)
    charged = sum(charge.kind == "charged-training" for _, charge in state.charges)
    selections = sum(charge.kind == "charged-selection" for _, charge in state.charges)
    if charged < len(plan.phases) or selections < len(plan.groups):
        detail = f"{charged} of {len(plan.phases)} phases are charged; so far ε {rounded_up(epsilon, 6):.6f}"
        return Check(what="agreement", holds=epsilon <= plan.epsilon + _TOLERANCE, detail=detail)
    agrees = math.isclose(epsilon, plan.epsilon, rel_tol=0.0, abs_tol=_TOLERANCE)
    detail = f"the facts give ε {rounded_up(epsilon, 9):.9f}, the plan {rounded_up(plan.epsilon, 9):.9f}"
    return Check(what="agreement", holds=agrees, detail=detail)


def _releases_check(state: State, sealed: Sequence[int]) -> Check:
    """Reading the facts refuses a release without a charge. Checked here: no key outlives its release."""
    pending = needed_keys(state)
    releases = len(state.selected) + len(state.trained) + (state.mean is not None)
    detail = f"{releases} releases, each after its own charge"
    if state.given_up:
        detail += f"; given up after its charge: {', '.join(_words(Train(phase)) for phase in state.given_up)}"
    if pending:
        detail += "; one charge waits for its release"
    if sorted(sealed) != pending:
        detail = f"there are {len(sealed)} sealed keys, but there should be {len(pending)}"
    return Check(what="releases", holds=sorted(sealed) == pending, detail=detail)


def _files_check(folder: Path, state: State) -> Check:
    """Every model and the configuration are as recorded, and there is no model that was not recorded."""
    expected = {trained.file: trained.sha256 for trained in state.trained} | {WEIGHTS: state.created.weights}
    wrong = [name for name, sha256 in expected.items() if not is_whole(folder / name, sha256)]
    if state.produced is not None:
        # It was made, but the process died before recording it: it may still be a draft.
        name = checkpoint_name(state.produced.phase)
        # The draft first: a writer may rename it in between.
        if not any(is_whole(path, state.produced.sha256) for path in (draft_of(folder / name), folder / name)):
            wrong.append(name)
        expected[name] = state.produced.sha256
    unrecorded = [name for name in models_in(folder) if name not in expected]
    try:
        if not state.created.large:
            Contents.read(folder, key=b"", expected=state.created.contents)
        elif not asked_is_whole(folder, state):
            wrong.append(ASKED)
    except DpalError:
        wrong.append(CONTENTS)
    try:
        same = settings_hash(current_config(folder, state.settings)) == state.settings
    except DpalError:
        same = False
    if not same:
        wrong.append(CONFIG)
    detail = f"{len(state.trained)} models and the configuration, each as recorded"
    if wrong or unrecorded:
        detail = f"changed or missing: {wrong}; not recorded: {unrecorded}"
    return Check(what="files", holds=not wrong and not unrecorded, detail=detail)
