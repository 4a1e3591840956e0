"""Telling other programs what happens: labels are needed, a phase ended, something stopped. Public facts only.

A command gets the event as JSON on its input; a webhook gets it as a POST. Neither may hold up or harm the campaign:
what goes wrong there is said, and nothing else.
"""

import http.client
import json
import subprocess
import urllib.request
from collections.abc import Callable
from typing import Any

from dpal.campaign.config import Events
from dpal.campaign.state import State
from dpal.campaign.status import FINISHED, STOPPED, WAITING, Status

_SECONDS = 20.0
LABELS_NEEDED, PHASE_ENDED, HAS_FINISHED, HAS_STOPPED, FAILED = (
    "labels-needed",
    "phase-ended",
    "finished",
    "stopped-at-chance",
    "failed",
)
_AT_STAGE = {WAITING: LABELS_NEEDED, FINISHED: HAS_FINISHED, STOPPED: HAS_STOPPED}


class Announcer:
    """Compares a campaign with what was announced before, and tells the difference."""

    def __init__(self, events: Events | None, state: State, *, tell: Callable[[str], None]) -> None:
        self._events, self._tell = events, tell
        self._phases, self._stage = len(state.trained), ""

    def now(self, status: Status, state: State) -> None:
        """After a run: every phase that has ended since, and why it returned."""
        for trained in state.trained[self._phases :]:
            metrics = [dict(one) for one in status.metrics if one["phase"] == trained.phase + 1]
            self._send(PHASE_ENDED, status, phase=trained.phase + 1, metrics=metrics[0] if metrics else None)
        self._phases = len(state.trained)
        event = _AT_STAGE.get(status.stage)
        # Once for each round, however often it is looked at.
        moment = f"{event} {len(state.selected)} {len(state.trained)}"
        if event is not None and moment != self._stage:
            self._stage = moment
            self._send(event, status)

    def failed(self, status: Status) -> None:
        """After an error: that there was one. What it was may name a record, and stays in the log."""
        self._send(FAILED, status)

    def _send(self, event: str, status: Status, **more: Any) -> None:
        if self._events is None:
            return
        facts = facts_of(event, status) | more
        for send in (self._command, self._post):
            try:
                send(event, facts)
            # What answers may not even speak HTTP: those errors are a family of their own.
            except (OSError, subprocess.SubprocessError, ValueError, http.client.HTTPException) as error:
                self._tell(f"the event {event} could not be announced ({type(error).__name__}); the campaign goes on")

    def _command(self, event: str, facts: dict[str, Any]) -> None:
        if self._events is None or not self._events.command:
            return
        done = subprocess.run(  # noqa: S603 - the operator's own command, from the campaign's configuration
            [*self._events.command, event],
            input=json.dumps(facts),
            text=True,
            # Not read: something that it leaves running in the background would hold a pipe open.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            self._tell(f"the command for the event {event} ended with {done.returncode}; the campaign goes on")

    def _post(self, event: str, facts: dict[str, Any]) -> None:
        if self._events is None or self._events.webhook is None:
            return
        request = urllib.request.Request(  # noqa: S310 - http or https, checked with the configuration
            self._events.webhook, json.dumps(facts).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            answer.read(0)


def facts_of(event: str, status: Status) -> dict[str, Any]:
    """What is said with every event: nothing that depends on a record beyond what was released."""
    return {
        "event": event,
        "campaign": status.folder.replace("\\", "/").rstrip("/").rpartition("/")[2],
        "phases_done": status.phases_done,
        "phases": status.phases,
        "epsilon_spent": status.epsilon_spent,
        "epsilon_budget": status.epsilon_budget,
        "delta": status.target_delta,
        "is_private": status.is_private,
    }
