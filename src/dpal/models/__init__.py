"""Networks whose layers never mix records. No privacy code.

Read in this order: `registry` (models by name), `small_cnn` and `resnet9` (where to start), then `equivariant`
(features that turn with the image), `nfnet` and `text` (the paper's larger networks). Public encoders: `features` (the
model that uses one), `heads` (what trains), `encoder` (what every encoder has), `encoders` (encoders by name), then
`efficientnet_lite` for images, `text_encoder` and `minilm` for texts.
"""

from dpal.models.encoder import Encoder, ImageEncoder
from dpal.models.encoders import ENCODERS, encoder_named
from dpal.models.equivariant import EquivariantResNet9
from dpal.models.features import Features
from dpal.models.heads import FeatureHead
from dpal.models.nfnet import NFNetF0
from dpal.models.registry import MODELS, build_model
from dpal.models.resnet9 import ResNet9
from dpal.models.small_cnn import SmallCNN
from dpal.models.text import TextClassifier

__all__ = [
    "ENCODERS",
    "MODELS",
    "Encoder",
    "EquivariantResNet9",
    "FeatureHead",
    "Features",
    "ImageEncoder",
    "NFNetF0",
    "ResNet9",
    "SmallCNN",
    "TextClassifier",
    "build_model",
    "encoder_named",
]
