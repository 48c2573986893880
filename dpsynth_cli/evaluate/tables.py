"""Tables to judge, and tables to compare them with."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.trusted.rows.sample import CodesByColumn, Sample, Table, scanned

__all__ = ["CodesByColumn", "Sample", "Table", "halves", "independent", "scanned"]


def halves(table: Table, seed: int = 0) -> tuple[Table, Table]:
    """Two tables of half the rows each, at random."""
    order = np.random.default_rng(seed).permutation(len(table))
    middle = len(table) // 2
    return table.take(np.sort(order[:middle])), table.take(np.sort(order[middle:]))


def independent(table: Table, seed: int = 0) -> Table:
    """The same columns, each in an order of its own: the right marginals and nothing else."""
    rng = np.random.default_rng(seed)
    return Table({name: rng.permutation(values) for name, values in table.codes.items()}, table.rows)
