"""The middle of a training phase, in an encrypted file next to the step's key, so that a death costs only minutes.

One charge must lead to one model, and it does. Everything that the phase draws follows from its key, so a phase that
goes on from a snapshot makes the very model that it would have made: the snapshot changes when it is done, not what is
done. The file is encrypted with a key that is derived from the step's, and authenticated together with everything that
decides the result: the facts up to the charge, the records and labels, the settings, the versions. So

- with any of these changed, or a byte of the file, it cannot be opened: it is erased, and the phase starts over with
  the same key, as without it;
- a withdrawal brings the step a new key, and with it the old key and its snapshot are erased: nothing of a run with
  the withdrawn records goes into the model;
- an older snapshot of the same step, from a backup, is an earlier moment of the same run, and leads to the same model;
- a copy shows nothing without the step's key, and once that is erased nobody can ever read it, not even from blocks
  that the disk keeps of overwritten files.
"""

import hashlib
import json
import logging
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dpal import __version__
from dpal.campaign import fault_points
from dpal.campaign.files import overwrite_and_remove, sync_folder, write_draft
from dpal.campaign.layout import snapshot_name
from dpal.campaign.phase_task import PhaseTask
from dpal.campaign.state import State
from dpal.training.phase_snapshot import Snapshots

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import GCM

# The time between two snapshots, so that shorter phases have none, and the most of it that writing may take.
SECONDS_BETWEEN = 300.0
LARGEST_SHARE = 0.02
_BEGINNING = b"dpal snapshot 1\n"
_NONCE_BYTES, _TAG_BYTES = 12, 16
_HEAD = len(_BEGINNING) + _NONCE_BYTES
_SECONDS = struct.Struct("<d")
# The cipher takes less than 2 GiB at a time.
_CHUNK = 1 << 24

_log = logging.getLogger("dpal.campaign")


class SealedSnapshots(Snapshots):
    """The snapshots of one phase, each replacing the one before."""

    def __init__(self, path: Path, *, key: bytes, belongs_to: bytes, name: str, tell: Callable[[str], None]) -> None:
        self.path, self._belongs_to = path, belongs_to
        self._key = hashlib.blake2b(b"snapshot", key=key, digest_size=32, person=b"dpal snapshot").digest()
        self._name, self._tell = name, tell
        self._started = time.monotonic()
        self._due = self._started + SECONDS_BETWEEN
        # How long processes that died have trained for the newest snapshot.
        self.seconds_before = 0.0
        self._opened: bytes | None = None
        if path.exists():
            self._opened = self._open()

    @classmethod
    def of(cls, task: PhaseTask, seen: State, folder: Path, sealed_with: int, *, tell: Callable[[str], None]) -> Self:
        """For a phase that is charged. `seen` are the facts as of its charge."""
        # The task holds the key, the labelled records and their labels; the chain of facts, everything before it.
        decides = [__version__, seen.last_hash, sealed_with, hashlib.sha256(task.to_bytes(b"")).hexdigest()]
        return cls(
            folder / snapshot_name(sealed_with),
            key=task.key,
            belongs_to=json.dumps(decides).encode(),
            name=f"phase {task.number + 1}",
            tell=tell,
        )

    @property
    def seconds(self) -> float:
        """How long this phase has trained so far, whoever did it."""
        return self.seconds_before + time.monotonic() - self._started

    def newest(self) -> bytes | None:
        return self._opened

    def resumed_at(self, step: int | None, steps: int) -> None:
        self._opened = None
        if step is None:
            self._refuse()
        else:
            self._tell(f"resuming {self._name} at step {step:,} of {steps:,}")

    def offer(self, taken: Callable[[], bytes]) -> None:
        began = time.monotonic()
        if began < self._due:
            return
        try:
            self._write(taken())
        except OSError as error:
            # Training goes on: without a snapshot, a death only costs more.
            _log.warning("No snapshot of %s could be written (%s). Training goes on.", self._name, error.strerror)
        ended = time.monotonic()
        self._due = ended + max(SECONDS_BETWEEN, (ended - began) / LARGEST_SHARE)

    def _write(self, content: bytes) -> None:
        """Under a name of its own first, so that there is always a whole one."""
        draft = write_draft(self.path, lambda path: self._encrypt(content, path))
        fault_points.reached("train.snapshot-drafted")
        draft.replace(self.path)
        sync_folder(self.path.parent)
        fault_points.reached("train.snapshot-written")

    def _encrypt(self, content: bytes, path: Path) -> None:
        nonce = os.urandom(_NONCE_BYTES)
        encryptor = self._cipher(nonce).encryptor()
        encryptor.authenticate_additional_data(self._belongs_to)
        # For the owner alone.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_BEGINNING + nonce + encryptor.update(_SECONDS.pack(self.seconds)))
            for start in range(0, len(content), _CHUNK):
                file.write(encryptor.update(memoryview(content)[start : start + _CHUNK]))
            file.write(encryptor.finalize() + encryptor.tag)

    def _open(self) -> bytes | None:
        """What the file holds; None, and the file is erased, if it is damaged or belongs to anything else."""
        from cryptography.exceptions import InvalidTag

        content = self.path.read_bytes()
        start, nonce = content[: len(_BEGINNING)], content[len(_BEGINNING) : _HEAD]
        sealed, tag = memoryview(content)[_HEAD:-_TAG_BYTES], content[-_TAG_BYTES:]
        if start != _BEGINNING or len(sealed) < _SECONDS.size:
            self._refuse()
            return None
        decryptor = self._cipher(nonce, tag).decryptor()
        decryptor.authenticate_additional_data(self._belongs_to)
        opened = bytearray()
        for place in range(0, len(sealed), _CHUNK):
            opened += decryptor.update(sealed[place : place + _CHUNK])
        try:
            decryptor.finalize()
        except InvalidTag:
            self._refuse()
            return None
        (self.seconds_before,) = _SECONDS.unpack_from(opened)
        del opened[: _SECONDS.size]
        return bytes(opened)

    def _cipher(self, nonce: bytes, tag: bytes | None = None) -> "Cipher[GCM]":
        # Not before it is needed: most phases are too short.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        return Cipher(algorithms.AES(self._key), modes.GCM(nonce, tag))

    def _refuse(self) -> None:
        self.seconds_before = 0.0
        overwrite_and_remove(self.path)
        self._tell(
            f"the snapshot of {self._name} cannot be used: it is damaged, or the version, the machine, the settings or "
            "the records are not what they were. The phase starts over, on the same charge."
        )
