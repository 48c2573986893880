"""A paid output under its name: it is not replaced by accident, and when it is, nothing of it is lost."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth_cli import disk
from dpsynth_cli.errors import UsageError
from dpsynth_cli.hashing import file_sha256

if TYPE_CHECKING:
    from dpsynth_cli.release.files.publish import Files


# Made of a finished release by other commands: dpsynth key sign, report, record.
ASIDE = (
    "intoto.jsonl", "report.html", "report.public.html", "croissant.json", "dcat.json", "schema.json",
)  # fmt: skip


def check_free(files: Files, replace: bool, release_id: str | None = None) -> None:
    """Refuse, before anything is charged, to replace a release that is there, unless that is wanted, or it is
    this one."""
    if replace:
        return
    release = _release(files)
    if release is not None and release_id is not None and _id(release) == release_id:
        return
    if release is None:
        there = [path for path in (files.output, *files.others) if path is not None and disk.exists(path)]
        if not there:
            return
        happened = f"{there[0]} is already there."
    else:
        paid = f", {spent}" if (spent := _spent(release)) else ""
        happened = f"{files.output or files.public_audit} is already released (on {_day(release)}{paid})."
    raise UsageError(
        happened,
        next_step="Say --replace to put a new release in its place (the old one is kept in a folder beside "
        "it), or choose another --output, such as out/{date}/NAME.csv.",
    )


def keep(files: Files, release_id: str) -> None:
    """Before a release takes the names of another: all files of that one into a folder that is named by its
    day. Readers see the old file or the new one, never none."""
    release = _release(files)
    if release is None or _id(release) == release_id:
        return
    folder = files.folder / f"{files.stem}.{_day(release)}.{_id(release)[:8]}"
    disk.make_folder(folder)
    named = [files.transcript, files.audit, files.public_audit, *files.others]
    for path in named if files.output is None else [files.output, *named]:
        if disk.exists(path):
            _copy(path, folder / path.name)
    # What the new release may not have: it must not stand beside it.
    for ending in ASIDE:
        name = f"{files.stem}.{ending}"
        if disk.exists(files.folder / name):
            disk.replace(files.folder / name, folder / name)
    disk.sync_folder(folder)


def _copy(path: Path, target: Path) -> None:
    """A second name for the same bytes; where there are no hard links, a copy. Twice is as good as once."""
    if disk.exists(target):
        return
    try:
        disk.link(path, target)
    except OSError:
        disk.copy(path, target.with_suffix(".tmp"))
        disk.replace(target.with_suffix(".tmp"), target)


def _release(files: Files) -> dict[str, Any] | None:
    """The audit of what is under these names, as far as it can be read; None if there is no receipt."""
    for path in (files.public_audit, files.audit):
        try:
            audit = json.loads(disk.read(path))
        except (OSError, ValueError):
            continue
        if isinstance(audit, dict):
            return audit
    receipts = [path for path in (files.public_audit, files.audit, files.transcript) if disk.exists(path)]
    if not receipts:
        return None
    written = datetime.fromtimestamp(disk.modified(receipts[0]) / 1e9, timezone.utc)
    return {"release": {"day": written.date().isoformat(), "id": file_sha256(receipts[0])}}


def _about(release: dict[str, Any]) -> dict[str, Any]:
    about = release.get("release")
    return about if isinstance(about, dict) else {}


def _day(release: dict[str, Any]) -> str:
    day = str(_about(release).get("day", ""))
    return day if len(day) == 10 and day.replace("-", "").isalnum() else "undated"


def _id(release: dict[str, Any]) -> str:
    own = str(_about(release).get("id", ""))
    return own if own.isalnum() else "unknown"


def _spent(release: dict[str, Any]) -> str:
    try:
        guarantee, dataset = release["guarantee"], release["budget"]["ledger"]["dataset"]
        return f"epsilon = {guarantee['epsilon']} of {dataset}"
    except (KeyError, TypeError):
        return ""
