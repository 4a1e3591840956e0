"""What all charges so far cost, kept in the folder: from a cold start, a long plan takes a minute to recompute."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from dpal import __version__
from dpal.campaign.facts import to_text
from dpal.campaign.files import write_text
from dpal.campaign.ledger import Ledger
from dpal.campaign.state import State
from dpal.planning.plan import Plan

NAME = "campaign.spent"


def epsilon_spent(folder: Path, state: State, plan: Plan) -> float:
    """The one number for what was spent: as noted for exactly these charges, or else certified from them, and noted."""
    known = noted_epsilon(folder, state)
    if known is not None:
        return known
    epsilon = Ledger.of(state).epsilon(plan.setting)
    # Readers note it too. Where they may not write, or another one is writing, nothing is lost.
    with suppress(OSError):
        charges = _hash_of_charges(state)
        note = {"charges": charges, "epsilon": epsilon, "check": _check(charges, epsilon)}
        write_text(folder / NAME, json.dumps(note) + "\n")
    return epsilon


def noted_epsilon(folder: Path, state: State) -> float | None:
    """The ε that was noted for exactly these charges. verify compares it with what it recomputes."""
    try:
        note = json.loads((folder / NAME).read_text(encoding="utf-8"))
        epsilon, charges = float(note["epsilon"]), _hash_of_charges(state)
        return epsilon if (note["charges"], note["check"]) == (charges, _check(charges, epsilon)) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _hash_of_charges(state: State) -> str:
    """Of everything that ε follows from: the plan's setting, the charges, and the version that computes."""
    charges = [to_text(charge) for _, charge in state.charges]
    return hashlib.sha256("\n".join((__version__, state.created.plan_hash, *charges)).encode()).hexdigest()


def _check(charges: str, epsilon: float) -> str:
    return hashlib.sha256(f"{charges} {epsilon!r}".encode()).hexdigest()
