"""Check a release without its data: every document is made again from the transcript and compared."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpsynth_cli.errors import FileError, UsageError, VerificationError
from dpsynth_cli.hashing import sha256
from dpsynth_cli.numbers import shown
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.documents import signing
from dpsynth_cli.release.documents.audit import CONFIDENTIAL, OF_ANSWERS, REQUIRED, as_text, groups_audit
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.release.replay import replay
from dpsynth_cli.release.synthesis import compose, versions
from dpsynth_cli.spec.spec import from_document
from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path


def verify(
    audit_path: Path,
    output: Path | None = None,
    transcript: Path | None = None,
    ledger: Ledger | str | None = None,
    key: Path | None = None,
    progress: Progress = no_progress,
) -> list[str]:
    """What was checked, a sentence each; VerificationError at the first thing that does not fit."""
    audit = load_audit(audit_path)
    signed = [] if key is None else [signing.check(audit_path, key, output, transcript)]
    if "transcript" not in audit:
        return signed + _verify_groups(audit_path, audit, output, ledger)
    try:
        transcript = transcript or audit_path.parent / audit["transcript"]["file"]
        name, claimed = audit["output"]["file"], audit["output"]["sha256"]
        claimed_transcript = audit["transcript"]["sha256"]
    except (KeyError, TypeError):
        raise VerificationError(f"{audit_path} is not a whole audit.", "") from None
    recorded, digest = load(transcript)
    if digest != claimed_transcript:
        raise VerificationError(f"{transcript} is not the transcript that {audit_path.name} names.", "")
    spec, outcome = replay(recorded, progress)
    accountant = outcome.accountant
    findings = [
        f"the bill: {len(outcome.charges)} charges, {shown(accountant.spent)} of {shown(accountant.total)} "
        f"{accountant.currency}"
    ]
    with TemporaryDirectory() as folder:
        again = Path(folder) / ("rebuilt.csv" if name == "-" else Path(name).name)
        others = tuple(Path(folder) / Path(one.child.spec.output).name for one in outcome.tables)
        files = Files(Path(folder), transcript.name.removesuffix(".transcript.arrow"), again, others)
        pending, rebuilt = compose(spec, recorded, outcome, files, progress)
        pending.publish()
        released = output or _beside(audit_path, name)
        findings.append(_compare_output(again, pending.sha256, audit, claimed, released))
        beside = audit_path.parent if released is None else released.parent
        for path, own, made in zip(others, _children(audit), rebuilt.get("tables", ()), strict=True):
            found = made["output"]["sha256"]
            same = _compare_output(path, found, audit, own["sha256"], beside / path.name)
            findings.append(f"{made['name']}, {same}")
            made["output"]["sha256"] = own["sha256"]
    rebuilt["output"] |= {"file": name, "sha256": claimed}
    changed = _differences({k: v for k, v in audit.items() if k not in CONFIDENTIAL}, rebuilt)
    if changed:
        raise VerificationError(f"{audit_path} was edited: {', '.join(changed)}.", "")
    findings.append("the audit: every public field follows from the transcript")
    return signed + findings + _check_ledger(audit, ledger, {"transcript": claimed_transcript})


def _verify_groups(
    audit_path: Path, audit: dict[str, Any], output: Path | None, ledger: Ledger | str | None
) -> list[str]:
    """A release by groups has no transcript: its words must follow from its spec, its bytes are compared."""
    try:
        spec = from_document(audit["spec"])
        name, claimed = audit["output"]["file"], audit["output"]["sha256"]
        again = groups_audit(spec, audit["release"], audit["budget"]["ledger"], audit["output"])
    except (KeyError, TypeError, AttributeError, UsageError):
        raise VerificationError(f"{audit_path} is not a whole audit.", "") from None
    changed = _differences({k: v for k, v in audit.items() if k not in CONFIDENTIAL}, again)
    if spec.privacy.epsilon is not None or changed:
        raise VerificationError(f"{audit_path} was edited: {', '.join(changed) or 'transcript'}.", "")
    findings = ["the audit: a release by groups, not differentially private; its words follow from its spec"]
    released = output or _beside(audit_path, name)
    if released is not None:
        _check_bytes(released, claimed)
        findings.append("the synthetic file: the bytes that were released; it cannot be rebuilt without data")
    return findings + _check_ledger(audit, ledger, {"public_audit": sha256(as_text(again))})


def load_audit(path: Path) -> dict[str, Any]:
    """The audit in a file, whole as far as its first level goes."""
    try:
        audit = json.loads(path.read_bytes())
    except OSError as error:
        raise FileError(f"cannot read the audit {path}: {error.strerror}.", "") from None
    except ValueError:
        if path.suffix != ".json":
            raise UsageError(
                f"{path} is not an audit.", "", "Give the .audit.json or .audit.public.json of the release."
            ) from None
        raise VerificationError(f"{path} is not JSON: it was cut off or edited.", "") from None
    if not isinstance(audit, dict) or audit.get("dpsynth_audit") != 1:
        raise VerificationError(f"{path} is not an audit of dpsynth, version 1.", "")
    grouped = not any(key in audit for key in OF_ANSWERS)
    if not all(key in audit for key in (*REQUIRED, *(() if grouped else OF_ANSWERS))):
        raise VerificationError(f"{path} is not a whole audit.", "")
    return audit


def _beside(audit_path: Path, name: str) -> Path | None:
    return None if name == "-" else audit_path.parent / name


def _children(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """What the audit says of the files of tables of children."""
    try:
        return [{"sha256": str(one["output"]["sha256"])} for one in audit.get("tables", ())]
    except (KeyError, TypeError):
        raise VerificationError("the audit is not whole: a table has no output.", "") from None


def _compare_output(
    rebuilt: Path, digest: str, audit: dict[str, Any], claimed: str, released: Path | None
) -> str:
    """The released file has the audit's hash, and it follows from the transcript."""
    if released is not None:
        _check_bytes(released, claimed)
    if digest == claimed:
        return "the synthetic file: rebuilt from the transcript, the same bytes"
    made, here = audit["release"]["versions"], versions()
    differing = [f"{key} {made.get(key)} there, {at} here" for key, at in here.items() if made.get(key) != at]
    if differing and released is not None and _same_table(rebuilt, released):
        return f"the synthetic file: the same table, in other bytes ({'; '.join(differing)})"
    why = f" Versions differ: {'; '.join(differing)}." if differing else ""
    raise VerificationError(f"the synthetic file does not follow from the transcript.{why}", "")


