"""CheXpert: chest X-rays with 14 labels that may be uncertain. Its licence must be accepted, so it is never downloaded.

The paper's mapping of uncertain labels: label smoothing of 0.2, towards present for atelectasis, edema and pleural
effusion, towards absent for the rest. So uncertain means 0.8 or 0.2; an empty cell is absent.
"""

from pathlib import Path

import numpy as np

from dpal.data.ids import as_ids
from dpal.data.images import image_records
from dpal.data.memory_map import as_memory_map
from dpal.data.named.dataset import NamedDataset
from dpal.data.pool import Pool
from dpal.data.tables import read_columns
from dpal.errors import BadData, MissingData

CLASSES = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)
# The five classes over which the paper averages the AUC.
EVALUATED = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")
UNCERTAIN_IS_PRESENT = ("Atelectasis", "Edema", "Pleural Effusion")
SMOOTHING = 0.2
DEFAULT_SIZE = 192


def _target(cell: str, finding: str) -> float:
    """1.0 present, 0.0 or empty absent, −1.0 uncertain."""
    number = float(cell) if cell.strip() else 0.0
    if number == -1:
        return 1 - SMOOTHING if finding in UNCERTAIN_IS_PRESENT else SMOOTHING
    if number not in (0.0, 1.0):
        raise ValueError(cell)
    return number


def read_chexpert(folder: Path, part: str, size: int) -> Pool:
    """The CSV and its tree of images; the first time, all images are cropped, resized and kept in one memory map."""
    table = folder / f"{part}.csv"
    if not table.is_file():
        raise MissingData(
            f"CheXpert is not in {folder}. Accept its terms at https://stanfordmlgroup.github.io/competitions/chexpert/"
            f", unpack CheXpert-v1.0-small.zip, and put (or link) its contents there, so that {table} and the folder "
            f"{folder / part} exist. It cannot be downloaded without an account."
        )
    ids: list[str] = []
    targets: list[list[float]] = []
    columns = read_columns(table, ("Path", *CLASSES))
    missing = [name for name in ("Path", *CLASSES) if name not in columns]
    if missing:
        raise BadData(f"{table} has no column {', '.join(missing)}.")
    for row, path in enumerate(columns["Path"]):
        # "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg": the release's name is left out.
        name = str(path).split("/", 1)[-1]
        try:
            targets.append([_target(str(columns[finding][row]), finding) for finding in CLASSES])
        except ValueError as error:
            raise BadData(f"A label of record {name!r} in {table} is {error}; allowed: 1, 0, -1, empty.") from error
        ids.append(name)
    if not ids:
        raise BadData(f"{table} is empty: it has no records.")
    names = as_ids(ids)
    pool = Pool(
        name=f"chexpert ({part})",
        ids=names,
        records=image_records([folder / name for name in ids], names, size=size, channels=1),
        classes=CLASSES,
        labels=np.asarray(targets, dtype=np.float32),
        multi_label=True,
        class_counts_are_public=True,
    )
    return as_memory_map(pool, folder / "dpal-resized")


CHEXPERT = NamedDataset(parts=("train", "valid"), sizes=(DEFAULT_SIZE,), read=read_chexpert, any_size=True)
