"""NFNet-F0 beside timm 1.0.30's dm_nfnet_f0: these outputs were computed by timm with the same weights and images."""

import pytest
import torch
from fixed_weights import fix_weights, fixed_images
from networks import plain_loop
from torch import Tensor, nn
from torch.nn import functional

from dpal.models.nfnet import NFNetF0
from dpal.training.engines.engine_choice import engine_for
from dpal.training.optimizers import make_optimizer

pytestmark = pytest.mark.exhaustive

TIMM = {
    64: """
        0.540858 -0.32471 0.370659 -0.142999 0.132945 -0.132733 0.296663 0.027113 -0.628956 0.86726 1.049824 -1.009545
        0.560618 -0.875246
        0.534925 -0.328398 0.617682 -0.377916 0.600063 -0.150782 -0.073301 -0.10534 -0.498008 0.619497 1.45287 -1.168918
        0.134669 -0.673515""",
    80: """
        0.758335 -0.610578 0.211392 -0.253405 0.391843 -0.067433 0.506138 0.151067 -0.274493 1.054878 1.29791 -0.77642
        0.19098 -0.408257
        0.415932 -0.701522 0.415996 0.202886 0.313233 -0.263604 0.17269 0.034296 -0.073667 1.130173 1.42755 -1.15931
        0.618232 -0.81666""",
}


@pytest.fixture(scope="module")
def network() -> NFNetF0:
    model = NFNetF0(classes=14).eval()
    fix_weights(model)
    return model


@pytest.mark.parametrize("side", TIMM)
def test_outputs_are_timms(network: NFNetF0, side: int) -> None:
    with torch.no_grad():
        found = network(fixed_images(2, 3, side))
    torch.testing.assert_close(
        found, torch.tensor([float(each) for each in TIMM[side].split()]).reshape(2, 14), rtol=0, atol=2e-4
    )


def test_sizes_and_names(network: NFNetF0) -> None:
    # timm's with 14 classes; with 1,000 it has 71,489,284.
    assert sum(each.numel() for each in network.parameters()) == 68_459_306
    names = set(network.state_dict())
    assert len(names) == 233
    assert {"stem.conv1.gain", "stages.0.0.downsample.conv.weight", "stages.3.2.attn_last.fc2.bias"} <= names
    assert {"stages.2.5.skipinit_gain", "final_conv.bias", "head.fc.weight"} <= names


def test_published_weights_load_into_another_shape(network: NFNetF0) -> None:
    weights = {name: each.clone() for name, each in network.state_dict().items()}
    grey = NFNetF0(channels=1, classes=5)
    classifier = grey.head.fc.weight.detach().clone()
    grey.load_pretrained(weights)
    assert torch.equal(grey.stem.conv1.weight, weights["stem.conv1.weight"].sum(1, keepdim=True))
    assert torch.equal(grey.head.fc.weight, classifier)
    assert torch.equal(grey.stages[2][5].conv3.weight, weights["stages.2.5.conv3.weight"])
    whole = NFNetF0(classes=14)
    whole.load_pretrained(weights)
    assert torch.equal(whole.head.fc.weight, weights["head.fc.weight"])


def binary_losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none").mean(1)


@pytest.mark.filterwarnings("ignore")
def test_a_private_step_on_many_labels(network: NFNetF0, monkeypatch: pytest.MonkeyPatch) -> None:
    # The last block, the last convolution and the classifier train, which keeps the test short.
    monkeypatch.setattr("networks.cross_entropy", binary_losses)
    trains = ("stages.3.2.", "final_conv.", "head.")
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith(trains))
    images, targets = fixed_images(2, 3, 32), (fixed_images(2, 1, 14)[:, 0, 0] > 0).float()
    engine = engine_for(network, binary_losses, max_grad_norm=1.0, sample=(images, targets))
    assert engine.name in ("opacus", "vmap")
    _, wanted = plain_loop(network, images, targets, 1.0)
    found = engine.clipped_sum(images, targets).gradients
    for name, each in wanted.items():
        torch.testing.assert_close(found[name], each.double(), rtol=0, atol=1e-4)
    optimizer = make_optimizer("sgd-agc", network, learning_rate=1.0, exempt_layer=network.head.fc)
    assert isinstance(optimizer, torch.optim.SGD)
    assert set(network.head.fc.parameters()) == optimizer.exempt


def test_nothing_mixes_records(network: NFNetF0) -> None:
    assert not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in network.modules())
    images = fixed_images(2, 3, 32)
    with torch.no_grad():
        torch.testing.assert_close(network(images)[:1], network(images[:1]), rtol=0, atol=1e-4)
