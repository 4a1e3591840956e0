"""Networks whose layers never mix records. No privacy code."""

from dpal.models.equivariant import EquivariantResNet9
from dpal.models.nfnet import NFNetF0
from dpal.models.registry import MODELS, build_model
from dpal.models.resnet9 import ResNet9
from dpal.models.small_cnn import SmallCNN
from dpal.models.text import TextClassifier

__all__ = ["MODELS", "EquivariantResNet9", "NFNetF0", "ResNet9", "SmallCNN", "TextClassifier", "build_model"]
