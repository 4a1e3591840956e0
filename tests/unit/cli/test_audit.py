"""dpal audit, as people run it."""

import json
from pathlib import Path

import pytest
from audited_plans import plan
from command_line import dpal


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("audit") / "plan.json"
    file.write_text(plan().to_text(), encoding="utf-8")
    return file


def test_a_quick_attack_on_a_plan(plan_file: Path) -> None:
    page = plan_file.with_name("audit.html")
    done = dpal("audit", "--plan", plan_file, "--quick", "--attack", "training", "--to", page)
    assert done.returncode == 0, done.stderr
    assert "attack 1 of 1: training" in done.stdout
    assert "No attack got beyond the promise of ε ≤ 2.9998." in done.stdout
    assert "never that it holds" in " ".join(done.stdout.split())
    assert page.is_file() and page.with_suffix(".json").is_file()
    again = dpal("audit", "--plan", plan_file, "--quick", "--attack", "training", "--to", page)
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_programs_get_json_alone(plan_file: Path) -> None:
    done = dpal("audit", "--plan", plan_file, "--quick", "--attack", "cut", "--seed", "3", "--json")
    document = json.loads(done.stdout)
    assert document["seed"] == 3
    assert [finding["attack"] for finding in document["findings"]] == ["cut"]
    assert document["broken"] is False


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "exactly one of them"),
        (("folder", "--plan", "plan.json"), "exactly one of them"),
        (("--plan", "nowhere.json"), "There is no file nowhere.json"),
    ],
)
def test_a_mistake_gets_a_sentence_and_exit_code_2(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = dpal("audit", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
