import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.errors import DpalError, InvalidArgument, MissingData
from dpal.reports.certificate import certificate_of, read_certificate, verify_certificate
from dpal.reports.certificate_pdf import write_pdf


def finished(folder: Path, **changed: Any) -> Campaign:
    options: dict[str, Any] = {
        "plan": linear_plan(),
        "pool": linear_pool(),
        "model": linear_model(),
        "oracle": "simulated",
    }
    campaign = Campaign.create(folder, **(options | changed))
    campaign.run()
    return campaign


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("certificate") / "clinic"
    finished(folder)
    return certificate_of(folder)


def test_it_says_what_was_promised_and_spent(document: dict[str, Any]) -> None:
    plan = linear_plan()
    assert document["campaign"] == "clinic"
    assert document["complete"]
    assert document["epsilon"] == pytest.approx(plan.epsilon, abs=1e-9)
    assert (document["epsilon_budget"], document["delta"]) == (8, 1e-3)
    assert "zero-out" in document["adjacency"]
    assert document["unit"] == "one record"
    assert [each["times"] for each in document["mechanisms"]] == [phase.steps for phase in plan.phases] + [1, 1]
    assert f"ε = {plan.epsilon:.6f}" in document["statement"]


def test_it_verifies_on_another_machine_without_anything_else(document: dict[str, Any], tmp_path: Path) -> None:
    """A new process in an empty folder with an empty environment, and no torch at hand."""
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(document))
    code = "import sys; sys.modules['torch'] = None; from dpal.cli import run; run()"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", "certificate.json", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epsilon"] == pytest.approx(document["epsilon"], abs=1e-9)


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all numbers in a document."""
    if isinstance(value, dict):
        return [place for key, each in value.items() for place in numbers_in(each, (*path, key))]
    if isinstance(value, list):
        return [place for key, each in enumerate(value) for place in numbers_in(each, (*path, key))]
    return [path] if isinstance(value, int | float) else []


def edited(document: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any], Any]) -> dict[str, Any]:
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return copy


def test_every_edited_number_is_refused(document: dict[str, Any]) -> None:
    places = numbers_in(document)
    assert len(places) > 60
    for path in places:
        changed = edited(
            document, path, lambda value: not value if isinstance(value, bool) else value * 0.97 if value else 1
        )
        with pytest.raises(DpalError):
            verify_certificate(changed)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("epsilon",), 1.0, "epsilon"),
        (("delta",), 1e-9, "delta"),
        (("groups", 1, "epsilon"), 0.5, "groups"),
        (("mechanisms", 0, "times"), 1, "mechanisms"),
        (("charges", "phases", 0, "noise_multiplier"), 99.0, "noise_multiplier"),
        (("charges", "phases", 0, "steps"), 1, "steps"),
        (("campaign",), "another clinic", "campaign"),
        (("issued",), "2020-01-01", "issued"),
        (("ledger_hash",), "0" * 64, "ledger_hash"),
        (("plan_hash",), "0" * 64, "plan_hash"),
        (("adjacency",), "none", "adjacency"),
        (("accountant",), "pld", "accountant"),
        (("released", 0), "nothing", "released"),
        (("statement",), "All is well.", "statement"),
        (("plan", "setting", "pool_size"), 10**6, "plan|unlabelled"),
    ],
)
def test_an_edited_field_is_named(document: dict[str, Any], path: tuple[Any, ...], value: object, named: str) -> None:
    with pytest.raises(DpalError, match=named):
        verify_certificate(edited(document, path, lambda _: value))


def test_parts_that_are_missing_or_too_many(document: dict[str, Any]) -> None:
    for name in document:
        with pytest.raises(DpalError):
            verify_certificate({key: value for key, value in document.items() if key != name})
    with pytest.raises(InvalidArgument, match="fields"):
        verify_certificate(document | {"remark": "and nothing else was released"})


def test_a_campaign_on_its_way_gets_one_that_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    campaign = Campaign.create(folder, plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="files")
    early = certificate_of(folder)
    assert (early["epsilon"], early["complete"]) == (0.0, False)
    verify_certificate(early)
    campaign.run()
    names = campaign.state().groups[0]
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{name},yes\n" for name in names))
    campaign.import_labels(tmp_path / "labels.csv", linear_pool())
    campaign.run()
    later = certificate_of(folder)
    assert 0 < later["epsilon"] < 8
    assert "partly" in later["statement"]
    verify_certificate(later)


def test_simulations_and_what_does_not_verify_get_none(tmp_path: Path) -> None:
    finished(tmp_path / "seeded", seed=3, not_private=True)
    with pytest.raises(DpalError, match="nothing is private"):
        certificate_of(tmp_path / "seeded")
    finished(tmp_path / "harmed")
    (tmp_path / "harmed/checkpoints/phase-1.safetensors").write_bytes(b"x")
    with pytest.raises(DpalError, match="does not verify"):
        certificate_of(tmp_path / "harmed")


def test_the_page_is_one_page_of_pdf(document: dict[str, Any], tmp_path: Path) -> None:
    write_pdf(document, tmp_path / "c.pdf")
    content = (tmp_path / "c.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") == 1
    many = edited(document, ("mechanisms",), lambda rows: rows * 30)
    write_pdf(many, tmp_path / "many.pdf")


def test_files_that_are_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(MissingData):
        read_certificate(tmp_path / "none.json")
    for content in ("", "[]", "{}", '{"certificate": "x"'):
        (tmp_path / "c.json").write_text(content)
        with pytest.raises(InvalidArgument, match="certificate"):
            read_certificate(tmp_path / "c.json")
    with pytest.raises(InvalidArgument, match="version"):
        verify_certificate({"certificate": "x", "version": 99})
