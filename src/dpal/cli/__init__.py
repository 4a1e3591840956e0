"""The command line: parse, call, print.

Exit codes: 0 done, 1 unexpected, 2 wrong input, 3 waiting for labels, 4 somebody else is writing, 5 damaged or not
verified, 130 stopped with Ctrl-C.
"""

import sys

from rich.console import Console
from rich.text import Text

from dpal.cli import campaigns, certificates, demo, experiments, keys, labels, plans
from dpal.cli.app import app
from dpal.errors import CampaignBusy, DamagedCampaign, DpalError
from dpal.imports import install_hint

WRONG_INPUT, WAITING, BUSY, DAMAGED, STOPPED = 2, 3, 4, 5, 130

__all__ = ["app", "campaigns", "certificates", "demo", "experiments", "keys", "labels", "plans", "run"]


def run() -> None:
    """The entry point: errors that dpal raises on purpose become one message and an exit code."""
    try:
        app()
    except DpalError as error:
        _say(error)
        sys.exit(
            BUSY if isinstance(error, CampaignBusy) else DAMAGED if isinstance(error, DamagedCampaign) else WRONG_INPUT
        )
    except ModuleNotFoundError as error:
        hint = install_hint(error)
        if hint is None:
            raise
        _say(hint)
        sys.exit(WRONG_INPUT)
    except OSError as error:
        _say(error)
        sys.exit(WRONG_INPUT)


def _say(error: Exception) -> None:
    message = "\n".join([str(error), *getattr(error, "__notes__", [])])
    Console(stderr=True, soft_wrap=True).print(Text("error: ", style="red").append(message, style="not red"))
