"""What must hold after every round, and what must hold when everything that can be finished is.

A finding begins with the invariant's own words, so that a smaller schedule is known to fail in the same way.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from fractions import Fraction

import pyarrow as pa
import pyarrow.ipc as ipc

from dpsynth_cli.errors import DpsynthError
from dpsynth_cli.hashing import sha256
from dpsynth_cli.release.record.transcript import KEY
from dpsynth_cli.release.record.unfinished import PARTIAL
from dpsynth_cli.trusted.ledger.chain import Entry, entries
from tests.simulator.commands import BY_HAND, OUT
from tests.simulator.world import World

OVERDRAWN = "nothing is overdrawn"
ONE_CHARGE = "one charge a release"
CHARGED_FIRST = "charged before rows are read"
ONE_ANSWER = "no question is answered twice"
TOGETHER = "files together or not at all"
STAYS = "what is in place stays"
GOES_ON = "every state goes on or is refused in words"
WHOLE = "the ledger is whole"
INVARIANTS = (OVERDRAWN, ONE_CHARGE, CHARGED_FIRST, ONE_ANSWER, TOGETHER, STAYS, GOES_ON, WHOLE)


def after_a_round(world: World) -> list[str]:
    """Whatever has happened."""
    _read_published(world)
    return [*world.seen.wrong, *_refusals(world), *_budget(world), *_charges(world), *_files(world, False)]


def after_all(world: World) -> list[str]:
    """When somebody has finished what could be finished, and nothing happened meanwhile."""
    _read_published(world)
    found = [*world.seen.wrong, *_budget(world), *_charges(world), *_at_once(world)]
    found += [*_files(world, True), *_kept(world)]
    broken = world.ledger().verify()
    return found + [f"{WHOLE}: {problem}" for problem in broken]


# --- words -------------------------------------------------------------------------------------------


def _refusals(world: World) -> list[str]:
    found = [f"{GOES_ON}: all wait for each other"] if world.scheduler.stuck else []
    for error in world.outcomes:
        if error is not None and not in_words(error):
            found.append(f"{GOES_ON}: {type(error).__name__}: {error}")
    return found


def in_words(error: BaseException) -> bool:
    """Whether a command ended as the command line can tell people."""
    return isinstance(error, KeyboardInterrupt) or (isinstance(error, DpsynthError) and bool(error.happened))


# --- budget ------------------------------------------------------------------------------------------


def _budget(world: World) -> list[str]:
    """Sums made anew from the entries: of what is charged, and of all for which rows were ever read."""
    found = []
    granted, charged = Fraction(0), dict[str, Fraction]()
    drawn = set()
    for entry in entries(world.book.db, "ORDER BY number"):
        if entry.kind == "grant":
            granted += Fraction(entry.payload["epsilon"])
        elif entry.kind == "reserve":
            charged[entry.release] = Fraction(entry.payload["charged"])
        elif entry.kind == "drawn":
            drawn.add(entry.release)
        elif entry.kind == "abort" and entry.release not in drawn:
            charged.pop(entry.release, None)
        if sum(charged.values()) > granted:
            found.append(f"{OVERDRAWN}: entry {entry.number} charges {sum(charged.values())} of {granted}")
    if "ledger" not in world.restored and len(world.seen.looked) > granted:
        found.append(f"{OVERDRAWN}: rows were read for {len(world.seen.looked)} releases, {granted} granted")
    return found


def _charges(world: World) -> list[str]:
    """Each release for which rows were read, or that is published, has one charge that stands."""
    found, history = [], _by_release(world)
    for release in sorted(world.seen.looked | {release for release, *_ in world.seen.shown}):
        if release not in history and "ledger" in world.restored:
            continue
        own = history.get(release, [])
        kinds = Counter(entry.kind for entry in own)
        refunded = any(entry.payload.get("refunded") for entry in own if entry.kind == "abort")
        if "ledger" in world.restored and own[-1].payload.get("why") == BY_HAND:
            continue  # an older ledger, and somebody who gives back what it calls unread: nobody can know
        if kinds["reserve"] != 1 or refunded:
            found.append(f"{ONE_CHARGE}: {release} has {[entry.kind for entry in own]}")
    return found


def _at_once(world: World) -> list[str]:
    """Where nothing happened but that processes took turns, and nobody said --again, one output never has two
    unfinished charges."""
    commands = [command for works in world.schedule.rounds for command in works]
    again = {command[1] for command in commands if command[0] == "release" and "again" in command[2]}
    if any(event.kind not in ("switch", "clock") for event in world.schedule.events):
        return []
    found, under_way = [], dict[str, str]()
    for entry in world.book.history:
        if entry.kind == "reserve":
            name = entry.payload["name"]
            number = "abc".find(name)
            if number not in again and name in under_way.values():
                found.append(f"{ONE_CHARGE}: {name} was charged twice at once")
            under_way[entry.release] = name
        elif entry.kind in ("commit", "abort"):
            under_way.pop(entry.release, None)
    return found


def _by_release(world: World) -> dict[str, list[Entry]]:
    """All that ever was recorded; of a restored ledger, what it knows."""
    found: dict[str, list[Entry]] = {}
    known = entries(world.book.db, "ORDER BY number") if "ledger" in world.restored else world.book.history
    for entry in known:
        found.setdefault(entry.release, []).append(entry)
    return found


# --- answers -----------------------------------------------------------------------------------------


def _read_published(world: World) -> None:
    """Everybody may have seen what ever had a public name, or lies whole beside the output."""
    cut_off = [
        (path, bytes(node.data)) for path, node in world.machine.found.items() if path.endswith(".tmp")
    ]
    for path, data in [*world.machine.published, *cut_off]:
        if ".transcript.arrow" in path:
            try:
                reader = ipc.open_file(pa.py_buffer(data))
                header = json.loads(reader.schema.metadata[KEY])
                batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            except Exception:  # torn: the files say so
                continue
            numbers = _numbers(header, len(batches))
            release = header["stream"]["id"] if "stream" in header else header["release"]["id"]
            for number, batch in zip(numbers, batches, strict=True):
                world.seen.answered(release, number, batch.column(0).to_numpy())
    world.machine.published.clear()


def _numbers(header: dict, count: int) -> list[int]:
    """The number of each answer: in a stream, of its release and in that."""
    release = header["stream"]["release"] if "stream" in header else 0
    return [1_000 * release + i for i in range(count)]


# --- files -------------------------------------------------------------------------------------------


def _owners(world: World) -> dict[str, set[str]]:
    """Which releases a hash was recorded for."""
    owners: dict[str, set[str]] = {}
    for entry in world.book.history:
        if entry.kind in ("commit", "note") and "public_audit" in entry.payload:
            for digest in entry.payload.values():
                owners.setdefault(str(digest), set()).add(entry.release)
    return owners


def _files(world: World, finished: bool) -> list[str]:
    """Under its final name each file is as the ledger has it. The files of a name are of one release; only
    while a release is unfinished, and can be finished, some may already be its own."""
    found, owners, machine = [], _owners(world), world.machine
    by_name: dict[str, dict[str, bytes]] = {}
    unfinished: set[str] = set()
    for path, node in machine.found.items():
        folder, name = os.path.split(path)
        if not folder.startswith(OUT):
            continue
        if match := PARTIAL.fullmatch(name):
            unfinished.add(match["id"])
        if not name.startswith("."):
            stem, ending = name.split(".", 1)
            by_name.setdefault(f"{folder}/{stem}", {})[ending] = bytes(node.data)
    for stem, files in by_name.items():
        of = []
        for ending in ("csv", "transcript.arrow", "audit.public.json"):
            data = files.get(ending)
            own = owners.get(sha256(data), set()) if data is not None else set()
            if data is not None and not own:
                found.append(f"{TOGETHER}: {stem}.{ending} is not as it was recorded ({len(data)} bytes)")
            of.append(own)
        of.append(_named_in(files.get("audit.json", b"{}")))  # the steward's has no hash anywhere
        if set.intersection(*of) or _is_kept(stem):  # a kept folder is filled before its release is replaced
            continue
        being_made = set().union(*of) & unfinished or stem == f"{OUT}/s"  # a snapshot is made again
        if finished or not being_made:
            found.append(f"{TOGETHER}: {stem} has {sorted(files)} of {[sorted(one) for one in of]}")
    if world.restored and finished:  # what the ledger does not know, or knows more of, is refused
        found = [one for one in found if "is not as" in one]
    return found


def _named_in(audit: bytes) -> set[str]:
    """The release that an audit is of."""
    try:
        return {str(json.loads(audit)["release"]["id"])}
    except (ValueError, KeyError):
        return set()


def _is_kept(stem: str) -> bool:
    """Whether it is in the folder of a release that was replaced: NAME.DAY.ID."""
    return os.path.basename(os.path.dirname(stem)).count(".") == 2


def _kept(world: World) -> list[str]:
    """The files of a release that said it was done are somewhere: under their names, or kept aside."""
    if "files" in world.restored:
        return []
    there = {sha256(bytes(node.data)) for path, node in world.machine.found.items() if path.startswith(OUT)}
    found = []
    for entry in world.book.history:
        if entry.kind == "commit" and entry.release in world.seen.done:
            gone = [name for name, digest in entry.payload.items() if digest not in there]
            if gone:
                found.append(f"{STAYS}: {', '.join(gone)} of {entry.release}")
    return found
