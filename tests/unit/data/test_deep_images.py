"""Images of more than 8 bits and DICOM: the same numbers as pydicom's own examples and formulas, or a sentence."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpal.data.deep_images import Window, window_of
from dpal.data.images import image_records
from dpal.data.sources import open_pool
from dpal.errors import BadData, InvalidArgument

VALUES = np.linspace(0, 4095, 16 * 24).reshape(16, 24).astype(np.uint16)


def deep_png(values: np.ndarray = VALUES) -> bytes:
    content = io.BytesIO()
    Image.fromarray(values).save(content, format="PNG")
    return content.getvalue()


def dicom(values: np.ndarray = VALUES, **changed: object) -> bytes:
    """A CT image of 16 bits with the usual rescaling to Hounsfield units."""
    pydicom = pytest.importorskip("pydicom")
    from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

    meta = pydicom.dataset.FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = CTImageStorage, "1.2.3"
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset = pydicom.dataset.FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    fields = {
        "PatientName": "SMITH^JOHN", "Rows": values.shape[0], "Columns": values.shape[1], "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2", "BitsAllocated": 16, "BitsStored": 16, "HighBit": 15,
        "PixelRepresentation": 0, "RescaleSlope": 1, "RescaleIntercept": -1024, "WindowCenter": 7, "WindowWidth": 9,
        "PixelData": values.tobytes(),
    } | changed  # fmt: skip
    for name, value in fields.items():
        setattr(dataset, name, value)
    content = io.BytesIO()
    dataset.save_as(content, enforce_file_format=True)
    return content.getvalue()


def picture(content: bytes, window: object = (40, 400), channels: int = 1) -> np.ndarray:
    ids = np.asarray(["scan"], dtype=np.str_)
    return image_records([content], ids, size=8, channels=channels, window=window).picture(0)  # type: ignore[arg-type]


def test_a_window_is_a_straight_line_from_black_to_white() -> None:
    shown = Window(40, 400).shown(np.asarray([-1000, -160, 40, 240, 3000, -159]))
    # −160 is black, 240 is white; 40 is in the middle.
    assert shown.tolist() == [0, 0, 128, 255, 255, 1]
    assert Window(40, 400).in_words() == "values from -160 to 240 shown from black to white"


def test_sixteen_bits_are_seen_through_the_window() -> None:
    expected = np.rint(np.clip((VALUES.astype(float) - 1000) * 255 / 2000, 0, 255))
    np.testing.assert_array_equal(picture(deep_png(), (2000, 2000)), expected)
    # Eight bits are as they are, whatever the window.
    content = io.BytesIO()
    Image.fromarray((VALUES // 16).astype(np.uint8)).save(content, format="PNG")
    np.testing.assert_array_equal(picture(content.getvalue()), VALUES // 16)


def test_dicom_is_in_the_units_that_it_states() -> None:
    hounsfield = VALUES.astype(float) - 1024
    np.testing.assert_array_equal(picture(dicom()), Window(40, 400).shown(hounsfield))
    # The window that was once set on somebody's screen makes no difference.
    np.testing.assert_array_equal(picture(dicom(WindowCenter=500, WindowWidth=1)), picture(dicom()))
    inverted = picture(dicom(PhotometricInterpretation="MONOCHROME1"))
    np.testing.assert_array_equal(inverted, 255 - picture(dicom()).astype(int))


def test_signed_values() -> None:
    signed = (VALUES.astype(np.int32) - 2048).astype(np.int16)
    shown = picture(dicom(signed, PixelRepresentation=1, RescaleIntercept=0), (0, 1000))
    np.testing.assert_array_equal(shown, Window(0, 1000).shown(signed))


def test_colour_dicom() -> None:
    colours = np.random.default_rng(1).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    content = dicom(
        colours, SamplesPerPixel=3, PhotometricInterpretation="RGB", PlanarConfiguration=0, BitsAllocated=8,
        BitsStored=8, HighBit=7,
    )  # fmt: skip
    np.testing.assert_array_equal(picture(content, None, channels=3), colours)


@pytest.mark.parametrize(
    ("content", "window", "message"),
    [
        (deep_png(), None, r"more than 8 bits .*window: \[40, 400\]"),
        ("dicom", None, r"is a DICOM file.*window: \[40, 400\]"),
        ("frames", (40, 400), "several frames"),
        ("broken", (40, 400), "cannot be decoded"),
        ("compressed", (40, 400), "write it uncompressed"),
    ],
)
def test_what_cannot_be_read_says_why_and_nothing_of_the_file(content, window, message: str) -> None:
    files = {
        "dicom": lambda: dicom(),
        "frames": lambda: dicom(NumberOfFrames=2, PixelData=VALUES.tobytes() * 2),
        "broken": lambda: dicom()[:400],
        "compressed": lambda: dicom().replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.4"[:20].ljust(20, b"\0")),
    }
    given = files[content]() if isinstance(content, str) else content
    with pytest.raises(BadData, match=f"'scan'.*{message}") as caught:
        picture(given, window)
    assert "SMITH" not in str(caught.value)


@pytest.mark.parametrize("given", [[40], [40, 0], [40, -1], [1, 2, 3], ["a", "b"], [float("nan"), 1], [True, 400]])
def test_windows_are_two_numbers(given: list[float]) -> None:
    assert window_of(None) is None and window_of([40, 400]) == Window(40, 400)
    with pytest.raises(InvalidArgument, match="window"):
        window_of(given)


def test_a_folder_of_dicom_files(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.dcm").write_bytes(dicom(VALUES + number))
    options = {"folder": str(tmp_path), "classes": ["no", "yes"], "size": 8, "channels": 1, "window": [40, 400]}
    pool = open_pool("image-folder", options)
    assert len(pool) == 3 and pool.records.read(np.arange(3)).shape == (3, 1, 8, 8)
    assert "values from -160 to 240" in str(pool.records.preparation)
