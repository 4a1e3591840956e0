"""Runs the code of one document in the current folder, block after block: python documents.py [--write] PAGE.md.

A python block runs by itself. A block with title="NAME" is written to the file NAME. An sh block has commands, a
console block has commands after "$ " and what they print, where "..." stands for anything. Commands other than dpal
are for people to run. The line <!-- not run: REASON --> before a block leaves it out. With --write, what commands
print goes into the document where it differs.
"""

import doctest
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"(?ms)^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+)?(?P<indent> *)```(?P<kind>\w+)(?P<info>[^\n]*)\n"
    r"(?P<code>.*?)^(?P=indent)```$"
)
WAITING = 3
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class WrongOutput(AssertionError):
    """A command prints something else than the document says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some code of a document. `title` is a file's name; `reason` says why it is not run."""

    kind: str
    code: str
    title: str
    reason: str

    @property
    def runs(self) -> bool:
        return not self.reason and (self.kind == "python" or any(commands_of(self)))


@dataclass(frozen=True, slots=True)
class Command:
    """A line of an sh or console block, and what it prints (None where the document does not say)."""

    line: str
    output: str | None


def blocks_of(text: str) -> list[Block]:
    found: list[Block] = []
    for match in FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', match["info"])
        code = re.sub(rf"(?m)^{match['indent']}", "", match["code"])
        found.append(
            Block(kind=match["kind"], code=code, title=title[1] if title else "", reason=match["reason"] or "")
        )
    return found


def commands_of(block: Block) -> Iterator[Command]:
    code = block.code.replace("\\\n", " ")
    if block.kind == "sh":
        yield from (Command(line, None) for line in code.splitlines() if line.startswith("dpal "))
    elif block.kind == "console":
        for part in re.split(r"(?m)^\$ ", code)[1:]:
            line, _, output = part.partition("\n")
            if line.startswith("dpal "):
                yield Command(line, output)


def run_command(command: Command) -> str:
    """What the command prints. An error if it fails, or prints something else than the document says."""
    from typer.testing import CliRunner

    from dpal.cli.app import app
    from dpal.errors import DpalError

    words = shlex.split(command.line, comments=True)[1:]
    arguments = [found for word in words for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, DpalError):
        raise AssertionError(f"{command.line}: {result.exception}")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in (0, WAITING):
        raise AssertionError(f"{command.line}: exit code {result.exit_code}\n{result.output}")
    if command.output is not None and not doctest.OutputChecker().check_output(command.output, result.output, LENIENT):
        raise WrongOutput(f"{command.line} printed:\n{result.output}\nbut the document has:\n{command.output}")
    return result.output


def run_block(block: Block, name: str) -> None:
    if block.reason:
        return
    if block.title:
        Path(block.title).parent.mkdir(parents=True, exist_ok=True)
        Path(block.title).write_text(block.code, encoding="utf-8")
    elif block.kind == "python":
        exec(compile(block.code, name, "exec"), {"__name__": "__main__"})  # noqa: S102 (our own documents)
    else:
        for command in commands_of(block):
            run_command(command)


def with_output(text: str, block: Block) -> str:
    """The document with what the commands of a console block really print."""
    code = block.code
    for command in commands_of(block):
        try:
            run_command(command)
        except WrongOutput:
            printed = run_command(Command(command.line, None))
            lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
            code = code.replace(f"$ {command.line}\n{command.output}", f"$ {command.line}\n{lines}")
    return text.replace(block.code, code)


def run_document(path: Path, *, write: bool = False) -> None:
    import dpal.cli  # noqa: F401 (its commands register themselves)

    sys.path.insert(0, str(Path.cwd()))
    for index, block in enumerate(blocks_of(path.read_text(encoding="utf-8")), start=1):
        if write and block.kind == "console" and not block.reason:
            path.write_text(with_output(path.read_text(encoding="utf-8"), block), encoding="utf-8")
        else:
            run_block(block, f"{path.name}, block {index} ({block.kind})")


if __name__ == "__main__":
    # Before rich is imported, so that tables have the same width everywhere.
    os.environ.update(COLUMNS="100", TERM="dumb", NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1")
    run_document(Path(sys.argv[-1]), write="--write" in sys.argv)
