"""The command line: parse, call, print. `app` is the program; the modules listed in `commands` add to it.

Exit codes: 0 done, 1 unexpected or not enough memory, 2 wrong input, 3 waiting for labels, 4 another process is
writing, 5 damaged or not verified, 6 stopped because a model is no better than chance, 130 stopped with Ctrl-C.
"""

import os
import sys

from dpal.cli.app import BUSY, DAMAGED, STOPPED, UNEXPECTED, WRONG_INPUT, app
from dpal.errors import CampaignBusy, DamagedCampaign, DpalError, is_out_of_memory
from dpal.imports import missing_package

__all__ = ["app", "run"]


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
        missing = missing_package(error)
        if missing is None:
            raise
        _say(missing)
        sys.exit(WRONG_INPUT)
    except OSError as error:
        _say(error)
        sys.exit(WRONG_INPUT)
    except KeyboardInterrupt:
        # While commands are put together; later each of them says by itself how to go on.
        os.write(2, b"Stopped. Nothing is lost.\n")
        sys.exit(STOPPED)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        # Nothing else: printing with colours takes more memory than there may be.
        os.write(2, _NO_MEMORY)
        sys.exit(UNEXPECTED)


_NO_MEMORY = (
    b"error: There is not enough memory. What was recorded is safe, and the same command can be run again: with more "
    b"memory, or while training with a smaller training.max_physical_batch_size (dpal give-up, --set).\n"
)


def _say(error: Exception) -> None:
    from rich.console import Console
    from rich.text import Text

    message = "\n".join([str(error), *getattr(error, "__notes__", [])])
    Console(stderr=True, soft_wrap=True).print(Text("error: ", style="red").append(message, style="not red"))
