"""Certificates as an operator issues them and an officer checks them, command by command, each in its own process."""

import json
import stat
from dataclasses import fields
from pathlib import Path

import pytest
from command_line import checked as dpal

from dpal.campaign.facts import Trained


def settings(*changed: str) -> list[str]:
    sizes = ["plan.labelling_budget=80", "plan.initial_size=60", "plan.phases=2", "plan.epochs=1"]
    chosen = [*sizes, "plan.planner=step-amplification", *changed]
    chosen += ["plan.accountant=rdp", "model.name=small-cnn", "oracle=simulated"]
    return [word for each in chosen for word in ("--set", each)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished campaign, a signed certificate, its keys and the model."""
    folder = tmp_path_factory.mktemp("desk")
    shown = dpal("init", "clinic", "--data", "digits", "--epsilon", 8, *settings(), cwd=folder).stdout
    assert "at most 99.97% of the time" in " ".join(shown.split())
    dpal("run", "clinic", cwd=folder)
    dpal("keys", "new", "keys", cwd=folder)
    issued = dpal("certificate", "clinic", "--to", "ev.pdf", "--sign-with", "keys/private.pem", cwd=folder)
    assert "99.97%" in issued.stdout
    dpal("export-model", "clinic", "--to", "model.safetensors", cwd=folder)
    return folder


def newest_model(desk: Path) -> Path:
    """The file that the certificate's hash is of: the exported one where facts record its hash."""
    if any(field.name == "export_sha256" for field in fields(Trained)):
        return desk / "model.safetensors"
    return desk / "clinic/checkpoints/phase-2.safetensors"


def edited(desk: Path, to: Path, **changed: object) -> Path:
    document = json.loads((desk / "ev.pdf.json").read_text()) | changed
    to.write_text(json.dumps({name: value for name, value in document.items() if value is not ...}))
    return to


def test_an_officer_checks_who_signed_and_which_model(desk: Path, tmp_path: Path) -> None:
    for name in ("ev.pdf.json", "keys/public.pem"):
        (tmp_path / Path(name).name).write_bytes((desk / name).read_bytes())
    fingerprint = json.loads(dpal("verify", "ev.pdf.json", "--json", cwd=tmp_path).stdout)["signed_with"]
    done = dpal("verify", "ev.pdf.json", "--key", "public.pem", "--model", newest_model(desk), cwd=tmp_path).stdout
    assert f"by the key that was given, {fingerprint}" in done
    assert "is the one that the certificate is about" in done
    without = dpal("verify", "ev.pdf.json", cwd=tmp_path).stdout
    assert fingerprint in without
    assert "not who signed" in without
    other = dpal(
        "verify", "ev.pdf.json", "--model", desk / "clinic/checkpoints/phase-1.safetensors", cwd=tmp_path, codes=(5,)
    )
    assert "the SHA-256 of the model" in other.stderr


def test_forgeries_end_with_exit_code_5_and_a_reason(desk: Path, tmp_path: Path) -> None:
    key = desk / "keys/public.pem"
    document = json.loads((desk / "ev.pdf.json").read_text())
    unsigned = {"signature": ..., "public_key": ...}
    lower = document["epsilon"] - 1e-6
    cases: list[tuple[dict[str, object], list[object], str]] = [
        ({"campaign": "another"}, [], "changed after it was signed"),
        ({"epsilon": lower}, ["--key", key], "changed after it was signed"),
        (unsigned, ["--key", key], "not signed"),
        ({"signature": ...}, [], "half a signature"),
        ({"epsilon": lower, **unsigned}, [], "the certificate: epsilon"),
        ({"model_sha256": "0" * 64, **unsigned}, [], "model_sha256"),
        ({"worst_case": "No one learns anything.", **unsigned}, [], "worst_case"),
        ({"assumptions": [], **unsigned}, [], "assumptions"),
    ]
    plan = json.loads(json.dumps(document["plan"]))
    plan["phases"][0]["steps"] += 50
    cases.append(({"plan": plan, **unsigned}, [], "more than its target"))
    for changed, words, reason in cases:
        file = edited(desk, tmp_path / "forged.json", **changed)
        done = dpal("verify", file, *words, cwd=tmp_path, codes=(5,))
        assert "NOT VERIFIED" in done.stderr
        assert reason in done.stderr.replace("\n", " "), changed
    dpal("keys", "new", "others", cwd=tmp_path)
    done = dpal("verify", desk / "ev.pdf.json", "--key", "others/public.pem", cwd=tmp_path, codes=(5,))
    assert "signed with another key" in done.stderr
    # Without a signature the numbers still follow from one another, and the output says what that is worth.
    done = dpal("verify", edited(desk, tmp_path / "unsigned.json", **unsigned), cwd=tmp_path)
    assert "anyone could have written" in done.stdout


def test_mistakes_with_keys_and_files_are_the_readers(desk: Path, tmp_path: Path) -> None:
    cases: list[tuple[tuple[object, ...], str]] = [
        (("verify", desk / "ev.pdf.json", "--key", "nowhere.pem"), "There is no key nowhere.pem"),
        (("verify", desk / "ev.pdf.json", "--key", desk / "keys/private.pem"), "keep the private one"),
        (("verify", desk / "ev.pdf.json", "--model", "nowhere.safetensors"), "There is no model"),
        (("verify", desk / "ev.pdf"), "ev.pdf.json"),
        (("verify", desk / "clinic", "--key", desk / "keys/public.pem"), "--key"),
        (("verify", desk / "ev.pdf.json", "--ledger", "l.json"), "--ledger"),
        (("certificate", desk / "clinic", "--to", "c.pdf", "--sign-with", desk / "keys/public.pem"), "is the public"),
        (("certificate", desk / "clinic", "--to", "c.pdf", "--sign-with", "nowhere.pem"), "There is no key"),
        (("keys", "new", desk / "keys"), "keys are never replaced"),
    ]
    for words, message in cases:
        done = dpal(*words, cwd=tmp_path, codes=(2,))
        assert message in done.stderr.replace("\n", " "), words
    assert list(tmp_path.iterdir()) == []
    private = desk / "keys/private.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    secret = private.read_text().splitlines()[1]
    for file in ("ev.pdf.json", "ev.pdf"):
        assert secret.encode() not in (desk / file).read_bytes()


def test_no_command_replaces_a_file_without_being_told(desk: Path, tmp_path: Path) -> None:
    """The report goes next to the certificate; everything else is refused before any work, and nothing is lost."""
    before = (desk / "ev.pdf.json").read_bytes()
    dpal("report", "clinic", "--to", "ev.html", cwd=desk)
    assert (desk / "ev.pdf.json").read_bytes() == before
    dpal("verify", "ev.pdf.json", cwd=desk)
    plan = ("plan", "--epsilon", 8, "--accountant", "rdp", "--pool-size", 1000)
    commands: list[tuple[tuple[object, ...], list[str]]] = [
        (("certificate", "clinic", "--to", tmp_path / "a.pdf"), ["a.pdf", "a.pdf.json"]),
        (("report", "clinic", "--to", tmp_path / "a.html"), ["a.html", "a.json"]),
        (("export-model", "clinic", "--to", tmp_path / "m"), ["m", "m.json", "m.md"]),
        (("verify", "clinic", "--ledger", tmp_path / "l.json"), ["l.json"]),
        ((*plan, "--json", tmp_path / "p.json", "--plot", tmp_path / "p.png"), ["p.json", "p.png"]),
        (("experiments", "table", "all", "--markdown", tmp_path / "t.md"), ["t.md"]),
        (("compare", "clinic", "--to", tmp_path / "b.html"), ["b.html", "b.md", "b.tex", "b.json"]),
        (("histogram", "clinic", "--to", tmp_path / "h.png"), ["h.png"]),
    ]
    for words, names in commands:
        for name in names:
            (tmp_path / name).write_text("mine")
            done = dpal(*words, cwd=desk, codes=(2,))
            assert "exists already" in done.stderr, words
            assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: "mine"}, words
            (tmp_path / name).unlink()
    for words, names in commands[:5]:
        (tmp_path / names[0]).write_text("mine")
        dpal(*words, "--force", cwd=desk)
        for name in names:
            assert (tmp_path / name).read_bytes() != b"mine"
    # In its own place the report is always the newest one.
    dpal("report", "clinic", cwd=desk)
    dpal("report", "clinic", cwd=desk)


def test_a_promise_that_protects_little_says_so_from_the_start(tmp_path: Path) -> None:
    little = "This protects little: ε = 1000 is above 10"
    changed = settings("plan.planner=naive", "plan.selection=random")
    shown = dpal("init", "c", "--data", "digits", "--epsilon", 1000, *changed, cwd=tmp_path).stdout
    assert little in shown
    assert "every time (100%)" in " ".join(shown.split())
    dpal("run", "c", cwd=tmp_path)
    assert little in dpal("status", "c", cwd=tmp_path).stdout
    issued = dpal("certificate", "c", "--to", "c.pdf", cwd=tmp_path).stdout
    assert issued.startswith(little)
    assert "satisfies" not in issued
    assert little in dpal("verify", "c.pdf.json", cwd=tmp_path).stdout
    dpal("report", "c", "--to", "c.html", cwd=tmp_path)
    page = (tmp_path / "c.html").read_text()
    assert little in page
    assert "differential privacy allows" not in page
