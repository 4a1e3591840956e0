"""One story: a whole campaign from its creation to its end, with faults, all of it drawn from one seed."""

import csv
import random
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import faults
import page_labels
from campaign_kinds import KINDS, Template, copy_of, files_in, template
from commands import Ended, done, nothing, started
from damage import damaged, require_words
from faults import INTERRUPTED, KILLED, NORMAL, TERMINATED, Fault, Place
from observer import Observer, Violation, released, require
from workspace import Workspace

from dpal.campaign import sealed_snapshot

MOST_ROUNDS = 120
# How often nothing is done to a command, files are damaged instead, or two processes come at once.
UNDISTURBED, DAMAGED, TWO = 0.03, 0.3, 0.04
OUTCOMES = {0: "done", 1: "unexpected error", 2: "refused", 3: "waiting", 4: "busy", 5: "damage found", 6: "at chance"}
OUTCOMES |= {KILLED: "killed", TERMINATED: "ended by SIGTERM", INTERRUPTED: "stopped", -6: "aborted", -11: "aborted"}


@dataclass
class Told:
    """What happened in a story."""

    seed: int
    kind: str = ""
    # Kind and outcome of every fault that happened.
    faults: list[tuple[str, str]] = field(default_factory=list)
    # Faults that were drawn and did not happen: the command ended before.
    missed: int = 0
    log: list[str] = field(default_factory=list)
    violation: str | None = None
    seconds: float = 0.0


def tell(seed: int, base: Path, workspace: Workspace, place: Path, *, most_faults: int = 24) -> Told:
    """Run a story; what must hold and does not is its violation."""
    chance, told, began = random.Random(seed), Told(seed), time.monotonic()  # noqa: S311
    kind = chance.choice(KINDS)
    told.kind = kind.name
    story = Story(chance, told, template(kind, base), workspace, place, chance.randint(8, most_faults))
    try:
        story.run()
    except Violation as error:
        told.violation = str(error)
    except Exception:
        # What was found cannot even be looked at.
        told.violation = f"the observer failed:\n{traceback.format_exc()}"
    finally:
        told.seconds = time.monotonic() - began
        if workspace.is_mounted:
            workspace.free()
    return told


