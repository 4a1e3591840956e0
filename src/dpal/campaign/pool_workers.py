"""Who works through the blocks of a large pool: this process, or workers of Ray, which is imported only then.

Actors of Ray and not its datasets: these split and join row groups as they see fit, and a row's place in a batch, which
may decide the last bits of its score, would depend on it.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from dpal.errors import DpalError
from dpal.imports import optional

Task = tuple[Any, ...]
# Tasks that wait at each worker: it never idles, and no more results than these are in memory.
_WAITING = 2
# How often one worker is started again, and one task tried, before this is an error. Machines of a cluster come and go.
_RESTARTS = 100
_OBJECT_STORE_BYTES = 512 * 2**20
# Ray's sockets lie in its folder, and a socket's path has at most 103 bytes.
_LONGEST_FOLDER = 15
# For Ray on this machine alone: its ports on the loopback interface (the name is Ray's; on other systems that is how it
# always starts), and only for those who can read the token in the user's home.
_LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}


class Workers(Protocol):
    """Does a method of a worker for every task, and returns the results in any order."""

    def each(self, method: str, tasks: Iterable[Task]) -> Iterator[Any]: ...


@contextmanager
def pool_workers(kind: Callable[[Any], Any], job: object, count: int, *, gpu: bool = False) -> Generator[Workers]:
    """So many workers of Ray, on this machine or on the cluster that RAY_ADDRESS names; with 0, this process.

    Each is `kind(job)`, with a GPU of its own if `gpu`.
    """
    if count == 0:
        yield _ThisProcess(kind(job))
        return
    ray = _started(count)
    actor_kind = ray.remote(num_cpus=1, num_gpus=1 if gpu else 0, max_restarts=_RESTARTS, max_task_retries=_RESTARTS)(
        kind
    )
    # Held as long as the workers: one that is started again reads it again.
    shared = ray.put(job)
    actors = [actor_kind.remote(shared) for _ in range(count)]
    try:
        yield _RayWorkers(ray, actors)
    finally:
        for actor in actors:
            with suppress(Exception):
                ray.kill(actor)


class _ThisProcess:
    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def each(self, method: str, tasks: Iterable[Task]) -> Iterator[Any]:
        return (getattr(self._worker, method)(*task) for task in tasks)


class _RayWorkers:
    def __init__(self, ray: Any, actors: list[Any]) -> None:
        self._ray, self._actors = ray, actors

    def each(self, method: str, tasks: Iterable[Task]) -> Iterator[Any]:
        running: dict[Any, Any] = {}
        waiting = iter(tasks)
        free = [actor for _ in range(_WAITING) for actor in self._actors]
        while True:
            while free and (task := next(waiting, None)) is not None:
                actor = free.pop()
                running[getattr(actor, method).remote(*task)] = actor
            if not running:
                return
            (done,), _ = self._ray.wait(list(running), num_returns=1)
            free.append(running.pop(done))
            yield self._result(done)

    def _result(self, done: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(done)
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.RayActorError as error:
            raise DpalError(
                "A Ray worker died again and again. Is there enough memory for one row group and the model on every "
                "worker's machine? The step under way stays charged and nothing is lost: run again once this is "
                "settled."
            ) from error


def _started(workers: int) -> Any:
    """Ray, connected to the cluster of RAY_ADDRESS or started on this machine. It reports nothing to anybody."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    is_local = not os.environ.get("RAY_ADDRESS")
    if is_local:
        for name, value in _LOCAL.items():
            # Before Ray is imported, which reads them.
            os.environ.setdefault(name, value)
    ray = optional("ray", extra="ray")
    if not ray.is_initialized():
        local: dict[str, Any] = {}
        if is_local:
            local = {
                # Not one that somebody has started here, which Ray would look for.
                "address": "local",
                "num_cpus": workers,
                "object_store_memory": _OBJECT_STORE_BYTES,
                "include_dashboard": False,
                "_temp_dir": _private_folder(ray),
            }
        ray.init(log_to_driver=False, configure_logging=False, **local)
    return ray


def _private_folder(ray: Any) -> str:
    """Where Ray on this machine has sockets, logs, and what does not fit in its memory: records, scores and keys.

    Ray lets everybody read its folder, so it is inside one that only the owner can open. It is removed at the end.
    """
    base = tempfile.gettempdir()
    outer = tempfile.mkdtemp(prefix="dpal-", dir=base if len(base) <= _LONGEST_FOLDER else "/tmp")  # noqa: S108 (0700)

    def remove() -> None:
        ray.shutdown()
        shutil.rmtree(outer, ignore_errors=True)

    atexit.register(remove)
    return str(Path(outer) / "ray")
