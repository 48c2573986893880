"""Synthetic rows that equal a real row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.tables import Table


def exact_matches(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """How many synthetic rows equal some real row, and how many equal one that is unique among the real rows.

    Compared by codes, all columns. Some matches are expected wherever values are few: see what independent
    columns give.
    """
    keys, times = np.unique(_keys(real, domain), return_counts=True)
    found = _keys(other, domain)
    place = np.minimum(np.searchsorted(keys, found), max(0, len(keys) - 1))
    same = keys[place] == found if len(keys) else np.zeros(len(found), bool)
    alone = same & (times[place] == 1) if len(keys) else same
    rows = max(1, len(other))
    return {
        "matches": int(same.sum()),
        "unique_matches": int(alone.sum()),
        "share": int(same.sum()) / rows,
        "unique_share": int(alone.sum()) / rows,
    }


def _keys(table: Table, domain: Domain) -> NDArray[np.uint64]:
    """One number a row: equal for equal rows, and else with a probability of 2^-64."""
    odd = np.random.default_rng(0).integers(2**63, size=len(domain.columns), dtype=np.uint64) * 2 + 1
    key = np.zeros(len(table), np.uint64)
    for factor, column in zip(odd.astype(np.uint64), domain, strict=True):
        key = (key ^ table.codes[column.name].astype(np.uint64)) * factor
        key ^= key >> np.uint64(29)
    return key
