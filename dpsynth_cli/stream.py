"""Online release: a stream is charged once, takes its rows push by push, and gives snapshots for ever.

    init      state without rows -> charge in the ledger -> generation 1
    push      rows -> raw counts -> blocks that end now get their noise -> next generation
    publish   noisy trees of the generation -> snapshot, transcript, audits -> hashes in the ledger -> names

Every command may be killed at any moment and run again. A push counts when the ledger has its generation, and a
batch whose id is in the state is not counted again. Nothing is published but what a generation in the
ledger holds, so no noise is ever drawn twice for it. A snapshot is post-processing: it follows from its
transcript, and making it again costs nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth_cli import audit
from dpsynth_cli.errors import NOTHING_SPENT, DpsynthError, UsageError, VerificationError
from dpsynth_cli.files import Files, publishing
from dpsynth_cli.mechanisms import online
from dpsynth_cli.mechanisms import online_schedule as schedule
from dpsynth_cli.mechanisms.pmm import deepest
from dpsynth_cli.questions import Answer, Cells, Model, Question, Total, as_json
from dpsynth_cli.release import (
    Progress,
    Receipt,
    accountant_of,
    check_paid_for,
    compose,
    no_progress,
    recorded_ask,
    versions,
)
from dpsynth_cli.spec import Spec, public_document
from dpsynth_cli.transcript import VERSION, Transcript, canonical, sha256
from dpsynth_cli.trusted.accountant import Accountant, laplace_sd
from dpsynth_cli.trusted.dynamic_partition import DynamicPartition
from dpsynth_cli.trusted.engines.local import added_up
from dpsynth_cli.trusted.leaves import Gathered, Leaves, measured
from dpsynth_cli.trusted.ledger import Ledger
from dpsynth_cli.trusted.noise import system_source
from dpsynth_cli.trusted.prices import Charge, charge_for
from dpsynth_cli.trusted.read import open_scan
from dpsynth_cli.trusted.stream_state import Store, StreamState

NOT_COUNTED = "The batch was not counted, and nothing more was spent."
FIXED = ("name", "rows_hint", "privacy", "mechanism", "columns", "csv")  # for the life of a stream


@dataclass(frozen=True)
class Status:
    """Where a stream stands: public facts only. `events` is None where arrivals are private."""

    stream: str
    name: str
    dataset: str
    pushes: int
    events: int | None
    releases: int
    clock: str  # what is counted until the next release
    now: int
    next_release: int
    generation: int
    state_file: str
    counted: bool = True  # false: this batch had been pushed before
    released: bool = False  # whether this push made a release


# --- the commands ------------------------------------------------------------------------------------


def init(spec: Spec, ledger: Ledger) -> tuple[Status, bool]:
    """Charge the stream once, for its whole life; whether it was charged now.

    The state, with the stream's id, is on the disk before the charge: so a second `init` after a crash goes on
    with the same stream, and never charges twice.
    """
    accountant = check(spec)
    store = _store(spec, ledger)
    with store.locked():
        if store.path.exists() and store.uncommitted() is None:
            return _status(spec, store, _loaded(spec, store)), False
        state = store.uncommitted()
        if state is None or state.spec != _fixed(spec):
            state = StreamState(
                secrets.token_hex(16),
                secrets.token_hex(32),
                _fixed(spec),
                secrets.randbits(63) if spec.seed is None else spec.seed,
            )
            store.begin(state)
        try:
            state.ledger = _charge(spec, ledger, accountant, state)
        except DpsynthError:
            store.discard()
            raise
        store.commit(state)
        return _status(spec, store, state), True


def push(spec: Spec, ledger: Ledger, batch: str, batch_id: str, progress: Progress = no_progress) -> Status:
    """Count a batch once, and make a release if one is due."""
    check(spec)
    if not 0 < len(batch_id) <= 200 or not batch_id.isprintable():
        raise UsageError("the batch id must be one line of 1 to 200 printable characters.", NOT_COUNTED)
    store = _store(spec, ledger)
    with store.locked():
        state = _loaded(spec, store)
        if batch_id in state.batches:
            return replace(_status(spec, store, state), counted=False)
        _check_published(spec, ledger, state)
        omega, cells = spec.domain, partition_of(spec)
        try:
            with closing(open_scan(batch, omega.columns, spec.csv)) as scan:
                if ledger.state(state.stream_id) == "reserved":
                    ledger.drawn(state.stream_id)
                progress("reading", 0, scan.size)
                tallies = added_up(
                    scan, lambda: Gathered(cells, omega), lambda done: progress("reading", done, scan.size)
                )
        except DpsynthError as error:
            error.cost = NOT_COUNTED
            raise
        rows = reduce(add, (tally.leaves() for tally in tallies))
        released = advance(state, spec, rows, batch_id)
        store.commit(state)
        return replace(_status(spec, store, state), released=released)


def publish(spec: Spec, ledger: Ledger, progress: Progress = no_progress) -> Receipt:
    """The snapshot of the last release: table, transcript and audits, from noisy counts alone."""
    check(spec)
    files = Files.of(spec)
    files.check_writable()
    store = _store(spec, ledger)
    with store.locked():
        state = _loaded(spec, store)
        _check_published(spec, ledger, state)
        if not state.release:
            raise UsageError(
                f"the stream {spec.name} has no release yet.",
                "Nothing was published.",
                "Push a batch first: dpsynth stream push SPEC BATCH --batch-id ID",
            )
        transcript = _transcript(spec, ledger, state)
        model, accountant, bill = rebuilt(spec, transcript)
        pending, public = compose(spec, transcript, model, accountant, bill, files, progress)
        try:
            snapshot_id = transcript.header["release"]["id"]
            steward = audit.steward_audit(public, f"stream {spec.name}", files.named())
            hashes = {
                "output": public["output"]["sha256"],
                "transcript": public["transcript"]["sha256"],
                "public_audit": sha256(audit.as_text(public)),
            }
            with publishing(
                files, snapshot_id, transcript.as_bytes(), audit.as_text(steward), audit.as_text(public)
            ) as rename:
                if hashes not in [entry.payload for entry in ledger.find(snapshot_id)]:
                    ledger.note(spec.privacy.dataset, snapshot_id, hashes)
                rename()
                pending.publish()
        finally:
            pending.discard()
    return Receipt(snapshot_id, public["output"]["rows"], files.named(), public)


def status(spec: Spec, ledger: Ledger) -> Status:
    """Where the stream stands."""
    store = _store(spec, ledger)
    with store.locked():
        return _status(spec, store, _loaded(spec, store))


def check(spec: Spec) -> Accountant:
    """Refuse, before anything else, what is no stream."""
    if not spec.mechanism.stream:
        raise UsageError(
            f"{spec.places.get('mechanism.name', 'mechanism.name')}: {spec.mechanism.name} releases a whole table.",
            next_step="For a stream, set mechanism.name to online; for a table: dpsynth release SPEC",
        )
    if spec.params.algorithm == "sparse" and spec.privacy.delta is not None:
        raise UsageError(
            f"{spec.places.get('privacy.delta', 'privacy.delta')}: sparse counting has pure epsilon only: its "
            "checks against a threshold gain nothing from a delta.",
            next_step="Leave out privacy.delta, or set mechanism.algorithm to blocks.",
        )
    return accountant_of(spec)


# --- one push, in memory -----------------------------------------------------------------------------


def partition_of(spec: Spec) -> Cells:
    """The finest partition that raw counts are kept in."""
    columns = spec.domain.modelled
    depth = deepest(columns)
    return online.partition(columns, depth).cells(columns, depth)


def advance(state: StreamState, spec: Spec, rows: Leaves, batch_id: str) -> bool:
    """Take a batch into the state; whether that made a release.

    When a release is due is a function of the public clock. The state holds what noise was drawn, and
    whoever calls this makes it durable before anything of it is shown.
    """
    params = spec.params
    state.batches.append(batch_id)
    state.events += rows.rows
    state.open = [(state.open[0] if state.open else Leaves()) + rows, *state.open[1:]]
    clock = state.events if params.arrivals == "public" else state.pushes
    now = schedule.due(clock, params.releases_per_doubling)
    if now <= state.release.get("due", 0):
        return False
    release = state.release.get("number", 0) + 1
    state.release = {
        "number": release,
        "clock": clock,
        "due": now,
        "generation": state.generation + 1,
        "day": datetime.now(timezone.utc).date().isoformat(),
    }
    if params.algorithm == "blocks":
        _close_blocks(state, spec, release)
    else:
        _check_segments(state, spec, release, clock)
    return True


def _close_blocks(state: StreamState, spec: Spec, release: int) -> None:
    """Measure the blocks that end now, smallest first; what a block has had goes into the next larger one."""
    sizes = schedule.sizes(schedule.epoch(release))
    ending = {block.size: block for block in schedule.ending(release)}
    state.open += [Leaves()] * (len(sizes) - len(state.open))
    carried = Leaves()
    for i, size in enumerate(sizes):
        carried, state.open[i] = carried + state.open[i], Leaves()
        if size not in ending:
            state.open[i] = carried
            break
        public = spec.params.arrivals == "public"
        ask, paid, given = measured(
            carried, partition_of(spec), spec.domain, accountant_of(spec), system_source(), public
        )
        online.ask_block(ask, spec.domain, spec.params, spec.split, schedule.share(release))
        carried = paid()
        answers = [(as_json(question), answer) for question, answer in given]
        state.blocks.append((ending[size].first, ending[size].last, answers))
    needed = {(block.first, block.last) for block in schedule.covering(release)}
    state.blocks = sorted((b for b in state.blocks if b[:2] in needed), key=lambda block: block[0])


def _check_segments(state: StreamState, spec: Spec, release: int, clock: int) -> None:
    """One step of Algorithm 12: a new time level if it is time, then add, check, close."""
    columns, params, epsilon = spec.domain.modelled, spec.params, spec.privacy.epsilon
    source = system_source()
    per_path = epsilon if spec.privacy.neighbours == "add_remove" else epsilon / 2
    counters = DynamicPartition(len(partition_of(spec).order or ()), per_path, len(columns) == 1)
    if state.counters is not None:
        counters.restore(*state.counters)
    r = _time_level(spec, clock)
    if counters.level is None or r > counters.level:
        checks = schedule.checks(r, epsilon, params.releases_per_doubling)
        counters.enter(r, checks, online.sparse_shares(r, spec.domain, params), source)
    counters.step(state.open[0], source)
    state.open = [Leaves()]
    state.counters = counters.as_parts()
    answers: list[tuple[Any, Answer]] = []
    if params.arrivals == "public":
        n = Answer(np.array([clock]), (1,), "none", 0.0)
        answers.append((as_json(Question("n", Total(), Fraction(0))), n))
    questions = online.sparse_questions(r, spec.domain, params)
    for charge, counts in zip(_sparse_bill(spec, questions), counters.output().values(), strict=True):
        answer = Answer(counts, (len(counts),), SPARSE, charge.price.sd)
        answers.append((as_json(charge.question), answer))
    state.blocks = [(1, release, answers)]


SPARSE = "sparse_counting"


def _time_level(spec: Spec, clock: int) -> int:
    """The time level by events, or by pushes times the public guess of their rows."""
    events = clock if spec.params.arrivals == "public" else clock * (spec.domain.rows_hint or 1)
    return schedule.time_level(events, spec.privacy.epsilon)


def _sparse_bill(spec: Spec, questions: Sequence[Question]) -> list[Charge]:
    """The price of each level's counts: the noise named is that of a finished time level, Lap(2/epsilon_jr)."""
    bill = []
    for question in questions:
        charge = charge_for(question, spec.domain, accountant_of(spec))
        scale = 2 * charge.price.parameter
        bill.append(replace(charge, price=replace(charge.price, parameter=scale, sd=laplace_sd(scale))))
    return bill


