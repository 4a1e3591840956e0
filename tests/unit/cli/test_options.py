"""Options from the fields of a request: names, defaults and help are written once."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from dpal.cli.options import with_options_of
from dpal.planning.request import PlanRequest


def option(default: Any = ..., *, words: str = "", flag: str | None = None, metavar: str | None = None) -> Any:
    metadata = {"help": words, "flag": flag, "metavar": metavar}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Request:
    budget: float = option(words="What may be spent.", flag="--epsilon")
    query_sizes: tuple[int, ...] | None = option(None, metavar="N,N")
    batch_size: int = option(32)


@pytest.fixture
def ask():
    app, seen = typer.Typer(), []

    @app.command()
    @with_options_of(Request)
    def command(*, loud: Annotated[bool, typer.Option("--loud")] = False, **given: Any) -> None:
        seen.append((loud, Request(**given)))

    def run(*words: str) -> Any:
        result = CliRunner().invoke(app, words)
        return seen.pop() if result.exit_code == 0 and seen else result

    return run


def test_defaults_are_those_of_the_request(ask) -> None:
    assert ask("--epsilon", "8") == (False, Request(budget=8.0))


def test_options_have_the_names_of_fields_or_their_flags(ask) -> None:
    found = ask("--epsilon", "1.5", "--query-sizes", "300,100", "--batch-size", "5", "--loud")
    assert found == (True, Request(budget=1.5, query_sizes=(300, 100), batch_size=5))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--epsilon"),
        (("--budget", "8"), "No such option"),
        (("--epsilon", "8", "--query-sizes", "10,many"), "not a list of whole numbers"),
        (("--epsilon", "8", "--query-sizes", ""), "not a list of whole numbers"),
        (("--epsilon", "eight"), "'--epsilon'"),
    ],
)
def test_mistakes_are_named(ask, words: tuple[str, ...], message: str) -> None:
    result = ask(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split()).replace("│ ", "").replace(" │", "")


def test_help_shows_the_words_and_the_metavar(ask) -> None:
    shown = ask("--help").output
    assert "What may be spent." in shown and "N,N" in shown


def test_every_field_of_a_plan_can_be_an_option() -> None:
    @with_options_of(PlanRequest)
    def command(**given: Any) -> None: ...

    assert set(command.__annotations__) == {each.name for each in fields(PlanRequest)}
    assert all(each.metadata["help"] for each in fields(PlanRequest))
