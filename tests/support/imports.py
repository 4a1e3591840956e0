"""Reads the imports of source files, to hold them against the layers of the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

# A part may import itself and what stands before it.
LAYERS = (
    "errors",
    "imports",
    "privacy",
    "randomness",
    "selection",
    "planning",
    "training",
    "models",
    "data",
    "labels",
    "campaign",
    "audit",
    "reports",
    "rehearsal",
    "experiments",
    "web",
    "cli",
    "__main__",
)
STRANGERS = {("selection", "training"), ("training", "selection")}
MAY_IMPORT_TORCH = {"training", "models", "audit"}


def violations(package: Path) -> list[str]:
    """Every import in the package's folder that the layers forbid, one line each."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        part = path.relative_to(package).with_suffix("").parts[0]
        for line, module in _imports(path, package):
            where = f"{path.relative_to(package)}:{line}"
            if module.split(".")[0] == "torch" and part not in MAY_IMPORT_TORCH:
                found.append(f"{where} imports torch; only {' and '.join(sorted(MAY_IMPORT_TORCH))} may")
            if part == "__init__" or not module.startswith("dpal."):
                continue
            target = module.split(".")[1]
            if part not in LAYERS or target not in LAYERS:
                found.append(f"{where} has a part that is in no layer: {part} imports {target}")
            elif LAYERS.index(target) > LAYERS.index(part):
                found.append(f"{where}: {part} may not import {target}, which stands after it")
            elif (part, target) in STRANGERS:
                found.append(f"{where}: {part} and {target} must not know each other")
    return found


def _imports(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                folder = path.parent if node.level == 1 else path.parents[node.level - 1]
                base = ".".join(("dpal", *folder.relative_to(package).parts, *filter(None, [base])))
            # "from dpal import planning" names a part; a name that is none of them is the package's own.
            if base == "dpal":
                for alias in node.names:
                    if alias.name in LAYERS:
                        yield node.lineno, f"dpal.{alias.name}"
            else:
                yield node.lineno, base
