"""What is under way: unfinished releases, streams, charges without either, and what to type next."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsynth_cli.release.record.unfinished import PARTIAL, left_in
from dpsynth_cli.trusted.ledger.chain import Entry, NoLedger
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.state import Store

DEEPEST = 6  # folders below the one that is looked through


@dataclass(frozen=True)
class Line:
    """One thing that is under way: what it is, how far it has come, and what to do about it."""

    kind: str  # release, charge or stream
    name: str
    dataset: str
    state: str
    day: str
    place: str
    next: str


def status(folders: Sequence[Path], ledger: Ledger) -> list[Line]:
    """Everything that is under way, as far as the ledger knows it or files in these folders show it."""
    releases, seen = _releases(folders, ledger)
    try:
        open_, streams = ledger.unfinished(), ledger.streams()
    except NoLedger:
        return releases
    charges = [_charge(entry, ledger) for entry in open_ if entry.release not in seen]
    return [*releases, *charges, *(_stream(ledger, charge, last) for charge, last in streams)]


def _releases(folders: Sequence[Path], ledger: Ledger) -> tuple[list[Line], set[str]]:
    lines, seen = [], set()
    for folder in _with_partials(folders):
        for left in left_in(folder, ledger):
            seen.add(left.release_id)
            state, next_step = f"{left.answers} answers on the disk", left.finish
            if left.running:
                state, next_step = "running now", "wait for it"
            elif left.state is None:
                state, next_step = "not in this ledger", "name its ledger: --ledger, or $DPSYNTH_LEDGER"
            elif left.state == "aborted":
                state, next_step = "given up", f"remove {left.path}"
            elif left.state == "committed":
                state = "complete, not all of its files are in place"
            about, dataset = left.header["release"], left.header["ledger"]["dataset"]
            state = f"{left.paid}, {state}"
            lines.append(
                Line("release", about["name"], dataset, state, about["day"], str(left.path), next_step)
            )
    return lines, seen


def _with_partials(folders: Sequence[Path]) -> Iterator[Path]:
    done = set()
    for top in folders:
        for folder, inside, names in os.walk(top):
            depth = len(Path(folder).relative_to(top).parts)
            inside[:] = sorted(name for name in inside if not name.startswith(".") and depth < DEEPEST)
            if any(map(PARTIAL.fullmatch, names)) and os.path.realpath(folder) not in done:
                done.add(os.path.realpath(folder))
                yield Path(folder)


def _charge(entry: Entry, ledger: Ledger) -> Line:
    if ledger.state(entry.release) == "reserved":
        state = "charged, and no row was read"
        next_step = f"unless it is running elsewhere: dpsynth budget refund {entry.release}"
    else:
        state = "rows were read, and nothing was published"
        next_step = "look where its output is, for a .partial file to finish: dpsynth status FOLDER"
    return Line(
        "charge", entry.payload["name"], entry.dataset, state, entry.time[:10], entry.release, next_step
    )


def _stream(ledger: Ledger, charge: Entry, last: Entry | None) -> Line:
    name = str(charge.payload["name"])
    store = Store.of(name, ledger)
    if store.exists:
        state = f"generation {last.payload['generation']}" if last else "charged, not begun"
        next_step = f"dpsynth stream {'push SPEC BATCH --batch-id ID --publish' if last else 'init SPEC'}"
    else:
        state = "its state is not here"
        next_step = "put its newest state back there; if it is lost: dpsynth stream init SPEC --start-over"
    return Line("stream", name, charge.dataset, state, charge.time[:10], str(store.path), next_step)
