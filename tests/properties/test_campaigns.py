"""Steps, crashes, imports, corrections, withdrawals, closed rounds in any order: what a campaign promises holds."""

import csv
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedSelection, ChargedTraining
from dpal.campaign.state import State
from dpal.errors import InvalidArgument, LabelsRefused, NothingToGiveUp

PLAN = linear_plan()
POOL = linear_pool()
CRASHES = [point for point in fault_points.POINTS if not point.startswith(("create.", "give-up."))]
GIVE_UP = [point for point in fault_points.POINTS if point.startswith(("give-up.", "store.", "seal."))]
ANSWERS = ["no", "yes", "skip", "cannot tell"]


class Crash(BaseException):
    """A process that dies, as far as one process can show it."""


@contextmanager
def dying_at(point: str) -> Iterator[None]:
    original = fault_points.reached

    def reached(here: str) -> None:
        if here == point:
            raise Crash

    fault_points.reached = reached
    try:
        yield
    except Crash:
        pass
    finally:
        fault_points.reached = original


class Campaigns(RuleBasedStateMachine):
    """Whatever is done to a campaign, in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.folder = self.root / "campaign"
        self.acknowledged: dict[str, object] = {}
        self.charges: list[ChargedSelection | ChargedTraining] = []
        self.spent = 0.0
        self.released: list[object] = []
        self.withdrawn: set[str] = set()

    @initialize()
    def create(self) -> None:
        # Seeded, so that a run that Hypothesis repeats is the same run.
        Campaign.create(
            self.folder,
            plan=PLAN,
            pool=POOL,
            model=linear_model(),
            oracle="files",
            training={"average": None},
            seed=5,
            not_private=True,
        )

    def campaign(self) -> Campaign:
        """Opened anew each time, as after a restart, without the records that were withdrawn."""
        pool = POOL.take([name for name in POOL.ids.tolist() if name not in self.withdrawn])
        return Campaign.open(self.folder, pool=pool, model=linear_model())

    def state(self) -> State:
        return Campaign(self.folder).state()

    @rule()
    def run(self) -> None:
        with self.refusal_without_labels():
            self.campaign().run()

    @rule(point=st.sampled_from(CRASHES))
    def run_and_die(self, point: str) -> None:
        with self.refusal_without_labels(), dying_at(point):
            self.campaign().run()

    @contextmanager
    def refusal_without_labels(self) -> Iterator[None]:
        """Where everybody was skipped there is nothing to train on, and nothing is charged for it."""
        try:
            yield
        except InvalidArgument:
            state = self.state()
            assert not any(state.trainable(group) for group in range(len(state.groups)))
            assert not any(isinstance(charge, ChargedTraining) for _, charge in state.charges[-1:])

    def table(self, answers: dict[str, str]) -> Path:
        path = self.root / "labels.csv"
        with path.open("w", newline="") as lines:
            csv.writer(lines).writerows([("id", "label"), *answers.items()])
        return path

    @precondition(lambda self: self.state().selected)
    @rule(data=st.data())
    def bring_labels(self, data: st.DataObject) -> None:
        """Some answers, new ones and corrections together; perhaps the import dies."""
        asked = sorted(name for group in self.state().groups for name in group if name not in self.withdrawn)
        names = data.draw(st.lists(st.sampled_from(asked), min_size=1, max_size=len(asked), unique=True))
        answers = {name: data.draw(st.sampled_from(ANSWERS)) for name in names}
        folder = Campaign(self.folder)
        if data.draw(st.booleans()):
            folder.import_labels(self.table(answers), POOL)
        else:
            before = self.state().answers
            with dying_at(data.draw(st.sampled_from(["import.checked", "import.recorded", "store.in-transaction"]))):
                folder.import_labels(self.table(answers), POOL)
            if self.state().answers == before:
                return
        numbers = {"no": 0, "yes": 1, "skip": "skip", "cannot tell": "cannot-tell"}
        self.acknowledged |= {name: numbers[word] for name, word in answers.items()}

    @precondition(lambda self: self.state().selected)
    @rule(wrong=st.sampled_from(["id", "label", "conflict", "not asked"]))
    def bring_nonsense(self, wrong: str) -> None:
        state = self.state()
        good = next(name for name in state.groups[0] if name not in self.withdrawn)
        left = [name for name in POOL.ids.tolist() if name not in state.taken() | self.withdrawn]
        lines = {"id": "nobody,yes", "label": f"{good},maybe", "conflict": f"{good},no", "not asked": f"{left[0]},yes"}
        path = self.root / "labels.csv"
        path.write_text(f"id,label\n{good},yes\n{lines[wrong]}\n")
        with pytest.raises(LabelsRefused):
            Campaign(self.folder).import_labels(path, POOL)
        assert self.state() == state

    @rule(name=st.sampled_from(POOL.ids.tolist()))
    def withdraw(self, name: str) -> None:
        """Not if that would leave nothing to train on or nobody to ask; perhaps while a step is charged."""
        state = self.state()
        trainable = {each for group in range(len(state.groups)) for each in state.trainable(group)}
        first = set(state.groups[0]) - self.withdrawn if state.groups else set()
        if trainable != {name} and first != {name} and len(self.withdrawn) < 3:
            Campaign(self.folder).withdraw(name)
            self.withdrawn.add(name)

    @rule()
    def close_the_round(self) -> None:
        """Not if that would leave nothing at all to train on."""
        state = self.state()
        if any(state.trainable(group) for group in range(len(state.groups))):
            Campaign(self.folder).close_round()

    @rule(point=st.sampled_from([None, *GIVE_UP]))
    def give_up(self, point: str | None) -> None:
        """Only a training phase that is open; its charge stands, and nothing that was released is touched."""
        state = self.state()
        is_open = state.open_charge is not None and isinstance(state.open_charge[1], ChargedTraining)
        with dying_at(point or "nowhere"):
            try:
                Campaign(self.folder).give_up()
            except NothingToGiveUp:
                assert not is_open
                return
        assert is_open
        assert len(self.state().given_up) - len(state.given_up) in ((1,) if point is None else (0, 1))

    @precondition(lambda self: self.state().selected)
    @rule()
    def answer_everything(self) -> None:
        state = self.state()
        missing = [name for group in range(len(state.groups)) for name in state.missing(group)]
        if missing:
            answers = dict.fromkeys(missing, "yes")
            Campaign(self.folder).import_labels(self.table(answers), POOL)
            self.acknowledged |= dict.fromkeys(missing, 1)

    @invariant()
    def everything_promised_holds(self) -> None:
        if not self.folder.exists():
            return
        campaign = Campaign(self.folder)
        state = campaign.state()
        charges = [charge for _, charge in state.charges]
        # Charges are only added, each as planned; spending never falls and stays within the budget.
        assert charges[: len(self.charges)] == self.charges
        verification = campaign.verify()
        assert verification.holds, verification.checks
        assert self.spent <= verification.epsilon_spent <= 8
        # Releases are only added, each after its own charge, and never replaced.
        released = [*state.selected, *state.trained]
        assert all(fact in released for fact in self.released)
        assert len(state.selected) <= sum(isinstance(charge, ChargedSelection) for charge in charges)
        assert state.phases_ended <= sum(isinstance(charge, ChargedTraining) for charge in charges)
        # Labels that were acknowledged are there.
        assert self.acknowledged.items() <= state.answers.items()
        # Nobody is asked twice, retired records never.
        asked = [name for group in state.groups for name in group]
        assert len(asked) == len(set(asked))
        # Who was withdrawn is waited for by nobody.
        assert state.withdrawn == self.withdrawn
        assert not {name for group in range(len(state.groups)) for name in state.missing(group)} & self.withdrawn
        self.charges, self.spent, self.released = charges, verification.epsilon_spent, released

    def teardown(self) -> None:
        shutil.rmtree(self.root)


Campaigns.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestCampaigns = Campaigns.TestCase
