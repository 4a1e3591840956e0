"""How far the campaign was when somebody last wrote, in a second file: a database from before that is noticed.

An older copy of the database would make the campaign train and select again on charges that were paid once.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from dpal.campaign.files import write_text
from dpal.campaign.store import Recorded
from dpal.errors import DamagedCampaign

NAME = "campaign.head"


def remember(folder: Path, recorded: Sequence[Recorded]) -> None:
    """Note the newest fact."""
    newest = recorded[-1]
    write_text(folder / NAME, json.dumps({"number": newest.number, "hash": newest.hash}) + "\n")


def require_not_behind(folder: Path, recorded: Sequence[Recorded]) -> None:
    """Refuse a database that does not hold what was noted. It may hold more: the note is written after the fact."""
    path = folder / NAME
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        number, hashed = int(noted["number"]), str(noted["hash"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedCampaign(f"{path} is missing or damaged. {_RESTORE}") from error
    if number > len(recorded) or recorded[number - 1].hash != hashed:
        raise DamagedCampaign(
            f"The database in {folder} is older than the folder, or another one: it lacks fact {number}, which was "
            f"recorded once. Going on would release things a second time. {_RESTORE}"
        )


_RESTORE = "Nothing was changed. Restore the whole folder from its newest backup."
