"""A small convolutional network for small images and first experiments: minutes on a laptop instead of hours."""

from torch import Tensor, nn

from dpal.errors import InvalidArgument


class SmallCNN(nn.Module):
    """Two convolutions with group norm, an average over a 4 × 4 grid, one linear layer; sides from 8."""

    def __init__(self, *, channels: int = 1, classes: int = 10, width: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        for name, value in (("channels", channels), ("classes", classes), ("width", width)):
            if value < 1:
                raise InvalidArgument(name, value, "at least 1")
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            nn.GroupNorm(min(4, width), width),
            nn.Mish(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.GroupNorm(min(4, 2 * width), 2 * width),
            nn.Mish(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Dropout(dropout),
        )
        self.classifier = nn.Linear(16 * 2 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.features(images))
