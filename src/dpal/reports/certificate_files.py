"""The two files of a certificate: a PDF for people and a JSON file for programs. Written, read and checked here."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dpal.audit.results import read_audit
from dpal.campaign.files import digest, write_text, write_whole
from dpal.errors import DpalError, InvalidArgument, MissingData
from dpal.planning.documents import read_json
from dpal.reports.certificate import certificate_of, verify_certificate
from dpal.reports.signature import Signed, checked_signature, private_key, public_key, signed


class NotVerified(DpalError):
    """A certificate with a wrong number, signature or model; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCertificate:
    """A certificate whose numbers were recomputed, with what else was checked."""

    document: dict[str, Any]
    epsilon: float
    signature: Signed | None

    def signature_words(self) -> str:
        """What the signature is worth."""
        if self.signature is None:
            return "signature: none. The numbers follow from one another, but anyone could have written this file."
        if self.signature.key_was_given:
            return f"signature: by the key that was given, {self.signature.fingerprint}"
        return (
            f"signature: by the key {self.signature.fingerprint}, which came with the certificate. This shows only "
            "that nothing was changed after signing, not who signed: compare the fingerprint, or give the signer's "
            "key with --key."
        )


def json_file_of(pdf: Path) -> Path:
    """The JSON file that belongs to a PDF: clinic.pdf.json next to clinic.pdf."""
    return pdf.with_name(f"{pdf.name}.json")


def write_certificate(
    campaign: Path, pdf: Path, *, sign_with: Path | None = None, audit: Path | None = None
) -> dict[str, Any]:
    """Write both files of a campaign's certificate, signed if a private key's file is given; the document.

    `audit`: the JSON file of an audit of its plan, whose result the certificate states.
    """
    # Here, since verifying does without matplotlib; and first, so that nothing is written where it is missing.
    from dpal.reports.certificate_pdf import write_pdf

    if pdf.suffix.lower() != ".pdf" or not pdf.absolute().parent.is_dir():
        raise InvalidArgument("--to", str(pdf), "a .pdf file in a folder that exists")
    key = None if sign_with is None else private_key(sign_with)
    document = certificate_of(campaign, audit=None if audit is None else read_audit(audit))
    if key is not None:
        document = signed(document, key)
    write_text(json_file_of(pdf), json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    write_whole(pdf, lambda draft: write_pdf(document, draft))
    return document


def read_certificate(file: Path) -> dict[str, Any]:
    """A certificate's document from its JSON file."""
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    try:
        text = file.read_text(encoding="utf-8")
        document = read_json("the certificate", text)
    except (ValueError, RecursionError) as error:
        raise _not_a_certificate(file) from error
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("certificate") is None:
        raise _not_a_certificate(file)
    return cast("dict[str, Any]", document)


def _not_a_certificate(file: Path) -> InvalidArgument:
    """People hold the PDF; the numbers are in the JSON file next to it."""
    own = f" ({json_file_of(file).name})" if file.suffix.lower() == ".pdf" else ""
    return InvalidArgument("the certificate", str(file), f"the JSON file that dpal certificate writes{own}")


def check_certificate(file: Path, *, key: Path | None = None, model: Path | None = None) -> CheckedCertificate:
    """Recompute a certificate, and check who signed it and which model it is about, where these are given.

    A missing or wrong key, model or file is the reader's mistake; anything wrong in the certificate is NotVerified.
    """
    signer = None if key is None else public_key(key)
    if model is not None and not model.is_file():
        raise MissingData(f"There is no model {model}.")
    document = read_certificate(file)
    try:
        signature = checked_signature(document, signer)
        epsilon = verify_certificate(document)
        if model is not None and document["model_sha256"] != (own := digest(model)):
            raise InvalidArgument("the SHA-256 of the model", own, f"{document['model_sha256']}, the certificate's")
    except DpalError as error:
        raise NotVerified(str(error)) from error
    return CheckedCertificate(document=document, epsilon=epsilon, signature=signature)
