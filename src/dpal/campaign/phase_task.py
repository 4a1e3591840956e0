"""A phase of training as it is handed to other processes: all that they need besides the campaign's data."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from dpal.campaign.campaign_pool import targets_of
from dpal.campaign.campaign_units import CampaignUnits
from dpal.campaign.state import State
from dpal.campaign.step_randomness import randomness_of
from dpal.data import Pool
from dpal.data.large_pool import LargePool
from dpal.planning.plan import Phase, Schedule
from dpal.training.learner import Learner
from dpal.training.loop import PhaseResult
from dpal.training.phase_snapshot import Snapshots
from dpal.training.processes import Processes

_TASK, _KEY, _WEIGHTS, _TARGETS, _UNITS, _GROUP = "task", "key", "weights", "targets", "units", "group/"
_SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTask:
    """One phase, on these records, with this step's key. All of it but the phase is private."""

    number: int
    phases: int
    phase: Phase
    later_records: float
    # The public number of records, where the pool is too large to be at hand.
    pool_size: int | None
    groups: tuple[NDArray[np.int64], ...] = field(repr=False)
    targets: NDArray[Any] = field(repr=False)
    units: NDArray[np.int64] | None = field(repr=False)
    key: bytes = field(repr=False)
    seed: int | None
    # What another process must have loaded before it can begin.
    withdrawn: frozenset[str] = field(repr=False)
    settings: str
    pool: str = field(repr=False)

    @classmethod
    def of(
        cls, number: int, schedule: Schedule, seen: State, pool: Pool, units: CampaignUnits, *, key: bytes
    ) -> "PhaseTask":
        """The phase with this number, on what was labelled when it was charged."""
        later = schedule.phases[number + 1 :]
        return cls(
            number=number,
            phases=len(schedule.phases),
            phase=schedule.phases[number],
            later_records=sum(phase.steps * phase.expected_batch_size for phase in later),
            pool_size=pool.unit_count if isinstance(pool, LargePool) else None,
            groups=tuple(units.members(seen, group, pool) for group in range(len(seen.groups))),
            targets=targets_of(seen, pool),
            units=units.trained(seen, pool) if units.are_named else None,
            key=key,
            seed=seen.created.seed,
            withdrawn=seen.withdrawn,
            settings=seen.settings,
            pool=ids_digest(pool),
        )

    def train(
        self, learner: Learner, *, processes: Processes, snapshots: Snapshots, after_step: Callable[[int], None]
    ) -> PhaseResult:
        """Carry it out, alone or with other processes that do the same."""
        return learner.train(
            self.phase,
            self.groups,
            self.targets,
            units=self.units,
            randomness=randomness_of(self.key, self.seed),
            description=f"phase {self.number + 1} of {self.phases}",
            after_step=after_step,
            later_records=self.later_records,
            pool_size=self.pool_size,
            processes=processes,
            snapshots=snapshots,
        )

    def to_bytes(self, weights: bytes, snapshot: bytes | None = None) -> bytes:
        """For another process, with the weights to start from, and the snapshot if the phase is to go on from one.

        Numbers and JSON: nothing in it can be executed.
        """
        words = {
            "number": self.number,
            "phases": self.phases,
            "phase": asdict(self.phase),
            "later_records": self.later_records,
            "pool_size": self.pool_size,
            "seed": self.seed,
            "withdrawn": sorted(self.withdrawn),
            "settings": self.settings,
            "pool": self.pool,
        }
        arrays: dict[str, NDArray[Any]] = {
            _TASK: np.frombuffer(json.dumps(words).encode(), dtype=np.uint8),
            _KEY: np.frombuffer(self.key, dtype=np.uint8),
            _WEIGHTS: np.frombuffer(weights, dtype=np.uint8),
            _TARGETS: np.ascontiguousarray(self.targets),
            **{f"{_GROUP}{number}": np.ascontiguousarray(group) for number, group in enumerate(self.groups)},
        }
        if self.units is not None:
            arrays[_UNITS] = np.ascontiguousarray(self.units)
        if snapshot is not None:
            arrays[_SNAPSHOT] = np.frombuffer(snapshot, dtype=np.uint8)
        return save(arrays)

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple["PhaseTask", bytes, bytes | None]:
        """What `to_bytes` made: the task, the weights and the snapshot."""
        arrays = load(content)
        words = cast("dict[str, Any]", json.loads(arrays[_TASK].tobytes()))
        planned = cast("dict[str, Any]", words.pop("phase"))
        planned["sampling_probabilities"] = tuple(planned["sampling_probabilities"])
        withdrawn = frozenset[str](words.pop("withdrawn"))
        task = cls(
            **words,
            phase=Phase(**planned),
            withdrawn=withdrawn,
            groups=tuple(arrays[f"{_GROUP}{number}"] for number in range(sum(n.startswith(_GROUP) for n in arrays))),
            targets=arrays[_TARGETS],
            units=arrays.get(_UNITS),
            key=arrays[_KEY].tobytes(),
        )
        snapshot = arrays.get(_SNAPSHOT)
        return task, arrays[_WEIGHTS].tobytes(), None if snapshot is None else snapshot.tobytes()


def ids_digest(pool: Pool) -> str:
    """A hash of the pool's ids in order: positions mean the same records only where it is the same."""
    return hashlib.sha256("\n".join(pool.ids.tolist()).encode()).hexdigest()
