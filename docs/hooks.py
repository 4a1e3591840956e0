"""Pages made while mkdocs builds: the command-line reference from the program itself, and files of the root."""

import re
from enum import EnumType
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from dpal import cli
from dpal.cli.commands import COMMANDS, imported

ROOT = Path(__file__).parents[1]
COPIED = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
VALUES: dict[Any, str] = {float: "NUMBER", int: "NUMBER", str: "TEXT", Path: "PATH"}
EXIT_CODES = {
    0: "done",
    1: "an unexpected error",
    2: "wrong input",
    3: "waiting for labels",
    4: "another process is writing to the campaign",
    5: "damaged, or not verified",
    6: "a model is no better than chance",
    130: "stopped with Ctrl-C",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(
        File.generated(config, "reference/cli.md", content=command_line_page())
    )
    for page, source in COPIED.items():
        files.append(
            File.generated(
                config,
                page,
                content=inside_docs((ROOT / source).read_text(encoding="utf-8")),
            )
        )
    return files


def inside_docs(text: str) -> str:
    """A file of the root as a page: links to docs/ lead to the page, links to code become plain words."""
    text = re.sub(r"\]\(docs/", "](", text)
    for page, source in COPIED.items():
        text = text.replace(f"]({source})", f"]({page})")
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+(?<!\.md)\)", r"\1", text)


def command_line_page() -> str:
    """One section per command, with its arguments and options."""
    for name in COMMANDS:
        imported(name)
    program = typer.main.get_command(cli.app)
    parts = [
        "# Command line\n",
        "This page is made from the program itself; `dpal COMMAND --help` says the same.\n",
    ]
    parts += [
        section(name, command) for name, command in sorted(commands("dpal", program))
    ]
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    return "\n".join(
        [*parts, f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{codes}\n"]
    )


def commands(name: str, command: Any) -> list[tuple[str, Any]]:
    """The commands that do something, with their full names."""
    if not hasattr(command, "commands"):
        return [(name, command)]
    return [
        pair
        for key, inner in command.commands.items()
        for pair in commands(f"{name} {key}", inner)
    ]


def section(name: str, command: Any) -> str:
    kinds = get_type_hints(command.callback)
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [
        each
        for each in command.params
        if each.param_type_name == "option" and "--help" not in each.opts
    ]
    usage = " ".join(
        [
            name,
            *(shown_argument(each) for each in arguments),
            *(["[OPTIONS]"] if options else []),
        ]
    )
    words = re.sub(
        r"(Examples?: )(.*)",
        lambda found: example(found[2]),
        (command.help or "").replace("\b", ""),
    )
    parts = [f"## `{name}`\n", f"```text\n{usage}\n```\n", f"{words.strip()}\n"]
    if arguments:
        rows = [
            f"| `{shown_argument(each)}` | {getattr(each, 'help', '') or ''} |"
            for each in arguments
        ]
        parts.append("\n".join(["| argument | |", "| --- | --- |", *rows]) + "\n")
    if options:
        rows = [
            f"| {shown_option(each, kinds[each.name])} | {described(each)} |"
            for each in options
        ]
        parts.append("\n".join(["| option | |", "| --- | --- |", *rows]) + "\n")
    return "\n".join(parts)


def example(lines: str) -> str:
    return "\n```text\n" + "\n".join(re.split(r"\s{2,}", lines.strip())) + "\n```\n"


def shown_argument(parameter: Any) -> str:
    name = (
        (parameter.metavar or parameter.name or "")
        .removesuffix("...")
        .strip("{}")
        .upper()
    )
    name = f"{name}..." if parameter.nargs == -1 else name
    return name if parameter.required else f"[{name}]"


def shown_option(parameter: Any, kind: Any) -> str:
    value = "" if parameter.is_flag else f" {parameter.metavar or value_of(kind)}"
    return f"`{', '.join(parameter.opts)}{value}`".replace("|", "\\|")


def value_of(kind: Any) -> str:
    """What to write after an option, such as NUMBER or pld|rdp."""
    if isinstance(kind, EnumType):
        return "|".join(str(member.value) for member in kind)
    inner = [part for part in get_args(kind) if part is not NoneType]
    if inner and all(isinstance(part, str) for part in inner):
        return "|".join(inner)
    return VALUES.get(kind) or value_of(inner[0])


def described(parameter: Any) -> str:
    words = (parameter.help or "").replace("|", "\\|").replace("\n", " ")
    if parameter.required:
        return f"{words} **Required.**"
    if (
        parameter.show_default is not False
        and not parameter.is_flag
        and parameter.default not in (None, (), [], "")
    ):
        return f"{words} Default: `{parameter.default}`."
    return words
