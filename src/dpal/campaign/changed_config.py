"""A changed configuration: written next to the old one, recorded as a hash, then put in its place.

If the process dies in between, the file with the recorded hash is there and is used.
"""

from collections.abc import Sequence
from pathlib import Path

from dpal.campaign.config import CampaignConfig, checked_config, read_config, settings_hash
from dpal.campaign.files import sync_folder, write_text
from dpal.campaign.layout import CONFIG, NEXT_CONFIG
from dpal.errors import DamagedCampaign, InvalidArgument

_SECTION = "training."
# They say how a record becomes numbers, which is part of the model that is already trained.
_OF_THE_MODEL = ("training.pixel_mean", "training.pixel_deviation")


def with_training_settings(config: CampaignConfig, settings: Sequence[str]) -> CampaignConfig:
    """The configuration with other training settings, which are public and cost no privacy."""
    for setting in settings:
        key = setting.partition("=")[0].strip()
        if not key.startswith(_SECTION) or key in _OF_THE_MODEL:
            allowed = (
                "a setting of the section training, such as training.learning_rate=0.001, and not how pixels are "
                "scaled. Nothing was changed"
            )
            raise InvalidArgument("--set", setting, allowed)
    changed = checked_config(config.model_dump(mode="json"), settings)
    if changed != config:
        # Only here: torch takes seconds to import.
        from dpal.training.learner import try_settings

        try_settings(changed.training, changed.training)
    return changed


def write_next(folder: Path, config: CampaignConfig) -> None:
    """Write the new configuration to the disk. It is used once its hash is recorded."""
    write_text(folder / NEXT_CONFIG, config.to_yaml())


def current_config(folder: Path, settings: str) -> CampaignConfig:
    """The configuration with this hash, or campaign.yaml as it is if no file has it."""
    config = read_config(folder / CONFIG)
    if settings_hash(config) != settings and (folder / NEXT_CONFIG).is_file():
        changed = read_config(folder / NEXT_CONFIG)
        if settings_hash(changed) == settings:
            return changed
    return config


def require_recorded(folder: Path, config: CampaignConfig, settings: str) -> None:
    """Refuse a configuration that is not the recorded one."""
    if settings_hash(config) != settings:
        raise DamagedCampaign(
            f"{folder / CONFIG} differs from the configuration that was recorded. Restore it (only the places of the "
            "data may change), or make a new campaign. Nothing was changed."
        )


def settle(folder: Path, settings: str) -> None:
    """Put a changed configuration in its place if its hash is recorded; otherwise remove it. For the writer only."""
    waiting = folder / NEXT_CONFIG
    if not waiting.is_file():
        return
    if settings_hash(read_config(folder / CONFIG)) != settings == settings_hash(read_config(waiting)):
        waiting.replace(folder / CONFIG)
    else:
        waiting.unlink()
    sync_folder(folder)