# --- a snapshot from noisy counts, for publishing and for verifying -----------------------------------


def _transcript(spec: Spec, ledger: Ledger, state: StreamState) -> Transcript:
    release = state.release
    note = next(
        entry
        for entry in ledger.find(state.stream_id)
        if entry.kind == "note" and entry.payload["generation"] == release["generation"]
    )
    header = {
        "dpsynth_transcript": VERSION,
        "release": {
            # A name for the snapshot; nothing but public words goes into it.
            "id": sha256(f"{state.stream_id} {release['number']}".encode())[:32],
            "name": spec.name,
            "day": release["day"],
            "versions": versions(),
        },
        "spec": public_document(spec.effective),
        "sampling_seed": state.seed if spec.seed is None else spec.seed,
        "ledger": state.ledger | {"entry": note.number, "hash": note.hash},
        "stream": {
            "id": state.stream_id,
            "release": release["number"],
            "clock": release["clock"],
            "blocks": [[first, last, len(answers)] for first, last, answers in state.blocks],
        },
    }
    answers = [answer for _, _, answers in state.blocks for answer in answers]
    return Transcript(json.loads(canonical(header)), tuple(answers))


def rebuilt(spec: Spec, transcript: Transcript) -> tuple[Model, Accountant, list[Charge]]:
    """The snapshot's model, and what an event of its release pays over the life of the stream."""
    stream = transcript.header["stream"]
    release = stream["release"]
    left, parts = list(transcript.answers), []
    for first, last, count in stream["blocks"]:
        parts.append((first, last, left[:count]))
        left = left[count:]
    if left:
        raise VerificationError("the transcript has answers that belong to no block.", "")
    if spec.params.algorithm == "blocks":
        model, bill = _blocks_model(spec, release, parts)
    else:
        model, bill = _sparse_model(spec, release, stream["clock"], parts)
    accountant = accountant_of(spec)
    accountant.charge([charge.price for charge in bill])
    clock = "events" if spec.params.arrivals == "public" else "pushes"
    facts = {"stream": stream["id"], "release": release, clock: stream["clock"]}
    return replace(model, facts=facts | model.facts), accountant, bill


