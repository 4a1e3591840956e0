"""What is wrong with a campaign's configuration, in sentences that name the setting and the nearest existing one."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from dpal.errors import InvalidArgument, WrongSettings


def wrong_settings(
    error: ValidationError, config: type[BaseModel], *, file: str, settings: Sequence[str]
) -> WrongSettings:
    """The error for a person: each problem with the --set it came from, or with the file."""
    names = list(_names(config))
    problems: dict[str, list[str]] = {}
    for problem in error.errors():
        place = ".".join(str(step) for step in problem["loc"])
        refused = problem.get("ctx", {}).get("error")
        if isinstance(refused, InvalidArgument):
            # A section checks its own values, and its error names the one that is wrong.
            # Unless that is the section itself, whichever of several places it is in.
            same = refused.name.rpartition(".")[2] == place.rpartition(".")[2]
            place = place if same else f"{place}.{refused.name}"
        setting = next((setting for setting in reversed(settings) if _is_about(setting, place)), None)
        origin = file if setting is None else f"--set {setting}"
        names_it = setting is not None and setting.startswith(f"{place}=")
        words = _words(problem, place, names)
        problems.setdefault(origin, []).append(words if names_it else f"{place}: {words}")
    found = "\n".join(f"{origin}: {'; '.join(words)}." for origin, words in problems.items())
    return WrongSettings(f"{found}\nThe settings are in docs/campaigns.md.")


def _is_about(setting: str, place: str) -> bool:
    key = setting.partition("=")[0].strip()
    return f"{place}.".startswith(f"{key}.") or key.startswith(f"{place}.")


def _words(problem: Any, place: str, names: Sequence[str]) -> str:
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        near = _nearest(place, names)
        return f"there is no such setting{f' (did you mean {near}?)' if near else ''}"
    if problem["type"] == "tuple_type":
        return "must be a list, such as [100, 50]"
    if problem["type"] in ("model_type", "dataclass_type"):
        return f"is a section: give its settings one by one, such as {_first(place, names)}=..."
    message = str(problem["msg"])
    if problem["type"] == "value_error":
        return message.removeprefix("Value error, ").rpartition(", but ")[2].rstrip(".")
    return message[:1].lower() + message[1:]


def _first(place: str, names: Sequence[str]) -> str:
    return next((known for known in names if known.startswith(f"{place}.")), place)


def _nearest(place: str, names: Sequence[str]) -> str | None:
    """An existing setting with a similar name: in the same section if there is one, otherwise anywhere."""
    section, _, name = place.rpartition(".")
    own = {known.rpartition(".")[2]: known for known in names if known.rpartition(".")[0] == section}
    elsewhere = {known.rpartition(".")[2]: known for known in names}
    for candidates in (own, elsewhere):
        if near := difflib.get_close_matches(name, candidates, n=1):
            return candidates[near[0]]
    # plan.epsilon is part of plan.target_epsilon.
    return next((known for short, known in own.items() if name in short.split("_")), None)


def _names(config: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every setting with its sections: plan, plan.epochs and so on."""
    for name, field in config.model_fields.items():
        yield prefix + name
        for section in (field.annotation, *get_args(field.annotation)):
            if isinstance(section, type) and issubclass(section, BaseModel):
                yield from _names(section, f"{prefix}{name}.")
            elif is_dataclass(section):
                yield from (f"{prefix}{name}.{option.name}" for option in fields(section))
