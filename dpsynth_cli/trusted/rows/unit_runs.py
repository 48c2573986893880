"""Rows of a unit in the order of time: which are kept, and which follow one another.

The claim: **the run that is kept of a unit, and its pairs, are a function of the key and of the unit's own
rows, whatever their order in the file.** Of a unit with more than `chosen(k)` rows so many are taken first,
as without an order. They are sorted by the code of their time, those of one time by their places under the
key; k that follow one another are kept, from the row on that is first under the key, and after the last the
earliest. So every row has the same chance, and so has every two that are neighbours.

A run is made of kept rows that are neighbours: a unit has one, or two where it went on with the earliest.
Pairs are a row and the one before it (k - 1 at most), and a row and the first of its run, from the third on
(k - 2 at most). Each has a rank in its unit, random to whoever does not know the key, so that a question may
be about the first few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.trusted.rows.unit_marks import Marks

Records = NDArray[Any]
BEFORE, FIRST = "\0before ", "\0first "  # in front of the names of an earlier row's columns
RANK, FAR_RANK = "\0rank", "\0far rank"  # of a pair in its unit; FAR_RANK of one that is with the first
NONE = np.int32(2**20)  # no rank: more than any unit has rows


def chosen(k: int, time: int | None) -> int:
    """Of how many rows of a unit, at most, k are kept: of those that are first under the key all, of those in
    time k that follow one another.

    >>> chosen(5, None), chosen(5, 0), chosen(1000, 0)
    (5, 1024, 16000)
    """
    return k if time is None else max(1024, 16 * k)


def cut(records: Records, time: int | None, k: int) -> tuple[NDArray[np.int32], ...]:
    """What is kept of units, all of whose `chosen` rows are here, unit by unit and in each by place: at most
    k rows of each; the units, a row and the code of how many rows; and pairs, where there is a `time`."""
    heads = np.flatnonzero(starts(records["unit"]))
    size = np.diff(np.append(heads, len(records)))
    codes, lead = records["codes"], records["codes"][heads]
    pairs = np.empty((0, 3 * codes.shape[1] + 2), np.int32)
    if time is not None:
        codes, lead, pairs = in_time(records, heads, size, time, k)
    return codes, np.column_stack([lead, (np.minimum(size, k) - 1).astype(np.int32)]), pairs


def pair_names(names: Sequence[str]) -> list[str]:
    """The columns of a table of pairs: a row's, those of the row before and of the first, and two ranks."""
    return [*names, *(BEFORE + name for name in names), *(FIRST + name for name in names), RANK, FAR_RANK]


def in_time(
    records: Records, heads: NDArray[np.int64], size: NDArray[np.int64], time: int, k: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Rows that are kept; one row of each unit, with which k that follow one another could begin; pairs.

    Records are unit by unit, in each by place, and a unit's begin at `heads`; column `time` is their order.
    """
    unit = np.repeat(np.arange(len(heads)), size)
    place = np.arange(len(records)) - heads[unit]
    order = np.lexsort((place, records["codes"][:, time], unit))
    codes, place = records["codes"][order], place[order]
    rank, many = np.arange(len(records)) - heads[unit], size[unit]
    start = np.where(size > k, rank[place == 0], 0)  # the row that is first under the key
    after = (rank - start[unit]) % many
    kept = after < k
    begin = np.where((rank >= start[unit]) | (many <= k), start[unit], 0)  # of its run, a rank
    far = rank - begin
    later = np.flatnonzero(kept & (far > 0))
    own = unit[later]
    together = np.column_stack(
        [
            codes[later],
            codes[later - 1],
            codes[later - far[later]],
            _ranks(own, place[later], np.ones(len(later), np.bool_)),
            _ranks(own, place[later], far[later] > 1),
        ]
    )
    # Where a run goes on with the earliest, the longer part says where one of k rows would be.
    tail = size - start
    lead = np.where(tail >= k, start, np.where(k - tail >= tail, 0, size - k))
    lead = np.where(size > k, lead, 0)
    return codes[kept], codes[heads + lead], together


def _ranks(unit: NDArray[np.int64], place: NDArray[np.int64], which: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The rank by place of each in its unit, of those that are meant."""
    found = np.full(len(unit), NONE)
    own = np.flatnonzero(which)
    own = own[np.lexsort((place[own], unit[own]))]
    new = np.flatnonzero(np.append(True, unit[own][1:] != unit[own][:-1])[: len(own)])
    count = np.diff(np.append(new, len(own)))
    found[own] = (np.arange(len(own)) - np.repeat(new, count)).astype(np.int32)
    return found


def starts(marks: Marks) -> NDArray[np.bool_]:
    """Where a mark differs from the one before."""
    new = np.ones(len(marks), np.bool_)
    new[1:] = (marks[1:, 0] != marks[:-1, 0]) | (marks[1:, 1] != marks[:-1, 1])
    return new
