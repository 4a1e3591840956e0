"""docs/schedulers.md: its tables are the program's, systemd takes its units, its Airflow example does what it says."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from documents import blocks_of
from pretended_airflow import DAG, pretended_airflow

from dpal.campaign.status import STAGES
from dpal.cli.app import AT_CHANCE, BUSY, DAMAGED, STOPPED, WAITING, WRONG_INPUT

PAGE = (Path(__file__).parents[2] / "docs/schedulers.md").read_text(encoding="utf-8")
FILES = {block.title: block.code for block in blocks_of(PAGE) if block.title}
UNITS = ("dpal@.service", "dpal@.timer", "dpal-wait@.service")
PROGRAM = "/srv/dpal/venv/bin/dpal"
# What is no reason to look, and what only people can mend.
LATER, FOR_PEOPLE = {WAITING, BUSY, STOPPED}, {WRONG_INPUT, DAMAGED, AT_CHANCE}
ANALYSE = shutil.which("systemd-analyze")


def rows(heading: str) -> list[str]:
    table = re.search(rf"\| {heading} \|.*\n\|.*\n((?:\|.*\n)+)", PAGE)
    assert table is not None
    return [line.split("|")[1].strip().strip("`") for line in table[1].splitlines()]


def test_every_exit_code_and_every_stage_is_there() -> None:
    assert set(map(int, rows("exit code"))) == {0, 1} | LATER | FOR_PEOPLE
    assert sorted(rows("stage")) == sorted(STAGES)


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(FILES[name])
    return parser


def test_units_know_the_exit_codes() -> None:
    once, stays = unit("dpal@.service")["Service"], unit("dpal-wait@.service")["Service"]
    assert set(map(int, once["SuccessExitStatus"].split())) == LATER
    # With --wait, a run never ends to wait for labels.
    assert set(map(int, stays["RestartPreventExitStatus"].split())) == FOR_PEOPLE | {STOPPED}
    for service in (once, stays):
        assert service["ExecStart"].startswith(f"{PROGRAM} run %i") and service["User"] == "dpal"
        assert service["StandardOutput"].startswith("append:") and service["NoNewPrivileges"] == "yes"


def complaints(folder: Path, files: dict[str, str]) -> str:
    """What systemd says of the units, with a program that exists."""
    program = folder / "dpal"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in UNITS:
        (folder / name).write_text(files[name].replace(PROGRAM, str(program)), encoding="utf-8")
    # A template is checked as one of its instances.
    wanted = [str(folder / name.replace("@.", "@clinic.")) for name in UNITS]
    assert ANALYSE is not None
    environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{folder}:", "SYSTEMD_LOG_LEVEL": "warning"}
    for name, instance in zip(UNITS, wanted, strict=True):
        shutil.copy(folder / name, instance)
    done = subprocess.run(
        [ANALYSE, "verify", "--man=no", *wanted],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if "dpal" in line]
    return "\n".join([*said, *(["failed"] if done.returncode else [])])


@pytest.mark.skipif(ANALYSE is None, reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    assert complaints(tmp_path, FILES) == ""


@pytest.mark.skipif(ANALYSE is None, reason="needs systemd-analyze")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SuccessExitStatus=", "SuccesExitStatus="),
        ("OnCalendar=*:0/10", "OnCalendar=often"),
        ("Type=oneshot", "Type=once"),
    ],
)
def test_a_wrong_unit_is_found(tmp_path: Path, old: str, new: str) -> None:
    assert complaints(tmp_path, {name: text.replace(old, new) for name, text in FILES.items()}) != ""


@pytest.fixture
def desk(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with a program called dpal that notes its arguments, prints a number and ends as a file says."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/dpal"
    program.write_text(
        '#!/bin/sh\necho "$@" >> calls.txt\n[ "$1" = run ] && echo "17 missing"\nexit $(cat "code-$1")\n'
    )
    program.chmod(0o755)
    return tmp_path, {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def airflow_example() -> DAG:
    with pretended_airflow():
        scope: dict[str, object] = {}
        exec(compile(FILES["clinic_dag.py"], "clinic_dag.py", "exec"), scope)  # noqa: S102 - our own document
    return DAG.open


@pytest.mark.parametrize("code", [0, 1, *sorted(LATER | FOR_PEOPLE)])
def test_airflow_waits_where_the_campaign_waits(desk: tuple[Path, dict[str, str]], code: int) -> None:
    folder, environment = desk
    (folder / "code-run").write_text(str(code))
    (folder / "code-export").write_text("0")
    outcomes, printed = airflow_example().run(folder, environment)
    first = "success" if code == 0 else "skipped" if code in LATER else "failed"
    assert outcomes == {"run": first, "hand_on": "success" if code == 0 else "not run"}
    # Internal numbers stay in the folder; the result of a task, which others may read, is not kept at all.
    assert "17" in (folder / "clinic.log").read_text() and (folder / "clinic.log").stat().st_mode & 0o77 == 0
    assert "17" not in printed
    assert all(not task.do_xcom_push for task in DAG.open.tasks)


def test_airflow_hands_on_once(desk: tuple[Path, dict[str, str]]) -> None:
    folder, environment = desk
    (folder / "code-run").write_text("0")
    (folder / "code-export").write_text("2")
    example = airflow_example()
    assert example.run(folder, environment)[0] == {"run": "success", "hand_on": "failed"}
    (folder / "code-export").write_text("0")
    for _ in range(2):
        assert example.run(folder, environment)[0] == {"run": "success", "hand_on": "success"}
    calls = (folder / "calls.txt").read_text().splitlines()
    assert calls.count("export mlflow clinic --to tracking") == 2 and calls.count("run clinic") == 3
    assert (example.options["catchup"], example.options["max_active_runs"]) == (False, 1)


@pytest.mark.parametrize("code", [0, WAITING, AT_CHANCE])
def test_with_label_studio_the_exit_code_is_the_runs_and_nothing_is_printed(tmp_path: Path, code: int) -> None:
    """`dpal labels sync; dpal run; dpal labels sync` would end as the sync does, and print its internal numbers."""
    (line,) = (block.code for block in blocks_of(PAGE) if "dpal labels sync clinic; dpal run" in block.code)
    program = tmp_path / "dpal"
    program.write_text(f'#!/bin/sh\necho "dpal $@"\n[ "$1" = run ] && exit {code}\nexit {WRONG_INPUT}\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    called = (tmp_path / "clinic.log").read_text().splitlines()
    assert called == ["dpal labels sync clinic", "dpal run clinic", "dpal labels sync clinic"]
