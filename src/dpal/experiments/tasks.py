"""The paper's datasets with their models and hyperparameters (its table of experimental details)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpal.data import Pool
from dpal.data.named.download import data_folder
from dpal.data.sources import open_pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is learnt with what. Sizes are numbers of records; epochs are the paper's, for all phases together."""

    name: str
    title: str
    source: str
    # Of the source, for the pool and for the records that are tested on.
    train: Mapping[str, Any]
    test: Mapping[str, Any]
    pool_size: int
    initial_size: int
    query_sizes: tuple[int, ...]
    batch_size: int
    # Of a training on everything at once, and of active learning.
    epochs: float
    epochs_of_campaign: float
    learning_rate: float
    max_grad_norm: float = 1.0
    optimizer: str = "nadam"
    model: str
    model_options: Mapping[str, Any]
    # What the model's dropout is for BALD, which needs some.
    dropout: float = 0.1
    target_delta: float
    metric: str = "accuracy"
    evaluated_classes: tuple[str, ...] | None = None
    text: Mapping[str, Any] | None = None
    # How much of the test set is used; None: all of it.
    test_size: int | None = None
    remark: str = ""

    @property
    def labelling_budget(self) -> int:
        return self.initial_size + sum(self.query_sizes)

    def pool(self) -> Pool:
        """The records to choose from."""
        return _first(open_pool(self.source, _placed(self.train)), self.pool_size)

    def tested(self) -> Pool:
        """The records to test on, which are public."""
        return _first(open_pool(self.source, _placed(self.test)), self.test_size)


def _placed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Files of tables lie in the folder of datasets, as those of named datasets do."""
    return {name: str(data_folder() / value) if name == "file" else value for name, value in options.items()}


def _first(pool: Pool, count: int | None) -> Pool:
    """So many records, evenly spread over the pool, or all."""
    if count is None or count >= len(pool):
        return pool
    return pool.take([pool.ids[index * len(pool) // count] for index in range(count)])


_LARGE: dict[str, Any] = {
    "initial_size": 10_000,
    "query_sizes": (10_000, 3_000, 1_000, 1_000),
    "batch_size": 4_096,
    "epochs": 100,
    "epochs_of_campaign": 150,
}
_LONGER: dict[str, Any] = {**_LARGE, "epochs": 300, "epochs_of_campaign": 300}
# The paper's settings for BloodCell.
_SMALL: dict[str, Any] = {
    "source": "table",
    "initial_size": 1_024,
    "query_sizes": (1_024, 300, 100, 52),
    "batch_size": 512,
    "epochs": 90,
    "epochs_of_campaign": 105,
    "learning_rate": 2e-3,
    "model": "resnet9",
    "target_delta": 1 / 2_500,
}
_CELLS: dict[str, Any] = {"image": "image", "label": "label", "id_column": "id", "channels": 3}
_BLOOD = ("basophil", "eosinophil", "erythroblast", "ig", "lymphocyte", "monocyte", "neutrophil", "platelet")
_SKIN = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")


def _cells(file: str, classes: tuple[str, ...], size: int) -> dict[str, Any]:
    return {"file": file, "classes": list(classes), "size": size, **_CELLS}


_CIFAR10: dict[str, Any] = {
    "source": "cifar10",
    "train": {"part": "train"},
    "test": {"part": "test"},
    "pool_size": 50_000,
    # The paper's text says 1/B = 4e-5; this is stricter, and what its overspending was measured with.
    "target_delta": 1e-5,
}

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="cifar10-resnet9",
            title="CIFAR-10, ResNet-9",
            **_CIFAR10,
            **_LARGE,
            learning_rate=1e-3,
            model="resnet9",
            model_options={"channels": 3, "classes": 10},
        ),
        Task(
            name="cifar10-eq-resnet9",
            title="CIFAR-10, Eq-ResNet-9",
            **_CIFAR10,
            **_LONGER,
            learning_rate=2.0,
            max_grad_norm=2.0,
            optimizer="sgd",
            model="eq-resnet9",
            model_options={"channels": 3, "classes": 10},
        ),
        Task(
            name="bloodcell-resnet9",
            title="BloodCell, ResNet-9",
            train=_cells("bloodcell_128/train.parquet", _BLOOD, 128),
            test=_cells("bloodcell_128/test.parquet", _BLOOD, 128),
            pool_size=11_952,
            **_SMALL,
            model_options={"channels": 3, "classes": 8},
            remark="A random split of the same images; the paper's own split is not published with them.",
        ),
        Task(
            name="skinlesion-resnet9",
            title="Skin lesions, ResNet-9",
            train=_cells("skinlesion_64/train.parquet", _SKIN, 64),
            test=_cells("skinlesion_64/test.parquet", _SKIN, 64),
            pool_size=7_980,
            **_SMALL,
            model_options={"channels": 3, "classes": 7},
            metric="balanced_accuracy",
            remark="Not in the paper: imbalanced, as its RetinalOCT; hyperparameters of BloodCell.",
        ),
        Task(
            name="retinaloct-resnet9",
            title="RetinalOCT, ResNet-9",
            source="octmnist",
            train={"part": "train", "size": 128},
            test={"part": "test", "size": 128},
            pool_size=97_477,
            **_LARGE,
            learning_rate=1e-3,
            model="resnet9",
            model_options={"channels": 1, "classes": 4},
            target_delta=1 / 25_000,
        ),
        Task(
            name="chexpert-nfnet",
            title="CheXpert, NFNet-F0",
            source="chexpert",
            train={"part": "train", "size": 192},
            test={"part": "valid", "size": 192},
            pool_size=223_414,
            **_LARGE,
            learning_rate=1.0,
            optimizer="sgd-agc",
            model="nfnet-f0",
            model_options={"channels": 1, "classes": 14},
            target_delta=1 / 25_000,
            metric="auc",
            evaluated_classes=("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion"),
            remark="The public validation part is tested on; the paper's pretrained weights are not included.",
        ),
        Task(
            name="snli-bert",
            title="SNLI, BERT",
            source="snli",
            train={"part": "train"},
            test={"part": "test"},
            pool_size=549_367,
            initial_size=20_000,
            query_sizes=(20_000, 6_000, 2_000, 2_000),
            batch_size=4_096,
            epochs=50,
            epochs_of_campaign=75,
            learning_rate=1e-3,
            optimizer="adamw",
            model="text-classifier",
            model_options={"name": "bert-base-uncased", "classes": 3},
            target_delta=1 / 50_000,
            text={"tokenizer": "bert-base-uncased", "max_length": 128},
        ),
    )
}

# Real data that is always at hand, for trying everything out.
STAND_IN = Task(
    name="digits",
    title="digits, small CNN",
    source="digits",
    train={"part": "train"},
    test={"part": "test"},
    pool_size=400,
    initial_size=80,
    query_sizes=(40, 20),
    batch_size=32,
    epochs=3,
    epochs_of_campaign=3,
    learning_rate=2e-3,
    model="small-cnn",
    model_options={"channels": 1, "classes": 10, "width": 4},
    target_delta=1e-4,
    test_size=100,
)
