"""What a plan, or what was charged of one, costs someone with several records, when each is protected by itself."""

from functools import lru_cache

from dpal.errors import InvalidArgument
from dpal.planning.plan import Schedule
from dpal.planning.setting import Setting
from dpal.privacy.accountants import accountant_named
from dpal.privacy.several_records import (
    PhasedCampaign,
    SeveralRecordsEpsilon,
    TrainingPhase,
    several_records_epsilon,
)


def phased(setting: Setting, schedule: Schedule) -> PhasedCampaign:
    """The schedule as the accountants of several records see it.

    A selection that is not dpal's own promises something about each record alone. Nothing is known about several, so
    there is no direct account.
    """
    if not all(selection.is_private for selection in schedule.selections):
        raise InvalidArgument("selection", setting.selection, "a private one: without noise nothing is promised")
    return PhasedCampaign(
        phases=tuple(
            TrainingPhase(
                sampling_probabilities=phase.sampling_probabilities,
                noise_multiplier=phase.noise_multiplier,
                steps=phase.steps,
            )
            for phase in schedule.phases
        ),
        selections=tuple(selection.released for selection in schedule.selections),
        mean=setting.mean,
        records_are_separate=not any(":" in selection.kind() for selection in schedule.selections),
    )


def epsilon_of_several(setting: Setting, schedule: Schedule, records: int) -> SeveralRecordsEpsilon:
    """The ε of anyone with at most so many records, at the setting's δ. The setting's mean is part of it."""
    if records > setting.pool_size:
        raise InvalidArgument("records_per_person", records, f"at most {setting.pool_size:,}, the records in the pool")
    return _epsilon(phased(setting, schedule), records, setting.target_delta, setting.accounting, setting.accountant)


# Certificates are verified again and again, and an account of many records takes seconds.
@lru_cache(maxsize=256)
def _epsilon(
    campaign: PhasedCampaign, records: int, delta: float, accounting: str, accountant: str
) -> SeveralRecordsEpsilon:
    return several_records_epsilon(
        campaign, records=records, delta=delta, accounting=accounting, accountant=accountant_named(accountant)
    )
