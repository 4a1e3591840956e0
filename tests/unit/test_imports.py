from pathlib import Path

import pytest
from imports import violations

import dpal

PACKAGE = Path(dpal.__file__).parent


def test_imports_point_one_way() -> None:
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("privacy/bad.py", "from dpal.planning import plan"),
        ("privacy/bad.py", "import torch"),
        ("privacy/bad.py", "import torch.nn.functional"),
        ("selection/bad.py", "from dpal import cli"),
        ("selection/bad.py", "from dpal.planning.plan import Plan"),
        ("training/bad.py", "from dpal.selection.scores import entropy"),
        ("selection/bad.py", "from ..training import loop"),
        ("errors.py", "from .privacy import checks"),
        ("somewhere/new.py", "from dpal.errors import DpalError"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line + "\n")
    assert len(violations(tmp_path)) == 1
