"""A configuration with everything filled in that it leaves open: paths, the model, and the plan's request."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dpal.campaign.config import CampaignConfig
from dpal.campaign.default_model import default_model
from dpal.campaign.parts import Parts, configured_pool, parts_of, resolved_config
from dpal.data import Pool
from dpal.data.likely_units import likely_pattern
from dpal.errors import InvalidArgument
from dpal.planning.request import PlanRequest
from dpal.planning.unit_words import plural
from dpal.training.progress import doing


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledIn:
    """What a campaign would be created with, apart from its plan."""

    config: CampaignConfig
    parts: Parts
    # What was asked for, with the defaults of a head on an encoder filled in for its ε.
    request: PlanRequest
    # The same before they were filled in.
    stated: PlanRequest

    def request_for(self, epsilon: float) -> PlanRequest:
        """The request for another ε, with the defaults that belong to it."""
        stated = replace(self.stated, target_epsilon=epsilon)
        return (
            stated
            if self.parts.encoder is None
            else stated.for_encoder(self.parts.pool.unit_count, width=self.parts.encoder.width)
        )


def filled_in(config: CampaignConfig, base: Path, *, tell: Callable[[str], None]) -> FilledIn:
    """Open the data and decide what is open. No record is read. Relative paths start at `base`."""
    with doing("opening the data"):
        config = resolved_config(config, base)
        if config.data is None or config.plan is None:
            missing = [name for name in ("data", "plan") if getattr(config, name) is None]
            raise InvalidArgument("the configuration", f"without {', '.join(missing)}", "complete: data and plan")
        request = stated = config.plan
        pool = configured_pool(config)
        request = stated = _for_units(request, pool)
        config = config.model_copy(update={"plan": request})
    tell(f"{pool.unit_count:,} {plural(pool.unit)} in the pool")
    if pool.units is None and (pattern := likely_pattern(pool.ids.tolist())) is not None:
        tell(
            "The ids look as if several records belonged to one person, and no unit is named: the promise is then for "
            f"each record by itself. If they do, add data.unit with a pattern such as {pattern} (docs/units.md)."
        )
    if config.model is None:
        config = config.model_copy(update={"model": default_model(pool, tell=tell)})
    parts = replace(parts_of(config, pool=pool), tell=tell)
    if parts.encoder is not None:
        with doing("planning"):
            request = request.for_encoder(pool.unit_count, width=parts.encoder.width)
        config = config.model_copy(update={"plan": request})
    return FilledIn(config=config, parts=parts, request=request, stated=stated)


def _for_units(request: PlanRequest, pool: Pool) -> PlanRequest:
    """The request for the pool's unit; another one is refused."""
    if request.unit not in (None, pool.unit):
        raise InvalidArgument("plan.unit", request.unit, f"left out, or {pool.unit} as the data are (data.unit)")
    return replace(request, unit=pool.unit if pool.units is not None else None)
