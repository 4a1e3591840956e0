"""The same pool from a real S3 server, through a proxy that breaks connections in the middle of their answers."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from large_campaigns import create
from large_pools import COLUMNS, chosen_in_memory, job_for, selections, write_pool
from s3_server import KEYS, breaking_proxy, s3_server, upload, uri

from dpal.campaign.large_selection import choose_from_blocks
from dpal.data.parquet import ParquetTable
from dpal.randomness import SealedRandomness

pytestmark = [
    pytest.mark.skipif(find_spec("moto") is None, reason="needs moto's S3 server (make test-scale)"),
    pytest.mark.filterwarnings("ignore"),
]
KEY = bytes(range(32))
ROWS = 100_000


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setitem(os.environ, name, value)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_broken_connection_loses_is_read_again(
    tmp_path: Path, scratch: Path, workers: int, request: pytest.FixtureRequest
) -> None:
    if workers:
        request.getfixturevalue("ray_here")
    folder = write_pool(tmp_path / "pool", ROWS, row_group=20_000)
    selection = selections(ROWS, 500)["cut"]
    plain = chosen_in_memory(folder, selection, KEY)
    with s3_server() as server, breaking_proxy(server, every=3) as (proxy, broken):
        upload(folder, server, "bucket/pool")
        randomness = SealedRandomness(KEY)
        table = ParquetTable.open(uri(proxy, "bucket/pool"), COLUMNS)
        job = job_for(table, selection, randomness)
        found = choose_from_blocks(job, randomness=randomness, scratch=scratch, workers=workers).chosen
    assert broken
    assert found.to_label.tolist() == plain.to_label.tolist() and found.threshold == plain.threshold


def test_a_whole_campaign_on_a_bucket(tmp_path: Path) -> None:
    folder = write_pool(tmp_path / "pool", 3000, row_group=500)
    with s3_server() as server:
        campaign = create(tmp_path / "campaign", upload(folder, server, "bucket/pool"))
        campaign.run()
        other = ParquetTable.open(str(folder), COLUMNS)
        names = [name for chunk in other.read(other.blocks[-1]) for name in other.rows_of_ids(chunk).names().tolist()]
        left = next(name for name in names if name not in campaign.state().taken())
        assert campaign.withdraw([left]) == 1
    assert campaign.verify().holds and campaign.status().stage == "finished"
