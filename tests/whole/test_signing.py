"""A signed release: a changed byte anywhere is found."""

import base64
import json
import os

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
)

from dpsynth_cli.release.documents.signing import PAYLOAD_TYPE, pae

NAMES = ("people.csv", "people.transcript.arrow", "people.audit.public.json")


@pytest.fixture
def signed(dpsynth, people):
    assert dpsynth("key", "init", "mine.key").code == 0
    ran = dpsynth("release", people(), "--sign", "mine.key", "--json")
    assert ran.code == 0, ran.err
    return ran.json["files"]


def checked(dpsynth, key="mine.key.pub", audit="out/people.audit.public.json"):
    return dpsynth("verify", audit, "--key", key)


def test_a_signed_release_is_verified_with_the_public_key(dpsynth, signed, tmp_path):
    assert signed["signature"] == str(tmp_path / "out/people.intoto.jsonl")
    for audit in ("out/people.audit.public.json", "out/people.audit.json"):
        ran = checked(dpsynth, audit=audit)
        assert ran.code == 0, ran.err
        assert "the signature: of mine.key.pub" in ran.out
    envelope = json.loads((tmp_path / signed["signature"]).read_text())
    payload = base64.b64decode(envelope["payload"])
    statement = json.loads(payload)
    assert sorted(one["name"] for one in statement["subject"]) == sorted(NAMES)
    assert statement["predicate"]["publishable"] is True
    # Anybody can check it without this tool.
    key = load_pem_public_key((tmp_path / "mine.key.pub").read_bytes())
    key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), pae(PAYLOAD_TYPE, payload))
    assert os.stat(tmp_path / "mine.key").st_mode & 0o777 == 0o600
    dates = {(tmp_path / "out" / name).stat().st_mtime for name in ("people.intoto.jsonl", NAMES[2])}
    assert len(dates) == 1


@pytest.mark.parametrize("name", [*NAMES, "people.intoto.jsonl"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.97])
def test_a_changed_byte_anywhere_is_found(dpsynth, signed, tmp_path, name, part):
    path = tmp_path / "out" / name
    data = bytearray(path.read_bytes())
    at = int(len(data) * part)
    data[at] ^= 1
    path.write_bytes(data)
    assert checked(dpsynth).code == 4


def test_a_stewards_copy_of_another_release_does_not_pass_for_the_signed_one(
    dpsynth, people, signed, tmp_path
):
    """Both would be verified: the signature over files that are beside it, the audit over its own."""
    ours = tmp_path / "out/people.audit.json"
    other = people("marginals", "3")
    other.write_text(other.read_text().replace("out/people.csv", "out/forged.csv"))
    assert dpsynth("release", other).code == 0
    forged = tmp_path / "out/forged.audit.json"
    assert dpsynth("verify", forged).code == 0
    ours.write_bytes(forged.read_bytes())
    ran = checked(dpsynth, audit="out/people.audit.json")
    assert ran.code == 4
    assert "out/people.audit.json is not of the release that was signed" in ran.err


def test_what_is_not_signed_is_not_checked_but_a_missing_signature_is_found(dpsynth, signed, tmp_path):
    (tmp_path / signed["signature"]).unlink()
    assert dpsynth("verify", "out/people.audit.json").code == 0
    ran = checked(dpsynth)
    assert (ran.code, ran.err) == (4, "Error: there is no signature out/people.intoto.jsonl.\n")


def test_another_key_is_found_and_a_release_can_be_signed_later(dpsynth, signed):
    assert dpsynth("key", "init", "other.key").code == 0
    ran = checked(dpsynth, "other.key.pub")
    assert (ran.code, ran.err) == (
        4,
        "Error: out/people.intoto.jsonl was not signed with the key other.key.pub.\n",
    )
    assert dpsynth("key", "sign", "out/people.audit.json", "--key", "other.key").out == (
        "Signed: out/people.intoto.jsonl\n"
    )
    assert checked(dpsynth, "other.key.pub").code == 0
    assert checked(dpsynth).code == 4


def test_a_signature_of_another_kind_of_payload_is_no_signature_of_a_release(dpsynth, signed, tmp_path):
    path = tmp_path / signed["signature"]
    envelope = json.loads(path.read_text())
    path.write_text(json.dumps(envelope | {"payloadType": "application/json"}))
    assert checked(dpsynth).code == 4


def test_the_next_release_without_a_signature_does_not_pass_for_signed(dpsynth, people, signed):
    assert dpsynth("release", people(), "--replace").code == 0
    ran = checked(dpsynth)
    assert (ran.code, ran.err) == (4, "Error: there is no signature out/people.intoto.jsonl.\n")


def test_a_key_that_cannot_sign_is_refused_before_the_charge(dpsynth, people, tmp_path):
    dpsynth("key", "init", "mine.key")
    rsa = generate_private_key(65537, 2048)
    wrong = {
        "absent.key": None,
        "text.key": b"hello",
        "rsa.key": rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "locked.key": rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")),
        "mine.key.pub": (tmp_path / "mine.key.pub").read_bytes(),
    }
    for name, data in wrong.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
            (tmp_path / name).chmod(0o600)
        ran = dpsynth("release", people(), "--sign", name)
        assert ran.code == (5 if data is None else 2)
        assert name in ran.err
    (tmp_path / "mine.key").chmod(0o640)
    ran = dpsynth("release", people(), "--sign", "mine.key")
    assert (ran.code, ran.err) == (
        2,
        "Error: others can read the key mine.key.\n"
        "Nothing was read and nothing was spent. Close it first: chmod 600 mine.key\n",
    )
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_key_is_never_replaced(dpsynth):
    assert dpsynth("key", "init", "mine.key").code == 0
    ran = dpsynth("key", "init", "mine.key")
    assert (ran.code, ran.err) == (
        2, "Error: mine.key exists already.\nChoose another name: a key is never replaced.\n"
    )  # fmt: skip


def test_the_lengths_are_part_of_what_is_signed():
    assert pae("a", b"bc") != pae("ab", b"c")
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
