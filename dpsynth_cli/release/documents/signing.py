"""Signatures of releases: Ed25519, over an in-toto statement in a DSSE envelope, in a file of its own.

The statement names the published files with their SHA-256 and holds the public audit. The signature covers
what DSSE (version 1) says: PAE(type, payload), so that it cannot be taken for a signature of something else.
"""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth_cli import disk
from dpsynth_cli.errors import FileError, UsageError, VerificationError
from dpsynth_cli.hashing import canonical, file_sha256, sha256
from dpsynth_cli.release.documents.audit import CONFIDENTIAL
from dpsynth_cli.release.files.publish import write_file

if TYPE_CHECKING:  # it takes long to import
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SUFFIX = ".intoto.jsonl"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:dpsynth:release:1"
LARGEST_FILE = 1 << 26  # of a key or an envelope, in bytes
NOT_A_KEY = "A key is made by: dpsynth key init FILE"


# ---- keys -------------------------------------------------------------------------------------------


def make_key(path: Path) -> Path:
    """A new private key, for its owner's eyes only, and its public half in PATH.pub; never over a file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    public = path.with_name(f"{path.name}.pub")
    for file in (path, public):
        if file.exists():
            raise UsageError(f"{file} exists already.", "", "Choose another name: a key is never replaced.")
    key = Ed25519PrivateKey.generate()
    texts = {
        path: (key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600),
        public: (key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644),
    }
    for file, (data, mode) in texts.items():
        try:
            with disk.create(file, mode, new=True) as opened:
                opened.write(data)
                disk.sync(opened)
        except OSError as error:
            raise FileError(f"cannot write {file}: {error.strerror}.", "", "Choose another place.") from None
    return public


def private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file that nobody else can read."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read(path, "key")
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError(f"others can read the key {path}.", next_step=f"Close it first: chmod 600 {path}")
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError):  # TypeError: it has a password
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            f"{path} is not a private Ed25519 key in PEM without a password.", next_step=NOT_A_KEY
        )
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The key of whoever is said to have signed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_read(path, "key"))
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{path} is not a public Ed25519 key in PEM.", "", f"{NOT_A_KEY} (it is FILE.pub).")
    return key


def key_id(key: Ed25519PublicKey) -> str:
    """The SHA-256 of the public key as DER: short enough to read out on the telephone."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


# ---- statements -------------------------------------------------------------------------------------


def pae(payload_type: str, payload: bytes) -> bytes:
    """What DSSE signs: both parts with their lengths, so that neither can run into the other.

    >>> pae("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def statement(
    public_audit: Path, output: Path | None = None, transcript: Path | None = None
) -> dict[str, Any]:
    """The published files of a release, by name and SHA-256, and what its public audit says.

    The synthetic file and the transcript are beside the audit, unless it is said where they are.
    """
    data = _read(public_audit, "public audit")
    try:
        audit = json.loads(data)
        named = {audit["output"]["file"]: output, audit.get("transcript", {}).get("file"): transcript}
        beside = None if output is None else output.parent  # tables of children are where their parents are
        for name in (one["output"]["file"] for one in audit.get("tables", ())):
            named[name] = None if beside is None else beside / name
        published = audit["publishable"] is True
    except (ValueError, KeyError, TypeError, AttributeError):
        published = False
    if not published:
        raise UsageError(f"{public_audit} is not a public audit.", "", "Name the .audit.json of a release.")
    digests = {public_audit.name: sha256(data)}
    for name, path in named.items():
        if name not in ("-", None):  # written to standard output; a release by groups
            digests[name] = _digest(path or public_audit.parent / name)
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)],
        "predicateType": PREDICATE_TYPE,
        "predicate": audit,
    }


def sign(audit: Path, key: Ed25519PrivateKey) -> Path:
    """Write the signature of a release beside its audit, dated like it."""
    public_audit = public_of(audit)
    payload = canonical(statement(public_audit))
    signature = key.sign(pae(PAYLOAD_TYPE, payload))
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {"keyid": key_id(key.public_key()), "sig": base64.b64encode(signature).decode()},
        ],
    }
    path = envelope_of(audit)
    write_file(path, canonical(envelope) + b"\n")
    dated = public_audit.stat().st_mtime
    os.utime(path, (dated, dated))
    return path


def check(audit: Path, key_path: Path, output: Path | None = None, transcript: Path | None = None) -> str:
    """What was checked, as a sentence; VerificationError where the signature or a file does not fit."""
    from cryptography.exceptions import InvalidSignature

    key, path, public_audit = public_key(key_path), envelope_of(audit), public_of(audit)
    if not path.exists():
        raise VerificationError(f"there is no signature {path}.", "")
    try:
        envelope = json.loads(_read(path, "signature"))
        payload = base64.b64decode(envelope["payload"], validate=True)
        kind = envelope["payloadType"]
        signatures = [base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]]
        if kind != PAYLOAD_TYPE or not signatures:
            raise ValueError("not one of ours")
    except (ValueError, KeyError, TypeError):
        raise VerificationError(f"{path} is not a signature of a release.", "") from None
    for signature in signatures:
        try:
            key.verify(signature, pae(kind, payload))
            break
        except InvalidSignature:
            continue
    else:
        raise VerificationError(f"{path} was not signed with the key {key_path}.", "")
    # Only now is the payload read.
    if payload != canonical(statement(public_audit, output, transcript)):
        raise VerificationError(f"the files are not those that were signed in {path}.", "")
    # The steward's copy is checked beside it, and is not signed: it must be about the same release.
    if _public_part(audit) != _public_part(public_audit):
        raise VerificationError(f"{audit} is not of the release that was signed in {path}.", "")
    return f"the signature: of {key_path.name} ({key_id(key)[:16]}), over these files and this audit"


def named_keys(audit: Path) -> tuple[str, list[str]] | None:
    """The signature beside an audit, if there is one, and the keys that it names; nothing is checked."""
    path = envelope_of(audit)
    if not path.exists():
        return None
    try:
        signatures = json.loads(_read(path, "signature"))["signatures"]
        return path.name, [str(one["keyid"]) for one in signatures]
    except (ValueError, KeyError, TypeError):
        return path.name, []


def _public_part(audit: Path) -> dict[str, Any]:
    """What both copies of an audit have."""
    try:
        said = json.loads(_read(audit, "audit"))
        return {key: said[key] for key in said if key not in (*CONFIDENTIAL, "publishable")}
    except (ValueError, TypeError):
        raise VerificationError(f"{audit} is not an audit.", "") from None


def envelope_of(audit: Path) -> Path:
    """people.audit.json or people.audit.public.json: people.intoto.jsonl."""
    return audit.with_name(_stem(audit) + SUFFIX)


def public_of(audit: Path) -> Path:
    """The public audit beside any of the two."""
    return audit.with_name(_stem(audit) + ".audit.public.json")


def _stem(audit: Path) -> str:
    stem = audit.name.removesuffix(".json").removesuffix(".public").removesuffix(".audit")
    if stem == audit.name:
        raise UsageError(f"{audit} is not an audit.", "", "Give the .audit.json or .audit.public.json.")
    return stem


def _digest(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError as error:
        raise FileError(f"cannot read the file {path}: {error.strerror}.", "") from None


def _read(path: Path, what: str) -> bytes:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"{path} is too large to be a {what}.", "")
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read the {what} {path}: {error.strerror}.", "") from None
