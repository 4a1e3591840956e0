"""The head of an encoder's features: rows of one norm, a mean that does not train, and the fused engine."""

from pathlib import Path

import numpy as np
import pytest
import torch
from engine_cases import assert_same
from networks import plain_loop
from safetensors.torch import load_file

from dpal.errors import InvalidArgument
from dpal.models.heads import FeatureHead
from dpal.training.checkpoints import load_weights, save_weights
from dpal.training.engines.engine_choice import engine_for
from dpal.training.losses import cross_entropy

BLOCKS = (3, 5)


def some_head(hidden: int = 0) -> FeatureHead:
    torch.manual_seed(2)
    head = FeatureHead(BLOCKS, 4, hidden)
    head.centre.copy_(torch.arange(8) / 20)
    return head


def features(records: int = 6) -> torch.Tensor:
    return torch.randn(records, 8, generator=torch.Generator().manual_seed(1)) * 3


def test_every_block_of_every_row_has_a_norm_in_proportion_to_its_width() -> None:
    head, given = some_head(), torch.cat([features(), 1e4 * features(2)])
    for rows, norm in ((head.before_centre(given), 1.0), (head.normalised(given), 10.0)):
        for part, width in zip(rows.split(BLOCKS, dim=1), BLOCKS, strict=True):
            assert part.norm(dim=1) == pytest.approx(np.full(8, norm * (width / 8) ** 0.5), rel=1e-5)


def test_the_mean_is_subtracted_between_the_two_scalings() -> None:
    head, given = some_head(), features(1)
    share = torch.tensor([(3 / 8) ** 0.5] * 3 + [(5 / 8) ** 0.5] * 5)

    def scaled(rows: torch.Tensor) -> torch.Tensor:
        return torch.cat([part / part.norm() for part in rows.split(BLOCKS, dim=1)], dim=1) * share

    assert torch.allclose(head.normalised(given), 10 * scaled(scaled(given) - torch.arange(8) / 20), atol=1e-5)
    # A record that is the centre itself has no direction, and no NaN either; nor has one of zeros.
    head.centre.copy_(head.before_centre(given)[0])
    assert head.normalised(given).abs().max() == 0
    head.centre.zero_()
    assert head.normalised(torch.zeros(1, 8)).abs().max() == 0


def test_a_row_depends_on_its_record_alone() -> None:
    head, rows = some_head(hidden=3), features()
    torch.nn.init.normal_(head.output.weight)
    changed = rows.clone()
    changed[1:] *= 100
    assert torch.equal(head(rows)[0], head(changed)[0])


@pytest.mark.parametrize("hidden", [0, 7])
def test_no_class_is_preferred_before_training(hidden: int) -> None:
    assert torch.equal(some_head(hidden)(features()), torch.zeros(6, 4))


@pytest.mark.parametrize("hidden", [0, 7])
def test_the_fused_engine_covers_it_and_agrees_with_a_plain_loop(hidden: int) -> None:
    head, batch, targets = some_head(hidden), features(), torch.tensor([0, 1, 2, 3, 0, 1])
    torch.nn.init.normal_(head.output.weight)
    engine = engine_for(head, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
    assert engine.name == "fused"
    found = engine.clipped_sum(batch, targets).gradients
    _, expected = plain_loop(head, batch, targets, 0.5)
    # The mean is not a parameter.
    assert set(found) == set(expected) == {name for name, _ in head.named_parameters()}
    assert_same(found, expected)


def test_the_mean_is_saved_and_loaded_with_the_weights(tmp_path: Path) -> None:
    head, other = some_head(), FeatureHead(BLOCKS, 4)
    save_weights(tmp_path / "head.safetensors", head, None)
    assert {"weights/centre", "weights/output.weight"} <= set(load_file(tmp_path / "head.safetensors"))
    load_weights(tmp_path / "head.safetensors", other, None)
    assert torch.equal(other.centre, head.centre)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"classes": 0}, "classes is 0"),
        ({"hidden": -1}, "hidden is -1"),
        ({"blocks": ()}, "blocks is 0"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        FeatureHead(**({"blocks": BLOCKS, "classes": 4} | arguments))  # type: ignore[arg-type]
