"""The same command again: which release it means, one that is paid for and unfinished, or a new one.

A release is paid for before it reads a row. So whoever types the same command again means the one that is
paid for: it goes on where it stopped, with the answers it has, and is charged nothing. What was given back,
or is published already, is cleaned up; everything else is explained, and never removed.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from glob import escape
from pathlib import Path

from dpsynth_cli import disk
from dpsynth_cli.errors import UsageError
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.record.transcript import PartialTranscript
from dpsynth_cli.release.record.unfinished import PARTIAL, Left, Request, clean, left_in, place_of
from dpsynth_cli.spec.document import effective
from dpsynth_cli.spec.paths import DATE
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.ledger.ledger import Ledger


def going_on(spec: Spec, files: Files, ledger: Ledger, request: Request) -> PartialTranscript | None:
    """The unfinished release that this command means, locked; None if a new one is meant.

    Refuses where it is not clear which is meant: then nothing is charged, and the words say how to say it.
    """
    with files.locked():
        clean(files, ledger)
        left = left_in(files.folder, ledger, files.stem)
    here = None if request.in_memory else place_of(spec.input)
    same = [one for one in left if one.matches(spec) and one.state != "aborted"]
    same.sort(key=lambda one: ("same", "unknown", "other").index(one.input_is(here)))
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
                disk.remove(one.path)  # a crash came after the last step, and this is another run
                continue
            if request.resume or one.state == "committed" or known == "same":
                return _reopened(files, one)
            if known == "unknown":
                raise UsageError(
                    f"an unfinished release of {files.output_name} is paid for ({one.paid}), and whether "
                    "its input is still the same cannot be told.",
                    next_step="If it is, finish that one: --resume. If not, pay for a new one: --again.",
                )
    if request.resume:
        raise _nothing_to_resume(files, left, same)
    if any(one.running and one.input_is(here) != "other" for one in same) and not request.again:
        raise _being_made(files)
    for one in left:
        if not one.running and disk.exists(one.path):
            request.say(explained(one))
    return None


def of_its_day(spec: Spec, ledger: Ledger, request: Request) -> Spec:
    """The spec as it was on the day of the unfinished release that is meant, where its output names the day:
    the same command after midnight finds what is paid for, and finishes it where it was begun."""
    if request.again or not spec.dated:
        return spec
    here = None if request.in_memory else place_of(spec.input)
    for day in _days(spec.dated):
        then = replace(spec, output=spec.dated.replace(DATE, day))
        then = replace(then, effective=effective(then))
        files = Files.of(then)
        for one in [] if then.output == spec.output else left_in(files.folder, ledger):  # those of this user
            known = one.input_is(here)
            meant = known == "same" or (request.resume and known == "unknown")
            paid = one.state in ("reserved", "drawn", "committed") and not one.running
            if meant and paid and one.matches(then) and not _in_place(files, ledger, one):
                return then
    return spec


def _days(dated: str) -> list[str]:
    """The days that have something unfinished beside the output of that day, in order."""
    first, *others = map(re.escape, os.path.splitext(dated)[0].split(DATE))
    form = re.compile(first + r"(?P<day>\d{4}-\d\d-\d\d)" + "(?P=day)".join(others))
    folders = disk.matching("????-??-??".join(map(escape, os.path.dirname(dated).split(DATE))) or ".")
    found = set()
    for folder in folders:
        for name in disk.names(Path(folder)):
            partial = PARTIAL.fullmatch(name)
            of = os.path.join(folder if os.path.dirname(dated) else "", partial["stem"]) if partial else ""
            if match := form.fullmatch(of):
                found.add(match["day"])
    return sorted(found)


def refuse_begun(spec: Spec, files: Files, ledger: Ledger, request: Request) -> None:
    """Refuse to charge what another process has begun since this one looked; with the folder locked."""
    if request.again:
        return
    here = None if request.in_memory else place_of(spec.input)
    for one in left_in(files.folder, ledger, files.stem):
        if one.matches(spec) and one.state != "aborted" and one.input_is(here) != "other":
            raise _being_made(files)


def _reopened(files: Files, one: Left) -> PartialTranscript:
    """Locked for this process. Somebody who only looks, such as `dpsynth status`, has it for a moment."""
    for _ in range(20):
        partial = PartialTranscript.reopen(one.path)
        if partial is not None:
            return partial
        disk.sleep(0.01)
    raise _being_made(files)


def _being_made(files: Files) -> UsageError:
    return UsageError(
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


def _nothing_to_resume(files: Files, left: list[Left], same: list[Left]) -> UsageError:
    if any(one.running for one in left):
        why = "the unfinished release beside it is still running."
    elif len(left) > len(same):
        why = "the unfinished release beside it was started with another spec or other options."
    else:
        why = "there is no unfinished release beside it."
    return UsageError(f"nothing to resume for {files.output_name}: {why}", next_step="")


def _in_place(files: Files, ledger: Ledger, one: Left) -> bool:
    """Whether the files that the ledger committed are all under their names."""
    if one.state != "committed" or files.output is None:
        return False
    committed = next(entry.payload for entry in ledger.find(one.release_id) if entry.kind == "commit")
    return bool(committed == files.hashes())