Parts = list[tuple[int, int, list[tuple[Any, Answer]]]]


def _blocks_model(spec: Spec, release: int, parts: Parts) -> tuple[Model, list[Charge]]:
    due = [(block.first, block.last) for block in schedule.covering(release)]
    if [part[:2] for part in parts] != due:
        raise VerificationError("the transcript has other blocks than its release is made of.", "")
    counted, bills = [], dict[int, list[Charge]]()
    for first, last, answers in parts:
        bill: list[Charge] = []
        ask = recorded_ask(spec, accountant_of(spec), answers, bill)
        share = schedule.share(last)
        counted.append(online.ask_block(ask, spec.domain, spec.params, spec.split, share))
        check_paid_for(bill, answers)
        if schedule.epoch(last) == schedule.epoch(release):
            bills[last - first + 1] = bill
    # An event of this release is, or will be, in one block of each size; where none of a size has ended, the
    # newest block stands for it: its share is the same.
    sizes = schedule.sizes(schedule.epoch(release))
    lines = []
    for size in sizes:
        for charge in bills.get(size, bill):
            step = f"{charge.question.step}, blocks of {size}"
            lines.append(replace(charge, question=replace(charge.question, step=step)))
    return online.snapshot(counted, spec.domain), lines


def _sparse_model(spec: Spec, release: int, clock: int, parts: Parts) -> tuple[Model, list[Charge]]:
    params, omega = spec.params, spec.domain
    (first, last, answers), *others = parts
    r = _time_level(spec, clock)
    bill = _sparse_bill(spec, online.sparse_questions(r, omega, params))
    total, counts = None, answers
    if params.arrivals == "public":
        (question, n), *counts = answers
        total = int(n.values[0])
        if (question, total) != (as_json(Question("n", Total(), Fraction(0))), clock):
            raise VerificationError("the transcript has another number of events than it says.", "")
    told = [(question, answer.lengths, answer.noise, answer.sd) for question, answer in counts]
    due = [(as_json(charge.question), charge.lengths, SPARSE, charge.price.sd) for charge in bill]
    if others or (first, last) != (1, release) or told != due:
        raise VerificationError("the transcript has other answers than sparse counting gives.", "")
    levels = {(len(answer.values) - 1).bit_length(): answer.values for _, answer in counts}
    if len(omega.modelled) == 1:  # the deeper levels are paid for when they come
        deep = online.sparse_depth(omega.modelled)
        bill = _sparse_bill(spec, online.sparse_questions(deep, omega, params))
    return online.sparse_snapshot(levels, total, omega), bill


