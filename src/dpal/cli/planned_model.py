"""The model that a plan is judged for: how many parameters it has, and what the noise leaves it to learn from."""

import inspect
from dataclasses import dataclass

from dpal.campaign.default_model import ENCODERS, FROM_SCRATCH, IMAGE_ENCODER, TEXT_ENCODER, head_parameters
from dpal.errors import InvalidArgument
from dpal.imports import optional
from dpal.planning.noise_warning import noise_warning, times
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest
from dpal.planning.signal import MOST_NOISE, noise_to_signal

# Of resnet9 for colour images and two classes; counting them would import torch, which takes seconds and is an extra.
RESNET9_PARAMETERS = 2_440_514
# They need more than a number of classes.
_WITH_OPTIONS = ("text-classifier",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedModel:
    """How many numbers are trained, and how many a head on a public encoder would have; None if it is one."""

    parameters: int
    head_parameters: int | None


def planned_model(name: str | None, *, classes: int, parameters: int | None) -> PlannedModel | None:
    """The model of the options --model, --classes and --parameters; None if neither says which."""
    if classes < 1:
        raise InvalidArgument("--classes", classes, "at least 1")
    head = head_parameters(IMAGE_ENCODER, classes)
    if parameters is not None:
        if name is not None:
            raise InvalidArgument("--parameters", parameters, "left out where --model says which model it is")
        if parameters < 1:
            raise InvalidArgument("--parameters", parameters, "at least 1")
        return PlannedModel(parameters=parameters, head_parameters=head)
    if name is None:
        return None
    if name == "features":
        name = IMAGE_ENCODER
    if name in ENCODERS:
        return PlannedModel(parameters=head_parameters(name, classes), head_parameters=None)
    return PlannedModel(parameters=_counted(name, classes), head_parameters=head)


def _counted(name: str, classes: int) -> int:
    optional("torch", extra="train")
    from dpal.models.registry import MODELS, build_model, maker_of
    from dpal.training.optimizers import trainable_parameters

    known = [model for model in MODELS if model not in _WITH_OPTIONS]
    if name not in known and ":" not in name:
        allowed = f"one of {', '.join((*ENCODERS, *known))}, or an import path. For others, give --parameters"
        raise InvalidArgument("--model", name, allowed)
    takes_classes = "classes" in inspect.signature(maker_of(name)).parameters
    return trainable_parameters(build_model(name, {"classes": classes} if takes_classes else {}))


def warning_for(model: PlannedModel | None, request: PlanRequest, plan: Plan) -> str | None:
    """What to say where the noise leaves too little to learn from; without a model, whether that holds for resnet9."""
    if model is not None:
        pool_size = plan.setting.pool_size
        return noise_warning(request, pool_size, model.parameters, plan=plan, encoder_parameters=model.head_parameters)
    noise = noise_to_signal(plan.schedule, RESNET9_PARAMETERS)[-1].so_far
    if noise <= MOST_NOISE:
        return None
    return (
        f"Expect a network from scratch to learn little, and nothing if the task is hard: over all steps the noise is "
        f"{times(noise)} the largest possible signal of {FROM_SCRATCH} ({RESNET9_PARAMETERS:,} parameters). "
        f"--model {FROM_SCRATCH} says what would help. A head on a public encoder needs far less: "
        f"--model {IMAGE_ENCODER}, or {TEXT_ENCODER} for texts."
    )
