"""Waiting for people: taking in what they answer, wherever they do so, until the campaign can continue."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from dpal.campaign.campaign_pool import open_data
from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import take_in
from dpal.campaign.label_studio_sync import LabelStudioSync, Synced
from dpal.campaign.reader import Reader
from dpal.campaign.state import WaitForLabels, next_step
from dpal.campaign.writer import writing
from dpal.data import Pool
from dpal.errors import CampaignBusy, InvalidArgument, LabelStudioFailed
from dpal.labels.label_studio_server import LabelStudio, read_token
from dpal.training.progress import doing

_SECONDS, _SYNC_SECONDS = 1.0, 10.0
# A pause is so many times as long as a sync, if that is longer.
_SHARE = 9.0


def label_studio_of(reader: Reader, pool: Pool | None = None) -> LabelStudioSync | None:
    """The connection with the Label Studio server that the configuration names; None if it names none."""
    config = reader.config()
    if config.labels is None:
        return None
    server = LabelStudio(config.labels.url, read_token(config.labels.token))

    @cache
    def opened() -> Pool:
        return open_data(config, folder=reader.folder) if pool is None else pool

    return LabelStudioSync(reader, server, opened)


def sync_labels(reader: Reader, pool: Pool | None = None) -> Synced:
    """Send what is asked to Label Studio, and take in what is answered there."""
    connection, config = label_studio_of(reader, pool), reader.config()
    if connection is None or config.labels is None:
        raise InvalidArgument(
            "labels", None, "in campaign.yaml: {source: label-studio, url: http://…, token: a file or $VARIABLE}"
        )
    synced = connection.sync(remove=config.labels.remove_projects)
    # They are safe in the inbox: a process that writes now, such as one that trains, takes them in itself.
    with suppress(CampaignBusy), writing(reader) as writer:
        take_in(writer, reader.contents)
    return synced


def wait_for_answers(reader: Reader, *, pool: Pool | None, tell: Callable[[str], None]) -> None:
    """Return once the campaign can continue. A server that fails is said, and tried again."""
    connection, config = label_studio_of(reader, pool), reader.config()
    remove = config.labels is not None and config.labels.remove_projects
    next_sync, said = time.monotonic(), ""
    inbox = Inbox(reader.folder)
    with doing("waiting for answers"):
        while isinstance(next_step(state := reader.state(), reader.schedule), WaitForLabels):
            if connection is not None and time.monotonic() >= next_sync:
                began = time.monotonic()
                try:
                    problems = connection.sync(remove=remove).problems
                    words = f"Not taken from Label Studio: {'; '.join(problems)}" if problems else ""
                except CampaignBusy:
                    # Another process fetches them.
                    words = said
                except LabelStudioFailed as error:
                    words = str(error)
                if words and words != said:
                    tell(words)
                # The server sends all tasks, with their pictures: where that takes long, it is asked less often.
                now = time.monotonic()
                said, next_sync = words, now + max(_SYNC_SECONDS, _SHARE * (now - began))
            # Another process may be writing, such as an import: its answers count too. While nothing has come,
            # the campaign is left free for it.
            if inbox.newest() > state.inbox:
                with suppress(CampaignBusy), writing(reader) as writer:
                    take_in(writer, reader.contents)
            time.sleep(_SECONDS)
