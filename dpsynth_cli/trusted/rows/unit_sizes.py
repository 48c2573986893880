"""How many rows units have, and how many a limit would leave out: for the steward's eyes, never for a
public file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np

from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import Units, fresh_key
from dpsynth_cli.trusted.rows.unit_rows import Shelves, runs

SIZES = np.dtype([("unit", "u8", 2), ("times", "i8")])


def unit_sizes(scan: Scan, column: str, limits: Sequence[int]) -> dict[str, Any]:
    """Rows and units, the most rows of one, and for each limit the rows left out and the units that lose
    some."""
    units = Units(column, 1, fresh_key())
    whole = {"confidential": True, "rows": 0, "units": 0, "most_rows": 0}
    cut = {limit: {"rows_kept": limit, "rows_cut": 0, "units_cut": 0} for limit in sorted(set(limits))}
    with closing(Shelves(SIZES)) as shelves:
        shelve_units(scan, units, shelves)
        for group in shelves.groups():
            order, first = runs(group["unit"])
            size = np.add.reduceat(group["times"][order], first)
            whole["rows"] += int(size.sum())
            whole["units"] += len(size)
            whole["most_rows"] = max(whole["most_rows"], int(size.max()))
            for limit, lost in cut.items():
                lost["rows_cut"] += int(np.maximum(size - limit, 0).sum())
                lost["units_cut"] += int((size > limit).sum())
    return whole | {"limits": list(cut.values())}


def shelve_units(scan: Scan, units: Units, shelves: Shelves) -> None:
    """The units of a table, with how many rows of a piece each has."""
    for piece in scan.pieces():
        cells, ruined = scan.cells(piece)
        marks = units.of_cells(cells[units.column], ruined)
        order, first = runs(marks)
        sizes = np.empty(len(first), SIZES)
        sizes["unit"], sizes["times"] = marks[order[first]], np.diff(np.append(first, len(order)))
        shelves.put(sizes, sizes["unit"])
