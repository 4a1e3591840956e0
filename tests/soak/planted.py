"""Bugs that the soak must find: each breaks dpal's own code, as a slip could, for the life of one process."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpal.campaign import inbox, labelling, leftovers, reader, runner, step_randomness, store, verification, writer
from dpal.campaign.files import draft_of


def model_seen_before_it_is_recorded() -> None:
    """The file gets its name before the charge's model is committed."""
    true, true_place = runner.write_draft, runner.put_in_place

    def planted(path: Path, write: Callable[[Path], None]) -> Path:
        draft = true(path, write)
        shutil.copyfile(draft, path)
        return draft

    def placed(path: Path, sha256: str) -> bool:
        draft_of(path).unlink(missing_ok=True)
        return true_place(path, sha256)

    runner.write_draft, runner.put_in_place = planted, placed


def model_trained_again_after_it_was_recorded() -> None:
    """A draft that a process left behind is removed, although its hash is committed."""
    true = leftovers.remove_leftovers

    def planted(folder: Path, state: Any) -> None:
        true(folder, state)
        if state.produced is not None:
            draft_of(folder / f"checkpoints/phase-{state.produced.phase + 1}.safetensors").unlink(missing_ok=True)

    writer.remove_leftovers = planted


def other_randomness_when_resumed() -> None:
    """A step that died is repeated with another key, on the charge of the first."""
    true_fact, true_read, resumed = runner.Resumed, step_randomness.SealedKeys.read, [False]

    def fact(**given: Any) -> Any:
        resumed[0] = True
        return true_fact(**given)

    def read(keys: Any, charge: int) -> bytes:
        key = true_read(keys, charge)
        return key[::-1] if resumed[0] else key

    runner.Resumed = fact
    step_randomness.SealedKeys.read = read


def key_erased_before_the_release_is_recorded() -> None:
    true = store.Store.append

    def planted(self: Any, fact: Any, *, unseal: int | None = None, **given: Any) -> Any:
        if unseal is not None:
            self.keys.erase(unseal)
        return true(self, fact, unseal=unseal, **given)

    store.Store.append = planted


def leftovers_stay() -> None:
    writer.remove_leftovers = lambda folder, state: None


def answer_acknowledged_before_it_is_saved() -> None:
    """The page hears that an answer is safe a moment before it is."""
    true = inbox.Inbox.add

    def planted(self: Any, body: Any, *, person: str, key: str, above: int) -> Any:
        if body["kind"] != "answer":
            return true(self, body, person=person, key=key, above=above)
        later = threading.Timer(0.3, lambda: true(self, body, person=person, key=key, above=above))
        later.daemon = True
        later.start()
        return inbox.Entry(number=above + 1, at="", person=person, body=body)

    inbox.Inbox.add = planted


def import_that_fails_says_it_worked() -> None:
    true = labelling.record_answers

    def planted(writer: Any, answers: Any, **given: Any) -> dict[str, int]:
        try:
            return true(writer, answers, **given)
        except OSError:
            return {"new": len(answers), "corrected": 0, "unchanged": 0, "withdrawn": 0}

    labelling.record_answers = planted


def older_database_accepted() -> None:
    reader.require_not_behind = lambda folder, newest, recorded: None


def damaged_model_accepted() -> None:
    """Verification looks whether a model's file is there, and not what is in it."""
    verification.is_whole = lambda path, sha256: path.exists()


# What must be found, within how many faults.
PLANTED: dict[Callable[[], None], int] = {
    model_seen_before_it_is_recorded: 600,
    model_trained_again_after_it_was_recorded: 600,
    other_randomness_when_resumed: 600,
    key_erased_before_the_release_is_recorded: 600,
    leftovers_stay: 600,
    answer_acknowledged_before_it_is_saved: 600,
    import_that_fails_says_it_worked: 600,
    older_database_accepted: 600,
    damaged_model_accepted: 600,
}