# --- the stream's place ------------------------------------------------------------------------------


def _store(spec: Spec, ledger: Ledger) -> Store:
    """The state is kept beside the ledger: as private as that, and away from what is published."""
    return Store(Path(f"{ledger.path}.streams") / f"{spec.name}.state", ledger)


def _fixed(spec: Spec) -> dict[str, Any]:
    """What may not change while a stream goes on; the output, rows and seed of a snapshot may."""
    document = json.loads(canonical({key: spec.effective[key] for key in FIXED}))
    return dict(document)


def _loaded(spec: Spec, store: Store) -> StreamState:
    state = store.load() if store.uncommitted() is None else None
    if state is None:
        raise UsageError(
            f"there is no stream {spec.name} in {store.path.parent}.",
            NOTHING_SPENT,
            "Start it with: dpsynth stream init SPEC. Or name its ledger: --ledger FILE, or $DPSYNTH_LEDGER.",
        )
    changed = [key for key in FIXED if state.spec[key] != _fixed(spec)[key]]
    if changed:
        raise UsageError(
            f"the stream {spec.name} was started with another {' and '.join(changed)}.",
            "Nothing was read and nothing more was spent.",
            "Undo the change, or start a stream of another name, with a budget of its own.",
        )
    return state


def _charge(spec: Spec, ledger: Ledger, accountant: Accountant, state: StreamState) -> dict[str, Any]:
    """Reserve the whole budget, unless a cut-off `init` has; what audits say about it."""
    privacy = spec.privacy
    if ledger.path.exists() and ledger.state(state.stream_id) is not None:
        remaining = ledger.balance(privacy.dataset).remaining
        said = ledger.find(state.stream_id)[0].payload
        charged, conversion = said.get("charged", said["amount"]), said.get("conversion")
    else:
        reservation = ledger.reserve(
            privacy.dataset,
            state.stream_id,
            accountant.total,
            accountant.currency,
            privacy.neighbours,
            audit.short(privacy.epsilon),
            None if privacy.delta is None else str(float(privacy.delta)),
            spec.name,
        )
        remaining, charged, conversion = reservation.remaining, reservation.charged, reservation.conversion
    return {
        "dataset": privacy.dataset,
        "charged": str(charged),
        "remaining": None if remaining is None else str(remaining),
        "conversion": conversion,
    }


