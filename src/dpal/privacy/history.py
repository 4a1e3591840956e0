"""What was done to one record: mechanisms with counts, brought into one canonical form."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import TypeAlias

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.mechanisms import Gaussian, Mechanism, PoissonSampledGaussian

History: TypeAlias = Iterable[tuple[Mechanism, int]]


Entry: TypeAlias = tuple[Mechanism, int]


class CanonicalHistory(tuple[Entry, ...]):
    """A history in the form that `canonical` gives, so that the work is not done twice.

    One that `then` made knows which history it continues, so that accountants have one entry to account for instead of
    all of them. This is for speed alone: histories with equal entries are equal.
    """

    before: "CanonicalHistory | None" = None
    last: Entry | None = None

    @cached_property
    def known(self) -> dict[object, object]:
        """What accountants keep of this history for those that continue it."""
        return {}

    def then(self, mechanism: Mechanism, times: int) -> "CanonicalHistory":
        """The history with this at its end."""
        entry = _checked_entry((mechanism, times))
        longer = canonical((entry,))
        if not longer:
            return self
        if isinstance(longer[0][0], Gaussian):
            return canonical((*self, entry))
        place = bisect_left(self, _place(entry), key=_place)
        counted = place < len(self) and self[place][0] == mechanism
        there = (mechanism, entry[1] + self[place][1]) if counted else entry
        longer = CanonicalHistory((*self[:place], there, *self[place + counted :]))
        longer.before, longer.last = self, entry
        # What this one continues has served: a long line would fill the memory with what is known of every step.
        if self.before is not None:
            self.before.before = None
        return longer


def canonical(history: History) -> CanonicalHistory:
    """The same privacy in fewer entries, in one fixed order, so that equal histories account equally.

    Equal mechanisms are counted together; what never touches the record is dropped; sampling with
    probability 1 is not sampling at all; Gaussians compose into one Gaussian whose inverse variances add,
    also adaptively (arXiv:1905.02383 Cor. 3.3).
    """
    if isinstance(history, CanonicalHistory):
        return history
    counts: dict[Mechanism, int] = {}
    for entry in history:
        mechanism, times = _checked_entry(entry)
        if isinstance(mechanism, PoissonSampledGaussian):
            if mechanism.sampling_probability == 0:
                continue
            if mechanism.sampling_probability == 1:
                mechanism = Gaussian(noise_multiplier=mechanism.noise_multiplier)
        if times > 0:
            counts[mechanism] = counts.get(mechanism, 0) + times
    gaussians = [(kind, times) for kind, times in counts.items() if isinstance(kind, Gaussian)]
    others = [(kind, times) for kind, times in counts.items() if not isinstance(kind, Gaussian)]
    if len(gaussians) == 1 and gaussians[0][1] == 1:
        others.append(gaussians[0])
    elif gaussians:
        precision = math.fsum(times / kind.noise_multiplier**2 for kind, times in gaussians)
        others.append((Gaussian(noise_multiplier=precision**-0.5), 1))
    return CanonicalHistory(sorted(others, key=_place))


def _place(entry: Entry) -> tuple[str, tuple[float, ...]]:
    return entry[0].name, entry[0].parameters()


def _checked_entry(entry: object) -> Entry:
    match entry:
        case (Mechanism() as mechanism, times):
            return mechanism, checks.count("count", times)
        case _:
            raise InvalidArgument("an entry of the history", entry, "a pair (mechanism, count)")
