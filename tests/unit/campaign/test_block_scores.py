import stat
from pathlib import Path

import numpy as np

from dpal.campaign.block_scores import BlockScores
from dpal.data.parquet import Block

KEY = bytes(range(32))
BLOCKS = [Block(number=n, file="f", name="f", row_group=n, first=first, rows=3) for n, first in enumerate((0, 3))]


def scores(path: Path, *grids: list[int]) -> BlockScores:
    made = BlockScores(path, 6)
    # In any order: each block has its place.
    for block, grid in reversed(list(zip(BLOCKS, grids, strict=False))):
        made.write(block, np.asarray(grid, dtype=np.uint16))
    return made


def test_blocks_come_back_from_their_places(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_bytes(b"of a process that died")
    made = scores(path, [1, 2, 65_535], [4, 5, 6])
    assert path.stat().st_size == 12 and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert made.read(BLOCKS[0]).tolist() == [1, 2, 65_535] and made.read(BLOCKS[1]).tolist() == [4, 5, 6]
    made.remove()
    assert not path.exists()


def test_the_fingerprint_is_of_all_scores_and_needs_the_key(tmp_path: Path) -> None:
    prints: list[str] = []
    first, last = [1, 2, 3], [4, 5, 6]
    for grids, key in (
        ((first, last), KEY),
        ((first, last), KEY),
        ((first, [4, 5, 7]), KEY),
        ((last, first), KEY),
        ((first, last), KEY[::-1]),
    ):
        made = scores(tmp_path / "scores", *grids)
        prints.append(made.fingerprint(key))
        made.remove()
    assert prints[0] == prints[1] and len(set(prints)) == 4
