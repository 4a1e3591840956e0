"""A network that answers the same whatever it is shown, for campaigns that must end at chance every time."""

import torch

from dpal.models import ResNet9


def blank_resnet9(classes: int, channels: int) -> ResNet9:
    """ResNet-9 whose last layer says 1 to everything, exactly, unless a step moves it by more than rounding."""
    network = ResNet9(classes=classes, channels=channels)
    with torch.no_grad():
        network.classifier.weight.zero_()
        network.classifier.bias.fill_(1.0)
    return network
