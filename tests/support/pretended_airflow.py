"""As much of Airflow as an example needs: what its BashOperator does with exit codes, said in its documentation.

0 succeeds, a code in `skip_on_exit_code` skips, any other fails; what comes after a skipped or failed task is not run.
"""

import contextlib
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any


@dataclass(kw_only=True)
class BashOperator:
    """A task. `skip_on_exit_code` is 99 unless it is given, as there."""

    task_id: str
    bash_command: str
    cwd: str | None = None
    skip_on_exit_code: int | list[int] | None = 99
    do_xcom_push: bool = True
    after: list["BashOperator"] = field(default_factory=list["BashOperator"])

    def __post_init__(self) -> None:
        DAG.open.tasks.append(self)

    def __rshift__(self, other: "BashOperator") -> "BashOperator":
        other.after.append(self)
        return other

    def run(self, folder: Path, environment: dict[str, str]) -> tuple[str, str]:
        """What became of it, and what it printed."""
        command = ["bash", "-c", self.bash_command]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        codes = [self.skip_on_exit_code] if isinstance(self.skip_on_exit_code, int) else self.skip_on_exit_code or []
        outcome = "success" if done.returncode == 0 else "skipped" if done.returncode in codes else "failed"
        return outcome, done.stdout + done.stderr


class DAG:
    """The tasks that are made inside."""

    open: "DAG"

    def __init__(self, dag_id: str, **options: Any) -> None:
        self.dag_id, self.options, self.tasks = dag_id, options, list[BashOperator]()

    def __enter__(self) -> "DAG":
        DAG.open = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        pass

    def run(self, folder: Path, environment: dict[str, str]) -> tuple[dict[str, str], str]:
        """What became of each task, and all that Airflow would keep of their output."""
        outcomes: dict[str, str] = {}
        printed = ""
        for task in self.tasks:
            if all(outcomes[before.task_id] == "success" for before in task.after):
                outcomes[task.task_id], said = task.run(folder, environment)
                printed += said
            else:
                outcomes[task.task_id] = "not run"
        return outcomes, printed


@contextlib.contextmanager
def pretended_airflow() -> Generator[None]:
    """Inside, the example's imports find this."""
    names = ("airflow", "airflow.sdk", "airflow.providers", "airflow.providers.standard")
    names += ("airflow.providers.standard.operators", "airflow.providers.standard.operators.bash")
    before = {name: sys.modules.get(name) for name in names}
    for name in names:
        sys.modules[name] = ModuleType(name)
    sys.modules["airflow.sdk"].DAG = DAG  # type: ignore[attr-defined]
    sys.modules[names[-1]].BashOperator = BashOperator  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
