import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_campaigns import linear_model, linear_plan, linear_pool

import dpal
from dpal.campaign.campaign import Campaign
from dpal.errors import DpalError, InvalidArgument
from dpal.planning.plan import stated_plan
from dpal.privacy.rounding import rounded_up
from dpal.reports.certificate import certificate_of, verify_certificate


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


@pytest.fixture(scope="module", params=["inside", "released"])
def document(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("certificate") / "clinic"
    campaign = finished(folder, plan=linear_plan(selections=request.param))
    document = certificate_of(folder)
    assert document["plan_hash"] == campaign.state().created.plan_hash
    return document


def test_it_says_what_was_promised_and_spent(document: dict[str, Any]) -> None:
    plan = linear_plan(selections=document["selections"])
    assert document["campaign"] == "clinic"
    assert document["complete"]
    assert document["epsilon"] == rounded_up(plan.epsilon, 6) > plan.epsilon
    assert (document["epsilon_budget"], document["delta"]) == (8, 1e-3)
    assert "zero-out" in document["adjacency"]
    assert document["unit"] == "one record"
    assert [each["times"] for each in document["mechanisms"]] == [phase.steps for phase in plan.phases] + [1, 1]
    assert f"ε = {rounded_up(plan.epsilon, 6):.6f}" in document["statement"]


def test_what_it_says_about_selections_is_true_of_its_plan(document: dict[str, Any]) -> None:
    released, assumed = " ".join(document["released"]), " ".join(document["assumptions"])
    assert document["selections"] == document["plan"]["promise"]
    is_inside = document["selections"] == "inside"
    assert ("the ids of the records that were selected" in released) is not is_inside
    assert ("which records were selected for labelling" in " ".join(document["not_released"])) is is_inside
    assert ("stay inside for good" in assumed) is is_inside
    assert ("whether and when it was labelled" in document["selections_in_words"]) is is_inside


def test_it_verifies_on_another_machine_without_anything_else(document: dict[str, Any], tmp_path: Path) -> None:
    """A new process in an empty folder with an empty environment, and no torch at hand."""
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(document))
    code = "import sys; sys.modules['torch'] = None; from dpal.cli import run; run()"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(Path(dpal.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", "certificate.json", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert document["epsilon"] - 1e-6 <= json.loads(done.stdout)["epsilon"] <= document["epsilon"]


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
        (("mechanisms", 0, "times"), 77, "mechanisms"),
        (("charges", "phases", 0, "noise_multiplier"), 99.0, "noise_multiplier"),
        (("charges", "phases", 0, "steps"), 77, "steps"),
        (("campaign",), "another clinic", "campaign"),
        (("issued",), "2020-01-01", "issued"),
        (("ledger_hash",), "0" * 64, "ledger_hash"),
        (("plan_hash",), "0" * 64, "plan_hash"),
        (("adjacency",), "none", "adjacency"),
        (("accountant",), "pld", "accountant"),
        (("released", 0), "nothing", "released"),
        (("selections",), "both", "selections"),
        (("selections_in_short",), "Selections are on the web.", "selections_in_short"),
        (("selections_in_words",), "Nothing can be computed.", "selections_in_words"),
        (("plan", "promise"), "both", "promise"),
        (("statement",), "All is well.", "statement"),
        (("plan", "setting", "pool_size"), 10**6, "plan|unlabelled"),
    ],
)
def test_an_edited_field_is_named(document: dict[str, Any], path: tuple[Any, ...], value: object, named: str) -> None:
    with pytest.raises(DpalError, match=named):
        verify_certificate(edited(document, path, lambda _: value))


def test_no_epsilon_may_be_stated_lower_by_a_millionth(document: dict[str, Any]) -> None:
    places = [place for place in numbers_in(document) if any("epsilon" in str(key) for key in place)]
    assert len(places) > 20
    for place in places:
        with pytest.raises(DpalError):
            verify_certificate(edited(document, place, lambda value: value - 1e-6))


def test_an_epsilon_may_be_stated_higher_by_rounding_only(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="rounded up"):
        verify_certificate(edited(document, ("epsilon",), lambda value: value + 3e-6))
    with pytest.raises(InvalidArgument, match=r"groups\[0\]: epsilon"):
        verify_certificate(edited(document, ("groups", 0, "epsilon"), lambda value: value + 3e-6))
    # Above what is recomputed, but with decimals that a reader of the pages would see rounded down.
    with pytest.raises(InvalidArgument, match="rounded up"):
        verify_certificate(edited(document, ("epsilon",), lambda value: value + 3e-7))


def test_a_plan_may_not_state_an_epsilon_that_is_too_low() -> None:
    document = linear_plan().to_json()
    for place in numbers_in(document):
        if place[0] == "epsilon" or "epsilon_by_phase" in place:
            lower = edited(document, place, lambda value: value - 1e-8)
            with pytest.raises(DpalError):
                dpal.read_plan(json.dumps(lower))
    # The last digits may differ between machines.
    dpal.read_plan(json.dumps(edited(document, ("epsilon",), lambda value: value - 1e-10)))
    dpal.read_plan(json.dumps(edited(document, ("epsilon",), lambda value: value + 1e-6)))


def test_what_cannot_be_recomputed_is_guarded(document: dict[str, Any]) -> None:
    for name, value in (("model_sha256", "0" * 64), ("model_sha256", None), ("given_up", [1]), ("foreign_code", ["x"])):
        with pytest.raises(InvalidArgument, match=name):
            verify_certificate(document | {name: value})


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
    assert (early["epsilon"], early["complete"], early["model_sha256"]) == (0.0, False, None)
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


def test_the_certified_plan_and_the_stated_one_agree() -> None:
    plan = linear_plan()
    assert stated_plan(json.loads(plan.to_text())) == plan == dpal.read_plan(plan.to_text())
