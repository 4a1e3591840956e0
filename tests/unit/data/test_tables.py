import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pictures import pixels, png, write_png

from dpal.data import Pool, from_table
from dpal.data.records import TextRecords
from dpal.errors import BadData, DpalError, InvalidArgument, MissingData

NOTES = ['she said "no"', "fever, cough", "ümläut", "l1 l2"]

# What pixels() makes, unless told otherwise.
FORM = {"size": 12, "channels": 3}


def texts(pool: Pool) -> list[tuple[str, ...]]:
    assert isinstance(pool.records, TextRecords)
    return list(pool.records.texts)


def notes_file(folder: Path, suffix: str) -> Path:
    file = folder / f"notes{suffix}"
    rows = [{"key": f"n{i}", "note": note, "urgent": "yes" if i % 2 else "no"} for i, note in enumerate(NOTES)]
    match suffix:
        case ".csv":
            lines = ["key,note,urgent"]
            lines += ['{},"{}",{}'.format(r["key"], r["note"].replace('"', '""'), r["urgent"]) for r in rows]
            # With the mark that spreadsheets put in front.
            file.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
        case ".tsv":
            file.write_text("key\tnote\turgent\n" + "".join("\t".join(r.values()) + "\n" for r in rows), "utf-8")
        case ".jsonl":
            file.write_text("\n".join(json.dumps(r) for r in rows) + "\n\n", encoding="utf-8")
        case _:
            pq.write_table(pa.Table.from_pylist(rows), file)
    return file


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_texts_of_every_format(tmp_path: Path, suffix: str) -> None:
    pool = from_table(notes_file(tmp_path, suffix), text="note", label="urgent", id_column="key", classes=["no", "yes"])
    assert pool.ids.tolist() == ["n0", "n1", "n2", "n3"]
    assert texts(pool) == [(note,) for note in NOTES]
    assert pool.labels is not None
    assert pool.labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path, suffix: str) -> None:
    for role in ({"text": "nota"}, {"text": "note", "label": "urgently"}, {"text": "note", "id_column": "id"}):
        with pytest.raises(BadData, match=r"(nota|urgently|id)\b.*note"):
            from_table(notes_file(tmp_path, suffix), classes=2, **role)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["paths", "bytes", "struct"])
def test_images_as_paths_or_inside(tmp_path: Path, form: str) -> None:
    rows: list[dict[str, object]] = []
    for number in range(3):
        encoded = png(pixels(number))
        write_png(tmp_path / f"images/{number}.png", pixels(number))
        cell = {"paths": f"images/{number}.png", "bytes": encoded, "struct": {"bytes": encoded, "path": None}}[form]
        rows.append({"id": f"r{number}", "image": cell, "label": number})
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    pool = from_table(tmp_path / "t.parquet", image="image", label="label", id_column="id", classes=3, **FORM)
    expected = np.stack([pixels(number).transpose(2, 0, 1) for number in range(3)])
    assert np.array_equal(pool.records.read(np.arange(3)), expected)


def test_a_missing_image_file_is_named(tmp_path: Path) -> None:
    write_png(tmp_path / "a.png", pixels(0))
    (tmp_path / "t.csv").write_text("id,image\nfirst,a.png\nsecond,gone.png\n")
    pool = from_table(tmp_path / "t.csv", image="image", id_column="id", classes=2, **FORM)
    with pytest.raises(BadData, match=r"record 'second' is missing.*gone\.png"):
        pool.records.read(np.arange(2))
    (tmp_path / "t.csv").write_text("id,image\nfirst,a.png\nsecond,\n")
    with pytest.raises(BadData, match="record 'second'"):
        from_table(tmp_path / "t.csv", image="image", id_column="id", classes=2, **FORM)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text,label\none,0\ntwo\n", "Line 3"),
        ("a.csv", "text,text\none,0\n", "twice"),
        ("a.csv", 'text,label\n"one,0\n', "cannot be read"),
        ("a.csv", "text,label\n", "empty"),
        ("a.csv", "", "no column"),
        ("a.jsonl", '{"text": "x", "label": 0}\n{"text": \n', "Line 2"),
        ("a.jsonl", '{"text": "x", "label": 0}\n[1]\n', "Line 2"),
        ("a.jsonl", '{"text": "x", "label": 0}\n{"label": 0}\n', "Line 2.*no text"),
        ("a.jsonl", '{"text": 5, "label": 0}\n', "record '1'"),
        ("a.jsonl", '{"text": "x", "label": ' + "1" * 5000 + "}\n", "Line 1"),
        ("a.jsonl", '{"text": "x", "label": ' + "[" * 100_000 + "\n", "Line 1"),
        ("a.jsonl", '{"text": "a cut emoji \\ud83d", "label": 0}\n', "record '1'"),
        ("a.jsonl", "", "no column"),
        ("a.parquet", "PAR1 and nothing more", "Parquet"),
        ("a.csv", "text,label\none,7\n", "'1' has '7'"),
    ],
)
def test_broken_tables_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(BadData, match=message):
        from_table(tmp_path / name, text="text", label="label", classes=2)


