"""What of a stream may have been published: as the ledger says it, and as the files beside the output do.

A ledger and a state that were restored together agree with each other and know nothing of what came after
them. Published files do, so nothing that they hold is drawn again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpsynth_cli import disk
from dpsynth_cli.errors import FileError, UsageError, VerificationError
from dpsynth_cli.hashing import sha256
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.state import StreamState

PUBLISHING = {"publishing": "begun"}  # what the ledger has of a snapshot before its files are written
AUDIT = ".audit.public.json"  # how the names of public audits end


def snapshot_id(stream_id: str, release: int) -> str:
    """A name for the snapshots of a release; nothing but public words goes into it."""
    return sha256(f"{stream_id} {release}".encode())[:32]


def check_own(files: Files, state: StreamState, cost: str) -> None:
    """A snapshot replaces the one before, and nothing else."""
    public = _document(files.public_audit)
    if public is not None and _chosen(public).get("stream") != state.stream_id:
        raise UsageError(
            f"{files.output or files.public_audit} is the release of something else than this stream.",
            cost,
            "Choose another --output, or move those files away.",
        )


def check_whole(spec: Spec) -> None:
    """Refuse to give up a stream while its snapshot is half in place: nobody could ever finish it."""
    files = Files.of(spec)
    there = files.hashes()
    public = _document(files.public_audit)
    try:
        told = {"output": public["output"]["sha256"], "transcript": public["transcript"]["sha256"]}
    except (KeyError, TypeError):
        told = {}
    named = {key: there[key] for key in ("output", "transcript") if key in there}
    if files.output is None or not there.keys() & {"transcript", "public_audit"} or named == told:
        return
    raise UsageError(
        f"the files of {files.output} are not of one snapshot: its publishing was cut off.",
        "Nothing was charged.",
        "Finish it with: dpsynth stream publish SPEC. If the stream's state is lost, move those files away.",
    )


def check_published(spec: Spec, ledger: Ledger, state: StreamState) -> None:
    """Refuse a ledger older than a snapshot that is already there: state and ledger were both restored."""
    public = _document(Files.of(spec).public_audit)
    try:
        known = str(public["budget"]["ledger"]["hash"])
    except (KeyError, TypeError):
        return
    if _chosen(public).get("stream") == state.stream_id and ledger.entry(known) is None:
        raise VerificationError(
            f"the ledger {ledger.path} does not have the entry that the published snapshot names: it is an "
            "older copy.",
            "Nothing was read and nothing was published.",
            "Restore the newest ledger and state together; a stream cannot go on from a copy of before.",
        )


def note_publishing(spec: Spec, ledger: Ledger, state: StreamState) -> None:
    """Have the ledger know that a snapshot of the last release is about to be written, wherever that is."""
    own_id = snapshot_id(state.stream_id, state.release["number"])
    if not ledger.find(own_id):
        ledger.note(spec.privacy.dataset, own_id, PUBLISHING)


def check_unpublished(spec: Spec, ledger: Ledger, state: StreamState, batch_id: str) -> None:
    """Refuse to forget the last release if anybody can have seen a snapshot of it: the ledger knows of one,
    or one lies in the output's folder, under its name or not yet.
    """
    folder, made = Files.of(spec).folder, state.release["number"]
    own_id = snapshot_id(state.stream_id, made)
    try:
        names = disk.names(folder)
        newest = _newest_snapshot([folder / name for name in names], state.stream_id)
    except OSError as error:
        raise FileError(
            f"cannot read {error.filename or folder}, which may be a snapshot: {error.strerror}.",
            "Nothing was changed.",
            "Make the files there readable, and run it again.",
        ) from None
    known = [entry.payload for entry in ledger.find(own_id)]
    if newest >= made or any(payload != PUBLISHING for payload in known):
        raise UsageError(
            f"release {made}, which the batch {batch_id} is in, was published.",
            "Nothing was changed.",
            "What was published stays so. Rows that must go can be pushed with --delete.",
        )
    if known or any(name.endswith(f".{own_id}.tmp") for name in names):
        raise UsageError(
            f"a snapshot of release {made}, which the batch {batch_id} is in, was being published, and that "
            "was cut off: its files may have been seen.",
            "Nothing was changed.",
            "Finish it with: dpsynth stream publish SPEC (-o FILE if it was to go there). Rows that must go "
            "can be pushed with --delete.",
        )


def _newest_snapshot(paths: Iterable[Path], stream_id: str) -> int:
    """The last release of a stream that has a snapshot among files, whatever its name; 0 if none has."""
    found = [_chosen(_parsed(disk.read(path))) for path in paths if path.name.endswith(AUDIT)]
    numbers = [one.get("release") for one in found if one.get("stream") == stream_id]
    return max((number for number in numbers if isinstance(number, int)), default=0)


def _document(path: Path) -> Any:
    """A public audit; None if there is none that can be read."""
    try:
        return _parsed(disk.read(path))
    except OSError:
        return None


def _parsed(data: bytes) -> Any:
    """A document; None for what is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _chosen(public: Any) -> dict[str, Any]:
    """What a public audit says of its mechanism's choices: a snapshot's stream and release are there."""
    try:
        chosen = public["mechanism"]["chosen"]
    except (KeyError, TypeError):
        return {}
    return chosen if isinstance(chosen, dict) else {}
