"""moto's S3 server in a process of its own, and a proxy in front of it that breaks connections."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
_PIECE = 1 << 16


@contextmanager
def s3_server() -> Generator[str]:
    """Its address on 127.0.0.1, as host:port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | KEYS,
    )
    try:
        for _ in range(300):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def uri(address: str, path: str) -> str:
    """The URI of a path (bucket and key) on this server, as pyarrow reads it."""
    return f"s3://{path}?scheme=http&region=us-east-1&endpoint_override={quote(address)}"


def upload(folder: Path, address: str, path: str) -> str:
    """Copy a folder of files into a bucket; returns its URI."""
    from pyarrow import fs

    system = fs.S3FileSystem(
        access_key="test",
        secret_key="test",  # noqa: S106 (a server of the test's own)
        endpoint_override=address,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )
    system.create_dir(path.partition("/")[0])
    for file in sorted(folder.glob("*.parquet")):
        with system.open_output_stream(f"{path}/{file.name}") as out:
            out.write(file.read_bytes())
    return uri(address, path)


@contextmanager
def breaking_proxy(target: str, *, every: int) -> Generator[tuple[str, list[int]]]:
    """Passes bytes on, and breaks off every so many-th connection in the middle of its answer.

    Its address, and the sizes of what had been passed on when a connection was broken.
    """
    broken: list[int] = []
    seen = [0]
    guard, stopped = threading.Lock(), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = target.split(":")

    def serve(client: socket.socket, number: int) -> None:
        is_bad = number % every == every - 1
        with client, socket.create_connection((host, int(port))) as server:
            threading.Thread(target=_pump, args=(client, server), daemon=True).start()
            passed = 0
            with suppress(OSError):
                while content := server.recv(_PIECE):
                    if is_bad and passed + len(content) > _PIECE // 2:
                        client.sendall(content[: len(content) // 2])
                        with guard:
                            broken.append(passed + len(content) // 2)
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                        return
                    client.sendall(content)
                    passed += len(content)

    def accept() -> None:
        while not stopped.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with guard:
                number, seen[0] = seen[0], seen[0] + 1
            threading.Thread(target=serve, args=(client, number), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", broken
    finally:
        stopped.set()
        listener.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(_PIECE):
            sink.sendall(content)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
