"""Mistakes that could be made in the code. Each is put in for a while, and some schedule must show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import dpsynth_cli.release.record.journal as journals
import dpsynth_cli.release.table as releases
from dpsynth_cli import disk
from dpsynth_cli.errors import FileError
from dpsynth_cli.release.files import replaced
from dpsynth_cli.release.record.journal import Journal
from dpsynth_cli.release.record.transcript import PartialTranscript
from dpsynth_cli.trusted.ledger import chain
from dpsynth_cli.trusted.ledger.balance import Account
from dpsynth_cli.trusted.ledger.books import Books
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.state import Store
from tests.simulator.invariants import (
    CHARGED_FIRST,
    GOES_ON,
    ONE_ANSWER,
    ONE_CHARGE,
    OVERDRAWN,
    STAYS,
    TOGETHER,
    WHOLE,
)

Change = tuple[Any, str, Any]
FAULTS: dict[str, tuple[tuple[str, ...], Callable[[], Any]]] = {}


def mistake(*seen_by: str) -> Callable[[Callable[[], list[Change]]], Callable[[], list[Change]]]:
    """A function that gives what is changed: where, which name, and what it is instead."""

    def named(changes: Callable[[], list[Change]]) -> Callable[[], list[Change]]:
        @contextmanager
        def planted() -> Iterator[None]:
            made = changes()
            kept = [(place, name, getattr(place, name)) for place, name, _ in made]
            try:
                for place, name, new in made:
                    setattr(place, name, new)
                yield
            finally:
                for place, name, old in kept:
                    setattr(place, name, old)

        FAULTS[changes.__name__] = (seen_by, planted)
        return changes

    return named


# --- disk and locks ----------------------------------------------------------------------------------


@mistake(TOGETHER)
def files_are_renamed_without_a_sync() -> list[Change]:
    def sync(file: Any) -> None:
        if file.path.endswith(".tmp"):
            file.flush()
        else:
            real(file)

    real = disk.sync
    return [(disk, "sync", sync)]


@mistake(STAYS, GOES_ON, ONE_CHARGE)
def folders_are_never_synced() -> list[Change]:
    return [(disk, "sync_folder", lambda folder: None)]


@mistake(GOES_ON)
def answers_are_shown_before_they_are_durable() -> list[Change]:
    return [(PartialTranscript, "_sync", lambda self: self._file.flush())]


@mistake(GOES_ON, ONE_ANSWER, TOGETHER, ONE_CHARGE)
def locks_are_ignored() -> list[Change]:
    return [
        (disk, "lock", lambda file, wait=True, shared=False: True),
        (disk, "locked_folder", lambda folder: nullcontext()),
    ]


@mistake(STAYS)
def a_replaced_release_is_not_kept() -> list[Change]:
    return [(replaced, "keep", lambda files, release_id: None)]


@mistake(GOES_ON)
def a_full_disk_has_no_words() -> list[Change]:
    return [(journals, "FileError", OSError)]


# --- charges -----------------------------------------------------------------------------------------


@mistake(CHARGED_FIRST)
def rows_are_read_before_the_charge_is_marked() -> list[Change]:
    return [(Journal, "before_rows", lambda self: None)]


@mistake(OVERDRAWN, ONE_CHARGE)
def a_charge_is_given_back_after_rows_were_read() -> list[Change]:
    @contextmanager
    def refunding(spec: Any, book: Ledger, release_id: str, *more: Any, **others: Any) -> Iterator[None]:
        try:
            yield
        except (Exception, KeyboardInterrupt):
            if book.state(release_id) in ("reserved", "drawn"):
                book.abort(release_id, "it failed")
            raise FileError("it failed.") from None

    def refund(self: Account, release: str) -> None:
        self.drawn.discard(release)
        real(self, release)

    real = Account.refund
    return [
        (releases, "refunding", refunding),
        (journals, "refunding", refunding),
        (Account, "refund", refund),
    ]


@mistake(OVERDRAWN)
def what_is_left_is_not_looked_at() -> list[Change]:
    def price(self: Books, cost: Any, person: str | None) -> Any:
        assert self.limit is not None
        return self.limit.price(cost)

    return [(Books, "price", price)]


@mistake(ONE_CHARGE, GOES_ON)
def what_is_paid_for_is_begun_again() -> list[Change]:
    return [
        (journals, "going_on", lambda *words: None),
        (releases, "refuse_begun", lambda *words: None),
    ]


@mistake(ONE_CHARGE)
def two_processes_may_begin_the_same() -> list[Change]:
    return [(releases, "refuse_begun", lambda *words: None)]


@mistake(WHOLE)
def entries_do_not_follow_each_other() -> list[Change]:
    def head(db: Any) -> tuple[int, str]:
        return real(db)[0], chain.START

    real = chain.head
    return [(chain, "head", head)]


# --- answers -----------------------------------------------------------------------------------------


@mistake(ONE_ANSWER)
def an_older_copy_of_a_release_may_go_on() -> list[Change]:
    def note(self: Ledger, dataset: str, release_id: str, payload: Any, follows: int | None = None) -> Any:
        return real(self, dataset, release_id, payload)

    real = Ledger.note
    return [(Ledger, "note", note), (Journal, "_last_note", lambda self: 0)]


@mistake(ONE_ANSWER)
def an_older_copy_of_a_stream_may_go_on() -> list[Change]:
    def load(self: Store) -> Any:
        found = state._read(self.path) or state._read(self._next)
        note = self.ledger.last_note(found[0].stream_id) if found else None
        self._noted = note.number if note else 0
        return found and found[0]

    from dpsynth_cli.trusted.stream import state

    return [(Store, "load", load)]


# --- order -------------------------------------------------------------------------------------------


@mistake(TOGETHER)
def files_are_in_place_before_the_ledger_knows_them() -> list[Change]:
    def publish(*words: Any, **more: Any) -> None:
        *most, record = words
        kept: list[Any] = []
        real(*most, kept.append, **more)
        record(kept[0])

    real = releases.publish
    return [(releases, "publish", publish)]


@mistake(GOES_ON)
def a_generation_is_noted_before_it_is_on_the_disk() -> list[Change]:
    def commit(self: Store, state: Any) -> None:
        state.generation += 1
        data = state.as_bytes()
        from dpsynth_cli.trusted.stream.state import _commitment

        payload = {"generation": state.generation, "commitment": _commitment(state.secret, data)}
        dataset = str(state.spec["privacy"]["dataset"])
        self._noted = self.ledger.note(dataset, state.stream_id, payload, follows=self._noted).number
        self._write(self._next, data)
        disk.sync_folder(self.path.parent)
        self._settle()

    return [(Store, "commit", commit)]
