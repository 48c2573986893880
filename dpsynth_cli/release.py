"""The main path: spec -> budget -> answers -> model -> files. And the same again from a transcript."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth_cli import __version__, audit
from dpsynth_cli.accounting import accountant_of, budget_of
from dpsynth_cli.errors import DpsynthError, FileError, Interrupted, UsageError, VerificationError
from dpsynth_cli.files import Files, publishing
from dpsynth_cli.questions import Answer, Ask, Block, Ints, Model, Progress, Question, no_progress
from dpsynth_cli.spec import Spec, from_document, public_document
from dpsynth_cli.transcript import VERSION, Partial, Transcript, sha256
from dpsynth_cli.trusted.accountant import Accountant
from dpsynth_cli.trusted.curator import TranscriptMismatch, open_curator
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.ledger import Ledger
from dpsynth_cli.trusted.prices import Charge
from dpsynth_cli.trusted.read import open_scan
from dpsynth_cli.trusted.scan import Scan
from dpsynth_cli.trusted.source import system_source
from dpsynth_cli.write import Pending, write_table


@dataclass(frozen=True)
class Receipt:
    """What a release gave: for people and for programs."""

    release_id: str
    rows: int
    files: dict[str, str]
    public: dict[str, Any]


def release(
    spec: Spec, ledger: Ledger, progress: Progress = no_progress, engine: Engine | None = None
) -> Receipt:
    """Spend the budget once: synthetic file, transcript, audits.

    The ledger holds the charge before the first row is read. Until then any failure gives it back;
    after that it stays spent, and `resume` finishes from the answers already on the disk.
    """
    files = Files.of(spec)
    files.check_writable()
    accountant = accountant_of(spec)
    with closing(open_scan(spec.input, spec.domain.columns, spec.csv)) as scan:
        engine = _right(engine, scan)
        release_id = secrets.token_hex(16)
        reservation = ledger.reserve(
            spec.privacy.dataset,
            release_id,
            accountant.total,
            accountant.currency,
            spec.privacy.neighbours,
            audit.short(spec.privacy.epsilon),
            None if spec.privacy.delta is None else str(float(spec.privacy.delta)),
            spec.name,
        )
        header = {
            "dpsynth_transcript": VERSION,
            "release": {
                "id": release_id,
                "name": spec.name,
                "day": datetime.now(timezone.utc).date().isoformat(),
                "versions": versions(),
            },
            "spec": public_document(spec.effective),
            "sampling_seed": secrets.randbits(63) if spec.seed is None else spec.seed,
            "ledger": {
                "dataset": spec.privacy.dataset,
                "entry": reservation.number,
                "hash": reservation.hash,
                "charged": str(reservation.charged),
                "remaining": None if reservation.remaining is None else str(reservation.remaining),
                "conversion": reservation.conversion,
            },
        }
        with _refunding(spec, ledger, release_id):
            partial = Partial.create(files.partial(release_id), header)
        with closing(partial), _refunding(spec, ledger, release_id, partial):
            return _finish(spec, ledger, files, scan, accountant, partial, progress, engine)


def resume(
    spec: Spec, ledger: Ledger, progress: Progress = no_progress, engine: Engine | None = None
) -> Receipt:
    """Finish a release that was cut off: same answers, same charge, nothing asked twice."""
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
            _refunding(spec, ledger, release_id, partial),
        ):
            engine = _right(engine, scan)
            return _finish(spec, ledger, files, scan, accountant_of(spec), partial, progress, engine)


def _finish(
    spec: Spec,
    ledger: Ledger,
    files: Files,
    scan: Scan,
    accountant: Accountant,
    partial: Partial,
    progress: Progress,
    engine: Engine,
) -> Receipt:
    release_id = partial.header["release"]["id"]
    dataset = spec.privacy.dataset
    bill: list[Charge] = []
    noted = _noted(ledger, partial)

    def sums(questions: Sequence[Question]) -> tuple[list[Ints], int]:
        progress("reading", 0, scan.size)
        return engine.sum_over(
            scan, spec.domain, questions, lambda done: progress("reading", done, scan.size)
        )

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
        sums, spec.domain, accountant, system_source(), record, before_rows, list(partial.answers), bill
    )
    model = _run(spec, replace(ask, progress=progress))
    transcript = partial.transcript()
    pending, public = compose(spec, transcript, model, accountant, bill, files, progress)
    try:
        steward = audit.steward_audit(public, spec.input, files.named())
        hashes = {"output": public["output"]["sha256"], "transcript": public["transcript"]["sha256"]}
        hashes["public_audit"] = sha256(audit.as_text(public))
        with publishing(
            files, release_id, transcript.as_bytes(), audit.as_text(steward), audit.as_text(public)
        ) as publish:
            _commit(ledger, release_id, hashes)
            publish()
            pending.publish()
    finally:
        pending.discard()
    partial.remove()
    return Receipt(release_id, public["output"]["rows"], files.named(), public)


def _right(engine: Engine | None, scan: Scan) -> Engine:
    """The engine, if it can read the table; one machine if none is named."""
    engine = engine or Engine(sum_over)
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


def _run(spec: Spec, ask: Ask) -> Model:
    try:
        return spec.mechanism.run(ask, spec.domain, spec.params, spec.split)
    except TranscriptMismatch:
        raise VerificationError(
            "the recorded answers do not fit what the mechanism asks: another version or spec made them.",
            "",
        ) from None


def compose(
    spec: Spec,
    transcript: Transcript,
    model: Model,
    accountant: Accountant,
    bill: Sequence[Charge],
    files: Files,
    progress: Progress = no_progress,
) -> tuple[Pending, dict[str, Any]]:
    """The synthetic file (not yet under its name) and the public audit: from public things alone."""
    rows = max(0, model.total) if spec.rows is None else spec.rows
    release_id, seed = transcript.header["release"]["id"], transcript.header["sampling_seed"]
    pending = draw(spec, model, rows, seed, files.path, progress, release_id)
    output = {
        "file": files.output_name,
        "rows": rows,
        "columns": [column.name for column in spec.domain],
        "sha256": pending.sha256,
    }
    data = transcript.as_bytes()
    public = audit.public_audit(
        spec,
        transcript.header,
        budget_of(accountant),
        [charge.as_json() for charge in bill],
        output,
        {"file": files.transcript.name, "sha256": sha256(data)},
        model.notes,
        model.facts,
    )
    return pending, public


def draw(
    spec: Spec, model: Model, rows: int, seed: int, path: str, progress: Progress, tag: str | None = None
) -> Pending:
    """Rows from a model, in a temporary file beside `path`."""
    progress("writing", 0, rows)

    def watched() -> Iterator[Block]:
        for block in model.draw(rows, np.random.default_rng(seed)):
            yield block
            progress("writing", len(next(iter(block.values()))), rows)

    return write_table(path, spec.domain.columns, watched(), rows, tag)


def replay(
    transcript: Transcript, progress: Progress = no_progress
) -> tuple[Spec, Model, Accountant, list[Charge]]:
    """The model again, from the transcript alone; no data."""

    def no_rows(questions: Sequence[Question]) -> tuple[list[Ints], int]:
        raise TranscriptMismatch("the transcript ends before the mechanism does")

    try:
        spec = from_document(transcript.header["spec"])
        accountant = accountant_of(spec)
        bill: list[Charge] = []
        ask = open_curator(
            no_rows,
            spec.domain,
            accountant,
            system_source(),
            lambda charges, answers: None,
            lambda: None,
            transcript.answers,
            bill,
        )
        model = _run(spec, replace(ask, progress=progress))
    except (KeyError, UsageError, ValueError) as error:
        made = transcript.header.get("release", {}).get("versions", {}).get("dpsynth", "an unknown version")
        raise VerificationError(
            f"the transcript does not fit its own spec: {error}.",
            "",
            f"It was made by dpsynth {made}; this is {__version__}.",
        ) from None
    for charge, (_, answer) in zip(bill, transcript.answers, strict=False):
        if (answer.noise, answer.sd) != (charge.price.noise, charge.price.sd):
            raise VerificationError("the transcript claims other noise than its shares pay for.", "")
    if len(bill) != len(transcript.answers):
        raise VerificationError("the transcript has answers that the mechanism never asked for.", "")
    return spec, model, accountant, bill


def versions() -> dict[str, str]:
    """What made a release: the same versions make the same bytes."""
    import pyarrow
    import scipy

    return {
        "dpsynth": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "pyarrow": pyarrow.__version__,
    }


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
def _refunding(spec: Spec, ledger: Ledger, release_id: str, partial: Partial | None = None) -> Iterator[None]:
    """Give the charge back if it fails before a row is read; else say that it is spent."""
    try:
        yield
    except BaseException as failure:
        error = failure
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            error = Interrupted(143 if isinstance(error, SystemExit) else 130)
        if isinstance(error, OSError):
            error = FileError(f"{error.filename or spec.output}: {error.strerror}.", "")
        state = ledger.state(release_id)
        if state == "reserved":
            ledger.abort(release_id, type(failure).__name__)
            if partial is not None:
                partial.remove()
        if isinstance(error, DpsynthError):
            if state in ("drawn", "committed"):
                epsilon = audit.short(spec.privacy.epsilon)
                error.cost = f"epsilon = {epsilon} of {spec.privacy.dataset} was spent."
                finish = "Then finish it with the same command and --resume: that costs nothing more."
                if not isinstance(error, VerificationError):
                    error.next_step = f"{error.next_step} {finish}".strip()
            else:
                error.cost = "Nothing was spent."
        raise error from None


@dataclass(frozen=True)
class Sampled:
    """What `sample` wrote."""

    output: str
    rows: int
    seed: int
    sha256: str


def sample(path: Path, output: str, rows: int | None, seed: int, progress: Progress = no_progress) -> Sampled:
    """More rows from a past release: reads no data, costs nothing."""
    from dpsynth_cli.transcript import load

    if output != "-" and not output.endswith((".csv", ".parquet")):
        raise UsageError(
            f"the output {output} is not a .csv or .parquet file.", next_step="Name one, or - for CSV."
        )
    transcript, _ = load(path)
    spec, model, _, _ = replay(transcript, progress)
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
