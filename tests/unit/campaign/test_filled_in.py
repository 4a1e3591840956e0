"""What a configuration leaves open is decided from public facts alone."""

from pathlib import Path

import numpy as np
import pytest

from dpal.campaign.config import checked_config
from dpal.campaign.filled_in import filled_in
from dpal.errors import InvalidArgument


def test_model_and_encoder_defaults_are_filled_in(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.zeros((60, 3, 32, 32), dtype=np.uint8))
    config = checked_config(
        {
            "data": {"source": "numpy", "options": {"file": "images.npy", "classes": ["a", "b"]}},
            "plan": {"target_epsilon": 8, "labelling_budget": 40},
        }
    )
    told: list[str] = []
    made = filled_in(config, tmp_path, tell=told.append)
    assert made.config.model is not None
    assert made.config.model.options["encoder"] == "efficientnet-lite0"
    assert made.request == made.config.plan
    assert made.request.batch_size == 16
    assert (made.request.mean_noise_multiplier or 0) > 0
    assert made.parts.encoder is not None
    assert told[0] == "60 records in the pool"
    assert str(tmp_path) in made.config.data.options["file"]  # pyright: ignore[reportOptionalMemberAccess]


def test_data_and_plan_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="without data, plan"):
        filled_in(checked_config({}), tmp_path, tell=lambda words: None)
