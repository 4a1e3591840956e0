"""Each named dataset from tiny files of its exact official format, written here."""

import csv
import gzip
import hashlib
import io
import json
import pickle
import struct
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from pictures import pixels
from PIL import Image

from dpal.data import DATASETS, load_dataset
from dpal.data.named.chexpert import CLASSES as FINDINGS
from dpal.data.named.download import OfficialFile, ensure, fetch
from dpal.data.named.snli import read_snli_file
from dpal.data.records import TextRecords
from dpal.errors import BadData, InvalidArgument, MissingData


def write_idx(file: Path, values: np.ndarray) -> None:
    header = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    file.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes()))


def fashion_folder(folder: Path, count: int = 7) -> np.ndarray:
    folder.mkdir(exist_ok=True)
    images = np.random.default_rng(0).integers(0, 256, (count, 28, 28), dtype=np.uint8)
    for prefix in ("train", "t10k"):
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", np.arange(count) % 10)
    return images


def test_fashion_mnist(tmp_path: Path) -> None:
    images = fashion_folder(tmp_path)
    pool = load_dataset("fashion-mnist", folder=tmp_path)
    assert np.array_equal(pool.records.read(np.arange(7)), images[:, None])
    assert pool.labels is not None
    assert pool.labels.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert pool.ids[-1] == "train-00006"
    assert load_dataset("fashion-mnist", part="test", folder=tmp_path).ids[0] == "test-00000"


@pytest.mark.parametrize(
    "harm", ["cut short", "not gzip", "other length", "other type", "label", "other size", "overflow"]
)
def test_broken_idx_files_are_refused(tmp_path: Path, harm: str) -> None:
    fashion_folder(tmp_path)
    images, labels = tmp_path / "train-images-idx3-ubyte.gz", tmp_path / "train-labels-idx1-ubyte.gz"
    match harm:
        case "cut short":
            images.write_bytes(images.read_bytes()[:-30])
        case "not gzip":
            images.write_bytes(b"hello")
        case "other length":
            write_idx(labels, np.arange(6))
        case "other type":
            images.write_bytes(gzip.compress(b"\0\0\x0d\x01" + struct.pack(">I", 1) + b"\0\0\0\0"))
        case "other size":
            write_idx(images, np.zeros((7, 5, 5)))
        case "overflow":
            # 2^64 values: as a 64-bit number that is 0, which is what the file has.
            images.write_bytes(gzip.compress(struct.pack(">HBB4I", 0, 8, 4, *[1 << 16] * 4)))
        case _:
            write_idx(labels, np.full(7, 10))
    with pytest.raises(BadData):
        load_dataset("fashion-mnist", folder=tmp_path)


def cifar_rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, 10, count, dtype=np.uint8), generator.integers(0, 256, (count, 3072), dtype=np.uint8)


CIFAR_NAMES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


