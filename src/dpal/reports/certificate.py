"""The privacy certificate: what was promised, what was spent, and what is needed to recompute it without the data."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from dpal import __version__
from dpal.audit.results import LIMITS, Audit, rounded_down
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.ledger import Ledger, mean_body, phase_of, training_body
from dpal.campaign.reader import plan_hash
from dpal.campaign.state import State
from dpal.campaign.status import encoder_words
from dpal.errors import DpalError, InvalidArgument
from dpal.planning.certification import read_plan
from dpal.planning.documents import require_same
from dpal.planning.plan import Plan
from dpal.planning.promises import WORDS, released_words
from dpal.planning.unit_words import adjacency, unit_sentence
from dpal.privacy.rounding import rounded_up
from dpal.reports.assumptions import assumptions_of
from dpal.reports.plain_words import exactly, little_because, worst_case
from dpal.reports.several_records import SeveralRecordsRow, certified_rows, checked_rows, section_of
from dpal.reports.signature import PUBLIC_KEY, SIGNATURE, checked_signature
from dpal.selection.registry import selection_from_json

VERSION = 5
# ε is stated with this many decimals, rounded up; a stated ε may be this much above the recomputed one.
_DIGITS, _SLACK = 6, 2e-6
# What cannot be recomputed from the plan and the charges. Hashes guard it against accidental edits.
_STATED = ("campaign", "issued", "dpal_version", "ledger_hash", "model_sha256", "given_up", "foreign_code")
# Only where the model reads features of one.
_ENCODER = "encoder"
# Only where the operator adds one: what attacks on the plan found.
_AUDIT = "audit"
_OPTIONAL = (_ENCODER, _AUDIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Epsilons:
    """Every ε that a certificate states: for the campaign and for each group."""

    campaign: float
    groups: tuple[float, ...]

    @staticmethod
    def of(plan: Plan, ledger: Ledger) -> "_Epsilons":
        """As computed from the charges, with all digits."""
        spent = ledger.spending(plan.setting)
        if spent is None:
            return _Epsilons(campaign=0.0, groups=())
        return _Epsilons(campaign=max(*spent.groups, spent.unselected, spent.campaign), groups=spent.groups)

    def rounded_up(self) -> "_Epsilons":
        return _Epsilons(
            campaign=rounded_up(self.campaign, _DIGITS),
            groups=tuple(rounded_up(group, _DIGITS) for group in self.groups),
        )


def certificate_of(folder: Path | str, *, audit: Audit | None = None) -> dict[str, Any]:
    """The certificate of a campaign, finished or not. Simulations, and campaigns that do not verify, get none.

    An audit of the same plan is stated as what it is: an attack, and no proof.
    """
    campaign = Campaign(folder)
    verification = campaign.verify()
    if not verification.is_private:
        raise DpalError(f"{folder} was a simulation in which nothing is private: there is nothing to certify.")
    if not verification.holds:
        wrong = ", ".join(check.what for check in verification.checks if not check.holds)
        raise DpalError(f"{folder} does not verify ({wrong}), so no certificate was written. See: dpal verify {folder}")
    state = campaign.state()
    # Verified above. The plan is stated as it was recorded, so that its hash is the recorded one on every machine.
    plan, ledger = campaign.plan, Ledger.of(state)
    stated: dict[str, Any] = {
        "campaign": campaign.folder.name,
        "issued": datetime.now(UTC).date().isoformat(),
        "dpal_version": __version__,
        "ledger_hash": state.last_hash,
        "model_sha256": _model_sha256(state),
        "given_up": [phase + 1 for phase in state.given_up],
        "foreign_code": list(state.created.foreign_code),
    }
    if state.created.encoder is not None:
        stated[_ENCODER] = dict(state.created.encoder) | {"in_words": encoder_words(state.created.encoder)}
    if audit is not None:
        stated[_AUDIT] = _audit_section(audit, plan)
    return _document(plan, ledger, _Epsilons.of(plan, ledger).rounded_up(), certified_rows(plan, ledger), stated)


def _audit_section(audit: Audit, plan: Plan) -> dict[str, Any]:
    """What attacks found, if they were on this plan."""
    if audit.plan_hash != plan_hash(plan.to_json()):
        raise InvalidArgument(
            "--audit", audit.plan_hash, f"an audit of this campaign's plan, {plan_hash(plan.to_json())}"
        )
    if audit.is_broken or audit.above_claim:
        raise DpalError(f"The audit says: {audit.verdict} No certificate was written.")
    strongest = audit.strongest
    return {
        "in_words": f"{audit.verdict} {LIMITS}",
        "attacks": [finding.attack for finding in audit.findings],
        # Of the whole plan, rounded down: it is a lower bound.
        "epsilon_ruled_out": 0.0 if strongest is None else float(rounded_down(strongest.epsilon_bound)),
        "bound_is_wrong_with_probability_at_most": float(f"{audit.risk_of_strongest:.12g}"),
        "dpal_version": audit.dpal_version,
        "date": audit.date,
    }


def _model_sha256(state: State) -> str | None:
    """The hash of the newest model's file as dpal export-model writes it."""
    if not state.trained:
        return None
    return state.trained[-1].export_sha256


