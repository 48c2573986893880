"""Online release: a stream is charged once, takes its rows push by push, and gives snapshots for ever.

    init      state without rows -> charge in the ledger -> generation 1
    push      rows -> raw counts -> a release that is due gets its noise -> next generation
    undo      the generation before the last push, as the next one
    publish   noisy counts of the generation -> snapshot, transcript, audits -> hashes in the ledger -> names

Every command may be killed at any moment and run again. A push counts when the ledger has its generation,
and a batch whose id is in the state is not counted again. Nothing is published but what a generation in the
ledger holds, so no noise is ever drawn twice for it. A snapshot is post-processing: it follows from its
transcript, and making it again costs nothing.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

from dpsynth_cli import disk
from dpsynth_cli.errors import (
    DpsynthError,
    FileError,
    Interrupted,
    UsageError,
)
from dpsynth_cli.hashing import canonical
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.dataset import other_dataset
from dpsynth_cli.release.documents import audit
from dpsynth_cli.release.documents.junk import for_the_steward, refuse_junk
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.files.publish import publish as publish_files
from dpsynth_cli.release.record.transcript import VERSION, Transcript
from dpsynth_cli.release.stream.place import check, check_deletions, check_end, loaded
from dpsynth_cli.release.stream.published import (
    check_own,
    check_published,
    check_unpublished,
    note_publishing,
    snapshot_id,
)
from dpsynth_cli.release.stream.snapshot import header_of, rebuilt
from dpsynth_cli.release.stream.start import init
from dpsynth_cli.release.stream.status import Status, status_of
from dpsynth_cli.release.stream.step import advance, read_batch
from dpsynth_cli.release.stream.units import columns_read, counted_rows
from dpsynth_cli.release.stream.window import window_of
from dpsynth_cli.release.synthesis import Receipt, compose, versions
from dpsynth_cli.spec.spec import Spec, public_document
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.rows.declared import declared_dataset
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.stream.state import Store, StreamState

__all__ = ["init", "publish", "push", "status", "undo"]

NOT_COUNTED = "The batch was not counted, and nothing more was spent."
NAME_IT = "Name its file after the spec, or `input` in the spec."


# --- the commands ------------------------------------------------------------------------------------


def push(
    spec: Spec,
    ledger: Ledger,
    batch: str,
    batch_id: str,
    progress: Progress = no_progress,
    delete: bool = False,
    rehearse: bool = False,
    publishes: bool = False,
) -> tuple[Status, dict[str, Any]]:
    """Count a batch once, and make a release if one is due; with `delete`, take its rows away. For the
    steward also what of the batch is not as declared. With `rehearse` all of that is tried, and nothing is
    counted. Whoever `publishes` a snapshot next learns before a row is read if it cannot be.
    """
    day = disk.today()  # before a row is read: how long that takes is nobody's
    check(spec)
    if not 0 < len(batch_id) <= 200 or not batch_id.isprintable():
        raise UsageError("the batch id must be one line of 1 to 200 printable characters.", NOT_COUNTED)
    if not batch:
        raise UsageError("no batch is named.", NOT_COUNTED, NAME_IT)
    if delete:
        check_deletions(spec)
    if publishes:
        Files.of(spec).check_writable()
    store = Store.of(spec.name, ledger)
    with store.locked():
        state = loaded(spec, store)
        if publishes:
            check_own(Files.of(spec), state, NOT_COUNTED)
        if batch_id in state.batches:
            _check_kind(state, batch_id, delete)
            return replace(status_of(spec, store, state), counted=False), {}
        check_published(spec, ledger, state)
        check_end(spec, state)
        declared = declared_dataset(batch)
        if declared not in (None, spec.privacy.dataset):
            raise other_dataset(batch, str(declared), spec, NOT_COUNTED)
        counted = Problems.of(column.name for column in spec.domain)
        try:
            with closing(open_scan(batch, columns_read(spec), spec.csv)) as scan:
                refuse_junk(spec, scan, NOT_COUNTED)
                if ledger.state(state.stream_id) == "reserved" and not rehearse:
                    ledger.drawn(state.stream_id)
                progress("reading", 0, scan.size)
                whole = scan.size
                with counted_rows(
                    scan, spec, state, day, lambda done: progress("reading", done, whole), counted
                ) as source:
                    rows = read_batch(source.rows, spec, state, source.progress, source.counted)
                    check_end(spec, state, rows.rows)
        except DpsynthError as error:
            error.cost = NOT_COUNTED
            if isinstance(error.__context__, FileNotFoundError):
                error.next_step = NAME_IT
            raise
        except (KeyboardInterrupt, SystemExit) as stopped:
            told = Interrupted(143 if isinstance(stopped, SystemExit) else 130)
            told.cost, told.next_step = NOT_COUNTED, "Run the same command again."
            raise told from None
        problems = for_the_steward(counted, spec.domain)
        if rehearse:
            return replace(status_of(spec, store, state), counted=False), problems
        state.units = source.units
        released = advance(state, spec, -rows if delete else rows, batch_id, day)
        if delete:
            state.deletions.append(batch_id)
        so_far = Problems.of_json(state.problems) if state.problems else Problems()
        so_far.merge(counted)
        state.problems = so_far.as_json()
        store.commit(state)
        return replace(status_of(spec, store, state), released=released), problems


def undo(spec: Spec, ledger: Ledger, batch_id: str) -> Status:
    """Forget the last push, as long as nothing of it can have been published."""
    check(spec)
    store = Store.of(spec.name, ledger)
    with store.locked():
        state = loaded(spec, store)
        check_published(spec, ledger, state)
        if state.batches[-1:] != [batch_id]:
            raise UsageError(
                f"the batch {batch_id} is not the last one that was counted.",
                "Nothing was changed.",
                "Only the last push can be undone. Rows that must go can be pushed with --delete.",
            )
        before = store.before(state)
        if before is None:
            raise UsageError(
                "what the stream was before its last push is not kept any more.",
                "Nothing was changed.",
                "Rows that must go can be pushed with --delete.",
            )
        if state.release.get("number", 0) > before.release.get("number", 0):
            check_unpublished(spec, ledger, state, batch_id)
        before.generation = state.generation
        store.commit(before)
        return status_of(spec, store, before)


def publish(
    spec: Spec,
    ledger: Ledger,
    progress: Progress = no_progress,
    started: float | None = None,
    last_days: int | None = None,
) -> Receipt:
    """The snapshot of the last release: table, transcript and audits, from noisy counts alone; of
    everything so far, or of what arrived in the last days.

    Files are dated to when the command `started`: before rows were read, where it pushed some first.
    """
    started = disk.now().timestamp() if started is None else started
    check(spec)
    files = Files.of(spec)
    files.check_writable()
    store = Store.of(spec.name, ledger)
    with store.locked():
        state = loaded(spec, store)
        check_published(spec, ledger, state)
        if not state.release:
            raise UsageError(
                f"the stream {spec.name} has no release yet.",
                "Nothing was published.",
                "Push a batch first: dpsynth stream push SPEC BATCH --batch-id ID",
            )
        check_own(files, state, "Nothing was published.")
        transcript = _transcript(spec, ledger, state, last_days)
        note_publishing(spec, ledger, state)
        pending, public = compose(spec, transcript, rebuilt(spec, transcript), files, progress)
        try:
            own_id = transcript.header["release"]["id"]
            charged = ledger.receipt(spec.privacy.dataset, state.stream_id)
            problems = (
                for_the_steward(Problems.of_json(state.problems), spec.domain) if state.problems else None
            )
            steward = audit.steward_audit(
                public, f"stream {spec.name}", files.named(), charged, None, problems
            )

            def record(hashes: dict[str, str]) -> None:
                if hashes not in [entry.payload for entry in ledger.find(own_id)]:
                    ledger.note(spec.privacy.dataset, own_id, hashes)

            publish_files(
                files,
                own_id,
                started,
                pending,
                transcript.as_bytes(),
                audit.as_text(steward),
                audit.as_text(public),
                record,
                keeps=False,
            )
        except OSError as error:
            raise FileError(
                f"{error.filename or spec.output}: {error.strerror}.",
                "Nothing more was spent.",
                "Run it again: publishing costs nothing.",
            ) from None
        finally:
            pending.discard()
    return Receipt(own_id, public["output"]["rows"], files.named(), public, charged)


def status(spec: Spec, ledger: Ledger) -> Status:
    """Where the stream stands."""
    check(spec)
    store = Store.of(spec.name, ledger)
    with store.locked():
        return status_of(spec, store, loaded(spec, store))


def _check_kind(state: StreamState, batch_id: str, delete: bool) -> None:
    """Refuse an id that was counted the other way round: nothing would be done, and nobody would know."""
    deleted = batch_id in state.deletions
    if deleted != delete:
        kind = "rows to be taken away" if deleted else "new rows"
        raise UsageError(
            f"the id {batch_id} was counted before, as a batch of {kind}.",
            NOT_COUNTED,
            "Give it another --batch-id.",
        )


def _transcript(spec: Spec, ledger: Ledger, state: StreamState, last_days: int | None) -> Transcript:
    """What the snapshot of the last release is made of."""
    release = state.release
    note = next(
        entry
        for entry in ledger.find(state.stream_id)
        if entry.kind == "note" and entry.payload["generation"] == release["generation"]
    )
    header: dict[str, Any] = {
        "dpsynth_transcript": VERSION,
        "release": {
            "id": snapshot_id(state.stream_id, release["number"]),
            "name": spec.name,
            "day": release["day"],
            "versions": versions(),
        },
        "spec": public_document(spec.effective),
        "sampling_seed": state.seed if spec.seed is None else spec.seed,
        "ledger": state.ledger | {"hash": note.hash},
        "stream": header_of(state),
    }
    answers = list(state.answers)
    if last_days is not None:
        since, window = window_of(spec, state, last_days)
        header["stream"] |= since
        answers += window
    return Transcript(json.loads(canonical(header)), tuple(answers))
