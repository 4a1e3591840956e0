"""The privacy certificate: what was promised, what was spent, and what is needed to recompute it without the data."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from dpal import __version__
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.folder import CampaignFolder, plan_hash
from dpal.campaign.ledger import Ledger, phase_of, training_body
from dpal.errors import DpalError, InvalidArgument, MissingData
from dpal.planning.certify import read_plan, require_same
from dpal.planning.plan import Plan
from dpal.planning.selections import PlannedSelection
from dpal.reports.campaign_data import ASSUMPTIONS

VERSION = 1
ADJACENCY = "zero-out: one record replaced by a blank"
UNIT = "one record"
RELEASED = (
    "the model after every training phase, and every step towards it",
    "the ids of the records that were selected for labelling or retired",
    "the thresholds of threshold selections",
    "this certificate, the plan and the number of records",
)
NOT_RELEASED = (
    "the records, their labels and scores",
    "how many records took part in a step, and gradients before noise",
    "the randomness of any step",
)
# What cannot be recomputed from the plan and the charges: guarded by hashes, against slips of the hand.
_STATED = ("campaign", "issued", "dpal_version", "ledger_hash")


def certificate_of(folder: Path | str) -> dict[str, Any]:
    """The certificate of a campaign, finished or not. One that does not verify, or protects nobody, gets none."""
    campaign = CampaignFolder(folder)
    found = campaign.verify()
    if not found.is_private:
        raise DpalError(f"{folder} was a simulation in which nothing is private: there is nothing to certify.")
    if not found.holds:
        wrong = ", ".join(check.what for check in found.checks if not check.holds)
        raise DpalError(
            f"{folder} does not verify ({wrong}), so it gets no certificate. Look with: dpal verify {folder}"
        )
    state = campaign.state()
    plan = read_plan(json.dumps(state.created.plan))
    stated = {
        "campaign": campaign.folder.name,
        "issued": datetime.now(UTC).date().isoformat(),
        "dpal_version": __version__,
        "ledger_hash": state.last_hash,
    }
    return _document(plan, Ledger.of(state), stated)


def _document(plan: Plan, ledger: Ledger, stated: Mapping[str, str]) -> dict[str, Any]:
    """The whole certificate from the plan, the charges and four plain statements."""
    setting = plan.setting
    spent = ledger.spending(setting)
    epsilon = 0.0 if spent is None else max(*spent.groups, spent.unselected, spent.campaign)
    is_complete = len(ledger.phases) == len(plan.phases)
    return {
        "certificate": "dpal privacy certificate",
        "version": VERSION,
        **stated,
        "statement": _statement(epsilon, plan, complete=is_complete),
        "complete": is_complete,
        "epsilon": epsilon,
        "epsilon_budget": setting.target_epsilon,
        "delta": setting.target_delta,
        "unit": UNIT,
        "adjacency": ADJACENCY,
        "accountant": setting.accountant,
        "accounting": setting.accounting,
        "groups": []
        if spent is None
        else [
            {"group": number, "records_at_most": plan.groups[number].size, "epsilon": each}
            for number, each in enumerate(spent.groups)
        ],
        "mechanisms": _mechanisms(ledger),
        "released": list(RELEASED),
        "not_released": list(NOT_RELEASED),
        "assumptions": list(ASSUMPTIONS),
        "plan_hash": plan_hash(plan.to_json()),
        "charges": {
            "phases": [_plain(training_body(phase)) for phase in ledger.phases],
            "selections": [selection.to_json() for selection in ledger.selections],
        },
        "plan": plan.to_json(),
        "verify_with": "dpal verify CERTIFICATE.json",
        "checks": {name: _fingerprint(name, stated[name]) for name in _STATED},
    }


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in body.items()}


def _mechanisms(ledger: Ledger) -> list[dict[str, Any]]:
    """Every mechanism and how often it was used."""
    trained = [
        {
            "mechanism": "Poisson-sampled Gaussian",
            "where": f"training phase {number}",
            "times": phase.steps,
            "noise_multiplier": phase.noise_multiplier,
            "sampling_probabilities": list(phase.sampling_probabilities),
        }
        for number, phase in enumerate(ledger.phases, start=1)
    ]
    selected = [
        {"where": f"query {number}", "times": 1, **selection.to_json()}
        for number, selection in enumerate(ledger.selections, start=1)
    ]
    return [*trained, *selected]


def _statement(epsilon: float, plan: Plan, *, complete: bool) -> str:
    time = "All of the plan is carried out" if complete else "The plan is partly carried out"
    return (
        f"{time}. Everything released so far satisfies (ε = {epsilon:.6f}, δ = {plan.setting.target_delta:g}) "
        f"differential privacy for every single record, within the promise of ε = {plan.setting.target_epsilon:g}."
    )


def _fingerprint(name: str, value: str) -> str:
    return hashlib.sha256(f"{name}\0{value}".encode()).hexdigest()


def read_certificate(file: Path) -> dict[str, Any]:
    """A certificate's document from its JSON file."""
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument("the certificate", str(file), "the JSON file that dpal certificate writes") from error
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("certificate") is None:
        raise InvalidArgument("the certificate", str(file), "the JSON file that dpal certificate writes")
    return cast("dict[str, Any]", document)


def verify_certificate(document: Mapping[str, Any]) -> float:
    """Recompute everything in a certificate from its plan and charges; the ε. What differs is named.

    Needs no data and no campaign. Hashes of what cannot be recomputed guard against slips, not against forgers: whoever
    has the campaign can compare its ledger hash.
    """
    if document.get("version") != VERSION:
        raise InvalidArgument("the certificate's version", document.get("version"), f"{VERSION}, which this dpal knows")
    for name in _STATED:
        checks = document.get("checks")
        known = checks.get(name) if isinstance(checks, Mapping) else None
        if not isinstance(document.get(name), str) or _fingerprint(name, document[name]) != known:
            raise InvalidArgument(f"the certificate: {name}", document.get(name), "as it was issued; it was edited")
    try:
        plan = read_plan(json.dumps(document["plan"]))
        charges = document["charges"]
        ledger = Ledger(
            phases=tuple(
                phase_of(ChargedTraining(phase=number, **_as_charged(each)))
                for number, each in enumerate(charges["phases"])
            ),
            selections=tuple(PlannedSelection.from_json(each) for each in charges["selections"]),
        )
    except (KeyError, TypeError) as error:
        raise InvalidArgument("the certificate", f"without {error}", "complete") from error
    _require_planned(plan, ledger)
    true = _document(plan, ledger, {name: document[name] for name in _STATED})
    require_same("the certificate", dict(document), true)
    return float(true["epsilon"])


def _as_charged(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "sampling_probabilities": tuple(body["sampling_probabilities"])}


def _require_planned(plan: Plan, ledger: Ledger) -> None:
    """The charges are the beginning of the plan."""
    for number, (charged, planned) in enumerate(zip(ledger.phases, plan.phases, strict=False)):
        stated, true = _plain(training_body(charged)), _plain(training_body(planned))
        require_same(f"the certificate: charges: phases[{number}]", stated, true)
    for number, (charged, planned) in enumerate(zip(ledger.selections, plan.selections, strict=False)):
        require_same(f"the certificate: charges: selections[{number}]", charged.to_json(), planned.to_json())
    if len(ledger.phases) > len(plan.phases) or len(ledger.selections) > len(plan.selections):
        raise InvalidArgument("the certificate: charges", "more than planned", "at most what the plan has")
