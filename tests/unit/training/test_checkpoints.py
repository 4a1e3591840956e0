"""Weights in files: what was saved is loaded, and what is damaged or of another model is refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from dpal.errors import DamagedCampaign
from dpal.training.averaging import WeightAverage
from dpal.training.checkpoints import load_weights, save_weights, write_tensors


class Shared(nn.Module):
    """Two names for one weight, a frozen parameter and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 3)
        self.head.weight = self.body.weight
        self.head.bias.requires_grad_(False)
        self.register_buffer("count", torch.randint(0, 100, (2,)))


def test_everything_is_as_it_was_shared_weights_included(tmp_path: Path) -> None:
    saved, loaded = Shared(), Shared()
    save_weights(tmp_path / "w", saved, None)
    # One copy of what is shared, and nothing but the state.
    assert set(load_file(tmp_path / "w")) == {
        f"weights/{name}" for name in ("body.weight", "body.bias", "head.bias", "count")
    }
    load_weights(tmp_path / "w", loaded, None)
    for name, value in saved.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    assert loaded.head.weight is loaded.body.weight


def test_the_average_goes_on_where_it_was(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    average = WeightAverage(model, decay=0.9)
    model.weight.data.add_(1)
    average.update()
    save_weights(tmp_path / "w", model, average)
    other = nn.Linear(3, 2)
    again = WeightAverage(other, decay=0.9)
    load_weights(tmp_path / "w", other, again)
    assert again.steps == 1
    assert torch.equal(again.average["weight"], average.average["weight"])
    assert not torch.equal(again.average["weight"], other.weight)


def test_a_file_without_an_average_leaves_one_as_it_is(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    save_weights(tmp_path / "w", model, None)
    average = WeightAverage(model, decay=0.9)
    average.update()
    load_weights(tmp_path / "w", model, average)
    assert average.steps == 1


def test_another_model_is_refused_and_the_difference_is_named(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", nn.Sequential(nn.Linear(3, 2)), None)
    with pytest.raises(
        DamagedCampaign, match=r"another model: 2 parameters are missing and 0 are unknown, such as 1\."
    ):
        load_weights(tmp_path / "w", nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)), None)
    with pytest.raises(DamagedCampaign, match=r"0 parameters are missing and 1 are unknown, such as 0\.bias"):
        load_weights(tmp_path / "w", nn.Sequential(nn.Linear(3, 2, bias=False)), None)
    with pytest.raises(DamagedCampaign, match="belongs to another model"):
        load_weights(tmp_path / "w", nn.Sequential(nn.Linear(4, 2)), None)


@pytest.mark.parametrize("content", [None, b"", b"hello", "half"])
def test_a_damaged_or_missing_file_is_refused(tmp_path: Path, content: bytes | str | None) -> None:
    model, path = nn.Linear(3, 2), tmp_path / "w"
    save_weights(path, model, None)
    whole = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(whole[:-4] if isinstance(content, str) else content)
    with pytest.raises(DamagedCampaign, match=r"cannot be loaded .*Restore it from a backup"):
        load_weights(path, model, None)


def test_a_place_that_cannot_be_written_to_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"cannot be written|No such file"):
        write_tensors(tmp_path / "nowhere" / "w", {"a": torch.zeros(1)})


class Overlapping(nn.Module):
    """A buffer that is the beginning of another one, and comes before it."""

    def __init__(self) -> None:
        super().__init__()
        whole = torch.randn(4)
        self.first, self.second = nn.Module(), nn.Module()
        self.first.register_buffer("start", whole[:2])
        self.second.register_buffer("whole", whole)


def test_a_tensor_that_only_begins_like_another_is_saved_too(tmp_path: Path) -> None:
    saved, loaded = Overlapping(), Overlapping()
    save_weights(tmp_path / "w", saved, None)
    load_weights(tmp_path / "w", loaded, None)
    assert torch.equal(loaded.second.whole, saved.second.whole)
