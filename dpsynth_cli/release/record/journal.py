"""The durable record of one release: its charge, the answers so far, and what the ledger knows of them.

begin      charge in the ledger, then the partial transcript beside the output
record     answers on the disk, then a note of their number and hash in the ledger, then to the mechanism
commit     hashes of what is published in the ledger
going_on   the same release again after a crash: same answers, same charge, nothing asked twice
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dpsynth_cli import disk
from dpsynth_cli.errors import (
    DpsynthError,
    FileError,
    Interrupted,
    MemoryShort,
    VerificationError,
)
from dpsynth_cli.numbers import exact
from dpsynth_cli.questions import Answer
from dpsynth_cli.release.budget import cost_of
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.record.again import going_on
from dpsynth_cli.release.record.transcript import VERSION, PartialTranscript, Transcript
from dpsynth_cli.release.record.unfinished import Request
from dpsynth_cli.release.synthesis import about
from dpsynth_cli.spec.spec import Spec, public_document
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.ledger.chain import NoLedger
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.rows.unit_marks import fresh_key

Closable = TypeVar("Closable", "Journal", PartialTranscript)


class Journal:
    """The record of a release that is under way."""

    def __init__(self, dataset: str, ledger: Ledger, partial: PartialTranscript) -> None:
        self._dataset, self._ledger, self._partial = dataset, ledger, partial
        self._noted = self._last_note()

    @classmethod
    def begin(cls, spec: Spec, files: Files, ledger: Ledger, request: Request, release_id: str) -> Journal:
        """Charge a new release: inside `refunding`, which gives the charge back if anything stops it."""
        reservation = ledger.reserve(spec.privacy.dataset, release_id, spec.name, cost_of(spec))
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
        private = request.private(spec) | _unit_key(spec)
        with closing_on_failure(PartialTranscript.create(files.partial(release_id), header, private)) as made:
            return cls(spec.privacy.dataset, ledger, made)

    @classmethod
    def going_on(cls, spec: Spec, files: Files, ledger: Ledger, request: Request) -> Journal | None:
        """The record of the unfinished release that is meant; None if a new one is."""
        partial = going_on(spec, files, ledger, request)
        if partial is None:
            return None
        release_id = partial.header["release"]["id"]
        with closing_on_failure(partial):
            if partial.answers and ledger.state(release_id) == "reserved":
                ledger.drawn(release_id)  # the ledger is an older copy: rows were read all the same
        with closing_on_failure(partial), refunding(spec, ledger, release_id):
            journal = cls(spec.privacy.dataset, ledger, partial)
            journal._note_the_rest()
            return journal

    @property
    def release_id(self) -> str:
        return str(self._partial.header["release"]["id"])

    @property
    def day(self) -> str:
        """On which it was begun and charged."""
        return str(self._partial.header["release"]["day"])

    @property
    def seed(self) -> int:
        """Of what is drawn after the noise."""
        return int(self._partial.header["sampling_seed"])

    @property
    def unit_key(self) -> str:
        """The secret that says which rows of a unit are kept: the same ones when it goes on after a crash."""
        return str(self._partial.private["unit_key"])

    @property
    def answers(self) -> Sequence[tuple[Any, Answer]]:
        """(question as JSON, answer) in order."""
        return self._partial.answers

    def before_rows(self) -> None:
        """Mark in the ledger that rows are read. Exactly one process may go on: of two with the same charge,
        one cannot mark it."""
        state = self._ledger.state(self.release_id)
        if state == "reserved":
            self._ledger.drawn(self.release_id)
        elif state != "drawn":
            raise VerificationError(
                f"the release {self.release_id} is {state or 'unknown'} in the ledger: no row may be read "
                "for it.",
                "",
            )

    def record(self, charges: Sequence[Charge], answers: Sequence[Answer]) -> None:
        """Whoever goes on from an older copy of the partial, or from another one, is refused, so that no
        question ever gets a second answer."""
        for charge, answer in zip(charges, answers, strict=True):
            self._partial.record(charge.question, answer)
        self._note_all()

    def transcript(self) -> Transcript:
        """All of it, as it will be published."""
        return self._partial.transcript()

    def commit(self, hashes: dict[str, str]) -> None:
        """Commit once; what was committed before must be the same."""
        if self._ledger.state(self.release_id) != "committed":
            self._ledger.commit(self.release_id, hashes)
            return
        entries = self._ledger.find(self.release_id)
        if next(entry.payload for entry in entries if entry.kind == "commit") != hashes:
            raise VerificationError(f"the ledger holds other files for the release {self.release_id}.", "")

    def remove(self) -> None:
        """Published, or given back: the unfinished copy goes."""
        self._partial.remove()

    def close(self) -> None:
        self._partial.close()

    def _note_all(self) -> None:
        payload = self._note(len(self._partial.answers))
        self._noted = self._ledger.note(self._dataset, self.release_id, payload, follows=self._noted).number

    def _note_the_rest(self) -> None:
        """Note answers that were on the disk, and not in the ledger, when their process died: before the
        mechanism sees them, so that an older copy cannot get others."""
        last = self._ledger.last_note(self.release_id)
        known = last.payload["answers"] if last else 0
        if len(self.answers) > known and self._ledger.state(self.release_id) == "drawn":
            self._note_all()

    def _note(self, count: int) -> dict[str, Any]:
        return {"answers": count, "sha256": self._partial.digest(count)}

    def _last_note(self) -> int:
        """The number of the last note; refuses a partial that is not the one it is about."""
        last = self._ledger.last_note(self.release_id)
        if last is None:
            return 0
        if last.payload != self._note(last.payload["answers"]):
            raise VerificationError(
                f"{self._partial.path.name} is an older or another copy of the unfinished release: the "
                "ledger knows answers that it does not have.",
                "",
                "Go on with the newest copy; answers are never drawn a second time.",
            )
        return last.number


def _unit_key(spec: Spec) -> dict[str, str]:
    """A fresh secret where units are protected: in the partial alone, and gone with it."""
    return {} if spec.privacy.unit is None else {"unit_key": fresh_key()}


@contextmanager
def closing_on_failure(opened: Closable) -> Iterator[Closable]:
    try:
        yield opened
    except BaseException:
        opened.close()
        raise


@contextmanager
def refunding(
    spec: Spec, ledger: Ledger, release_id: str, partial: Path | None = None, reserving: bool = False
) -> Iterator[None]:
    """Give the charge back if it fails before a row is read, and remove the unfinished copy; else say that it
    is spent.

    With `reserving` the charge itself is made inside, so that there is no moment between the two: what the
    ledger refuses, it has said.
    """
    try:
        yield
    except BaseException as failure:
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
        except DpsynthError:
            if reserving and isinstance(failure, DpsynthError):
                raise failure from None  # the ledger has said why it cannot be used
            raise
        if state == "reserved":
            state = _given_back(ledger, release_id, type(failure).__name__)
            if state == "aborted" and partial is not None:
                disk.remove(partial)
        if isinstance(error, DpsynthError):
            if state in ("drawn", "committed"):
                error.cost, finish = _spent(spec)
                if not isinstance(error, VerificationError):
                    then = f"{error.next_step} Then finish" if error.next_step else "Finish"
                    error.next_step = f"{then} {finish}" if finish else error.next_step
            elif state is not None or isinstance(error, Interrupted):
                error.cost = "Nothing was spent."
        raise error from None


def _given_back(ledger: Ledger, release_id: str, why: str) -> str | None:
    """The state afterwards. What another process reads rows for since we looked goes on: it is not ours."""
    try:
        ledger.refund(release_id, why)
    except VerificationError:
        return ledger.state(release_id)
    return "aborted"


def _spent(spec: Spec) -> tuple[str, str]:
    """What stays spent when a release fails after its rows were read, and how to go on."""
    privacy = spec.privacy
    if privacy.epsilon is None:
        return f"The ledger keeps this use of {privacy.dataset} without differential privacy.", ""
    finish = "it with the same command and --resume: that costs nothing more."
    return f"epsilon = {exact(privacy.epsilon)} of {privacy.dataset} was spent.", finish
