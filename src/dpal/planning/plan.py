"""The plan: what will be done, in numbers, and what it costs whom. Frozen, with JSON in and out."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from dpal.errors import InvalidArgument
from dpal.planning.setting import Setting
from dpal.privacy import checks
from dpal.selection.registry import selection_from_json
from dpal.selection.selection import Selection

SCHEMA_VERSION = 5
_PLANNER = re.compile(r"[a-z][a-z-]*|[\w.]+:[\w.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One training phase. The groups that exist are those with a sampling probability, oldest first."""

    steps: int
    noise_multiplier: float
    expected_batch_size: float
    sampling_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "steps", checks.count("steps", self.steps))
        store(self, "noise_multiplier", checks.noise("noise_multiplier", self.noise_multiplier))
        store(self, "expected_batch_size", checks.positive("expected_batch_size", self.expected_batch_size))
        rates = tuple(checks.probability("sampling_probability", rate) for rate in self.sampling_probabilities)
        store(self, "sampling_probabilities", rates)

    @classmethod
    def of(cls, steps: int, noise_multiplier: float, rates: tuple[float, ...], sizes: tuple[int, ...]) -> "Phase":
        """A phase whose expected batch size is what its rates say for groups of these sizes."""
        expected = float(sum(rate * size for rate, size in zip(rates, sizes, strict=False)))
        return cls(
            steps=steps, noise_multiplier=noise_multiplier, expected_batch_size=expected, sampling_probabilities=rates
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What a planner decides: the phases and the selections between them."""

    phases: tuple[Phase, ...]
    selections: tuple[Selection, ...]
    # Of the private mean before them, which is part of the setting; None: no mean.
    mean_noise_multiplier: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A planner's answer: the schedule, and the setting it is for where the planner was free to change it."""

    setting: Setting
    schedule: Schedule
    remark: str = ""
    # Whether the planner means every group to spend its whole budget; where one cannot, the plan says so.
    every_group_spends_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Records labelled together, and their ε after each phase; before they join, what selections have cost."""

    size: int
    epsilon_by_phase: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A certified schedule. Only `certification.certified` makes one, and `stated_plan` shows one that it made."""

    setting: Setting
    planner: str
    phases: tuple[Phase, ...]
    selections: tuple[Selection, ...]
    groups: tuple[Group, ...]
    never_selected_epsilon_by_phase: tuple[float, ...]
    # The ε of the promise: for every record, whichever selection takes it, or none.
    epsilon: float
    remark: str = ""

    @property
    def schedule(self) -> Schedule:
        """What is to be done, in order."""
        return Schedule(
            phases=self.phases,
            selections=self.selections,
            mean_noise_multiplier=self.setting.mean_noise_multiplier,
        )

    @property
    def selection_is_private(self) -> bool:
        return all(selection.is_private for selection in self.selections)

    @property
    def foreign_code(self) -> tuple[str, ...]:
        """The import paths of a planner and of selections that are not dpal's own."""
        names = {self.planner, *(selection.kind() for selection in self.selections)}
        return tuple(sorted(name for name in names if ":" in name))

    def to_json(self) -> dict[str, object]:
        setting = {field.name: getattr(self.setting, field.name) for field in fields(Setting)}
        return {
            "schema_version": SCHEMA_VERSION,
            "target_epsilon": setting.pop("target_epsilon"),
            "target_delta": setting.pop("target_delta"),
            "planner": self.planner,
            "accountant": setting.pop("accountant"),
            "accounting": setting.pop("accounting"),
            "promise": setting.pop("promise"),
            "epsilon": self.epsilon,
            "selection_is_private": self.selection_is_private,
            "remark": self.remark,
            "setting": {**setting, "query_sizes": list(self.setting.query_sizes)},
            "phases": [
                {
                    "steps": phase.steps,
                    "noise_multiplier": phase.noise_multiplier,
                    "expected_batch_size": phase.expected_batch_size,
                    "sampling_probabilities": list(phase.sampling_probabilities),
                }
                for phase in self.phases
            ],
            "selections": [selection.to_json() for selection in self.selections],
            "groups": [{"size": group.size, "epsilon_by_phase": list(group.epsilon_by_phase)} for group in self.groups],
            "never_selected": {"epsilon_by_phase": list(self.never_selected_epsilon_by_phase)},
        }

    def to_text(self) -> str:
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"


def stated_plan(document: Mapping[str, Any], *, import_code: bool = False) -> Plan:
    """A plan as a document states it, ε and all. Nothing is recomputed: for plans that were certified before."""
    planner, proposal = read_proposal(document, import_code=import_code)
    return Plan(
        setting=proposal.setting,
        planner=planner,
        phases=proposal.schedule.phases,
        selections=proposal.schedule.selections,
        groups=tuple(
            Group(size=int(group["size"]), epsilon_by_phase=tuple(float(value) for value in group["epsilon_by_phase"]))
            for group in document["groups"]
        ),
        never_selected_epsilon_by_phase=tuple(float(value) for value in document["never_selected"]["epsilon_by_phase"]),
        epsilon=float(document["epsilon"]),
        remark=proposal.remark,
    )


def read_proposal(document: object, *, import_code: bool = False) -> tuple[str, Proposal]:
    """The planner's name and its proposal in a plan's document. Its claims about ε are not read."""
    top = _object("the plan", document)
    version = _field(top, "schema_version")
    if version != SCHEMA_VERSION:
        raise InvalidArgument(
            "schema_version",
            version,
            f"{SCHEMA_VERSION}. Another version of dpal wrote it: use that one, or make it again",
        )
    given = dict(_object("setting", _field(top, "setting")))
    for name in ("target_epsilon", "target_delta", "accountant", "accounting", "promise"):
        given[name] = _field(top, name)
    expected = {field.name for field in fields(Setting)}
    if set(given) != expected:
        wrong = sorted(set(given) ^ expected)
        raise InvalidArgument("the set of fields of setting", wrong, "complete, without others")
    given["query_sizes"] = tuple(_list("query_sizes", given["query_sizes"]))
    setting = Setting(**cast("dict[str, Any]", given))
    phases = tuple(_phase(entry) for entry in _list("phases", _field(top, "phases")))
    selections = tuple(
        selection_from_json(entry, import_code=import_code) for entry in _list("selections", _field(top, "selections"))
    )
    schedule = Schedule(phases=phases, selections=selections)
    planner = _field(top, "planner")
    if not isinstance(planner, str) or not _PLANNER.fullmatch(planner):
        raise InvalidArgument("planner", planner, "the name or the import path of a planner")
    remark = str(top.get("remark", ""))
    return planner, Proposal(setting=setting, schedule=schedule, remark=remark)


def _phase(document: object) -> Phase:
    entry = dict(_object("a phase", document))
    expected = [field.name for field in fields(Phase)]
    if sorted(entry) != sorted(expected):
        raise InvalidArgument("the set of fields of a phase", sorted(entry), f"exactly {', '.join(expected)}")
    entry["sampling_probabilities"] = tuple(_list("sampling_probabilities", entry["sampling_probabilities"]))
    return Phase(**cast("dict[str, Any]", entry))


def _object(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(name, value, "an object")
    return cast("Mapping[str, object]", value)


def _list(name: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise InvalidArgument(name, value, "a list")
    return cast("list[object]", value)


def _field(document: Mapping[str, object], name: str) -> object:
    if name not in document:
        raise InvalidArgument("the plan's fields", sorted(document), f"complete; {name} is missing")
    return document[name]
