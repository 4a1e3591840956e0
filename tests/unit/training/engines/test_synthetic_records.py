import pytest
import torch

from dpal.training.engines.synthetic_records import synthetic_like


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("channels", [1, 3])
def test_nothing_but_the_form_of_real_records_is_looked_at(order: torch.memory_format, channels: int) -> None:
    real = torch.randn(4, channels, 5, 6).to(memory_format=order)
    first, targets = synthetic_like((real, torch.tensor([1, 2, 3, 0])))
    second, _ = synthetic_like((torch.full_like(real, float("nan")), torch.tensor([0, 0, 0, 0])))
    assert isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)
    assert (first.shape, first.stride(), first.dtype) == (real.shape, real.stride(), real.dtype)
    assert torch.equal(first, second)
    assert targets.tolist() == [0, 0, 0, 0]


def test_texts_get_valid_tokens_and_masks() -> None:
    tokens = torch.randint(5, 900, (4, 7))
    batch, targets = synthetic_like(
        ({"input_ids": tokens, "attention_mask": torch.ones(4, 7, dtype=torch.bool)}, tokens.float())
    )
    assert isinstance(batch, dict)
    assert set(batch["input_ids"].flatten().tolist()) == {0, 1}
    assert batch["attention_mask"].any(dim=1).all()
    assert (targets.dtype, set(targets.flatten().tolist())) == (torch.float32, {0.0, 1.0})
