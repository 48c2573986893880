"""How parents and children fit together: for the steward's eyes, never for a public file."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import Units, fresh_key
from dpsynth_cli.trusted.rows.unit_rows import Shelves, runs, side_by_side
from dpsynth_cli.trusted.rows.unit_sizes import SIZES, shelve_units


def family_counts(parents: Scan, key: str, children: Scan, foreign_key: str, most: int) -> dict[str, Any]:
    """Rows of both, parents without children, rows of parents beyond the first with a key, children without a
    parent, and children beyond so many of one."""
    secret = fresh_key()
    whole = dict.fromkeys(("rows", "parents", "orphans", "cut", "childless", "duplicates"), 0)
    with ExitStack() as opened:
        shelves = [opened.enter_context(closing(Shelves(SIZES))) for _ in range(2)]
        for scan, column, shelf in ((parents, key, shelves[0]), (children, foreign_key, shelves[1])):
            shelve_units(scan, Units(column, 1, secret), shelf)
        for above, below in side_by_side(shelves):
            order, first = runs(np.concatenate([above["unit"], below["unit"]]))
            if not len(order):
                continue
            is_parent = order < len(above)
            times = np.concatenate([above["times"], below["times"]])[order]
            of_parents = np.add.reduceat(np.where(is_parent, times, 0), first)
            of_children = np.add.reduceat(np.where(is_parent, 0, times), first)
            there = of_parents > 0
            whole["rows"] += int(of_children.sum())
            whole["parents"] += int(there.sum())
            whole["orphans"] += int(of_children[~there].sum())
            whole["cut"] += int(np.maximum(of_children[there] - most, 0).sum())
            whole["childless"] += int((of_children[there] == 0).sum())
            whole["duplicates"] += int((of_parents[there] - 1).sum())
    return {"confidential": True} | whole
