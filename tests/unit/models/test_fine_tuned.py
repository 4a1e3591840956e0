"""A public network whose last stages train: what trains, what it starts from, and gradients as of a plain loop."""

import numpy as np
import pytest
import torch
from engine_cases import assert_same
from networks import cross_entropy, plain_loop
from small_units import plain_units, ragged, sum_over_units
from synthetic_pictures import album

from dpal.errors import InvalidArgument
from dpal.models.encoders import encoder_named
from dpal.models.fine_tuned import FineTuned
from dpal.planning.plan import Phase
from dpal.randomness import SeededRandomness
from dpal.training.engines.engine_choice import engine_for
from dpal.training.learner import Learner
from dpal.training.settings import ComputeSettings, Scaling, TrainingSettings
from dpal.training.sources import scaled

SIDE, RECORDS = 32, 6


def images(channels: int = 3, side: int = 24) -> torch.Tensor:
    """Bytes, as the training loop scales them."""
    return scaled(torch.from_numpy(album(RECORDS, side, channels)), Scaling())  # type: ignore[return-value]


def started(stages: int) -> FineTuned:
    """With a head that is not zero: otherwise nothing before it has a gradient."""
    torch.manual_seed(stages)
    model = FineTuned(classes=3, stages=stages, side=SIDE)
    torch.nn.init.normal_(model.head.output.weight, std=0.02)
    return model


@pytest.mark.parametrize("channels", [1, 3])
def test_it_starts_with_the_features_of_the_encoder(channels: int) -> None:
    model, encoder = started(1), encoder_named("efficientnet-lite0", side=SIDE)
    seen: list[torch.Tensor] = []
    model.head.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(images(channels))
    expected = encoder.encode(album(RECORDS, 24, channels))
    assert seen[0].detach().numpy() == pytest.approx(expected, abs=2e-3)


def test_the_last_stages_and_the_head_train_and_nothing_else() -> None:
    for stages in (1, 3):
        model = FineTuned(classes=3, stages=stages, side=SIDE)
        trained = {
            name.split(".")[2] for name, each in model.named_parameters() if each.requires_grad and "stages" in name
        }
        assert trained == {str(number) for number in range(7 - stages, 7)}
        assert not any(each.requires_grad for each in model.network.stem.parameters())
        assert all(each.requires_grad for each in model.head.parameters())
        assert not any("Norm" in type(module).__name__ for module in model.modules())


@pytest.mark.parametrize("stages", [1, 2])
def test_the_fused_engine_covers_it_and_agrees_with_a_plain_loop(stages: int) -> None:
    model, batch, targets = started(stages), images(), torch.arange(RECORDS) % 3
    engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets))
    assert engine.name == "fused"
    norms, expected = plain_loop(model, batch, targets, 0.5)
    assert float(norms.max()) > 0.5
    found = engine.clipped_sum(batch, targets).gradients
    assert any(name.startswith("network.stages.6") for name in found)
    assert_same(found, expected, close=2e-4)


def test_units_agree_with_a_plain_loop_too() -> None:
    model, batch, targets = started(1), images(), torch.arange(RECORDS) % 3
    table = ragged([3, 1, 2])
    engine = engine_for(model, cross_entropy, max_grad_norm=0.5, sample=(batch, targets), rows_per_unit=table.shape[1])
    found = sum_over_units(engine, batch, targets, table).gradients
    assert_same(found, plain_units(model, batch, targets, table, 0.5), close=2e-4)


def test_training_changes_the_last_stage_and_no_earlier_one() -> None:
    from dpal.data import from_arrays

    pool = from_arrays(album(RECORDS, 24), classes=["a", "b", "c"], labels=np.arange(RECORDS) % 3)
    compute = ComputeSettings(device="cpu")
    learner = Learner(started(1), pool.records, multi_label=False, settings=TrainingSettings(), compute=compute)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.train(
        Phase(steps=2, noise_multiplier=1.0, expected_batch_size=3.0, sampling_probabilities=(0.5,)),
        [np.arange(RECORDS)],
        np.arange(RECORDS) % 3,
        randomness=SeededRandomness(seed=1, nothing_is_private=True),
        description="test",
        after_step=lambda step: None,
    )
    changed = {name for name, value in learner.model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {name for name, each in learner.model.named_parameters() if each.requires_grad}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoder": "minilm"}, "encoder is 'minilm', but must be one whose stages can train: efficientnet-lite0"),
        ({"stages": 0}, "stages is 0, but must be from 1 to the 7 stages of efficientnet-lite0; with none, use"),
        ({"stages": 8}, "stages is 8"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        FineTuned(classes=2, **options)  # type: ignore[arg-type]


def test_other_records_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"\(1 or 3, height, width\)"):
        started(1)(torch.zeros(2, 2, 8, 8))
