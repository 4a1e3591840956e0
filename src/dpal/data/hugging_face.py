"""Pools from Hugging Face datasets: by name from the hub, from a folder of files, or as save_to_disk wrote them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpal.data.columns import Roles, as_names, pool_from_columns
from dpal.data.pool import Pool
from dpal.errors import BadData, MissingData
from dpal.imports import optional

# Builders that take the names of the classes from the folders of the records.
_COLLECTED = ("imagefolder", "audiofolder", "videofolder")


def from_hugging_face(
    name: str | Path,
    *,
    split: str,
    text: str | Sequence[str] | None = None,
    image: str | None = None,
    label: str | None = None,
    id_column: str | None = None,
    unit_column: str | None = None,
    classes: int | Sequence[str] | None = None,
    configuration: str | None = None,
    revision: str | None = None,
    multi_label: bool = False,
    size: int | None = None,
    channels: int | None = None,
    window: Sequence[float] | None = None,
    class_counts_are_public: bool = False,
) -> Pool:
    """A pool from a dataset's split. The classes default to the names in the dataset's own description.

    Images need `size` and `channels` (1 for grey, 3 for colour), and a `window` for more than 8 bits and DICOM.
    """
    dataset = _opened(str(name), split, configuration, revision)
    roles = Roles(text=as_names(text), image=image, label=as_names(label), identity=id_column, unit=unit_column)
    missing = [column for column in roles.names() if column not in dataset.column_names]
    if missing:
        raise BadData(f"{name} has no column {', '.join(missing)}. It has {', '.join(dataset.column_names)}.")
    collected = dataset.info.builder_name in _COLLECTED
    if classes is None and label is not None and not collected:
        # Published with the dataset, not collected from its labels.
        classes = getattr(dataset.features[label], "names", None)
    dataset = dataset.select_columns(list(dict.fromkeys(roles.names())))
    if image is not None:
        dataset = dataset.cast_column(image, optional("datasets", extra="hub").Image(decode=False))
    columns = {column: list(dataset[column]) for column in roles.names()}
    for column in roles.label:
        # The library marks an unknown class with −1, as in the test splits of GLUE.
        if isinstance(dataset.features[column], optional("datasets", extra="hub").ClassLabel):
            # Numbers in the order of the folders' names would be wrong for classes stated in another order.
            names = dataset.features[column].names if collected else None
            columns[column] = [None if value == -1 else names[value] if names else value for value in columns[column]]
    return pool_from_columns(
        columns,
        roles,
        name=f"{name} ({split})",
        folder=Path(),
        classes=classes,
        multi_label=multi_label,
        size=size,
        channels=channels,
        window=window,
        class_counts_are_public=class_counts_are_public,
    )


def _opened(name: str, split: str, configuration: str | None, revision: str | None) -> Any:
    library = optional("datasets", extra="hub")
    saved = Path(name)
    try:
        if (saved / "dataset_dict.json").is_file() or (saved / "state.json").is_file():
            dataset = library.load_from_disk(name)
            if hasattr(dataset, "keys"):
                return dataset[split]
            if dataset.split is not None and str(dataset.split) != split:
                raise KeyError(split)
            return dataset
        return library.load_dataset(name, configuration, split=split, revision=revision)
    # RuntimeError: a dataset that is a script, which the library no longer runs.
    except (library.exceptions.DatasetsError, KeyError, ValueError, OSError, RuntimeError) as error:
        raise MissingData(
            f"The Hugging Face dataset {name!r} with the split {split!r} cannot be opened ({type(error).__name__}). "
            "Check the name, the split and its files. Without a network, give the folder that it is in."
        ) from error
