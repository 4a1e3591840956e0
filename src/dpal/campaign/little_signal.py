"""Whether the noise of a plan leaves a campaign's model enough to learn from, before anything is created or charged."""

from dpal.campaign.default_model import fitting_encoder, head_parameters
from dpal.campaign.parts import Parts
from dpal.planning.noise_warning import noise_warning
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest


def noise_warning_of(parts: Parts, request: PlanRequest, plan: Plan) -> str | None:
    """The warning for this campaign's model, with what would help; None if it has enough signal. No record is read."""
    # Whoever has an encoder already is not told to take one.
    encoder = fitting_encoder(parts.pool) if parts.encoder is None else None
    return noise_warning(
        request,
        parts.pool.unit_count,
        parts.parameters(),
        plan=plan,
        encoder_parameters=None if encoder is None else head_parameters(encoder, len(parts.pool.classes)),
    )
