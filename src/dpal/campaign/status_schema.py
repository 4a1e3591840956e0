"""The JSON schema of `dpal status --json`, made from the classes that are printed, for programs that read it."""

from typing import Any, cast

from pydantic import TypeAdapter

from dpal.campaign.status import MOVED, STAGES, Status
from dpal.selection.selection import PROMISES

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# What each name means; a test looks for names without words.
_WORDS = {
    "folder": "The campaign's folder.",
    "stage": "Where the campaign stands.",
    "next_step": "What comes next, for people.",
    "phases_done": "Phases with a model.",
    "phases_given_up": "The numbers, from 1, of phases that were charged and have no model.",
    "phases": "Phases of the plan.",
    "pool_size": "Records, or units, of the pool.",
    "unit": "What the promise protects one of: record, or the word for the unit.",
    "selections": "Whether the ids that selections chose stay inside or are released.",
    "asked": "Records, or units, that labels were asked for. Public only where selections are released.",
    "retired": "Records, or units, that are not offered again. Public only where selections are released.",
    "epsilon_spent": "The ε of all charges so far.",
    "epsilon_budget": "The ε that the plan may spend.",
    "target_delta": "The δ of the promise.",
    "is_private": "False for a simulation, in which nothing is private.",
    "metrics": "Scores on the public held-out set, by phase from 1.",
    "encoder": "Which public encoder makes the features, and what it was trained on; null without one.",
    "held_out_in_words": "One sentence for each of the metrics.",
    "went_on_after": "The numbers, from 1, of phases no better than chance after which the campaign was told to go on.",
    "last_day": "The day of the last change. Left out where selections stay inside.",
    "internal": "Depends on private records, or on when people answered. Not covered by the promise: do not pass on.",
    "running": "Which process is writing now, in words; null if none is. About this machine, not about records.",
    "labelled": "Records with a label.",
    "waiting_for_labels": "Records that this round still needs answers for.",
    "skipped": "Records that were skipped.",
    "cannot_tell": "Records of which people said that they cannot tell.",
    "corrected": "Answers that replaced earlier ones.",
    "withdrawn": "Records that were taken out for good.",
    "resumed": "How often a step that had died was repeated.",
    "last_change": "When something was recorded last (ISO 8601, UTC).",
    "in_inbox": "Answers that are safe and not taken in yet.",
}


def status_schema() -> dict[str, Any]:
    """As a document of its own, in the 2020-12 dialect. Names may be added later, so unknown ones are to be ignored."""
    document = TypeAdapter(Status).json_schema(mode="serialization")
    internal = cast("dict[str, Any]", document.pop("$defs")["InternalStatus"])
    properties = cast("dict[str, Any]", document["properties"])
    properties |= {
        "stage": {"type": "string", "enum": list(STAGES)},
        "selections": {"type": "string", "enum": list(PROMISES)},
        "internal": internal,
        "running": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    document["required"] += ["running"]
    for part in (document, internal):
        part.pop("title", None)
        part["required"] = [name for name in part["required"] if name not in MOVED]
        for name, value in part["properties"].items():
            value.pop("title", None)
            if name in MOVED:
                # In one part or in the other; where it is not, it is left out and never null.
                (kind,) = (one for one in value.pop("anyOf") if one["type"] != "null")
                value |= kind
            value["description"] = _WORDS[name]
    return {"$schema": _DIALECT, "title": "dpal status --json", **document}
