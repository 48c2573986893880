"""How the text of each row group is read, so that what is in a row decides neither whether it can be read nor
in how much memory; chosen from sizes that stand in the footer and in the headers of pages.

**A page is decompressed whole**, and pages end between cells: a cell of 300 MB is a page of 300 MB, however
little it takes in the file. One page of each column is in memory at a time, so a file with pages too large,
alone or together, is refused before anything is charged.

**By labels, or cell by cell.** Text can be read by its distinct labels, so that a long one that stands in
many rows is there once. But the labels that pyarrow has seen it holds to the end of the row group, copies
with each batch, and fails where they are 2^31 bytes together. So by labels are read only columns and row
groups with little text, and columns whose labels are all in one page, the dictionary. All else is read cell
by cell, each column in batches of its own size, so that

- the pages which a batch touches are at most twice the column's part of TEXT, or twice its largest page;
- where a cell can be longer than its part of the page (it stands in the dictionary, or is told as a
  difference to the cell before), the cells of a batch are at most SPREAD bytes, each at most a page.

Sizes are powers of two, and batches begin at their multiples: those of a smaller size lie inside these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.errors import FileError
from dpsynth_cli.trusted.rows.parquet_form import byte_arrays
from dpsynth_cli.trusted.rows.parquet_pages import Page, pages

BATCH = 2**17  # rows of a Parquet file in one piece
TEXT = 2**25  # bytes of text in one piece, about; a row group with no more needs no care
SPREAD = 3 * 2**26  # bytes of cells that share their text: 128 of a usual page's size, and some more
USUAL_PAGE, LARGEST_PAGE, TOGETHER = 2**20, 2**25, 2**26  # bytes: writers make pages of the first size


@dataclass(frozen=True)
class Group:
    """A row group: its rows, which columns are read by labels, and how many rows at a time others are."""

    rows: int
    labels: frozenset[str]
    batch: Mapping[str, int]


def plan(path: Path, about: Any, names: Sequence[str]) -> tuple[Group, ...]:
    """How these columns of text are read in each row group; FileError where they cannot."""
    places = byte_arrays(about, names)
    with open(path, "rb") as file:
        return tuple(_group(path, file, about.row_group(i), places) for i in range(about.num_row_groups))


def _group(path: Path, file: BinaryIO, group: Any, places: Mapping[str, int]) -> Group:
    chunks = {name: group.column(place) for name, place in places.items()}
    text = sum(chunk.total_uncompressed_size for chunk in chunks.values())
    delta = {name for name, chunk in chunks.items() if any("DELTA" in each for each in chunk.encodings)}
    found, labels, batch = {}, set(), {}
    for name, chunk in chunks.items():
        size = chunk.total_uncompressed_size
        little = size <= USUAL_PAGE or text <= TEXT
        own = [Page(size)] if size <= USUAL_PAGE or (little and name not in delta) else pages(file, chunk)
        found[name] = largest = max((page.size for page in own), default=0)
        if name in delta:
            batch[name] = _within(SPREAD, largest)
        elif little or all(page.coded for page in own if page.rows):
            labels.add(name)
        else:
            shared = max((page.size for page in own if page.dictionary), default=0)
            touched = _few(own, 2 * max(largest, TEXT * size // text))
            batch[name] = min(touched, _within(SPREAD, shared))
    _check(path, found)
    return Group(group.num_rows, frozenset(labels), batch)


def _check(path: Path, largest: Mapping[str, int]) -> None:
    """Refuse pages that are too large; of each column only what is beyond the usual counts."""
    if not largest:
        return
    name = max(largest, key=lambda each: largest[each])
    next_step = (
        "Write the file again with smaller pages; if it has cells as long as that, cut them, or leave the "
        "column out of `columns` in the spec."
    )
    if largest[name] > LARGEST_PAGE:
        raise FileError(
            f"column {name!r} of {path} has a page of more than {LARGEST_PAGE // 2**20} MiB of text.",
            next_step=next_step,
        )
    if sum(max(0, size - USUAL_PAGE) for size in largest.values()) > TOGETHER:
        raise FileError(
            f"the columns of text in {path} have pages that take more than {TOGETHER // 2**20} MiB together, "
            f"beyond {USUAL_PAGE // 2**20} MiB for each column; the largest is in {name!r}.",
            next_step=next_step,
        )


def _within(most: int, each: int) -> int:
    """The largest power of two of such things that is within so many bytes, at most BATCH and at least 1.

    >>> _within(2**28, 2**20), _within(2**28, 30_000_000), _within(9, 10), _within(2**28, 0) == BATCH
    (256, 8, 1, True)
    """
    return min(BATCH, power_of_two(most // max(1, each)))


def power_of_two(number: int) -> int:
    """The largest that is at most the number, and 1 at least."""
    return 1 << max(0, number.bit_length() - 1)


def _few(own: Sequence[Page], most: int) -> int:
    """How many rows to read at a time so that the pages that a batch touches are within so many bytes."""
    data = [page for page in own if page.rows]
    sizes = np.array([page.size for page in data], np.int64)
    ends = np.cumsum([page.rows for page in data], dtype=np.int64)
    rows = BATCH
    while rows > 1 and _touched(sizes, ends, rows) > most:
        rows //= 2
    return rows


def _touched(sizes: NDArray[np.int64], ends: NDArray[np.int64], rows: int) -> int:
    """The bytes of the pages that a batch of so many rows touches, at most.

    Pages are told by their sizes and by the rows up to their ends.

    >>> [_touched(np.array([5, 7, 9]), np.array([4, 6, 10]), rows) for rows in (1, 2, 4, 8)]
    [9, 9, 16, 21]
    """
    first, last = np.append(0, ends[:-1]) // rows, (ends - 1) // rows  # batches of each page
    before = np.append(0, np.cumsum(sizes))
    here = before[np.searchsorted(first, first, "right")] - before[np.searchsorted(last, first, "left")]
    return int(here.max(initial=0))
