"""At most so many rows of each unit over the whole life of a stream, or of each day.

The claim: **which rows of a batch are counted is a function of the key, of the unit's own rows in it, and
of how many of the unit's own rows were counted before.** So a unit that comes, goes or changes leaves the
counted rows of every other unit as they were, in all pushes, and no unit ever has more than k of them (of a
day's pushes, where that is protected). k rows move what is published by at most k times one row's move, in
every norm: the triangle inequality, whichever pushes they are in (`core/sensitivity.py`).

For this the state has the key, and for each unit its mark under the key (`rows/unit_marks.py`) and how many
of its rows were counted. Both are raw data: whoever has the state can tell whether somebody is in the stream.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column
from dpsynth_cli.trusted.engines.local import gather
from dpsynth_cli.trusted.rows.kept_rows import Kept
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import Units, fresh_key
from dpsynth_cli.trusted.rows.unit_rows import Marked, Truncation
from dpsynth_cli.trusted.rows.unit_runs import starts

USED = np.dtype([("unit", "<u8", 2), ("rows", "<u4")])
Quota = dict[str, Any]  # what a state has of units: the key, the day, and how many rows of each were counted


def no_units_yet() -> Quota:
    return {"key": fresh_key(), "day": None, "used": ""}


def within_quota(
    scan: Scan,
    columns: tuple[Column, ...],
    column: str,
    k: int,
    quota: Quota,
    day: str | None,
    progress: Callable[[int], None] = lambda done: None,
    counted: Problems | None = None,
) -> tuple[Kept, Quota]:
    """The rows of a batch that are counted, and the quota after them. With a `day`, what was counted on
    earlier days does not matter; one that is before the last, by a clock that was put back, is taken for it.
    """
    units = Units(column, k, quota["key"])
    day = None if day is None else max(day, quota["day"] or day)
    used = _unpacked(quota["used"]) if day == quota["day"] else np.zeros(0, USED)
    kept, taken = Kept([one.name for one in columns]), [used]
    with closing(Truncation(Marked(scan, columns, units))) as truncation:
        gather(truncation, progress, counted=counted)
        for records in truncation.first(k):
            heads = np.flatnonzero(starts(records["unit"]))
            size = np.diff(np.append(heads, len(records)))
            left = k - _rows_of(used, records["unit"][heads])
            number = np.arange(len(records)) - np.repeat(heads, size)
            kept.add(records["codes"][number < np.repeat(left, size)])
            more = np.empty(len(heads), USED)
            more["unit"], more["rows"] = records["unit"][heads], np.minimum(size, left)
            taken.append(more)
    return kept, quota | {"day": day, "used": _packed(_added(np.concatenate(taken)))}


def _rows_of(used: NDArray[Any], units: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many rows of each unit were counted; units that were not have none."""
    found = np.zeros(len(units), np.int64)
    if len(used):
        known, asked = _text(used["unit"]), _text(units)
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        found = np.where(known[at] == asked, used["rows"][at], 0).astype(np.int64)
    return found


def _added(used: NDArray[Any]) -> NDArray[Any]:
    """The rows of each unit added up, units in the order of their marks, those that have some."""
    used = used[np.argsort(_text(used["unit"]), kind="stable")]
    first = np.flatnonzero(starts(used["unit"]))
    made = used[first]
    if len(first):
        made["rows"] = np.add.reduceat(used["rows"], first)
    return made[made["rows"] > 0]


def _text(units: NDArray[np.uint64]) -> NDArray[Any]:
    """Marks as sixteen bytes, which have an order."""
    return np.ascontiguousarray(units, ">u8").view("S16").ravel()


def _packed(used: NDArray[Any]) -> str:
    return base64.b64encode(used.tobytes()).decode()


def _unpacked(text: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), USED)