def cifar_binary(folder: Path) -> None:
    (folder / "cifar-10-batches-bin").mkdir(parents=True)
    for seed, name in enumerate(CIFAR_NAMES):
        labels, images = cifar_rows(4, seed)
        rows = np.concatenate([labels[:, None], images], axis=1)
        (folder / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(rows.tobytes())


def python_2_pickle(labels: list[int], images: np.ndarray) -> bytes:
    """A batch as Python 2 pickled it: protocol 2, byte strings as keys and inside the array."""
    binary = lambda text: b"T" + struct.pack("<I", len(text)) + text  # noqa: E731
    state = b"(K\x01(" + b"M" + struct.pack("<H", len(images)) + b"M" + struct.pack("<H", 3072) + b"t"
    dtype = (
        b"cnumpy\ndtype\n("
        + binary(b"u1")
        + b"K\x00K\x01tR(K\x03"
        + binary(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + binary(b"b") + b"tR"
    array += state + dtype + b"\x89" + binary(images.tobytes()) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + binary(b"data") + array + binary(b"labels") + numbers + b"u."


def cifar_pickled(folder: Path) -> None:
    (folder / "cifar-10-batches-py").mkdir(parents=True)
    for seed, name in enumerate(CIFAR_NAMES):
        labels, images = cifar_rows(4, seed)
        (folder / "cifar-10-batches-py" / name).write_bytes(python_2_pickle(labels.tolist(), images))


def test_cifar10_is_the_same_from_both_official_forms(tmp_path: Path) -> None:
    cifar_binary(tmp_path / "binary")
    cifar_pickled(tmp_path / "pickled")
    for part, count in (("train", 20), ("test", 4)):
        binary = load_dataset("cifar10", part=part, folder=tmp_path / "binary")
        pickled = load_dataset("cifar10", part=part, folder=tmp_path / "pickled")
        assert len(binary) == count
        assert binary.ids.tolist() == pickled.ids.tolist()
        assert np.array_equal(binary.labels, pickled.labels)  # type: ignore[arg-type]
        assert np.array_equal(binary.records.read(np.arange(count)), pickled.records.read(np.arange(count)))
    _, images = cifar_rows(4, 1)
    assert np.array_equal(
        load_dataset("cifar10", folder=tmp_path / "binary").records.read(np.arange(4, 8)), images.reshape(4, 3, 32, 32)
    )


class Malicious:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('code from a pickle ran')",)


class Forged:
    """numpy would take these bytes for the addresses of objects, and look there."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return np.ndarray, ((4,), np.dtype("O"), b"A" * 32)


@pytest.mark.parametrize(
    "evil",
    [
        Malicious(),
        {b"data": Malicious(), b"labels": [1]},
        {b"data": print},
        {b"data": Forged(), b"labels": Forged()},
        {b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": Forged()},
        {b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": ["1", "2", "3", "4"]},
        {b"data": np.array([None]), b"labels": [1]},
        [1],
        None,
    ],
)
def test_pickles_run_nothing(tmp_path: Path, evil: object) -> None:
    cifar_pickled(tmp_path)
    # Python 2's newest protocol, as the official files have.
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps(evil, protocol=2))
    with pytest.raises(BadData, match="test_batch"):
        load_dataset("cifar10", part="test", folder=tmp_path)


def test_cut_or_wrong_cifar_batches_are_refused(tmp_path: Path) -> None:
    cifar_binary(tmp_path)
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(BadData, match=r"data_batch_3.*cut short"):
        load_dataset("cifar10", folder=tmp_path)
    file.write_bytes(bytes([10]) + whole[1:])
    with pytest.raises(BadData, match=r"outside the classes.*'train-00008' has"):
        load_dataset("cifar10", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "size", "channels"), [("bloodmnist", 28, 3), ("bloodmnist", 64, 3), ("octmnist", 28, 1)]
)
def test_medmnist(tmp_path: Path, name: str, size: int, channels: int) -> None:
    shape = (5, size, size, 3) if channels == 3 else (5, size, size)
    arrays: dict[str, np.ndarray] = {}
    for seed, part in enumerate(("train", "val", "test")):
        arrays[f"{part}_images"] = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        arrays[f"{part}_labels"] = np.arange(5, dtype=np.uint8)[:, None] % 4
    file = tmp_path / (f"{name}.npz" if size == 28 else f"{name}_{size}.npz")
    np.savez_compressed(file, **arrays)
    for part in ("train", "val", "test"):
        pool = load_dataset(name, part=part, size=size, folder=tmp_path)
        read = pool.records.read(np.arange(5))
        assert read.shape == (5, channels, size, size)
        assert np.array_equal(read[2, 0], arrays[f"{part}_images"][2].reshape(size, size, -1)[..., 0])
    with pytest.raises(MissingData, match=rf"{name}_224\.npz"):
        load_dataset(name, size=224, folder=tmp_path)
    with pytest.raises(InvalidArgument, match="28, 64, 128, 224"):
        load_dataset(name, size=32, folder=tmp_path)
    np.savez_compressed(file, **(arrays | {"train_images": arrays["train_images"].astype(np.float32)}))
    with pytest.raises(BadData, match="uint8"):
        load_dataset(name, size=size, folder=tmp_path)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(BadData, match=file.name):
        load_dataset(name, size=size, folder=tmp_path)


def chexpert_folder(folder: Path, rows: list[tuple[str, dict[str, str]]]) -> Path:
    folder.mkdir(exist_ok=True)
    with (folder / "train.csv").open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *FINDINGS])
        for number, (path, findings) in enumerate(rows):
            cells = [findings.get(finding, "") for finding in FINDINGS]
            writer.writerow([f"CheXpert-v1.0-small/{path}", "Male", 60, "Frontal", "AP", *cells])
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels(number, side=390, channels=1)[:320, :, 0]).save(folder / path, quality=95)
    return folder


def test_chexpert_maps_uncertain_labels_as_the_paper_does(tmp_path: Path) -> None:
    uncertain = dict.fromkeys(FINDINGS, "-1.0")
    folder = chexpert_folder(
        tmp_path / "chexpert",
        [
            ("train/patient00001/study1/view1_frontal.jpg", {"No Finding": "1.0", "Edema": "0.0"}),
            ("train/patient00002/study1/view1_frontal.jpg", uncertain),
        ],
    )
    pool = load_dataset("chexpert", folder=folder)
    assert pool.ids.tolist()[0] == "train/patient00001/study1/view1_frontal.jpg"
    assert pool.multi_label
    assert pool.labels is not None
    assert pool.labels[0].tolist() == [1.0] + [0.0] * 13
    expected = [0.8 if name in ("Atelectasis", "Edema", "Pleural Effusion") else 0.2 for name in FINDINGS]
    assert np.allclose(pool.labels[1], expected)
    assert pool.records.read(np.arange(2)).shape == (2, 1, 192, 192)
    # Built once: from now on the images themselves are not needed.
    (built,) = (folder / "dpal-resized").iterdir()
    modified = built.stat().st_mtime_ns
    assert load_dataset("chexpert", folder=folder).records.read(np.arange(2)).shape == (2, 1, 192, 192)
    assert built.stat().st_mtime_ns == modified
    assert load_dataset("chexpert", folder=folder, size=64).records.read(np.arange(2)).shape == (2, 1, 64, 64)


def test_chexpert_bad_input(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"Accept its terms.*train\.csv"):
        load_dataset("chexpert", folder=tmp_path)
    folder = chexpert_folder(tmp_path / "c", [("train/p1/view1.jpg", {"Edema": "2.0"})])
    with pytest.raises(BadData, match=r"'train/p1/view1\.jpg'"):
        load_dataset("chexpert", folder=folder)
    folder = chexpert_folder(tmp_path / "d", [("train/p1/view1.jpg", {}), ("train/p2/view1.jpg", {})])
    (folder / "train/p2/view1.jpg").write_bytes(b"broken")
    with pytest.raises(BadData, match=r"'train/p2/view1\.jpg'"):
        load_dataset("chexpert", folder=folder)
    assert list((folder / "dpal-resized").iterdir()) == []


def test_a_row_of_chexpert_that_is_cut_short_is_not_a_row_of_absent_findings(tmp_path: Path) -> None:
    folder = chexpert_folder(tmp_path / "c", [("train/p1/view1.jpg", {"Support Devices": "1.0"})])
    whole = (folder / "train.csv").read_text()
    (folder / "train.csv").write_text(whole[: whole.rindex(",")])
    with pytest.raises(BadData, match="Line 2"):
        load_dataset("chexpert", folder=folder)


def snli_line(label: str, number: int) -> str:
    pair = {
        "annotator_labels": [label],
        "captionID": f"{number}.jpg#0",
        "gold_label": label,
        "pairID": f"{number}.jpg#0r1n",
        "sentence1": f"A man {number}.",
        "sentence1_binary_parse": "( A man )",
        "sentence1_parse": "(ROOT)",
        "sentence2": "Somebody.",
        "sentence2_binary_parse": "( Somebody )",
        "sentence2_parse": "(ROOT)",
    }
    return json.dumps(pair)


def test_snli_leaves_out_pairs_without_a_majority(tmp_path: Path) -> None:
    folder = tmp_path / "snli_1.0"
    folder.mkdir()
    labels = ["neutral", "-", "contradiction", "entailment"]
    lines = "\n".join(snli_line(label, number) for number, label in enumerate(labels))
    (folder / "snli_1.0_dev.jsonl").write_text(lines + "\n")
    pool = load_dataset("snli", part="dev", folder=tmp_path)
    assert pool.ids.tolist() == ["0.jpg#0r1n", "2.jpg#0r1n", "3.jpg#0r1n"]
    assert pool.labels is not None
    assert pool.labels.tolist() == [1, 2, 0]
    assert isinstance(pool.records, TextRecords)
    assert pool.records.texts[1] == ("A man 2.", "Somebody.")
    (folder / "snli_1.0_dev.jsonl").write_text(lines + '\n{"gold_label": "neutral"}\n')
    with pytest.raises(BadData, match="Line 5"):
        load_dataset("snli", part="dev", folder=tmp_path)
    (folder / "snli_1.0_dev.jsonl").write_text(lines.replace('"Somebody."', "null"))
    with pytest.raises(BadData, match="Line 1"):
        load_dataset("snli", part="dev", folder=tmp_path)
    file = tmp_path / "hub.jsonl"
    file.write_text('{"premise": "a", "hypothesis": "b", "label": "entailment"}\n')
    assert read_snli_file(file, "dev").ids.tolist() == ["dev-000001"]


def test_digits_are_embedded_and_split_by_id() -> None:
    train, test = load_dataset("digits"), load_dataset("digits", part="test")
    assert (len(train), len(test)) == (1437, 360)
    assert not set(train.ids) & set(test.ids)
    read = train.records.read(np.arange(1437))
    assert read.shape == (1437, 1, 8, 8)
    assert (read.min(), read.max()) == (0, 255)


def test_unknown_names_and_parts_say_what_there_is() -> None:
    with pytest.raises(InvalidArgument, match="cifar10"):
        load_dataset("cifar11")
    with pytest.raises(InvalidArgument, match="train, test"):
        load_dataset("digits", part="validation")


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "digits"])
def test_offline_it_says_which_files_to_put_where(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingData) as caught:
        load_dataset(name, folder=tmp_path / "empty")
    message = str(caught.value)
    assert str(tmp_path / "empty") in message
    for file in DATASETS[name].files("train", (DATASETS[name].sizes or (0,))[0]):
        assert file.address in message
        assert file.name in message
    assert not (tmp_path / "empty").exists()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A real web server for a folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/", folder
        running.shutdown()
        thread.join()


def offered(server: tuple[str, Path], name: str, content: bytes, unpacks_to: tuple[str, ...] = ()) -> OfficialFile:
    (server[1] / name).write_bytes(content)
    checksum = "sha256:" + hashlib.sha256(content).hexdigest()
    return OfficialFile(address=server[0] + name, name=name, checksum=checksum, unpacks_to=unpacks_to)


def test_a_download_is_checked_and_put_in_place(server: tuple[str, Path], tmp_path: Path) -> None:
    file = offered(server, "data.bin", b"x" * 3_000_000)
    ensure((file,), tmp_path / "here", title="data", download=True)
    assert (tmp_path / "here/data.bin").read_bytes() == b"x" * 3_000_000
    # What is there is not fetched again.
    (server[1] / "data.bin").unlink()
    ensure((file,), tmp_path / "here", title="data", download=True)


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archives_give_the_wanted_files_only(server: tuple[str, Path], tmp_path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("inner/wanted.txt", "yes")
            archive.writestr("../escape.txt", "no")
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name, content in (("inner/wanted.txt", b"yes"), ("../escape.txt", b"no")):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    file = offered(server, f"a.{kind}", buffer.getvalue(), unpacks_to=("inner/wanted.txt",))
    fetch(file, tmp_path / "here")
    assert [path.name for path in (tmp_path / "here").rglob("*")] == ["inner", "wanted.txt"]
    assert not (tmp_path / "escape.txt").exists()


def test_a_wrong_checksum_writes_nothing(server: tuple[str, Path], tmp_path: Path) -> None:
    file = offered(server, "data.bin", b"right")
    (server[1] / "data.bin").write_bytes(b"wrong")
    with pytest.raises(BadData, match=r"sha256.*Nothing was written"):
        fetch(file, tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


def test_no_server_is_a_clear_error(tmp_path: Path) -> None:
    file = OfficialFile(address="http://127.0.0.1:9/data.bin", name="data.bin", checksum="md5:0")
    with pytest.raises(MissingData, match=r"cannot be reached.*data\.bin"):
        fetch(file, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(tmp_path: Path) -> None:
    fashion_folder(tmp_path)
    file = tmp_path / "train-labels-idx1-ubyte.gz"
    file.write_bytes(gzip.compress(struct.pack(">HBBI", 0, 8, 1, 7) + bytes(50_000_000)))
    tracemalloc.start()
    with pytest.raises(BadData, match="more or less"):
        load_dataset("fashion-mnist", folder=tmp_path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


def test_a_connection_that_ends_in_the_middle(tmp_path: Path) -> None:
    class Cut(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"ffff\r\nonly this")
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    with ThreadingHTTPServer(("127.0.0.1", 0), Cut) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{running.server_port}/a.tar.gz"
        file = OfficialFile(address=address, name="a.tar.gz", checksum="md5:0", unpacks_to=("inside.bin",))
        try:
            # An archive has to be unpacked as well.
            with pytest.raises(MissingData, match=r"a\.tar\.gz, unpacked to inside\.bin.*Nothing was written"):
                fetch(file, tmp_path)
        finally:
            running.shutdown()
            thread.join()
    assert list(tmp_path.iterdir()) == []
