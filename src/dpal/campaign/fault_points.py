"""Named points where tests kill the process, to show that nothing is lost. They do nothing without $DPAL_KILL_AT."""

import os
import signal

POINTS = (
    "create.folder",
    "create.weights",
    "create.contents",
    "create.database",
    "create.configuration",
    "create.moved",
    "encode.rows-written",
    "encode.chunk",
    "seal.written",
    "seal.overwritten",
    "store.in-transaction",
    "store.committed",
    "mean.before-charge",
    "mean.charged",
    "mean.computed",
    "mean.recorded",
    "select.before-charge",
    "select.charged",
    "select.scored",
    "select.chosen",
    "select.recorded",
    "labels.asked",
    "labels.answered",
    "labels.recorded",
    "inbox.in-transaction",
    "inbox.committed",
    "import.checked",
    "import.recorded",
    "train.before-charge",
    "train.charged",
    "train.step",
    "worker.step",
    "train.snapshot-drafted",
    "train.snapshot-written",
    "train.trained",
    "train.checkpoint-drafted",
    "train.produced",
    "train.checkpoint-written",
    "train.recorded",
    "evaluate.measured",
    "evaluate.recorded",
    "go-on.prepared",
    "go-on.recorded",
    "give-up.prepared",
    "give-up.recorded",
    "give-up.tidied",
    "finish.before-record",
    "finish.recorded",
)
VARIABLE = "DPAL_KILL_AT"
_hits: dict[str, int] = {}


def reached(point: str) -> None:
    """Kill the process here if $DPAL_KILL_AT names this point, or name:N for the Nth time it is reached."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    name, _, number = wanted.partition(":")
    if name != point:
        return
    _hits[point] = _hits.get(point, 0) + 1
    if _hits[point] == int(number or 1):
        os.kill(os.getpid(), signal.SIGKILL)
