"""`sum_over`: the exact integer sums of questions over all rows, on one machine or on many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Ints, Question
from dpsynth_cli.trusted.core.shapes import columns_of
from dpsynth_cli.trusted.rows.label_counts import Labelled
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_rows import Marked, Records
from dpsynth_cli.trusted.sums.tally import PartialSums, Tally

Advance = Callable[[int], None]  # told how many more bytes are read
SumOver = Callable[..., tuple[list[Ints], int]]  # of scan, omega, questions, progress; watches, counted
Gather = Callable[..., None]  # into a truncation, or shelves of labels; progress, watches, counted


def reads_all(scan: Scan) -> None:
    """The `check` of an engine that every table is right for."""


@dataclass(frozen=True)
class Engine:
    """Something that sums, and that gathers rows by their units, or labels. `check` refuses a table it cannot
    read, before anything is charged. One that `watches` shows each piece's codes to its fifth argument, so
    that passes over the table are saved; one that `counts` adds what is not as declared to its sixth. One
    without `gather` can neither protect units nor find labels."""

    sum_over: SumOver
    check: Callable[[Scan], None] = reads_all
    watches: bool = False
    counts: bool = False
    gather: Gather | None = None


def marked_records(marked: Marked | Labelled, counted: Problems | None = None) -> Iterator[Records]:
    """The records of one marked scan, one piece at a time: what a worker gives back where units are
    protected or labels are looked for."""
    for piece in marked.pieces():
        yield marked.records(marked.encode(piece, counted))


def summed(
    scan: Scan, omega: Domain, questions: Sequence[Question], counted: Problems | None = None
) -> PartialSums:
    """The kernel that every engine shares: the sums over the rows of one scan, one piece at a time."""
    tally = Tally(questions, omega)
    names = columns_of(questions)
    if not names:
        tally.add({}, scan.count_rows())
        return tally.partial()
    scan = scan.only(names)
    for piece in scan.pieces():
        codes = scan.encode(piece, counted)
        tally.add(codes, len(next(iter(codes.values()))))
    return tally.partial()
