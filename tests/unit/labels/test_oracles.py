"""Oracles: the dataset's own labels, a function, or code named by an import path."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.data import Pool, from_arrays
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument, OracleFailed
from dpal.labels.oracles import CallableOracle, SimulatedOracle, answers_of, as_oracle, oracle_code, oracle_name
from dpal.reports.certificate import certificate_of

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 1, 8, 8), dtype=np.uint8)


class Threshold:
    """An oracle of one's own, as a configuration may name it."""

    name = "threshold"

    def ask(self, ids: Sequence[str], pool: Pool) -> Mapping[str, str]:
        values = np.asarray(pool.records.read(pool.positions(ids)))
        return {record_id: "yes" if row[0] > 0 else "no" for record_id, row in zip(ids, values, strict=True)}


def always_no(record_id: str, record: object) -> str:
    return "no"


def image_pool() -> Pool:
    return from_arrays(IMAGES, classes=["cat", "dog"], labels=[0, 1, None], ids=["b/2", "a,1", "0005"])


def text_pool() -> Pool:
    texts = TextRecords([("fever, cough",), ('she said "no"',), ("line\nbreak",)])
    return Pool(name="notes", ids=np.array(["x", "y", "z"]), records=texts, classes=("no", "yes"))


def test_the_simulated_oracle_knows_the_datasets_labels() -> None:
    assert SimulatedOracle().ask(["a,1", "0005"], image_pool()) == {"a,1": "dog", "0005": "skip"}
    with pytest.raises(InvalidArgument, match="no labels"):
        SimulatedOracle().ask(["x"], text_pool())


def test_a_function_is_an_oracle() -> None:
    seen: dict[str, object] = {}

    def doctor(name: str, record: object) -> str | None:
        seen[name] = record
        return {"x": "yes", "y": None}.get(name, "cannot tell")

    assert list(as_oracle(doctor).ask(["x", "y", "z"], text_pool())) == [
        ("x", "yes"),
        ("y", "skip"),
        ("z", "cannot tell"),
    ]
    assert seen["x"] == ("fever, cough",)
    shapes = []
    list(CallableOracle(lambda name, record: shapes.append(record.shape)).ask(["a,1"], image_pool()))
    assert shapes == [(1, 8, 8)]
    with pytest.raises(InvalidArgument, match="simulated, files"):
        as_oracle("crowd")


def test_code_is_named_by_an_import_path() -> None:
    path = f"{__name__}:Threshold"
    assert isinstance(as_oracle(path), Threshold)
    assert oracle_name(path) == path
    function = as_oracle(f"{__name__}:always_no")
    assert dict(function.ask(["x"], text_pool()) or {}) == {"x": "no"}
    for wrong in ("nowhere:Oracle", f"{__name__}:Missing"):
        with pytest.raises(InvalidArgument, match="import path"):
            as_oracle(wrong)


def test_only_code_that_is_not_ours_has_an_import_path() -> None:
    assert oracle_code(SimulatedOracle()) is oracle_code(as_oracle("files")) is None
    assert oracle_code(Threshold()) == f"{__name__}:Threshold"
    assert oracle_code(CallableOracle(always_no)) == f"{__name__}:always_no"


def test_a_certificate_names_the_oracle_that_is_not_ours(tmp_path: Path) -> None:
    """Its answers are trained on, so it must treat each record by itself, which dpal cannot check."""
    path = f"{__name__}:Threshold"
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle=path)
    # The configuration is enough to find it again.
    campaign = Campaign.open(tmp_path / "c", pool=linear_pool(), model=linear_model())
    assert campaign.run().stage == "finished"
    document = certificate_of(tmp_path / "c")
    assert document["foreign_code"] == [path]
    assert any(path in assumption for assumption in document["assumptions"])


def test_an_oracles_own_error_says_whose_it_is_and_keeps_what_was_answered(tmp_path: Path) -> None:
    def tired(record_id: str, record: object) -> str:
        answered.append(record_id)
        if len(answered) == 3:
            raise RuntimeError("no more\ntoday")
        return "no"

    answered: list[str] = []
    campaign = Campaign.create(
        tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle=tired
    )
    with pytest.raises(
        OracleFailed, match=r"The oracle callable failed: RuntimeError: no more today\. Answers"
    ) as caught:
        campaign.run()
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert campaign.state().answers == dict.fromkeys(answered[:2], 0)
    # It is asked about the others.
    assert campaign.run().stage == "finished"


def test_an_oracle_that_cannot_be_asked_says_so() -> None:
    class Away:
        name = "away"

        def ask(self, ids: Sequence[str], pool: Pool) -> None:
            raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(OracleFailed, match=r"The oracle away failed: ConnectionRefusedError: .*Connection refused"):
        answers_of(Away(), ["x"], text_pool())
