"""Signatures: what is signed cannot be changed, and who signed is who has the key."""

import base64
import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.errors import DpalError, InvalidArgument, MissingData
from dpal.reports.certificate import certificate_of, verify_certificate
from dpal.reports.signature import (
    NotSigned,
    checked_signature,
    fingerprint,
    new_keys,
    private_key,
    public_key,
    signed,
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "officer"
    new_keys(folder)
    return folder


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("signed") / "clinic"
    Campaign.create(folder, plan=linear_plan(), pool=linear_pool(), model=linear_model())
    return signed(certificate_of(folder), private_key(keys / "private.pem"))


def test_a_signed_certificate_verifies_also_after_a_round_trip(document: dict[str, Any], keys: Path) -> None:
    shuffled = json.loads(json.dumps(dict(reversed(document.items())), indent=4))
    for each in (document, shuffled):
        verify_certificate(each)
        found = checked_signature(each, public_key(keys / "public.pem"))
        assert found is not None
        assert found.key_was_given
        assert found.fingerprint == fingerprint(private_key(keys / "private.pem").public_key())
        own = checked_signature(each)
        assert own is not None
        assert not own.key_was_given


def test_every_field_is_signed(document: dict[str, Any], keys: Path) -> None:
    """Also those that could be recomputed, and one that somebody adds."""
    for name in (*document, "remark"):
        changed = document | {name: "something else"}
        for key in (None, public_key(keys / "public.pem")):
            with pytest.raises(NotSigned):
                checked_signature(changed, key)
        with pytest.raises(DpalError):
            verify_certificate(changed)


def test_what_the_hashes_alone_would_let_pass(document: dict[str, Any]) -> None:
    """A forger who renews the hashes: without a signature that works, with one it does not."""
    from dpal.reports.certificate import _fingerprint

    forged = document | {"campaign": "another clinic"}
    forged["checks"] = document["checks"] | {"campaign": _fingerprint("campaign", "another clinic")}
    with pytest.raises(NotSigned, match="changed after it was signed"):
        verify_certificate(forged)
    verify_certificate({name: value for name, value in forged.items() if name not in ("signature", "public_key")})


def test_a_forger_with_a_key_of_his_own_is_found_by_the_key(
    document: dict[str, Any], keys: Path, tmp_path: Path
) -> None:
    new_keys(tmp_path)
    unsigned = {name: value for name, value in document.items() if name not in ("signature", "public_key")}
    forged = signed(unsigned, private_key(tmp_path / "private.pem"))
    verify_certificate(forged)
    with pytest.raises(NotSigned, match="another key"):
        checked_signature(forged, public_key(keys / "public.pem"))
    # The officer's key under the forger's signature.
    with pytest.raises(NotSigned, match="changed after"):
        checked_signature(forged | {"public_key": document["public_key"]}, public_key(keys / "public.pem"))
    assert checked_signature(unsigned) is None
    with pytest.raises(NotSigned, match="not signed"):
        checked_signature(unsigned, public_key(keys / "public.pem"))


@pytest.mark.parametrize(
    "broken",
    [
        {"signature": "no base64!"},
        {"signature": base64.b64encode(b"short").decode()},
        {"signature": None},
        {"signature": 7},
        {"public_key": "no key"},
        {"public_key": None},
        {"public_key": ""},
    ],
    ids=str,
)
def test_broken_signatures(document: dict[str, Any], broken: dict[str, Any]) -> None:
    with pytest.raises(NotSigned):
        checked_signature(document | broken)
    with pytest.raises(NotSigned, match="half a signature"):
        checked_signature({name: value for name, value in document.items() if name != next(iter(broken))})


def test_the_private_key_is_for_its_owner_and_never_replaced(tmp_path: Path) -> None:
    new_keys(tmp_path / "k")
    before = (tmp_path / "k/private.pem").read_bytes()
    assert stat.S_IMODE((tmp_path / "k/private.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o700
    with pytest.raises(DpalError, match="exists already"):
        new_keys(tmp_path / "k")
    (tmp_path / "k/private.pem").unlink()
    with pytest.raises(DpalError, match=r"public\.pem exists already"):
        new_keys(tmp_path / "k")
    assert not (tmp_path / "k/private.pem").exists()
    new_keys(tmp_path / "other")
    assert (tmp_path / "other/private.pem").read_bytes() != before


def test_the_fingerprint_is_what_openssl_gives(keys: Path) -> None:
    try:
        done = subprocess.run(
            ["openssl", "pkey", "-pubin", "-in", keys / "public.pem", "-outform", "DER"],
            capture_output=True,
            check=True,
        )
    except FileNotFoundError:
        pytest.skip("needs the program openssl")
    import hashlib

    assert fingerprint(public_key(keys / "public.pem")) == hashlib.sha256(done.stdout).hexdigest()


def test_keys_of_another_kind(keys: Path, tmp_path: Path) -> None:
    plain, password = NoEncryption(), BestAvailableEncryption(b"secret")
    own = Ed25519PrivateKey.generate()
    curve = ec.generate_private_key(ec.SECP256R1())
    private = {
        "encrypted": (own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, password), "without a password"),
        "curve": (curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, plain), "Ed25519"),
        "ed448": (
            ed448.Ed448PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, plain),
            "Ed25519",
        ),
        "public": ((keys / "public.pem").read_bytes(), "this is the public"),
        "text": (b"hello", "Ed25519"),
        "empty": (b"", "Ed25519"),
    }
    for name, (content, words) in private.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidArgument, match=words) as refused:
            private_key(tmp_path / name)
        # Nothing of a key gets into a message or a traceback.
        for line in content.decode().splitlines()[1:-1]:
            assert line not in str(refused.value)
        assert refused.value.__cause__ is None
    public = {
        "curve.pub": (curve.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "Ed25519"),
        "private": ((keys / "private.pem").read_bytes(), "keep the private one"),
        "bytes": (b"\x00\xff", "Ed25519"),
    }
    for name, (content, words) in public.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidArgument, match=words):
            public_key(tmp_path / name)
    for read in (private_key, public_key):
        with pytest.raises(MissingData, match="dpal keys new"):
            read(tmp_path / "nowhere.pem")
