"""The state of a stream between two pushes: raw counts that are measured again, and noisy sums.

It is as sensitive as the data: a file for its owner only, written whole or not at all. Every change is a
new generation. The ledger holds the generation's number and a commitment to the file, keyed with a
secret that only the file has, so the ledger tells nothing about the counts; and a state that is not the
one the ledger knows is refused. Else yesterday's copy could be gone on with, and what was already
published with one noise would be published again with another.

A generation is made in three steps, each durable before the next: the file beside the old one, the note in
the ledger, the renaming. The note is the moment it counts. Before it, a crash leaves the old generation, and
nothing that follows from the new one has left the process; after it, the new file is found and renamed. The
file of the generation before is kept beside it, as sensitive, so that the last push can be undone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpsynth_cli import disk
from dpsynth_cli.errors import FileError, VerificationError
from dpsynth_cli.hashing import canonical
from dpsynth_cli.numeric.running import Running
from dpsynth_cli.question_json import about
from dpsynth_cli.questions import Answer, Ints
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.blocks import Blocks
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.stream.packing import leaf_steps, matrix, packed, square, unpacked

VERSION = 3  # 1 had discrete Gaussian noise on whole numbers, 2 a tree of counts for each block
Answers = list[tuple[Any, Answer]]  # (question as JSON, answer)


@dataclass
class StreamState:
    """All that a stream remembers.

    `open` are the raw counts of what arrived since the last release, `blocks` the raw counts and noisy sums
    of all releases, `answers` what the last one is made of. `counters` are the words and arrays of sparse
    counting. `release` is about the last release: its number, the clock, the generation that has it, the
    day. `problems` are the cells of all pushes that are not as declared; a state of before they were has
    none. `deletions` are the ids of batches whose rows were taken away; a state of before they were kept
    has them among the others only. `units`, where those are protected: the key of their marks, and how many
    rows of each were counted (`unit_quota.py`).
    """

    stream_id: str
    secret: str
    spec: dict[str, Any]
    seed: int
    generation: int = 0
    ledger: dict[str, Any] = field(default_factory=dict)
    batches: list[str] = field(default_factory=list)
    events: int = 0
    release: dict[str, Any] = field(default_factory=dict)
    open: Leaves = field(default_factory=Leaves)
    blocks: Blocks = field(default_factory=lambda: Blocks([], [], {}))
    answers: Answers = field(default_factory=list)
    counters: tuple[dict[str, Any], list[Ints]] | None = None
    problems: dict[str, Any] = field(default_factory=dict)
    deletions: list[str] = field(default_factory=list)
    units: dict[str, Any] = field(default_factory=dict)

    @property
    def pushes(self) -> int:
        return len(self.batches)

    def as_bytes(self) -> bytes:
        """The file: JSON, and all arrays that it names, by start and end, one after the other."""
        arrays: list[Ints] = [np.zeros(0, np.int64)]
        ends = [0]

        def kept(array: Ints) -> list[int]:
            arrays.append(array)
            ends.append(ends[-1] + len(array))
            return ends[-2:]

        said = {
            "dpsynth_stream": VERSION,
            **{name: getattr(self, name) for name in (*WORDS, *LATER)},
            "open": leaf_steps(self.open, kept),
            "blocks": {
                "starts": self.blocks.starts,
                "raw": [leaf_steps(part, kept) for part in self.blocks.raw],
                "known": [
                    [level, [kept(block) for block in running.blocks], matrix(running.errors)]
                    for level, running in sorted(self.blocks.known.items())
                ],
            },
            "answers": [about(q, a) | {"values": kept(a.values)} for q, a in self.answers],
            "counters": self.counters and [self.counters[0], [kept(array) for array in self.counters[1]]],
        }
        width, numbers = packed(np.concatenate(arrays))
        return zlib.compress(canonical(said | {"packed": [width, ends[-1]]}), 9) + numbers

    @classmethod
    def of_bytes(cls, data: bytes) -> StreamState:
        text = zlib.decompressobj()
        said = json.loads(text.decompress(data))
        if said["dpsynth_stream"] != VERSION:
            raise ValueError("another version")
        everything = unpacked(text.unused_data, *said["packed"])

        def array(place: list[int]) -> Ints:
            return np.array(everything[slice(*place)])

        def leaves(places: list[list[int]]) -> Leaves:
            codes, counts = map(array, places)
            return Leaves(np.cumsum(codes), counts)

        later = {name: said[name] for name in LATER if name in said}
        state = cls(**{name: said[name] for name in WORDS}, **later)
        state.open = leaves(said["open"])
        known = {
            level: Running(np.array([array(place) for place in places]), square(errors))
            for level, places, errors in said["blocks"]["known"]
        }
        state.blocks = Blocks(said["blocks"]["starts"], list(map(leaves, said["blocks"]["raw"])), known)
        state.answers = [
            (one["question"], Answer(array(one["values"]), tuple(one["lengths"]), one["noise"], one["sd"]))
            for one in said["answers"]
        ]
        if said["counters"]:
            words, places = said["counters"]
            state.counters = words, [array(place) for place in places]
        return state


WORDS = (
    "stream_id", "secret", "spec", "seed", "generation", "ledger", "batches", "events", "release",
)  # fmt: skip
LATER = ("problems", "deletions", "units")  # older states have none


class Store:
    """The state's file of one stream, and its place in the ledger."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.path, self.ledger = path, ledger
        self._next = path.with_name(path.name + ".next")
        self._before = path.with_name(path.name + ".before")
        self._noted = 0  # the entry of the generation that was loaded

    @classmethod
    def of(cls, name: str, ledger: Ledger) -> Store:
        """Beside the ledger: as private as that, and away from what is published."""
        return cls(Path(f"{ledger.place.private}.streams") / f"{name}.state", ledger)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the others wait."""
        try:
            disk.make_folder(self.path.parent, 0o700)
            held = disk.append(self.path.with_name(self.path.name + ".lock"), 0o600)
        except OSError as error:
            raise FileError(f"cannot write to {self.path.parent}: {error.strerror}.") from None
        with held:
            disk.lock(held)
            yield

    @property
    def exists(self) -> bool:
        """Whether there is any file of it."""
        return disk.exists(self.path) or disk.exists(self._next)

    def begin(self, state: StreamState) -> None:
        """The first file of a stream that is not charged yet: nothing counts before `commit`."""
        self._write(self.path, state.as_bytes())

    def uncommitted(self) -> StreamState | None:
        """A stream that was begun and has no generation yet: a crash came before its first one."""
        found = _read(self.path)
        if found is None or found[0].generation > 0 or self.ledger.last_note(found[0].stream_id) is not None:
            return None
        return found[0]

    def stream_id(self) -> str | None:
        """Of the stream whose state is here, of whatever generation."""
        found = _read(self.path) or _read(self._next)
        return found[0].stream_id if found else None

    def discard(self) -> None:
        """Forget a stream that was begun and never charged, or given up."""
        disk.remove(self.path)
        disk.remove(self._next)
        disk.remove(self._before)

    def before(self, state: StreamState) -> StreamState | None:
        """The generation before this one, if this one is that and one batch more, and the ledger knew it."""
        old, commitment = _read(self._before) or (None, "")
        known = [entry.payload for entry in self.ledger.find(state.stream_id) if entry.kind == "note"]
        payload = {"generation": state.generation - 1, "commitment": commitment}
        return old if old and old.batches == state.batches[:-1] and payload in known else None

    def commit(self, state: StreamState) -> None:
        """The next generation: its file, then the ledger's note, then its name."""
        state.generation += 1
        data = state.as_bytes()
        self._write(self._next, data)
        payload = {"generation": state.generation, "commitment": _commitment(state.secret, data)}
        dataset = str(state.spec["privacy"]["dataset"])
        note = self.ledger.note(dataset, state.stream_id, payload, follows=self._noted)
        self._noted = note.number
        self._settle()

    def load(self) -> StreamState | None:
        """The state that the ledger knows; None if there is no file at all."""
        if not self.exists:
            return None
        for path in (self.path, self._next):
            found = _read(path)
            note = self.ledger.last_note(found[0].stream_id) if found else None
            if found is None or note is None:
                continue
            state, commitment = found
            known = (note.payload.get("generation"), note.payload.get("commitment"))
            if known == (state.generation, commitment):
                self._noted = note.number
                self._settle(renamed=path == self.path)  # a crash may have come between the note and that
                return state
        if _of_another_form(self.path):
            raise VerificationError(
                f"{self.path} is a state of another version of dpsynth, which measured other sums of the "
                "stream.",
                "Nothing was read and nothing was published.",
                "Go on with the version that it was started with, or give the stream up and pay for a new "
                "one: dpsynth stream init SPEC --start-over",
            )
        raise VerificationError(
            f"{self.path} is not the state that the ledger {self.ledger.path} knows: it is damaged, an older "
            "copy, or the ledger is another one.",
            "Nothing was read and nothing was published.",
            "Use the newest state with its own ledger; a stream cannot go on from a copy of before. If that "
            "is lost for good, a new stream is charged anew: dpsynth stream init SPEC --start-over",
        )

    def _settle(self, renamed: bool = False) -> None:
        """The generation that the ledger knows has its name, durably, before another is written beside it."""
        try:
            if renamed:
                disk.remove(self._next)
            else:
                if disk.exists(self.path):
                    disk.replace(self.path, self._before)
                disk.replace(self._next, self.path)
            disk.sync_folder(self.path.parent)
        except OSError as error:
            raise FileError(
                f"cannot write {self.path}: {error.strerror}.",
                "What was to be counted is counted.",
                "Make the folder writable, and run the same command again.",
            ) from None

    def _write(self, path: Path, data: bytes) -> None:
        try:
            disk.remove(path)
            with disk.create(path, 0o600, new=True) as file:
                file.write(data)
                disk.sync(file)
            disk.sync_folder(path.parent)
        except OSError as error:
            raise FileError(
                f"cannot write {path}: {error.strerror}.",
                "Nothing was counted.",
                "Make room, and run it again.",
            ) from None


def _commitment(secret: str, data: bytes) -> str:
    """Hides what it commits to: the key is 256 random bits that only the state has."""
    return hmac.new(bytes.fromhex(secret), data, hashlib.sha256).hexdigest()


def _of_another_form(path: Path) -> bool:
    """Whether it is a state that says of itself to be of another version."""
    try:
        return bool(json.loads(zlib.decompressobj().decompress(disk.read(path)))["dpsynth_stream"] != VERSION)
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return False


def _read(path: Path) -> tuple[StreamState, str] | None:
    """A state and its commitment; None for a file that is not whole."""
    try:
        data = disk.read(path)
        state = StreamState.of_bytes(data)
        return state, _commitment(state.secret, data)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError, zlib.error):
        return None
