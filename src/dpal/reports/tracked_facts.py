"""What an experiment tracker is told about a finished campaign: public facts by name, and no others.

The names are the tables of docs/mlflow.md. Losses, gradient norms, drawn batch sizes, counts and times depend on
private records, and the promise does not cover them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpal import __version__
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.ledger import Ledger
from dpal.campaign.state import State
from dpal.campaign.status import FINISHED
from dpal.errors import DpalError
from dpal.planning.plan import Plan
from dpal.privacy.rounding import rounded_up
from dpal.reports.plain_words import exactly
from dpal.reports.signature import checked_signature
from dpal.training.progress import doing

# The campaign's first record has this hash, by which its run is found again.
IDENTITY = "dpal.campaign_hash"
# What MLflow shows at the top of a run.
DESCRIPTION = "mlflow.note.content"
# Of a model on the public held-out set; whatever else was measured stays where it is.
_SCORES = ("accuracy", "balanced_accuracy", "auc")
# As on the certificate.
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedFacts:
    """Public facts by name. A metric has a value for each phase, counted from 1."""

    parameters: Mapping[str, str]
    metrics: Mapping[str, Mapping[int, float]]
    tags: Mapping[str, str]


def require_public(campaign: Campaign) -> None:
    """Of a campaign under way the end is not known, and in a simulation nothing is private."""
    status = campaign.status()
    if not status.is_private:
        raise DpalError(
            f"{campaign.folder} was a simulation in which nothing is private: no fact of it is public. Nothing was "
            "written."
        )
    if status.stage != FINISHED:
        raise DpalError(f"{campaign.folder} is not finished (next: {status.next_step}). Nothing was written.")


def identity_of(campaign: Campaign) -> str:
    """The same for every export of the campaign, also after late answers; of no other campaign."""
    return campaign.reader.recorded[0].hash


def tracked_facts(campaign: Campaign, certificate: Mapping[str, Any], certificate_text: str) -> TrackedFacts:
    """What a tracker is told: from the certificate, the plan, the configuration and the public held-out set."""
    plan, state, status = campaign.plan, campaign.state(), campaign.status()
    setting, model = plan.setting, campaign.config.model
    signer = checked_signature(certificate)
    optional_tags = {
        "dpal.model_sha256": certificate["model_sha256"],
        "dpal.signed_with": None if signer is None else signer.fingerprint,
    }
    with doing("computing ε by phase"):
        spent = epsilon_by_phase(state, plan)
    return TrackedFacts(
        parameters={
            "dpal_version": __version__,
            "plan_hash": certificate["plan_hash"],
            "planner": plan.planner,
            "phases": str(len(plan.phases)),
            "labels_planned": str(setting.labelling_budget),
            "pool_size": str(setting.pool_size),
            "unit": setting.unit,
            "epsilon_budget": exactly(setting.target_epsilon),
            "delta": exactly(setting.target_delta),
            "accountant": setting.accountant,
            "accounting": setting.accounting,
            "selections": setting.promise,
            "queries": ", ".join(dict.fromkeys(selection.kind() for selection in plan.selections)) or "none",
            "acquisition": state.created.acquisition,
            "model": "made in Python" if model is None else model.name,
            "encoder": status.encoder or "none",
        },
        metrics={"epsilon_spent": spent} | _scores(state),
        tags={
            IDENTITY: identity_of(campaign),
            "dpal.campaign": certificate["campaign"],
            "dpal.ledger_hash": certificate["ledger_hash"],
            "dpal.certificate_sha256": hashlib.sha256(certificate_text.encode()).hexdigest(),
            DESCRIPTION: "\n\n".join(
                certificate[name] for name in ("statement", "worst_case", "selections_in_short", "unit_in_words")
                if certificate[name]
            ),
        }
        | {name: value for name, value in optional_tags.items() if value is not None},
    )  # fmt: skip


def epsilon_by_phase(state: State, plan: Plan) -> dict[int, float]:
    """What all charges up to the end of each phase cost, from the charges alone, rounded up."""
    spent: dict[int, float] = {}
    for count, (_, charge) in enumerate(state.charges, start=1):
        if isinstance(charge, ChargedTraining):
            so_far = Ledger.of(replace(state, charges=state.charges[:count]))
            spent[charge.phase + 1] = rounded_up(so_far.epsilon(plan.setting), _DIGITS)
    return spent


def _scores(state: State) -> dict[str, dict[int, float]]:
    """On the held-out set, which is public: a campaign takes no other."""
    found: dict[str, dict[int, float]] = {}
    for fact in state.evaluated:
        for name in _SCORES:
            if name in fact.metrics:
                found.setdefault(name, {})[fact.phase + 1] = fact.metrics[name]
    return found


def certificate_text(certificate: Mapping[str, Any]) -> str:
    """The certificate's JSON file."""
    return json.dumps(certificate, indent=2, ensure_ascii=False) + "\n"
