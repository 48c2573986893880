"""Unfinished releases: what a crash or Ctrl-C left beside an output, and what the same command does then.

A release is paid for before it reads a row. So whoever types the same command again means the one that is
paid for: it goes on where it stopped, with the answers it has, and is charged nothing. What was given back,
or is published already, is cleaned up; everything else is explained, and never removed.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth_cli.disk import lock
from dpsynth_cli.errors import UsageError
from dpsynth_cli.release.publish import Files
from dpsynth_cli.release.transcript import PartialTranscript
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
    times = [path.stat().st_mtime_ns] if path.exists() else []
    if path.is_dir():
        times += [file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()]
    return {"path": str(path), "modified": max(times, default=0)}


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
    """The unfinished releases in a folder, of one output or of all, oldest first. Changes nothing."""
    found = []
    for path, match in _named(folder, PARTIAL, stem):
        said, alive = PartialTranscript.peek(path), _alive(path)
        if said is None or alive is None:
            continue
        header, private, answers = said
        found.append(Left(path, header, private, answers, _state(ledger, match["id"]), alive))
    return sorted(found, key=lambda left: left.path.stat().st_mtime if left.path.exists() else 0)


def going_on(spec: Spec, files: Files, ledger: Ledger, request: Request) -> PartialTranscript | None:
    """The unfinished release that this command means, locked; None if a new one is meant.

    Refuses where it is not clear which is meant: then nothing is charged, and the words say how to say it.
    """
    with files.locked():
        clean(files, ledger)
        left = left_in(files.folder, ledger, files.stem)
    here = None if request.in_memory else place_of(spec.input)
    same = [one for one in left if one.matches(spec) and one.state != "aborted"]
    if not request.again:
        for one in same:
            if one.running:
                continue
            if one.state is None:
                raise UsageError(
                    f"the ledger {ledger.path} does not hold the charge of {one.path.name}.",
                    next_step="Name the ledger it was started with: --ledger FILE, or $DPSYNTH_LEDGER. "
                    "Or pay for a new release: --again.",
                )
            known = one.input_is(here)
            if not request.resume and known != "same" and _in_place(files, ledger, one):
                one.path.unlink(missing_ok=True)  # a crash came after the last step, and this is another run
                continue
            if request.resume or one.state == "committed" or known == "same":
                partial = PartialTranscript.reopen(one.path)
                if partial is not None:
                    return partial
            elif known == "unknown":
                raise UsageError(
                    f"an unfinished release of {files.output_name} is paid for ({one.paid}), and whether "
                    "its input is still the same cannot be told.",
                    next_step="If it is, finish that one: --resume. If not, pay for a new one: --again.",
                )
    if request.resume:
        raise _nothing_to_resume(files, left, same)
    _refuse_running(files, same, here, request)
    for one in left:
        if not one.running and one.path.exists():
            request.say(explained(one))
    return None


def refuse_running(spec: Spec, files: Files, ledger: Ledger, request: Request) -> None:
    """Refuse to charge what another process has just begun; with the folder locked."""
    here = None if request.in_memory else place_of(spec.input)
    left = left_in(files.folder, ledger, files.stem)
    _refuse_running(files, [one for one in left if one.matches(spec)], here, request)


def _refuse_running(files: Files, same: list[Left], here: dict[str, Any] | None, request: Request) -> None:
    if any(one.running and one.input_is(here) != "other" for one in same) and not request.again:
        raise UsageError(
            f"this release of {files.output_name} is being made by another process right now.",
            next_step="Wait for it, or pay for a second one: --again.",
        )


def explained(one: Left) -> str:
    """An unfinished release that stays as it is, in words."""
    if one.state is None:
        return f"note: {one.path} is an unfinished release that this ledger does not know."
    if one.state == "aborted":
        return f"note: {one.path} is a release that was given up; it can be removed."
    day = one.header["release"]["day"]
    return (
        f"note: {one.path} is an unfinished release, paid for on {day} ({one.paid}). Finish it: {one.finish}"
    )


def clean(files: Files, ledger: Ledger) -> None:
    """Remove what is known to be of no use, with the folder locked: of releases that were given back, and
    what was cut off before it was begun, whose charge is given back."""
    for path, match in _named(files.folder, PARTIAL, files.stem):
        if _alive(path) is not False:
            continue
        if _state(ledger, match["id"]) == "aborted" and _refunded(ledger, match["id"]):
            path.unlink(missing_ok=True)
    begun = {match["id"] for _, match in _named(files.folder, PARTIAL, files.stem)}
    for path, match in _named(files.folder, TORN, files.stem):
        if _alive(path) is not False:
            continue
        unbegun = match["kind"] == "partial.new" and match["id"] not in begun
        if unbegun and _state(ledger, match["id"]) == "reserved":
            ledger.abort(match["id"], "stopped before it was begun")
        path.unlink(missing_ok=True)
    for path, match in _named(files.folder, UNSEEN):
        if match["id"] not in begun and _state(ledger, match["id"]) in ("committed", "aborted"):
            path.unlink(missing_ok=True)


def _nothing_to_resume(files: Files, left: list[Left], same: list[Left]) -> UsageError:
    if any(one.running for one in left):
        why = "the unfinished release beside it is still running."
    elif len(left) > len(same):
        why = "the unfinished release beside it was started with another spec or other options."
    else:
        why = "there is no unfinished release beside it."
    return UsageError(f"nothing to resume for {files.output_name}: {why}", next_step="")


def _named(
    folder: Path, pattern: re.Pattern[str], stem: str | None = None
) -> Iterator[tuple[Path, re.Match[str]]]:
    """Files of a folder whose name has this form, and this stem if one is given."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    for name in names:
        match = pattern.fullmatch(name)
        if match and (stem is None or match["stem"] == stem):
            yield folder / name, match


def _alive(path: Path) -> bool | None:
    """Whether the process that writes it lives; None if the file is gone or not ours to open."""
    with suppress(OSError), open(path, "r+b") as file:
        return not lock(file, wait=False)
    return None


def _state(ledger: Ledger, release_id: str) -> str | None:
    try:
        return ledger.state(release_id)
    except NoLedger:
        return None


def _refunded(ledger: Ledger, release_id: str) -> bool:
    return bool(ledger.find(release_id)[-1].payload.get("refunded"))


def _in_place(files: Files, ledger: Ledger, one: Left) -> bool:
    """Whether the files that the ledger committed are all under their names."""
    if one.state != "committed" or files.output is None:
        return False
    committed = next(entry.payload for entry in ledger.find(one.release_id) if entry.kind == "commit")
    return bool(committed == files.hashes())