def test_other_files_and_roles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"one of \.csv"):
        from_table(tmp_path / "a.xlsx", text="text", classes=2)
    with pytest.raises(MissingData, match=r"a\.csv"):
        from_table(tmp_path / "a.csv", text="text", classes=2)
    (tmp_path / "a.csv").write_text("text\nx\n")
    for roles in ({}, {"text": "text", "image": "text"}):
        with pytest.raises(DpalError, match="text columns or an image column"):
            from_table(tmp_path / "a.csv", classes=2, **roles)  # type: ignore[arg-type]


def test_a_very_long_note_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n" + "word " * 100_000 + "\n")
    assert len(texts(from_table(tmp_path / "a.csv", text="text", classes=2))[0][0]) == 500_000


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_one_column_may_have_two_roles(tmp_path: Path, suffix: str) -> None:
    pool = from_table(notes_file(tmp_path, suffix), text="note", id_column="note", classes=2)
    assert pool.ids.tolist() == NOTES
    assert texts(pool) == [(note,) for note in NOTES]


def test_windows_line_ends(tmp_path: Path) -> None:
    for name, content in (("a.csv", b'text,label\r\n"x\r\ny",0\r\nz,1\r\n'), ("a.tsv", b"text\tlabel\r\nz\t1\r\n")):
        (tmp_path / name).write_bytes(content)
        pool = from_table(tmp_path / name, text="text", label="label", classes=2)
        assert texts(pool)[-1] == ("z",)
        assert pool.labels is not None
        assert pool.labels[-1] == 1


def test_parquet_columns_of_every_kind(tmp_path: Path) -> None:
    halves = [
        pa.table(
            {
                "id": pa.array([f"{half}a", f"{half}b"], pa.large_string()),
                "text": pa.array(["x", "x"]).dictionary_encode(),
                "label": pa.array([1.0, None]),
            }
        )
        for half in (1, 2)
    ]
    pq.write_table(pa.concat_tables(halves), tmp_path / "t.parquet", row_group_size=1)
    pool = from_table(tmp_path / "t.parquet", text="text", label="label", id_column="id", classes=2)
    assert pool.ids.tolist() == ["1a", "1b", "2a", "2b"]
    assert pool.labels is not None
    assert pool.labels.tolist() == [1, -1, 1, -1]


def test_broken_parquet_columns_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 2], dtype=np.int32).tobytes())
    no_text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"text": no_text}), tmp_path / "bytes.parquet")
    with pytest.raises(BadData, match=r"bytes\.parquet.*UnicodeDecodeError"):
        from_table(tmp_path / "bytes.parquet", text="text", classes=2)
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(BadData, match="twice: text, text"):
        from_table(tmp_path / "twice.parquet", text="text", classes=2)


def test_an_image_in_the_cell_of_a_path_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("image\n" + "iVBORw0KGgo" * 1000 + "\n")
    pool = from_table(tmp_path / "t.csv", image="image", classes=2, **FORM)
    with pytest.raises(BadData, match="record '1' is missing"):
        pool.records.read(np.arange(1))
