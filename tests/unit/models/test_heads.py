"""The head of an encoder's features: rows of one norm, constants that do not train, and the fused engine."""

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
    centre, scale = np.arange(8, dtype=np.float32), np.full(8, 2.0, dtype=np.float32)
    return FeatureHead(BLOCKS, 4, hidden, centre=centre, scale=scale)


def features(records: int = 6) -> torch.Tensor:
    return torch.randn(records, 8, generator=torch.Generator().manual_seed(1)) * 3


def test_every_block_of_every_row_has_the_same_norm() -> None:
    rows = some_head().normalised(torch.cat([features(), 1e4 * features(2)]))
    for part in rows.split(BLOCKS, dim=1):
        assert part.norm(dim=1) == pytest.approx(np.full(8, 4 / 2**0.5), rel=1e-5)


def test_rows_are_centred_and_scaled_by_the_constants() -> None:
    head = some_head()
    given = features(1) / 3
    standard = (given - torch.arange(8)) / 2
    expected = torch.cat([part / part.norm() for part in standard.split(BLOCKS, dim=1)], dim=1) * 4 / 2**0.5
    assert torch.allclose(head.normalised(given), expected, atol=1e-6)
    # A record that is the centre itself has no direction, and no NaN either.
    assert head.normalised(torch.arange(8.0)[None]).abs().max() == 0


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
    # The constants are no parameters.
    assert set(found) == set(expected) == {name for name, _ in head.named_parameters()}
    assert_same(found, expected)


def test_the_constants_are_saved_and_loaded_with_the_weights(tmp_path: Path) -> None:
    head, other = some_head(), FeatureHead(BLOCKS, 4)
    save_weights(tmp_path / "head.safetensors", head, None)
    assert {"weights/centre", "weights/scale", "weights/output.weight"} <= set(load_file(tmp_path / "head.safetensors"))
    load_weights(tmp_path / "head.safetensors", other, None)
    assert torch.equal(other.centre, head.centre) and torch.equal(other.scale, head.scale)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"classes": 0}, "classes is 0"),
        ({"hidden": -1}, "hidden is -1"),
        ({"blocks": ()}, "blocks is 0"),
        ({"centre": np.zeros(7, dtype=np.float32)}, "centre.*8 finite numbers"),
        ({"scale": np.full(8, np.nan, dtype=np.float32)}, "scale.*8 finite numbers"),
        ({"scale": np.zeros(8, dtype=np.float32)}, "scale.*8 finite numbers"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        FeatureHead(**({"blocks": BLOCKS, "classes": 4} | arguments))  # type: ignore[arg-type]
