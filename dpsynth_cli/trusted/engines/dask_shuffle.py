"""Rows of units that are truncated by many machines: a shuffle by the units' marks under the key.

Each worker marks the rows of its parts and divides them by their units' marks; all rows of a unit meet on one
worker, which keeps at most so many of them, by the same functions as on one machine, and only those come
back. The marks are secret and even, so shares are. What a worker holds is in its memory, never on its disk:
where all encoded rows would not fit, the file is read several times, each time for some of the units.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.errors import DpsynthError
from dpsynth_cli.trusted.engines import Advance, marked_records
from dpsynth_cli.trusted.engines.dask import cores_of, losses_told, unless_failed, work_of
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.unit_marks import Units
from dpsynth_cli.trusted.rows.unit_rows import Marked, Records, Truncation, first_of
from dpsynth_cli.trusted.rows.unit_runs import chosen, cut

SHARES = 2  # for each core, of the units of one reading
LARGER = 6  # times the bytes of the file that its encoded rows may have, twice for those on their way
PART = 4  # of a worker's memory is for them


def shuffled(
    client: Any, truncation: Truncation, progress: Advance, counted: Problems | None, part_size: int
) -> None:
    """What is kept of all units of a table, into the truncation."""
    from distributed import as_completed

    marked = truncation.marked
    shares, readings = SHARES * cores_of(client), _readings(client, marked.size or 0)
    names = None if counted is None else tuple(counted.columns)
    for reading in range(readings):
        whose = (reading, readings, shares)
        read = partial(work_of, work=partial(_divided, whose=whose), names=None if reading else names)
        with losses_told():
            divided, told = [], {}
            for part in marked.parts(part_size):
                divided.append(client.submit(read, part, pure=False))
                told[client.submit(_about, divided[-1], pure=False)] = part.size or 0
            for future, found in as_completed(list(told), with_results=True):
                problems, rows = unless_failed(found)
                truncation.rows += rows
                if counted is not None and problems is not None:
                    counted.merge(problems)
                progress(told[future] // readings)
            keep = partial(work_of, work=partial(_kept, units=marked.units, time=marked.time), names=None)
            kept = []
            for share in range(shares):
                own = [client.submit(_share, one, share, pure=False) for one in divided]
                kept.append(client.submit(keep, own, pure=False))
            for _, found in as_completed(kept, with_results=True):
                tables, _ = unless_failed(found)
                truncation.take(tables)


def _readings(client: Any, size: int) -> int:
    """How often the file is read, so that the encoded rows of one reading fit in the workers' memory."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    room = sum(int(one.get("memory_limit") or 0) for one in workers) // PART
    return max(1, -(-LARGER * size // room)) if room else 1


def _divided(part: Marked, counted: Problems | None, whose: tuple[int, int, int]) -> list[Records]:
    """The records of a part by the share that their units are in."""
    reading, readings, shares = whose
    records = np.concatenate([np.empty(0, part.kind), *marked_records(part, counted)])
    place = records["unit"][:, 1] % np.uint64(readings * shares)
    first = reading * shares
    return [records[place == first + share] for share in range(shares)]


def _about(found: Any) -> Any:
    """What this machine is told of a part: cells that are not as declared, and how many rows."""
    if isinstance(found, DpsynthError):
        return found
    records, problems = found
    return problems, sum(int(one["times"].sum()) for one in records)


def _share(found: Any, share: int) -> Any:
    return found if isinstance(found, DpsynthError) else found[0][share]


def _kept(
    records: Sequence[Any], counted: Problems | None, units: Units, time: int | None
) -> tuple[NDArray[np.int32], ...]:
    """What is kept of the units of one share, of which all rows are here."""
    together = np.concatenate([unless_failed(one) for one in records])
    return cut(first_of(together, units, chosen(units.rows, time)), time, units.rows)
