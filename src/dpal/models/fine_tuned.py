"""The model `fine-tuned`: a public network for images whose last stages are trained privately, together with a head."""

from torch import Tensor, nn
from torch.nn import functional

from dpal.errors import InvalidArgument
from dpal.models.efficientnet_lite import EfficientNetLite, EfficientNetLiteEncoder
from dpal.models.encoders import ENCODERS, encoder_named
from dpal.models.heads import FeatureHead
from dpal.training.settings import Scaling

_GREY, _COLOUR = 1, 3


class FineTuned(nn.Module):
    """Images to logits. The first stages stay as they were published; batch norm is part of the convolutions.

    Unlike `features`, every step computes the whole network, so this is for GPUs. Images are bytes that were scaled as
    `Scaling` does unless told otherwise.
    """

    # Of a network that was trained already, as for `text-classifier`. Not fitted.
    default_learning_rate = 1e-3

    def __init__(
        self, *, classes: int, encoder: str = "efficientnet-lite0", stages: int = 1, side: int | None = None
    ) -> None:
        """`stages` counts the last stages of the encoder that train: 1 to all of them."""
        super().__init__()
        published = encoder_named(encoder) if side is None else encoder_named(encoder, side=side)
        network = published.network
        if not isinstance(published, EfficientNetLiteEncoder) or not isinstance(network, EfficientNetLite):
            names = ", ".join(name for name, kind in ENCODERS.items() if issubclass(kind, EfficientNetLiteEncoder))
            raise InvalidArgument("encoder", encoder, f"one whose stages can train: {names}")
        if isinstance(stages, bool) or not 1 <= stages <= len(published.blocks):
            allowed = f"from 1 to the {len(published.blocks)} stages of {encoder}; with none, use the model features"
            raise InvalidArgument("stages", stages, allowed)
        self.side, self.trained_on = published.side, published.trained_on
        # Of bytes: what the network was trained with.
        self._mean, self._deviation = published.pixel_mean[0], published.pixel_deviation[0]
        self.network = network
        for stage in list(network.stages)[-stages:]:
            stage.requires_grad_(True)
        self.head = FeatureHead(published.blocks, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.network(self._prepared(images)))

    def _prepared(self, images: Tensor) -> Tensor:
        """As `ImageEncoder.prepared` does it, for images that were scaled for other networks."""
        if images.ndim != 4 or images.shape[1] not in (_GREY, _COLOUR):
            raise InvalidArgument("the shape of the images", tuple(images.shape[1:]), "(1 or 3, height, width)")
        scaling = Scaling()
        pixels = (images.float() * scaling.deviation + scaling.mean) * 255
        pixels = pixels.expand(-1, _COLOUR, -1, -1)
        if tuple(pixels.shape[-2:]) != (self.side, self.side):
            pixels = functional.interpolate(pixels, (self.side, self.side), mode="bicubic", antialias=True)
        return ((pixels.clamp(0, 255) - self._mean) / self._deviation).to(images.dtype)