def _check_bytes(released: Path, claimed: str) -> None:
    try:
        actual = sha256(released.read_bytes())
    except OSError as error:
        raise FileError(
            f"cannot read the synthetic file {released}: {error.strerror}.",
            "",
            "Say where it is: --output FILE.",
        ) from None
    if actual != claimed:
        raise VerificationError(f"{released} is not the file that was released: its bytes differ.", "")


def _same_table(one: Path, other: Path) -> bool:
    """Whether two Parquet files hold the same table: another pyarrow writes other bytes for it."""
    if one.suffix != ".parquet":
        return False
    from pyarrow import parquet

    return bool(parquet.read_table(one).equals(parquet.read_table(other)))


def _differences(given: dict[str, Any], rebuilt: dict[str, Any]) -> list[str]:
    keys = sorted(set(given) | set(rebuilt))
    # `publishable` is what tells the steward's copy from the public one.
    return [key for key in keys if key != "publishable" and given.get(key) != rebuilt.get(key)]


def _check_ledger(audit: dict[str, Any], option: Ledger | str | None, hashes: dict[str, str]) -> list[str]:
    """The ledger is whole and holds these hashes of what was published, and that of the output."""
    ledger = option if isinstance(option, Ledger) else Ledger(ledger_path(option))
    path = ledger.path
    own, release_id = audit["budget"]["ledger"]["hash"], audit["release"]["id"]
    if not ledger.exists():
        if option is not None:
            raise FileError(f"there is no ledger {path}.", "")
        return ["the ledger: not on this machine, not checked"]
    entries = ledger.find(release_id)
    if not entries and option is None:
        return [f"the ledger: {path} does not know this release, not checked"]
    problems = ledger.verify(own)
    if problems:
        raise VerificationError(
            f"the ledger {path} was changed: {problems[0]}",
            "",
            f"See all: dpsynth budget verify --ledger {path}",
        )
    committed = [e.payload for e in entries if "output" in e.payload]
    if not committed:
        raise VerificationError(f"the ledger {path} has no finished release {release_id}.", "")
    hashes = hashes | {"output": audit["output"]["sha256"]}
    hashes |= {f"output {one['output']['file']}": one["output"]["sha256"] for one in audit.get("tables", ())}
    if not any(all(own.get(part) == digest for part, digest in hashes.items()) for own in committed):
        raise VerificationError(f"the ledger {path} holds other hashes for this release.", "")
    return ["the ledger: an unbroken chain, with the charge and the hashes of this release"]
