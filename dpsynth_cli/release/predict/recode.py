"""Rows in the codes of other bounds or categories: public tables, and what is drawn from models of them."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Ints
from dpsynth_cli.trusted.rows.encode import codes
from dpsynth_cli.trusted.rows.text import MISSING, UNLISTED
from dpsynth_cli.values import numbers_of


def recoded(table: Table, old: Domain, new: Domain) -> Table:
    """The same rows, in the codes of the same columns with other bounds or categories."""
    if old == new:
        return table
    return Table({c.name: _recoded(table.codes[c.name], c, new[c.name]) for c in old}, table.rows)


def _recoded(cells: Ints, old: Column, new: Column) -> Ints:
    if old == new:
        return cells
    missing = cells == old.size if old.nullable else np.zeros(len(cells), bool)
    if old.categorical:
        places = {label: i for i, label in enumerate(new.categories)}
        known = np.array([*(places.get(label, UNLISTED) for label in old.categories), MISSING])
        return codes(np.where(missing, MISSING, known[np.minimum(cells, old.size)]), new).astype(np.int64)
    values = numbers_of(np.minimum(cells, old.size - 1), old).astype(np.float64)
    return codes(np.where(missing, np.nan, values), new).astype(np.int64)
