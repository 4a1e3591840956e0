"""A changed configuration: written next to the old one, recorded as a hash, then put in its place.

Whenever the process dies in between, the file that has the recorded hash is there, and is taken.
"""

from pathlib import Path

from dpal.campaign.config import NAME, CampaignConfig, read_config, settings_hash
from dpal.campaign.files import sync_folder, write_text
from dpal.errors import DamagedCampaign

NEXT = f"{NAME}.next"


def write_next(folder: Path, config: CampaignConfig) -> None:
    """Put the new configuration on the disk. It counts once its hash is recorded."""
    write_text(folder / NEXT, config.to_yaml())


def current_config(folder: Path, settings: str) -> CampaignConfig:
    """The configuration with this hash where there is one, and otherwise campaign.yaml as it is."""
    config = read_config(folder / NAME)
    if settings_hash(config) != settings and (folder / NEXT).is_file():
        changed = read_config(folder / NEXT)
        if settings_hash(changed) == settings:
            return changed
    return config


def require_recorded(folder: Path, config: CampaignConfig, settings: str) -> None:
    """Refuse a configuration that is not the recorded one."""
    if settings_hash(config) != settings:
        raise DamagedCampaign(
            f"{folder / NAME} is not as it was recorded. Put it back (only where data lies may change), or make a new "
            "campaign. Nothing was changed."
        )


def settle(folder: Path, settings: str) -> None:
    """Put a configuration whose hash is recorded in its place; remove one whose hash never was. For the writer only."""
    waiting = folder / NEXT
    if not waiting.is_file():
        return
    if settings_hash(read_config(folder / NAME)) != settings == settings_hash(read_config(waiting)):
        waiting.replace(folder / NAME)
    else:
        waiting.unlink()
    sync_folder(folder)