class Story:
    """A campaign under way."""

    def __init__(
        self, chance: random.Random, told: Told, given: Template, workspace: Workspace, place: Path, most: int
    ) -> None:
        self.chance, self.told, self.template, self.workspace = chance, told, given, workspace
        self.most = most
        # Phases are short: in half of the stories their middle is written after every step.
        sealed_snapshot.SECONDS_BETWEEN = chance.choice([0.0, 300.0])
        sealed_snapshot.LARGEST_SHARE = 1e9
        self.tables = place / "tables"
        for folder in (workspace.folder / "story", place / "scratch", self.tables):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o755)
        self.folder = workspace.folder / "story" / "campaign"
        self.observer = Observer(self.folder, place / "scratch")
        self.older: bytes | None = None
        self.files = 0

    def run(self) -> None:
        self._create()
        for _ in range(MOST_ROUNDS):
            facts = self.observer.look()
            if facts.is_finished:
                break
            self._round()
        else:
            raise Violation(f"the campaign has not finished after {MOST_ROUNDS} commands")
        self._end()

    @property
    def _is_calm(self) -> bool:
        """Whether there were enough faults: from here on nobody disturbs."""
        return len(self.told.faults) >= self.most

    def _create(self) -> None:
        if self.chance.random() < 0.6:
            copy_of(self.template, self.folder)
            return
        words = ("init", self.folder, "--config", self.template.config)
        for _ in range(self.chance.randint(1, 3)):
            ended = self._disturbed(words, seconds=0.3)
            if self.folder.exists():
                self.observer.look()
                return
            require(ended.code != 0, "init ended with 0 and there is no campaign")
        self._plain(words)
        names = [path.name for path in self.folder.parent.iterdir()]
        require(names == [self.folder.name], f"creation left behind {names}")

    def _round(self) -> None:
        """One command, with or without a fault, and then a look."""
        if not self._is_calm and self.chance.random() < DAMAGED:
            self._damage()
            return
        if self.chance.random() < 0.2:
            self.older = (self.folder / "campaign.db").read_bytes()
        facts, way = self.observer.facts, self.template.kind.labels
        if facts.missing and facts.open_charge is None and way in ("files", "page"):
            if way == "page":
                self._label_on_the_page()
            else:
                self._import()
            return
        words = self._aside() if self.chance.random() < 0.15 else ("run", self.folder, "--go-on")
        self._step(words)

    def _aside(self) -> tuple[object, ...]:
        """A command that people run in between."""
        facts = self.observer.facts
        choices: list[tuple[object, ...]] = [("status", self.folder), ("verify", self.folder)]
        choices += [("status", self.folder, "--json"), ("labels", "history", self.folder)]
        if self.chance.random() < 0.3:
            if facts.open_charge is not None and facts.open_charge[1] == "charged-training":
                self.observer.is_changed = True
                choices = [("give-up", self.folder, "--reason", "it never ends")]
            elif facts.of("selected"):
                self.observer.is_changed = True
                choices = [("withdraw", self.folder, self.chance.choice(sorted(self.template.truth)))]
        return self.chance.choice(choices)

    def _step(self, words: tuple[object, ...], acknowledged: dict[str, int] | None = None) -> Ended:
        """A command, perhaps with a fault; what it acknowledged must stay."""
        if self._is_calm or self.chance.random() < UNDISTURBED:
            ended = self._plain(words)
        elif self.chance.random() < TWO:
            ended = self._two_at_once(words)
        else:
            ended = self._disturbed(words, seconds=0.25 if words[0] == "run" else 0.08)
        if ended.code == 0 and acknowledged:
            self.observer.acknowledged |= acknowledged
        return ended

    def _plain(self, words: tuple[object, ...]) -> Ended:
        ended = done(words)
        self._log(words, "undisturbed", ended)
        # Giving up what is not open, or withdrawing a second time, is wrong input.
        codes = (*NORMAL, 2) if words[0] in ("give-up", "withdraw", "experts") else tuple(c for c in NORMAL if c != 4)
        require_words(ended, codes, "undisturbed")
        return ended

    def _disturbed(self, words: tuple[object, ...], *, seconds: float) -> Ended:
        place = Place(self.folder, self.workspace, seconds)
        fault = faults.drawn(self.chance, place, words, source=self.template.kind.labels == "source")
        fault.before()
        try:
            running = started(words, at_start=fault.at_start)
            fault.during(running)
            ended = running.wait(fault.seconds)
        finally:
            fault.after()
        self._note(words, fault, ended)
        return ended

    def _note(self, words: tuple[object, ...], fault: Fault, ended: Ended) -> None:
        self._log(words, f"{fault.kind} {fault.detail}", ended)
        what = f"{fault.kind} {fault.detail}"
        # What the process before has left behind cannot be removed there, and verify says so.
        left = (5,) if words[0] == "verify" and "sealed keys, but there should be" in ended.output else ()
        require_words(ended, (*fault.codes, *NORMAL, 2, *left), what, without_memory=fault.without_memory)
        if faults.happened(fault, ended):
            self.told.faults.append((fault.kind, OUTCOMES.get(ended.code, str(ended.code))))
        else:
            self.told.missed += 1

    def _two_at_once(self, words: tuple[object, ...]) -> Ended:
        """The same command, or another one, in a second process at the same time."""
        others = [words, ("run", self.folder, "--go-on"), ("verify", self.folder), ("status", self.folder)]
        other = self.chance.choice(others)
        first = started(words)
        time.sleep(self.chance.choice([0.0, self.chance.uniform(0.0, 0.2)]))
        second = started(other)
        both = [first.wait(), second.wait()]
        for ended in both:
            self._log(ended.words, "two at once", ended)
            require_words(
                ended, (*NORMAL, 2) if words[0] in ("give-up", "withdraw", "experts") else NORMAL, "two at once"
            )
        self.told.faults.append(("two processes", OUTCOMES[max(ended.code for ended in both)]))
        return both[0]

    def _damage(self) -> None:
        found = damaged(self.chance, self.observer, self.template, self.older)
        if found is not None:
            self._log(found.ended.words, f"{found.kind} {found.detail}", found.ended)
            outcome = "not noticed, nothing changed" if found.ended.code in (0, 3, 6) else "damage found"
            self.told.faults.append((found.kind, outcome))

    def _import(self) -> None:
        """Some or all of the missing answers, as a table."""
        missing = self.observer.facts.missing
        names = self.chance.sample(missing, self.chance.randint(1, len(missing)))
        answers = {name: self.template.truth[name] for name in names}
        self.files += 1
        table = self.tables / f"labels-{self.files}.csv"
        with table.open("w", newline="") as lines:
            classes = ("no", "yes")
            csv.writer(lines).writerows([("id", "label"), *((name, classes[label]) for name, label in answers.items())])
        self._step(("labels", "import", self.folder, table), answers)

    def _label_on_the_page(self) -> None:
        """A sitting of some people, whose server may die."""
        if absent := self._absent_people():
            self._step(("experts", "add", self.folder, *absent))
            return
        missing = len(self.observer.facts.missing)
        answers = self.chance.randint(1, missing + 1)
        fault: Fault | None = None
        stop = signal.SIGINT
        if not self._is_calm and self.chance.random() > UNDISTURBED:
            place = Place(self.folder, self.workspace, 0.05)
            fault = self._server_fault(place)
            stop = self.chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        arm: Callable[[], None] = nothing if fault is None else fault.at_start
        if fault is not None:
            fault.before()
        try:
            sitting = page_labels.label(self.folder, self.template.truth, answers=answers, at_start=arm, stop=stop)
        finally:
            if fault is not None:
                fault.after()
        ended = sitting.ended
        assert ended is not None
        self.observer.acknowledged |= sitting.saved
        if fault is None:
            self._log(("serve",), f"{len(sitting.saved)} answers", ended)
            require_words(ended, (0, INTERRUPTED), "a server that was stopped with Ctrl-C")
        else:
            what = f"server: {fault.kind} {fault.detail}, {len(sitting.saved)} answers saved, then signal {stop}"
            self._log(("serve",), what, ended)
            require_words(ended, (0, 2, INTERRUPTED, TERMINATED, KILLED, *fault.codes), what)
            kind = fault.kind if ended.code in fault.codes else f"stopped with {signal.Signals(stop).name}"
            self.told.faults.append((f"labelling server {kind}", OUTCOMES.get(ended.code, str(ended.code))))
        self.observer.look()
        # The campaign takes them in.
        self._step(("run", self.folder, "--go-on"))

    def _server_fault(self, place: Place) -> Fault:
        makers = [faults.killed_at_a_point, faults.killed_at_a_file, faults.failing_disk, faults.full_disk]
        makers += [faults.large_file, faults.read_only, faults.clock_jump]
        return self.chance.choice(makers)(self.chance, place, "serve")

    def _absent_people(self) -> list[str]:
        """Who is to label and was not added yet. A command that dies may have added some of them."""
        listed = done(("experts", "list", self.folder, "--json"))
        require_words(listed, (0,), "undisturbed")
        return [name for name in page_labels.PEOPLE if name not in listed.output]

    def _end(self) -> None:
        """Nothing is left over, everything holds, and what was released is what nobody disturbed releases."""
        for words in (("run", self.folder, "--go-on"), ("verify", self.folder), ("status", self.folder)):
            ended = self._plain(words)
            require(ended.code == 0, f"at the end, '{words[0]}' ends with {ended.code}:\n{ended.output}")
        self.observer.look()
        self.observer.end(files_in(self.folder), self.template.files)
        names = [path.name for path in self.folder.parent.iterdir()]
        require(names == [self.folder.name], f"left next to the campaign: {names}")
        if self.template.kind.seeded and not self.observer.is_changed:
            require(released(self.folder) == self.template.released, "something else was released than undisturbed")

    def _log(self, words: tuple[object, ...] | tuple[str, ...], what: str, ended: Ended) -> None:
        command = " ".join(str(word) for word in words if "/" not in str(word))
        last = ended.output.strip().splitlines()[-1:] if ended.code not in (0, 3) else []
        self.told.log.append(f"{command}: {what}: {ended.code} ({ended.seconds:.2f} s) {' '.join(last)[:300]}")
