"""Attacks with many canaries in one run: on training, on whole units, and on training and selection together."""

import time
from abc import abstractmethod
from typing import ClassVar

from dpal.audit.attack import Attack, Effort, Finding, Target, finding, randomness_of
from dpal.audit.canary_campaign import CanaryPool, carried_out, trained
from dpal.audit.claims import claim_of_plan
from dpal.randomness import Randomness


class _ManyCanaries(Attack):
    """Canaries that are there by fair coins, and the evidence of everything released about each of them."""

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        present, absent = self._once(target, effort.canaries, randomness_of(effort, stream=1)).split()
        return finding(
            self,
            claim_of_plan(target.plan),
            present,
            absent,
            runs=1,
            seconds=time.monotonic() - start,
            one_run=True,
        )

    @abstractmethod
    def _once(self, target: Target, canaries: int, randomness: Randomness) -> CanaryPool: ...


class TrainingAttack(_ManyCanaries):
    """Training alone. The claim is that of the whole plan, as for every record of the initial set."""

    name: ClassVar[str] = "training"
    what: ClassVar[str] = (
        "Someone who sees every noisy gradient guesses, of thousands of made-up records at once, which were there."
    )

    def applies(self, target: Target) -> bool:
        return target.rows_per_unit == 1

    def _once(self, target: Target, canaries: int, randomness: Randomness) -> CanaryPool:
        return trained(target, canaries, randomness)


class UnitAttack(TrainingAttack):
    """The same with units: a canary is a whole person with as many records as there are seats for."""

    name: ClassVar[str] = "units"
    what: ClassVar[str] = (
        "Someone who sees every noisy gradient guesses, of thousands of made-up people with several records each, who "
        "was there."
    )

    def applies(self, target: Target) -> bool:
        return target.rows_per_unit > 1


class CampaignAttack(_ManyCanaries):
    """Training and selection together: when a canary would have joined follows from what is released."""

    name: ClassVar[str] = "campaign"
    what: ClassVar[str] = (
        "Someone who sees every noisy gradient and every cut (or every chosen id) of a whole campaign guesses which of "
        "the made-up records in the pool were there."
    )

    def applies(self, target: Target) -> bool:
        return bool(target.plan.selections)

    def _once(self, target: Target, canaries: int, randomness: Randomness) -> CanaryPool:
        return carried_out(target, canaries, randomness)


class ReplayAttack(CampaignAttack):
    """The same with scores that follow from the released models, as for a record whose holder replays selections."""

    name: ClassVar[str] = "replay"
    what: ClassVar[str] = (
        "Someone who holds records replays every selection with the released models and cuts, and guesses which of "
        "these records were there."
    )

    def _once(self, target: Target, canaries: int, randomness: Randomness) -> CanaryPool:
        return carried_out(target, canaries, randomness, replayed=True)
