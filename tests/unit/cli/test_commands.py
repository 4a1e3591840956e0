"""The table of commands says what the commands themselves say, and a command's module is imported when it runs."""

import subprocess
import sys

import pytest
import typer
from command_line import dpal
from typer.core import TyperGroup

from dpal.cli import app
from dpal.cli.commands import COMMANDS, imported


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_first_paragraph_of_every_command(name: str) -> None:
    command = imported(name)
    paragraph = (command.help or "").split("\n\n")[0]
    assert " ".join(paragraph.split()) == COMMANDS[name][1]
    functions = [inner.callback for inner in command.commands.values()] if isinstance(command, TyperGroup) else []
    for function in functions or [command.callback]:
        assert function.__module__ == f"dpal.cli.{COMMANDS[name][0]}"


def test_no_command_is_missing_from_the_table() -> None:
    for name in COMMANDS:
        imported(name)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup) and list(group.commands) == list(COMMANDS)


def test_a_command_of_somebody_elses_comes_after_ours() -> None:
    mine = typer.Typer(cls=type(typer.main.get_command(app)))
    mine.command("mine")(lambda: None)
    mine.command("other")(lambda: None)
    group = typer.main.get_command(mine)
    assert isinstance(group, TyperGroup) and list(group.commands) == [*COMMANDS, "mine", "other"]


def test_a_wrong_name_is_told_the_nearest_one() -> None:
    done = dpal("statuss")
    assert done.returncode == 2 and "Did you mean 'status'?" in done.stderr


def test_help_imports_no_command_and_a_command_no_others() -> None:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('loaded:', sorted(name for name in sys.modules if name.startswith('dpal.'))))\n"
        "from dpal.cli import run; run()"
    )
    ours = {"dpal.cli", "dpal.cli.app", "dpal.cli.commands", "dpal.errors", "dpal.imports"}
    loaded = {
        words: set(
            subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
            .stdout.splitlines()[-1]
            .removeprefix("loaded: ")
            .strip("[]")
            .replace("'", "")
            .split(", ")
        )
        for words in (("--help",), ("--version",), ("explain", "--help"))
    }
    assert loaded["--help",] == loaded["--version",] == ours
    assert "dpal.cli.explain" in loaded["explain", "--help"] and "dpal.cli.init" not in loaded["explain", "--help"]
