"""What a campaign's report says, as plain data. All of it is public under the plan, except the part called internal."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpal import __version__
from dpal.campaign.campaign import Campaign
from dpal.campaign.state import State
from dpal.campaign.status import Status
from dpal.planning.plan import Plan
from dpal.planning.promises import WORDS, by_phase, expected_labels
from dpal.planning.setting import RECORD
from dpal.planning.unit_words import unit_sentence
from dpal.reports.assumptions import assumptions_of
from dpal.reports.held_out_data import held_out_data, measurements
from dpal.reports.plain_words import exactly, little_because, worst_case
from dpal.selection.selection import INSIDE

_PATH_SETTINGS = ("file", "folder", "labels", "ids", "name", "tokenizer", "features_cache")
_TRANSFORMERS = "transformers:"


def report_data(folder: Path | str, *, internal: bool = True) -> dict[str, Any]:
    """The report's facts: the promise, what was spent, what was done, the configuration and how to check.

    Without `internal`, only what may be handed on.
    """
    campaign = Campaign(folder)
    # First, because it reads all facts from the disk; what follows uses them.
    verification = campaign.verify(recompute=None)
    state, plan, status = campaign.state(), campaign.plan, campaign.status()
    internal_counts, words = asdict(status.internal), WORDS[plan.setting.promise]
    config = _without_folders(_without_addresses(campaign.config.model_dump(mode="json")))
    return {
        "dpal_version": __version__,
        "campaign": Path(folder).resolve().name,
        "promise": _promise(status.stage, plan, verification.holds, verification.is_private),
        "worst_case": worst_case(
            plan.setting.target_epsilon, plan.setting.target_delta, plan.setting.pool_size, plan.setting.unit
        )
        if verification.holds and verification.is_private
        else None,
        "protects_little": _little(plan) is not None,
        "selections": plan.setting.promise,
        "selections_in_words": words.in_full if verification.is_private else None,
        "unit": plan.setting.unit,
        "unit_in_words": unit_sentence(plan.setting.unit) if verification.is_private else None,
        "status": _public_status(status),
        "verification": verification.to_json(),
        "plan_hash": state.created.plan_hash,
        "ledger_hash": state.last_hash,
        "encoder": status.encoder,
        **curve_data(state, plan),
        "labels_in_all": sum(expected_labels(plan)) if labels_are_planned(plan) else status.asked,
        # Not covered by the promise: the number of skipped records depends on the records, and times on random draws.
        "internal": {
            "stage": status.stage,
            "next_step": status.next_step,
            "labels_by_phase": by_phase(plan, [len(chosen) for chosen in state.asked]),
            "labels": {name: count for name, count in internal_counts.items() if isinstance(count, int)},
            "phases_trained": [
                {"phase": fact.phase + 1, "engine": fact.engine, "seconds": fact.seconds} for fact in state.trained
            ],
        }
        if internal
        else None,
        "evaluation_is_public": bool(config.get("evaluation")) or bool(state.evaluated),
        "configuration": config,
        "assumptions": assumptions_of(
            promise=plan.setting.promise,
            accountant=plan.setting.accountant,
            foreign_code=state.created.foreign_code,
            unit=plan.setting.unit,
        ),
        "how_to_verify": "dpal verify CAMPAIGN",
    }


def curve_data(state: State, plan: Plan) -> dict[str, Any]:
    """What a learning curve is drawn from. Nothing is certified for it: that takes seconds, and a page is waiting."""
    return {
        "plan": plan.to_json(),
        "labels_by_phase": labels_by_phase(state.asked, plan),
        "labels_are_planned": labels_are_planned(plan),
        "metrics": measurements(state.evaluated),
        "held_out": held_out_data(state.evaluated, state.created.classes),
    }


def _public_status(status: Status) -> dict[str, object]:
    """The status without anything that depends on private records, and without folders of the machine."""
    public = {name: value for name, value in status.to_json().items() if name not in ("internal", "folder")}
    ended = status.phases_done + len(status.phases_given_up)
    following = f"train phase {ended + 1}"
    if status.selections == INSIDE and ended > 0 and (status.is_waiting or status.next_step == following):
        # Whether anyone was asked, and whether all answers are there, depends on what was asked for.
        public |= {"stage": "labelling or training", "next_step": following}
    return public


def _without_addresses(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without whom it tells and where people label: addresses and commands may be secrets."""
    labels = config.get("labels")
    kept = {name: value for name, value in config.items() if name not in ("events", "labels")}
    return kept | ({} if labels is None else {"labels": {"source": labels["source"]}})


def _without_folders(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without folders of the machine it ran on: only the last part of a path is kept."""
    return {
        key: _without_folders(value)
        if isinstance(value, dict)
        else Path(value).name
        if key in _PATH_SETTINGS and isinstance(value, str) and Path(value).is_absolute()
        else f"{_TRANSFORMERS}{Path(value).name}"
        if isinstance(value, str) and value.startswith(f"{_TRANSFORMERS}/")
        else value
        for key, value in config.items()
    }


def labels_by_phase(groups: tuple[tuple[str, ...], ...], plan: Plan) -> list[int]:
    """How many records were asked about before each phase so far; planned numbers where the real ones stay inside."""
    sizes = expected_labels(plan)[: len(groups)] if labels_are_planned(plan) else [len(group) for group in groups]
    return by_phase(plan, sizes)


def labels_are_planned(plan: Plan) -> bool:
    """Whether numbers of labels that may be passed on come from the plan, since the real ones stay inside."""
    return plan.setting.promise == INSIDE


def _any_one(unit: str) -> str:
    return "any one record was" if unit == RECORD else f"the records of any one {unit} were"


def _promise(stage: str, plan: Plan, holds: bool, is_private: bool) -> str:
    setting = plan.setting
    if not is_private:
        return (
            "This was a simulation in which nothing is private: its noise can be predicted, or its selection protects "
            "nobody. There is no promise."
        )
    if not holds:
        return "THE RECORDS OF THIS CAMPAIGN DO NOT VERIFY. Do not rely on its promise; see the checks below."
    promised = f"(ε = {exactly(setting.target_epsilon)}, δ = {exactly(setting.target_delta)})"
    if (little := _little(plan)) is not None:
        return f"{little} The promise is no stronger than {promised}, for training and selection together."
    kept = "was kept" if stage == "finished" else "has been kept so far"
    return (
        "Someone who sees everything that this campaign releases can tell at most as much about whether "
        f"{_any_one(setting.unit)} used as {promised} differential privacy allows, for training and selection "
        f"together. This promise {kept}."
    )


def _little(plan: Plan) -> str | None:
    setting = plan.setting
    return little_because(setting.target_epsilon, setting.target_delta, setting.pool_size, setting.unit)
