"""Signatures of certificates: Ed25519, over everything in the document except the signature itself."""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from dpal.errors import DpalError, InvalidArgument, MissingData

PRIVATE, PUBLIC = "private.pem", "public.pem"
SIGNATURE, PUBLIC_KEY = "signature", "public_key"
_HOW_TO_MAKE = "Make a pair with: dpal keys new FOLDER"


class NotSigned(DpalError):
    """A certificate without a valid signature where one is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A valid signature: the key's fingerprint, and whether the key was given or came with the document."""

    fingerprint: str
    key_was_given: bool


def new_keys(folder: Path) -> str:
    """Make a pair of keys in a folder, the private one readable by its owner only; returns the fingerprint."""
    for name in (PRIVATE, PUBLIC):
        if os.path.lexists(folder / name):
            raise DpalError(f"{folder / name} exists already, and keys are never replaced. Choose another folder.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write_new(folder / PRIVATE, private, mode=0o600)
    _write_new(folder / PUBLIC, _pem(key.public_key()), mode=0o644)
    return fingerprint(key.public_key())


def _write_new(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that has its mode from the start and never replaces another."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def private_key(file: Path) -> Ed25519PrivateKey:
    """The key to sign with. Errors name the file and never quote it."""
    content = _content(file)
    if b"PUBLIC KEY" in content:
        raise InvalidArgument(
            "the private key", str(file), f"the private one of the pair; this is the public one. {_HOW_TO_MAKE}"
        )
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise InvalidArgument(
            "the private key", str(file), f"without a password. Decrypt it first: openssl pkey -in {file} -out NEW.pem"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument("the private key", str(file), f"an Ed25519 key in PEM. {_HOW_TO_MAKE}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgument("the private key", str(file), f"an Ed25519 key. {_HOW_TO_MAKE}")
    return key


def public_key(file: Path) -> Ed25519PublicKey:
    """The key to check a signature with."""
    content = _content(file)
    if b"PRIVATE KEY" in content:
        raise InvalidArgument(
            "the public key", str(file), f"the public one of the pair ({PUBLIC}); keep the private one to yourself"
        )
    return _public_key(content, str(file))


def signed(document: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """The document with the public key and a signature over all of it."""
    whole = {**document, PUBLIC_KEY: _pem(key.public_key()).decode("ascii")}
    return {**whole, SIGNATURE: base64.b64encode(key.sign(_canonical(whole))).decode("ascii")}


def checked_signature(document: Mapping[str, Any], key: Ed25519PublicKey | None = None) -> Signed | None:
    """The signature, if it is valid. None for an unsigned document, unless a key was given: that is an error."""
    if SIGNATURE not in document and PUBLIC_KEY not in document:
        if key is not None:
            raise NotSigned("The certificate is not signed, so it cannot be checked against the given key.")
        return None
    stated, own = document.get(SIGNATURE), document.get(PUBLIC_KEY)
    if not isinstance(stated, str) or not isinstance(own, str):
        raise NotSigned("The certificate has half a signature: it needs both the signature and the public key.")
    try:
        embedded = _public_key(own.encode(), "the one in the certificate")
        signature = base64.b64decode(stated, validate=True)
    except ValueError as error:
        raise NotSigned("The certificate's signature or public key cannot be read: the file was edited.") from error
    if key is not None and fingerprint(key) != fingerprint(embedded):
        raise NotSigned(
            f"The certificate is signed with another key: {fingerprint(embedded)}, not with the given one: "
            f"{fingerprint(key)}."
        )
    try:
        embedded.verify(signature, _canonical({name: value for name, value in document.items() if name != SIGNATURE}))
    except (InvalidSignature, ValueError):
        raise NotSigned("The signature does not fit the certificate: it was changed after it was signed.") from None
    return Signed(fingerprint=fingerprint(embedded), key_was_given=key is not None)


def fingerprint(key: Ed25519PublicKey) -> str:
    """The SHA-256 of a public key, as: openssl pkey -pubin -in public.pem -outform DER | sha256sum."""
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _canonical(document: Mapping[str, Any]) -> bytes:
    """The same bytes for the same document, whatever the order of its fields and the spaces between them."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode(
        "ascii"
    )


def _content(file: Path) -> bytes:
    if not file.is_file():
        raise MissingData(f"There is no key {file}. {_HOW_TO_MAKE}")
    return file.read_bytes()


def _public_key(content: bytes, where: str) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument("the public key", where, f"an Ed25519 key in PEM. {_HOW_TO_MAKE}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidArgument("the public key", where, f"an Ed25519 key. {_HOW_TO_MAKE}")
    return key


def _pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