def _document(
    plan: Plan,
    ledger: Ledger,
    spent: _Epsilons,
    several: Sequence[SeveralRecordsRow],
    stated: Mapping[str, Any],
) -> dict[str, Any]:
    """The whole certificate from the plan, the charges, their ε and what is only stated."""
    setting, words = plan.setting, WORDS[plan.setting.promise]
    is_complete = len(ledger.phases) == len(plan.phases)
    return {
        "certificate": "dpal privacy certificate",
        "version": VERSION,
        **stated,
        "statement": _statement(spent.campaign, plan, complete=is_complete, given_up=stated["given_up"]),
        "worst_case": worst_case(setting.target_epsilon, setting.target_delta, setting.pool_size, setting.unit),
        "selections": setting.promise,
        "selections_in_short": words.short,
        "selections_in_words": words.meaning,
        "unit_in_words": unit_sentence(setting.unit),
        "complete": is_complete,
        "epsilon": spent.campaign,
        "epsilon_budget": setting.target_epsilon,
        "delta": setting.target_delta,
        "unit": f"one {setting.unit}",
        "adjacency": f"zero-out: {adjacency(setting.unit)}",
        "accountant": setting.accountant,
        "accounting": setting.accounting,
        "groups": [
            {"group": number, "units_planned": plan.groups[number].size, "epsilon": epsilon}
            for number, epsilon in enumerate(spent.groups)
        ],
        "several_records": section_of(several),
        "mechanisms": _mechanisms(ledger),
        "released": released_words(plan),
        "not_released": list(words.not_released),
        "assumptions": assumptions_of(
            promise=setting.promise,
            accountant=setting.accountant,
            foreign_code=stated["foreign_code"],
            unit=setting.unit,
        ),
        "plan_hash": plan_hash(plan.to_json()),
        "charges": {
            "mean": mean_body(ledger.mean_noise_multiplier),
            "phases": [_with_lists(training_body(phase)) for phase in ledger.phases],
            "selections": [selection.to_json() for selection in ledger.selections],
        },
        "plan": plan.to_json(),
        "verify_with": "dpal verify CERTIFICATE.pdf.json",
        "checks": {name: _fingerprint(name, value) for name, value in stated.items()},
    }


def _with_lists(body: dict[str, Any]) -> dict[str, Any]:
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
    mean = [
        {"mechanism": "Gaussian", "where": "mean of the pool's features", "times": 1, **body}
        for body in [mean_body(ledger.mean_noise_multiplier)]
        if body is not None
    ]
    return [*mean, *trained, *selected]


def _statement(epsilon: float, plan: Plan, *, complete: bool, given_up: Sequence[int]) -> str:
    setting = plan.setting
    time = "The whole plan has been carried out." if complete else "The plan has been partly carried out."
    ended = "".join(f" Phase {phase} was charged and then given up, so it has no model." for phase in given_up)
    spent = f"ε = {epsilon:.{_DIGITS}f}, δ = {exactly(setting.target_delta)}"
    little = little_because(setting.target_epsilon, setting.target_delta, setting.pool_size, setting.unit)
    if little is not None:
        return (
            f"{little} {time}{ended} The bound for everything released so far is ({spent}), of the "
            f"ε = {exactly(setting.target_epsilon)} that the plan may spend."
        )
    return (
        f"{time}{ended} Everything released so far satisfies ({spent}) differential privacy for every single "
        f"{setting.unit}, within the promise of ε = {exactly(setting.target_epsilon)}."
    )


def _fingerprint(name: str, value: object) -> str:
    return hashlib.sha256(f"{name}\0{json.dumps(value, sort_keys=True)}".encode()).hexdigest()


