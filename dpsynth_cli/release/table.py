"""The main path: spec -> budget -> answers -> model -> files. And the same again from a transcript."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsynth_cli.errors import (
    DpsynthError,
    FileError,
    Interrupted,
    MemoryShort,
    UsageError,
    VerificationError,
)
from dpsynth_cli.evaluate.tables import Sample
from dpsynth_cli.evaluate.utility import ROWS, utility
from dpsynth_cli.questions import Answer, Progress, no_progress
from dpsynth_cli.release import audit
from dpsynth_cli.release.publish import Files, publish
from dpsynth_cli.release.synthesis import Receipt, about, accountant_of, compose, draw, replay, run
from dpsynth_cli.release.transcript import VERSION, Partial
from dpsynth_cli.spec.spec import Spec, public_document
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.curator import open_curator
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.ledger.chain import NoLedger
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.sums.passes import Passes


def release(
    spec: Spec, ledger: Ledger, progress: Progress = no_progress, engine: Engine | None = None
) -> Receipt:
    """Spend the budget once: synthetic file, transcript, audits.

    The ledger holds the charge before the first row is read. Until then any failure gives it back;
    after that it stays spent, and `resume` finishes from the answers already on the disk.
    """
    started = time.time()
    _check_whole(spec)
    files = Files.of(spec)
    files.check_writable()
    accountant = accountant_of(spec)
    with closing(open_scan(spec.input, spec.domain.columns, spec.csv)) as scan:
        engine = _right(engine, scan)
        release_id = secrets.token_hex(16)
        with refunding(spec, ledger, release_id, reserving=True):
            reservation = ledger.reserve(
                spec.privacy.dataset,
                release_id,
                accountant.total,
                accountant.currency,
                spec.privacy.neighbours,
                audit.short(spec.privacy.budget),
                None if spec.privacy.delta is None else str(float(spec.privacy.delta)),
                spec.name,
            )
            header = {
                "dpsynth_transcript": VERSION,
                "release": about(spec, release_id),
                "spec": public_document(spec.effective),
                "sampling_seed": secrets.randbits(63) if spec.seed is None else spec.seed,
                "ledger": {
                    "dataset": spec.privacy.dataset,
                    "hash": reservation.hash,
                    "charged": str(reservation.charged),
                    "conversion": reservation.conversion,
                },
            }
            partial = Partial.create(files.partial(release_id), header)
        with closing(partial), refunding(spec, ledger, release_id, partial):
            return _finish(spec, ledger, files, scan, accountant, partial, progress, engine, started)


def resume(
    spec: Spec, ledger: Ledger, progress: Progress = no_progress, engine: Engine | None = None
) -> Receipt:
    """Finish a release that was cut off: same answers, same charge, nothing asked twice."""
    started = time.time()
    _check_whole(spec)
    files = Files.of(spec)
    files.check_writable()
    with closing(_unfinished(spec, files)) as partial:
        release_id = partial.header["release"]["id"]
        if ledger.state(release_id) not in ("reserved", "drawn", "committed"):
            raise UsageError(
                f"the ledger {ledger.path} does not hold the charge of {partial.path.name}.",
                next_step="Name the ledger it was started with: --ledger FILE, or $DPSYNTH_LEDGER.",
            )
        with (
            closing(open_scan(spec.input, spec.domain.columns, spec.csv)) as scan,
            refunding(spec, ledger, release_id, partial),
        ):
            engine = _right(engine, scan)
            return _finish(spec, ledger, files, scan, accountant_of(spec), partial, progress, engine, started)


def _check_whole(spec: Spec) -> None:
    """Refuse a mechanism that takes its rows push by push."""
    if spec.mechanism.stream:
        at = spec.places.get("mechanism.name", "mechanism.name")
        raise UsageError(
            f"{at}: {spec.mechanism.name} releases a stream, push by push, not a table.",
            next_step="Start it with: dpsynth stream init SPEC. Then, for every batch: "
            "dpsynth stream push SPEC BATCH --batch-id ID --publish",
        )


def _finish(
    spec: Spec,
    ledger: Ledger,
    files: Files,
    scan: Scan,
    accountant: Accountant,
    partial: Partial,
    progress: Progress,
    engine: Engine,
    started: float,
) -> Receipt:
    release_id = partial.header["release"]["id"]
    dataset = spec.privacy.dataset
    bill: list[Charge] = []
    noted = _noted(ledger, partial)

    passes = Passes(scan, spec.domain, engine, ROWS if spec.evaluation.metrics else 0, progress)

    def before_rows() -> None:
        # Exactly one process may go on: of two with the same charge, one cannot mark it.
        state = ledger.state(release_id)
        if state == "reserved":
            ledger.drawn(release_id)
        elif state != "drawn":
            raise VerificationError(
                f"the release {release_id} is {state or 'unknown'} in the ledger: no row may be read for it.",
                "",
            )

    def record(charges: Sequence[Charge], answers: Sequence[Answer]) -> None:
        # On the disk, then in the ledger, then to the mechanism: whoever goes on from an older copy of the
        # partial, or from another one, is refused, so no question ever gets a second answer.
        nonlocal noted
        for charge, answer in zip(charges, answers, strict=True):
            partial.record(charge.question, answer)
        count = len(partial.answers)
        noted = ledger.note(dataset, release_id, _note(partial, count), follows=noted).number

    ask = open_curator(
        passes.sums,
        spec.domain,
        accountant,
        system_source(),
        record,
        before_rows,
        list(partial.answers),
        bill,
    )
    outcome = run(spec, replace(ask, progress=progress))
    transcript = partial.transcript()
    made = Sample(ROWS)
    pending, public = compose(spec, transcript, outcome, accountant, bill, files, progress, made.add)
    try:
        useful = utility(spec, passes.sampled, made, progress)
        charged = ledger.receipt(dataset, release_id)
        steward = audit.steward_audit(public, spec.input, files.named(), charged, useful)
        publish(
            files,
            release_id,
            started,
            pending,
            transcript.as_bytes(),
            audit.as_text(steward),
            audit.as_text(public),
            lambda hashes: _commit(ledger, release_id, hashes),
        )
    finally:
        pending.discard()
    partial.remove()
    return Receipt(release_id, public["output"]["rows"], files.named(), public, charged)


def _right(engine: Engine | None, scan: Scan) -> Engine:
    """The engine, if it can read the table; one machine if none is named."""
    engine = engine or Engine(sum_over, watches=True)
    engine.check(scan)
    return engine


def _note(partial: Partial, count: int) -> dict[str, Any]:
    return {"answers": count, "sha256": partial.digest(count)}


def _noted(ledger: Ledger, partial: Partial) -> int:
    """The number of the last note about the release; refuses a partial that is not the one it is about."""
    last = ledger.last_note(partial.header["release"]["id"])
    if last is None:
        return 0
    if last.payload != _note(partial, last.payload["answers"]):
        raise VerificationError(
            f"{partial.path.name} is an older or another copy of the unfinished release: the ledger knows "
            "answers that it does not have.",
            "",
            "Go on with the newest copy; answers are never drawn a second time.",
        )
    return last.number


def _commit(ledger: Ledger, release_id: str, hashes: dict[str, str]) -> None:
    """Commit once; what was committed before must be the same."""
    if ledger.state(release_id) != "committed":
        ledger.commit(release_id, hashes)
        return
    before = next(entry.payload for entry in ledger.find(release_id) if entry.kind == "commit")
    if before != hashes:
        raise VerificationError(f"the ledger holds other files for the release {release_id}.", "")


def _unfinished(spec: Spec, files: Files) -> Partial:
    """The oldest unfinished release of this output whose process is gone."""
    other_spec = alive = False
    for path in files.partials():
        partial = Partial.reopen(path)
        if partial is None:
            alive = True
        elif partial.header["spec"] != public_document(spec.effective):
            other_spec = True
            partial.close()
        else:
            return partial
    if other_spec:
        why = "the unfinished release beside it was started with another spec or other options."
    elif alive:
        why = "the unfinished release beside it is still running."
    else:
        why = "there is no unfinished release beside it."
    raise UsageError(f"nothing to resume for {files.output_name}: {why}", next_step="")


@contextmanager
def refunding(
    spec: Spec, ledger: Ledger, release_id: str, partial: Partial | None = None, reserving: bool = False
) -> Iterator[None]:
    """Give the charge back if it fails before a row is read; else say that it is spent.

    With `reserving` the charge itself is made inside: what the ledger refuses, it has said.
    """
    try:
        yield
    except BaseException as failure:
        if reserving and isinstance(failure, DpsynthError):
            raise
        error = failure
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            error = Interrupted(143 if isinstance(error, SystemExit) else 130)
        if isinstance(error, OSError):
            error = FileError(f"{error.filename or spec.output}: {error.strerror}.", "")
        if isinstance(error, MemoryError):
            error = MemoryShort()
        try:
            state = ledger.state(release_id)
        except NoLedger:
            if not reserving:
                raise
            state = None  # stopped while the ledger itself was being made: nothing was charged
        if state == "reserved":
            ledger.abort(release_id, type(failure).__name__)
            if partial is not None:
                partial.remove()
        if isinstance(error, DpsynthError):
            if state in ("drawn", "committed"):
                error.cost, finish = _spent(spec)
                if not isinstance(error, VerificationError):
                    error.next_step = f"{error.next_step} {finish}".strip()
            elif state is not None or isinstance(error, Interrupted):
                error.cost = "Nothing was spent."
        raise error from None


def _spent(spec: Spec) -> tuple[str, str]:
    """What stays spent when a release fails after its rows were read, and how to go on."""
    privacy = spec.privacy
    if privacy.epsilon is None:
        return f"The ledger keeps this use of {privacy.dataset} without differential privacy.", ""
    finish = "Then finish it with the same command and --resume: that costs nothing more."
    return f"epsilon = {audit.short(privacy.epsilon)} of {privacy.dataset} was spent.", finish


@dataclass(frozen=True)
class Sampled:
    """What `sample` wrote."""

    output: str
    rows: int
    seed: int
    sha256: str


def sample(path: Path, output: str, rows: int | None, seed: int, progress: Progress = no_progress) -> Sampled:
    """More rows from a past release: reads no data, costs nothing."""
    from dpsynth_cli.release.transcript import load

    if output != "-" and not output.endswith((".csv", ".parquet")):
        raise UsageError(
            f"the output {output} is not a .csv or .parquet file.", next_step="Name one, or - for CSV."
        )
    transcript, _ = load(path)
    spec, outcome, _, _ = replay(transcript, progress)
    model = outcome.model
    spec = replace(spec, output=output)
    files = Files.of(spec)
    if files.output is not None and files.public_audit.exists():
        raise UsageError(
            f"{output} is the table of a release: its audit is beside it.", next_step="Choose another name."
        )
    files.check_writable()
    count = rows or (max(0, model.total) if spec.rows is None else spec.rows)
    pending = draw(spec, model, count, seed, files.path, progress)
    pending.publish()
    return Sampled(output, count, seed, pending.sha256)
