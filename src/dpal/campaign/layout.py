"""The names of all files in a campaign's folder, relative to it."""

from pathlib import Path

# Facts, and the key that fingerprints and opaque names are made with.
DATABASE = "campaign.db"
# The number and hash of the newest fact, so that an older copy of the database is noticed.
ROLLBACK_GUARD = "campaign.head"
CONFIG = "campaign.yaml"
# A changed configuration until its hash is recorded and it replaces the old one.
NEXT_CONFIG = "campaign.yaml.next"
# Ids and fingerprints of all records.
CONTENTS = "contents.db"
# In place of it, where the pool is large: the fingerprints of its row groups, and copies of the records asked for.
BLOCKS = "blocks.json"
ASKED = "asked"
# The scores of a large pool, while a selection is under way.
SCORES = "scores.scratch"
# Answers from the labelling page, until the writer takes them in.
INBOX = "inbox.db"
# What the people who label are told, and examples.
GUIDELINES = "guidelines"
# How far the step under way has come.
PROGRESS = "progress.json"
# Somebody wants the running process to stop.
STOP_REQUEST = "stop.requested"
# Held while a process is started from the dashboard.
START_LOCK = "start.lock"
# Held while answers are fetched from Label Studio.
SYNC_LOCK = "sync.lock"
# What a process that was started from the dashboard printed.
RUN_LOG = "run.log"
# The ε of all charges so far, to save recomputing it.
SPENT = "campaign.spent"
# The lock of the one writer, and who it is.
LOCK = "writer.lock"
WRITER = "writer.json"
# The key of the step that is charged and not recorded yet; next to it, the middle of a long training phase.
SEALED_KEYS = "seals"
# What a public encoder makes of every record of the pool, and of the held-out set; next to each, its tags.
FEATURES = "features.npy"
HELD_OUT_FEATURES = "held-out-features.npy"
CHECKPOINTS = "checkpoints"
WEIGHTS = f"{CHECKPOINTS}/initial.safetensors"
EXPORT_DRAFT = f"{CHECKPOINTS}/.export.draft"
REPORTS = "reports"
REPORT = f"{REPORTS}/report.html"


def checkpoint_name(phase: int) -> str:
    """The file of a phase's model. Phases are counted from 0 in code, and from 1 in names."""
    return f"{CHECKPOINTS}/phase-{phase + 1}.safetensors"


def snapshot_name(sealed_with: int) -> str:
    """The file with the middle of the phase whose key has this number."""
    return f"{SEALED_KEYS}/{sealed_with}.snapshot"


def models_in(folder: Path) -> list[str]:
    """The names of all models in the folder, recorded or not."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob(f"{CHECKPOINTS}/*.safetensors"))


def files_of_phase(folder: Path, phase: int) -> list[Path]:
    """What a phase has written: its model and drafts of it."""
    model = folder / checkpoint_name(phase)
    return [*model.parent.glob(f".{model.stem}.*draft"), *([model] if model.exists() else [])]


def scratch_models(folder: Path) -> list[Path]:
    """What safetensors leaves of models that were being written when the process died."""
    return sorted((folder / CHECKPOINTS).glob(".tmp*"))
