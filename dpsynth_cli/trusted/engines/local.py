"""One machine: batches in threads, each worker with a tally of its own, merged by addition."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from queue import Queue
from threading import Event, Thread
from typing import Protocol, TypeVar

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Ints, Question
from dpsynth_cli.trusted.core.shapes import columns_of
from dpsynth_cli.trusted.engines import Advance
from dpsynth_cli.trusted.rows.label_counts import LabelShelves
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Piece, Rows
from dpsynth_cli.trusted.rows.unit_rows import MARK, Truncation
from dpsynth_cli.trusted.sums.batch import CodesByColumn
from dpsynth_cli.trusted.sums.tally import Tally


class Pieces(Protocol):
    """What can be read in pieces and encoded in threads."""

    def pieces(self) -> Iterator[Piece]: ...
    def encode(self, piece: Piece, counted: Problems | None = None) -> CodesByColumn: ...


class Adds(Protocol):
    """What adds up rows: batch by batch, and merged by addition, so that no order matters."""

    def add(self, codes: CodesByColumn, rows: int) -> None: ...


A = TypeVar("A", bound=Adds)
Watch = Callable[[CodesByColumn, int], None]  # of a piece's codes and its number, in any thread


def sum_over(
    scan: Rows,
    omega: Domain,
    questions: Sequence[Question],
    progress: Advance = lambda done: None,
    watches: Sequence[Watch] = (),
    counted: Problems | None = None,
    workers: int | None = None,
) -> tuple[list[Ints], int]:
    """The exact sums of the questions over all rows, and the number of rows.

    Reading is serial, decoding and counting run in `workers` threads; the result is the same for any
    number of them, because integer sums do not depend on their order. Watches see every column.
    """
    names = columns_of(questions)
    if not names:
        tally = Tally(questions, omega)
        tally.add({}, scan.count_rows())
        return tally.sums(), tally.rows
    first, *rest = added_up(
        scan if watches else scan.only(names),
        lambda: Tally(questions, omega),
        progress,
        watches,
        counted,
        workers,
    )
    for tally in rest:
        first.merge(tally.partial())
    return first.sums(), first.rows


def gather(
    truncation: Truncation | LabelShelves,
    progress: Advance = lambda done: None,
    watches: Sequence[Watch] = (),
    counted: Problems | None = None,
    workers: int | None = None,
) -> None:
    """All rows of a table to where their units are truncated, or labels to where they are counted. Watches
    see every column, and no unit."""

    def without_units(watch: Watch) -> Watch:
        def seen(codes: CodesByColumn, number: int) -> None:
            watch({name: values for name, values in codes.items() if name != MARK}, number)

        return seen

    seen = [*map(without_units, watches)]
    added_up(truncation.marked, lambda: truncation, progress, seen, counted, workers)


def added_up(
    scan: Pieces,
    make: Callable[[], A],
    progress: Advance = lambda done: None,
    watches: Sequence[Watch] = (),
    counted: Problems | None = None,
    workers: int | None = None,
) -> list[A]:
    """One tally a worker, together holding every row of the scan once. What is not as declared is added to
    `counted`."""
    count = workers or min(4, os.cpu_count() or 1)
    waiting: Queue[tuple[int, Piece] | None] = Queue(maxsize=2 * count)
    tallies = [make() for _ in range(count)]
    failures: list[BaseException] = []
    found = [None if counted is None else counted.empty() for _ in tallies]

    def work(tally: A, own: Problems | None, ended: Event) -> None:
        while (given := waiting.get()) is not None:
            if failures:
                continue  # drain the queue, so that the reader is never stuck
            try:
                number, piece = given
                codes = scan.encode(piece, own)
                for watch in watches:
                    watch(codes, number)
                tally.add(codes, len(next(iter(codes.values()))))
            except BaseException as failure:  # handed to the caller below
                failures.append(failure)
        ended.set()

    ends = [Event() for _ in tallies]
    args = zip(tallies, found, ends, strict=True)
    threads = [Thread(target=work, args=one, daemon=True) for one in args]

    def finish() -> None:
        for _ in threads:
            waiting.put(None)
        for ended in ends:  # not join: a signal there makes Python take a thread for one that has ended
            ended.wait()

    for thread in threads:
        thread.start()
    try:
        for number, piece in enumerate(scan.pieces()):
            waiting.put((number, piece))
            progress(piece.size)
            if failures:
                break
        finish()
    except BaseException as failure:
        # Ctrl-C or SIGTERM may come in `finish` too, and Python crashes at its end while a worker runs. There
        # is room for a second None for each.
        failures.append(failure)
        finish()
        raise
    if failures:
        raise failures[0]
    for own in found:
        if counted is not None and own is not None:
            counted.merge(own)
    return tallies