def verify_certificate(document: Mapping[str, Any]) -> float:
    """Recompute everything in a certificate from its plan and charges; returns the ε with all digits.

    An error names the field that differs. Needs no data and no campaign. A signature must fit its own key. Without one,
    hashes guard what cannot be recomputed against accidents but not against forgers; the ledger hash can be compared
    with the campaign's.
    """
    if document.get("version") != VERSION:
        raise InvalidArgument("the certificate's version", document.get("version"), f"{VERSION}, which this dpal knows")
    checked_signature(document)
    content = {name: value for name, value in document.items() if name not in (SIGNATURE, PUBLIC_KEY)}
    checks = content.get("checks")
    names = (*_STATED, *(name for name in _OPTIONAL if name in content))
    for name in names:
        known = cast("Mapping[str, Any]", checks).get(name) if isinstance(checks, Mapping) else None
        if name not in content or _fingerprint(name, content[name]) != known:
            raise InvalidArgument(f"the certificate: {name}", content.get(name), "as it was issued; it was edited")
    try:
        plan = read_plan(json.dumps(content["plan"]))
        if unnamed := sorted(set(plan.foreign_code) - set(content["foreign_code"])):
            raise InvalidArgument("the certificate: foreign_code", content["foreign_code"], f"with {unnamed}")
        ledger = _ledger(content["charges"])
        stated = _Epsilons(campaign=content["epsilon"], groups=tuple(group["epsilon"] for group in content["groups"]))
        _require_planned(plan, ledger)
        true = _Epsilons.of(plan, ledger)
        _require_no_lower(stated, true)
        several = checked_rows(content["several_records"], certified_rows(plan, ledger))
        same = _document(plan, ledger, stated, several, {name: content[name] for name in names})
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InvalidArgument("the certificate", f"incomplete ({error})", "complete") from error
    # The plan was certified above; recomputed on another machine, its last digits may differ.
    same |= {"plan": content["plan"], "plan_hash": plan_hash(content["plan"])}
    require_same("the certificate", content, same)
    return true.campaign


def charged_by(document: Mapping[str, Any]) -> tuple[Plan, Ledger]:
    """The plan of a certificate, certified again, and what was charged of it."""
    return read_plan(json.dumps(document["plan"])), _ledger(document["charges"])


def _ledger(charges: Mapping[str, Any]) -> Ledger:
    return Ledger(
        phases=tuple(
            phase_of(ChargedTraining(phase=number, **_as_charged(phase)))
            for number, phase in enumerate(charges["phases"])
        ),
        selections=tuple(selection_from_json(selection) for selection in charges["selections"]),
        mean_noise_multiplier=None if charges["mean"] is None else charges["mean"]["noise_multiplier"],
    )


def _require_no_lower(stated: _Epsilons, true: _Epsilons) -> None:
    """An ε may be stated higher by rounding, but never lower."""
    if len(stated.groups) != len(true.groups):
        raise InvalidArgument("the length of the certificate: groups", len(stated.groups), str(len(true.groups)))
    named = [("epsilon", stated.campaign, true.campaign)]
    named += [
        (f"groups[{number}]: epsilon", one, other)
        for number, (one, other) in enumerate(zip(stated.groups, true.groups, strict=True))
    ]
    for name, one, other in named:
        # With more decimals it would be shown rounded, perhaps down.
        if isinstance(one, bool) or not other <= one <= other + _SLACK or round(one, _DIGITS) != one:
            raise InvalidArgument(f"the certificate: {name}", one, f"{other!r}, rounded up to {_DIGITS} decimals")


def _as_charged(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "sampling_probabilities": tuple(body["sampling_probabilities"])}


def _require_planned(plan: Plan, ledger: Ledger) -> None:
    """The charges are the beginning of the plan."""
    for number, (charged, planned) in enumerate(zip(ledger.phases, plan.phases, strict=False)):
        stated, true = _with_lists(training_body(charged)), _with_lists(training_body(planned))
        require_same(f"the certificate: charges: phases[{number}]", stated, true)
    for number, (charged, planned) in enumerate(zip(ledger.selections, plan.selections, strict=False)):
        require_same(f"the certificate: charges: selections[{number}]", charged.to_json(), planned.to_json())
    planned_mean = mean_body(plan.setting.mean_noise_multiplier)
    if ledger.mean_noise_multiplier is not None or ledger.phases:
        require_same("the certificate: charges: mean", mean_body(ledger.mean_noise_multiplier), planned_mean)
    if len(ledger.phases) > len(plan.phases) or len(ledger.selections) > len(plan.selections):
        raise InvalidArgument("the certificate: charges", "more than planned", "at most what the plan has")
