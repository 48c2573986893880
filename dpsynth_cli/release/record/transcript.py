"""The transcript: what was asked and what was answered, in order. It is the release.

A finished transcript is an Arrow IPC file: one record batch of int64 an answer, everything else as
JSON in the schema's metadata. An unfinished one is an Arrow IPC stream beside the output, mode 0600,
each answer on the disk before the mechanism sees it.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from dpsynth_cli import disk
from dpsynth_cli.arrow import from_numpy, to_numpy
from dpsynth_cli.errors import FileError, UsageError, VerificationError
from dpsynth_cli.hashing import canonical, sha256
from dpsynth_cli.question_json import about, as_json
from dpsynth_cli.questions import Answer, Ints

VERSION = 1
ENDING = ".transcript.arrow"
KEY = b"dpsynth"
PRIVATE_KEY = b"dpsynth-private"  # in an unfinished transcript only
FIELDS = [pa.field("value", pa.int64(), nullable=False)]


@dataclass(frozen=True, eq=False)
class Transcript:
    """What a release said (`header`: public facts about it), asked and was answered."""

    header: dict[str, Any]
    answers: tuple[tuple[Any, Answer], ...]  # (question as JSON, answer)

    def as_bytes(self) -> bytes:
        """The finished file. Equal transcripts have equal bytes."""
        document = self.header | {"answers": [about(question, answer) for question, answer in self.answers]}
        schema = pa.schema(FIELDS, metadata={KEY: canonical(document)})
        sink = io.BytesIO()
        with ipc.new_file(sink, schema) as writer:
            for _, answer in self.answers:
                writer.write_batch(_batch(answer))
        return sink.getvalue()


def load(path: Path) -> tuple[Transcript, str]:
    """A finished transcript and the SHA-256 of its file."""
    try:
        data = disk.read(path)
    except OSError as error:
        raise FileError(f"cannot read the transcript {path}: {error.strerror}.", "") from None
    try:
        reader = ipc.open_file(io.BytesIO(data))
        document = json.loads(reader.schema.metadata[KEY])
        about = document.pop("answers")
        if document["dpsynth_transcript"] != VERSION or reader.num_record_batches != len(about):
            raise ValueError
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        answers = tuple(_answer(meta, batch) for meta, batch in zip(about, batches, strict=True))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError):
        if own := _beside(path, data):
            raise UsageError(
                f"{path} is of a release, but not its transcript.", "", f"Give its transcript: {own}"
            ) from None
        raise VerificationError(
            f"{path} is not a whole dpsynth transcript: it was cut off, edited or made by something else.",
            "",
        ) from None
    return Transcript(document, answers), sha256(data)


def _beside(path: Path, data: bytes) -> Path | None:
    """The transcript that an audit names, or that a synthetic file or a spec of its name has beside it."""
    try:
        named = json.loads(data)["transcript"]["file"]
    except (ValueError, KeyError, TypeError, RecursionError):
        named = f"{path.name.removesuffix(path.suffix)}{ENDING}"
    found = path.parent / str(named).rpartition("/")[2]
    return found if found != path and found.name.endswith(ENDING) and disk.exists(found) else None


class PartialTranscript:
    """The unfinished transcript of a release that is under way; locked while its process lives.

    `header` is what will be published; `private` is what the steward's side must know to go on: where the
    input is and what was typed. It is never published.
    """

    def __init__(
        self,
        path: Path,
        file: BinaryIO,
        header: dict[str, Any],
        private: dict[str, Any],
        answers: list[tuple[Any, Answer]],
    ):
        self.path, self.header, self.private, self.answers = path, header, private, answers
        self._file = file
        self._writer: Any = None
        self._hashed = [hashlib.sha256()]  # of no answer, of the first, of the first two, ...

    @classmethod
    def create(
        cls, path: Path, header: dict[str, Any], private: dict[str, Any] | None = None
    ) -> PartialTranscript:
        """A new one, for its owner only; under its name once it has its header, and locked."""
        new = path.with_name(f"{path.name}.new")
        file = disk.create(new, 0o600, new=True)
        try:
            disk.lock(file)
            said, kept = json.loads(canonical(header)), json.loads(canonical(private or {}))
            partial = cls(path, file, said, kept, [])  # as a reopened one has it
            partial._start()
            disk.replace(new, path)
        except BaseException:
            file.close()
            disk.remove(new)
            raise
        disk.sync_folder(path.parent)
        return partial

    @classmethod
    def reopen(cls, path: Path) -> PartialTranscript | None:
        """One that a dead process left, with its complete answers; None if its process is alive, if it is
        gone, or if it does not even have a header (nothing was asked then).
        """
        try:
            file = disk.reopen(path)
        except FileNotFoundError:  # published meanwhile
            return None
        if not disk.lock(file, wait=False):
            file.close()
            return None
        try:
            disk.sync(file)  # its process may have written answers, and died before they were durable
        except OSError as error:
            file.close()
            told = f"cannot write {path}: {error.strerror}."
            raise FileError(told, "Nothing more was spent.", "Check the disk, and run it again.") from None
        header, private, answers = _read_stream(file.read())
        # Renamed over meanwhile: the lock is on a file that is no longer this one.
        if header is None or not disk.is_at(file, path):
            file.close()
            return None
        return cls(path, file, header, private, answers)

    @staticmethod
    def peek(path: Path) -> tuple[dict[str, Any], dict[str, Any], int] | None:
        """What it says and how many answers it has, whether or not its process is alive; None: no header."""
        header, private, answers = _read_stream(disk.read(path))
        return None if header is None else (header, private, len(answers))

    def record(self, question: Any, answer: Answer) -> None:
        """Append an answer; on the disk when this returns."""
        if self._writer is None:  # reopened: write the whole answers again, so that no torn end is left
            self._rewrite()
        asked = as_json(question)
        self._append(asked, answer)
        self._sync()
        self.answers.append((asked, answer))

    def digest(self, count: int) -> str:
        """The SHA-256 of the first `count` answers: noisy and paid for, so it may stand in the ledger."""
        for question, answer in self.answers[len(self._hashed) - 1 : count]:
            hashed = self._hashed[-1].copy()
            hashed.update(canonical(about(question, answer)))
            hashed.update(np.ascontiguousarray(answer.values, dtype="<i8").tobytes())
            self._hashed.append(hashed)
        return self._hashed[min(count, len(self.answers))].hexdigest()

    def transcript(self) -> Transcript:
        return Transcript(self.header, tuple(self.answers))

    def remove(self) -> None:
        """The release is published: the unfinished copy goes."""
        disk.remove(self.path)
        self.close()

    def close(self) -> None:
        self._file.close()

    def _start(self) -> None:
        said = {KEY: canonical(self.header), PRIVATE_KEY: canonical(self.private)}
        schema = pa.schema(FIELDS, metadata=said)
        self._writer = ipc.new_stream(self._file, schema)
        # An empty batch, because Arrow writes the header with the first one.
        self._writer.write_batch(_values(np.zeros(0, np.int64)))
        self._sync()

    def _rewrite(self) -> None:
        fresh = self.path.with_suffix(".rewrite")
        disk.remove(fresh)
        other = PartialTranscript.create(fresh, self.header, self.private)
        for question, answer in self.answers:
            other._append(question, answer)
        other._sync()
        disk.replace(fresh, self.path)
        disk.sync_folder(self.path.parent)
        self._file.close()
        self._file, self._writer = other._file, other._writer

    def _append(self, question: Any, answer: Answer) -> None:
        self._writer.write_batch(_batch(answer), custom_metadata={KEY: canonical(about(question, answer))})

    def _sync(self) -> None:
        disk.sync(self._file)


def _read_stream(
    data: bytes,
) -> tuple[dict[str, Any] | None, dict[str, Any], list[tuple[Any, Answer]]]:
    """The header, what is private and the complete answers; whatever is torn at the end is left out."""
    answers: list[tuple[Any, Answer]] = []
    try:
        reader = ipc.open_stream(io.BytesIO(data))
        header = json.loads(reader.schema.metadata[KEY])
        private = json.loads(reader.schema.metadata.get(PRIVATE_KEY, b"{}"))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None, {}, []
    try:
        while True:
            got = reader.read_next_batch_with_custom_metadata()
            if not got.custom_metadata:
                continue  # the empty one behind the header
            answers.append(_answer(json.loads(got.custom_metadata[KEY]), got.batch))
    except (StopIteration, pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return header, private, answers


def _batch(answer: Answer) -> pa.RecordBatch:
    return _values(answer.values)


def _values(values: Ints) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([from_numpy(values)], schema=pa.schema(FIELDS))


def _answer(about: dict[str, Any], batch: pa.RecordBatch) -> tuple[Any, Answer]:
    if batch.schema.types != [pa.int64()]:
        raise ValueError("an answer is one column of whole numbers")
    values = to_numpy(batch.column(0))
    lengths = tuple(int(length) for length in about["lengths"])
    if sum(lengths) != len(values):
        raise ValueError("an answer has another length than it says")
    return about["question"], Answer(values, lengths, about["noise"], about["sd"])
