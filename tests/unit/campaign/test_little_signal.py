"""A campaign whose model has too little to learn from says so before it is created, with what would help."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import CampaignConfig, checked_config

DIGITS: dict[str, Any] = {
    "data": {"source": "digits"},
    "plan": {"target_epsilon": 8, "initial_size": 20, "query_sizes": [10], "accountant": "rdp", "selection": "random"},
    "oracle": "simulated",
}


def warned(folder: Path, config: CampaignConfig) -> list[str]:
    """What is told, and nothing is created."""
    told: list[str] = []

    def stop(*what: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Campaign.from_config(folder / "c", config, tell=told.append, before_creating=stop)
    assert not (folder / "c").exists()
    return [words for words in told if words.startswith("Expect this model")]


def test_a_large_network_and_few_labels_are_named(tmp_path: Path) -> None:
    (words,) = warned(tmp_path, checked_config(DIGITS | {"model": {"name": "resnet9"}}))
    assert "trainable parameters, and over all steps of the 2 phases" in words
    # Digits are too small for an encoder of photographs.
    assert "encoder" not in words


def test_a_small_network_is_not(tmp_path: Path) -> None:
    plan = DIGITS["plan"] | {"initial_size": 300, "query_sizes": [200]}
    assert warned(tmp_path, checked_config(DIGITS | {"plan": plan, "model": {"name": "small-cnn"}})) == []


def test_an_encoder_is_proposed_for_images_of_its_size(tmp_path: Path) -> None:
    images: NDArray[np.uint8] = np.random.default_rng(0).integers(0, 256, (200, 1, 28, 28), dtype=np.uint8)
    np.save(tmp_path / "scans.npy", images)
    config = checked_config(
        DIGITS
        | {
            "data": {
                "source": "numpy",
                "options": {"file": str(tmp_path / "scans.npy"), "classes": ["healthy", "ill"]},
            },
            "model": {"name": "resnet9"},
            "oracle": "files",
        }
    )
    (words,) = warned(tmp_path, config)
    assert "a public encoder as the model, whose head has 1,570 parameters" in words


def test_a_warning_goes_to_whoever_wants_warnings(tmp_path: Path) -> None:
    told: list[str] = []
    warnings: list[str] = []
    campaign = Campaign.from_config(
        tmp_path / "c", checked_config(DIGITS | {"model": {"name": "resnet9"}}), tell=told.append, warn=warnings.append
    )
    assert len(warnings) == 1 and warnings[0] not in told
    # Words alone: whoever wants to may go on.
    assert campaign.state().created.pool_size == 1_437