def _check_published(spec: Spec, ledger: Ledger, state: StreamState) -> None:
    """Refuse a ledger that is older than a snapshot that is already there: state and ledger were both restored."""
    try:
        public = json.loads(Files.of(spec).public_audit.read_bytes())
        own = public["mechanism"]["chosen"]["stream"] == state.stream_id
        pinned = public["budget"]["ledger"]
        number, known = int(pinned["entry"]), str(pinned["hash"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    entry = ledger.entry(number) if own else None
    if own and (entry is None or entry.hash != known):
        raise VerificationError(
            f"the ledger {ledger.path} does not have entry {number}, which the published snapshot names: it is an "
            "older copy.",
            "Nothing was read and nothing was published.",
            "Restore the newest ledger and state together; a stream cannot go on from a copy of before.",
        )


def _status(spec: Spec, store: Store, state: StreamState) -> Status:
    public = spec.params.arrivals == "public"
    clock = state.events if public else state.pushes
    R, now = spec.params.releases_per_doubling, state.release.get("due", 0)
    low, high = clock, max(1, 2 * clock)  # the next release is due in (low, high]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if schedule.due(middle, R) > now else (middle, high)
    return Status(
        stream=state.stream_id,
        name=spec.name,
        dataset=spec.privacy.dataset,
        pushes=state.pushes,
        events=state.events if public else None,
        releases=state.release.get("number", 0),
        clock="events" if public else "pushes",
        now=clock,
        next_release=high,
        generation=state.generation,
        state_file=str(store.path),
    )
