"""The command line as a person runs it: in its own process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def dpal(*words: str) -> subprocess.CompletedProcess[str]:
    code = "from dpal.cli import run; run()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def test_epsilon_of_one_phase() -> None:
    for accountant, expected in (("rdp", 1.0355), ("pld", 0.9470)):
        done = dpal("epsilon", "--phase", "0.01,4,10000", "--delta", "1e-5", "--accountant", accountant, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["epsilon"] == pytest.approx(expected, abs=5e-5)


def test_noise_for_a_target() -> None:
    phases = ("--phase", "0.5,,60", "--phase", "0.25,,120")
    done = dpal("epsilon", *phases, "--target-epsilon", "8", "--accountant", "rdp", "--json")
    document = json.loads(done.stdout)
    noise = document["noise_multiplier"]
    assert [phase["noise_multiplier"] for phase in document["phases"]] == [noise, noise]
    assert 7.999 < document["epsilon"] <= 8
    again = dpal("epsilon", "--phase", f"0.5,{noise!r},60", "--phase", f"0.25,{noise!r},120", "--accountant", "rdp")
    assert again.returncode == 0
    assert "ε = 7.99999" in again.stdout or "ε = 8.00000" in again.stdout


def test_the_table_is_for_people() -> None:
    done = dpal("epsilon", "--phase", "0.01,4,100")
    assert "sampling probability" in done.stdout
    assert "pld" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--phase", "1.5,4,10"), "sampling_probability is 1.5, but must be a number from 0 to 1"),
        (("--phase", "0.1,0,10"), "noise_multiplier is 0.0, but must be"),
        (("--phase", "0.1,nan,10"), "noise_multiplier is nan"),
        (("--phase", "0.1,1,1.5"), "'1.5', but must be a whole number"),
        (("--phase", "0.1,1,-3"), "count is -3"),
        (("--phase", "0.1,1"), "--phase is '0.1,1', but must be Q,NOISE,STEPS"),
        (("--phase", "a,b,c"), "--phase is 'a,b,c'"),
        (("--phase", "0.1,,10"), "--target-epsilon"),
        (("--phase", "0.1,1,10", "--target-epsilon", "2"), "without NOISE"),
        (("--phase", "0.1,1,10", "--delta", "0"), "delta is 0.0"),
        (("--phase", "0.1,1,10", "--accountant", "prv"), "accountant is 'prv'"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(words: tuple[str, ...], message: str) -> None:
    done = dpal("epsilon", *words)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_help_is_enough_to_get_going() -> None:
    done = dpal("epsilon", "--help")
    assert done.returncode == 0
    for word in ("--phase", "--delta", "--accountant", "--target-epsilon", "--json", "Example"):
        assert word in done.stdout


CALL = [
    *("plan", "--epsilon", "8", "--delta", "1e-5", "--pool-size", "50000", "--initial", "10000"),
    *("--queries", "10000,3000,1000,1000", "--batch-size", "4096", "--epochs", "30"),
    *("--planner", "step-amplification", "--selection", "laplace", "--selection-epsilon", "2"),
    *("--accounting", "basic", "--accountant", "rdp"),
]


def test_plan_writes_draws_and_shows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (pip install dpal[plots])")
    document, picture = tmp_path / "plan.json", tmp_path / "plan.png"
    done = dpal(*CALL, "--json", str(document), "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    assert "every record ends within" in done.stdout
    written = json.loads(document.read_text())
    assert [len(phase["sampling_probabilities"]) for phase in written["phases"]] == [1, 2, 3, 4, 5]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert dpal("show-plan", str(document)).returncode == 0

    written["phases"][4]["steps"] += 10
    document.write_text(json.dumps(written))
    refused = dpal("show-plan", str(document))
    assert refused.returncode == 2
    assert "more than its target of 8" in refused.stderr.replace("\n", " ")


def test_plan_compares_the_planners() -> None:
    done = dpal(*CALL, "--compare")
    assert done.returncode == 0, done.stderr
    for planner in ("step-amplification", "optimised", "noise-reduction", "naive", "continual", "no-al"):
        assert planner in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan",), "--epsilon"),
        (("plan", "--epsilon", "-1"), "target_epsilon is -1.0"),
        (("plan", "--epsilon", "8", "--queries", "a,b"), "'a,b' is not a list of whole numbers"),
        (("plan", "--epsilon", "8", "--planner", "magic"), "planner is 'magic'"),
        (("plan", "--epsilon", "8", "--accountant", "rdp", "--plot", "plan.xyz"), "named with one of"),
        (("plan", "--epsilon", "8", "--json", "nowhere/plan.json"), "a file in a folder that exists"),
        (("plan", "--epsilon", "8", "--plot", "."), "a file in a folder that exists"),
        (("plan", "--epsilon", "8", "--queries", ""), "'' is not a list of whole numbers"),
        (("plan", "--epsilon", "8", "--selection", "[/red]"), "selection is '[/red]'"),
        (("plan", "--epsilon", "8", "--pool-size", "0"), "pool_size is 0"),
        (("epsilon", "--phase", "0.1,1,1e300"), "count is"),
        (("epsilon", "--phase", "0.1,1e300,10"), "noise_multiplier is 1e+300"),
        (("epsilon", "--phase", "1,1e-300,10"), "noise_multiplier is 1e-300"),
        (("show-plan", "nowhere.json"), "nowhere.json"),
    ],
)
def test_a_mistaken_plan_gets_a_clear_error(words: tuple[str, ...], message: str) -> None:
    done = dpal(*words)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
