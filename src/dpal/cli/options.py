"""Options of a command from the fields of a request, so that an argument, its default and its help are written once."""

import inspect
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer

Command = TypeVar("Command", bound=Callable[..., None])


def with_options_of(request: type[Any]) -> Callable[[Command], Command]:
    """Gives a command that takes **keywords one option for each field of the request."""

    def decorate(command: Command) -> Command:
        own = [
            parameter
            for parameter in inspect.signature(command, eval_str=True).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        parameters = [*map(_parameter, fields(request)), *own]
        # Options without a default come first, as Python wants it.
        parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
        command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return decorate


def _parameter(field: Field[Any]) -> inspect.Parameter:
    name = field.metadata["flag"] or "--" + field.name.replace("_", "-")
    kind, shown = field.type, field.metadata["metavar"]
    if _is_list_of_numbers(kind):
        kind = Any
        option = typer.Option(name, help=field.metadata["help"], metavar=shown, parser=_numbers)
    else:
        option = typer.Option(name, help=field.metadata["help"], metavar=shown)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if field.default is MISSING else field.default,
        annotation=Annotated[kind, option],
    )


def _is_list_of_numbers(kind: Any) -> bool:
    choices = get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return any(get_origin(choice) is tuple for choice in choices)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers such as 10000,3000.") from error
