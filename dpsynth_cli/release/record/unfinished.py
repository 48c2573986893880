"""Unfinished releases: what a crash or Ctrl-C left beside an output, and what of that is of no use.

What the same command does with them is said in `again.py`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth_cli import disk
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.record.transcript import PartialTranscript
from dpsynth_cli.spec.spec import Spec, public_document
from dpsynth_cli.trusted.ledger.chain import NoLedger
from dpsynth_cli.trusted.ledger.ledger import Ledger

PARTIAL = re.compile(r"\.(?P<stem>.+)\.(?P<id>[0-9a-f]{32})\.partial")
TORN = re.compile(r"\.(?P<stem>.+)\.(?P<id>[0-9a-f]{32})\.(?P<kind>partial\.new|rewrite|rewrite\.new)")
UNSEEN = re.compile(r"\..+\.(?P<id>[0-9a-f]{32})\.tmp")


def print_nothing(words: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Request:
    """How a release was asked for.

    `resume`: finish an unfinished one, else fail. `again`: a new one, even beside an unfinished one of the
    same. `replace`: a paid output of this name may be replaced. `command` is what was typed, for `dpsynth
    status`; `in_memory`: the input is a copy of something that has no place of its own.
    """

    resume: bool = False
    again: bool = False
    replace: bool = False
    command: tuple[str, ...] = ()
    in_memory: bool = False
    say: Callable[[str], None] = print_nothing

    def __post_init__(self) -> None:
        if self.resume and self.again:
            raise UsageError(
                "--resume finishes a release that is paid for, and --again pays for a new one.",
                next_step="Drop one of them.",
            )

    def private(self, spec: Spec) -> dict[str, Any]:
        """What the partial keeps for the steward's side alone."""
        return {
            "input": None if self.in_memory else place_of(spec.input),
            "folder": str(Path.cwd()),
            "command": list(self.command),
        }


def place_of(source: str) -> dict[str, Any] | None:
    """Which file the input is, and when it was last written: never anything of what is in it.

    None for what has no place: standard input.
    """
    if source in ("", "-"):
        return None
    path = Path(os.path.realpath(source))
    return {"path": str(path), "modified": disk.newest(path)}


@dataclass(frozen=True)
class Left:
    """One unfinished release: what it says, what the ledger says of it, and whether its process lives."""

    path: Path
    header: dict[str, Any]
    private: dict[str, Any]
    answers: int
    state: str | None
    running: bool

    @property
    def release_id(self) -> str:
        return str(self.header["release"]["id"])

    @property
    def paid(self) -> str:
        """What it cost, in words."""
        privacy = self.header["spec"]["privacy"]
        at = f", delta = {privacy['delta']}" if privacy.get("delta") else ""
        return f"epsilon = {privacy['epsilon']}{at} of {privacy['dataset']}"

    @property
    def finish(self) -> str:
        """What to type so that it is finished."""
        typed = [word for word in self.private.get("command", ()) if word not in ("--again", "--resume")]
        if not typed:
            return "the same command with --resume"
        folder = str(self.private.get("folder", ""))
        there = "" if folder == str(Path.cwd()) else f"cd {shlex.quote(folder)} && "
        return f"{there}{shlex.join(['dpsynth', *typed, '--resume'])}"

    def matches(self, spec: Spec) -> bool:
        return bool(self.header["spec"] == public_document(spec.effective))

    def input_is(self, here: dict[str, Any] | None) -> str:
        """Whether it reads the same input as is meant now: same, other, or unknown (changed, or no place)."""
        there = self.private.get("input")
        if there is None or here is None:
            return "unknown"
        if there["path"] != here["path"]:
            return "other"
        return "same" if there["modified"] == here["modified"] else "unknown"


def left_in(folder: Path, ledger: Ledger, stem: str | None = None) -> list[Left]:
    """The unfinished releases in a folder, of one output or of all, oldest first. Changes nothing.

    One of this output that belongs to another user is refused: it may be paid for.
    """
    found = []
    for path, match in _named(folder, PARTIAL, stem):
        try:
            said, alive, written = PartialTranscript.peek(path), _alive(path), disk.modified(path)
        except FileNotFoundError:  # published meanwhile
            continue
        except PermissionError as error:
            if stem is None:
                continue
            raise _not_ours(path, error) from None
        if said is None or alive is None:
            continue
        header, private, answers = said
        left = Left(path, header, private, answers, _state(ledger, match["id"]), alive)
        found.append((written, left))
    return [left for _, left in sorted(found, key=lambda one: one[0])]


def clean(files: Files, ledger: Ledger) -> None:
    """Remove what is known to be of no use, with the folder locked: of releases that were given back, and
    what was cut off before it was begun, whose charge is given back."""
    for path, match in _named(files.folder, PARTIAL, files.stem):
        if not _dead(path):
            continue
        if _state(ledger, match["id"]) == "aborted" and _refunded(ledger, match["id"]):
            disk.remove(path)
    begun = {match["id"] for _, match in _named(files.folder, PARTIAL, files.stem)}
    for path, match in _named(files.folder, TORN, files.stem):
        if not _dead(path):
            continue
        unbegun = match["kind"] == "partial.new" and match["id"] not in begun
        if unbegun and _state(ledger, match["id"]) == "reserved":
            ledger.refund(match["id"], "stopped before it was begun")
        disk.remove(path)
    for path, match in _named(files.folder, UNSEEN):
        if match["id"] not in begun and _state(ledger, match["id"]) in ("committed", "aborted"):
            disk.remove(path)


def _named(
    folder: Path, pattern: re.Pattern[str], stem: str | None = None
) -> Iterator[tuple[Path, re.Match[str]]]:
    """Files of a folder whose name has this form, and this stem if one is given."""
    for name in disk.names(folder):
        match = pattern.fullmatch(name)
        if match and (stem is None or match["stem"] == stem):
            yield folder / name, match


def _alive(path: Path) -> bool | None:
    """Whether the process that writes it lives; None if the file is gone."""
    try:
        with disk.reopen(path) as file:
            return not disk.lock(
                file, wait=False, shared=True
            )  # who looks does not seem alive to who looks too
    except FileNotFoundError:
        return None


def _dead(path: Path) -> bool:
    """Whether it is there, ours, and nobody's any more."""
    try:
        return _alive(path) is False
    except PermissionError:
        return False


def _not_ours(path: Path, error: OSError) -> FileError:
    """Whose it is, and whether it is paid for, cannot be told: so nothing is charged beside it."""
    return FileError(
        f"{path} is an unfinished release that this user cannot open: {error.strerror}.",
        next_step="Whoever began it can finish it: dpsynth status. Or choose another --output.",
    )


def _state(ledger: Ledger, release_id: str) -> str | None:
    try:
        return ledger.state(release_id)
    except NoLedger:
        return None


def _refunded(ledger: Ledger, release_id: str) -> bool:
    return bool(ledger.find(release_id)[-1].payload.get("refunded"))
