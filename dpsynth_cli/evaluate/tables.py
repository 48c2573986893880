"""Tables to judge: the rows of a file, all or an even sample of them, and tables to compare with."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.spec.csv_options import CsvOptions
from dpsynth_cli.trusted.rows.sample import Codes, Sample, Table, scanned

__all__ = ["Codes", "Sample", "Table", "halves", "independent", "read_table", "scanned", "uniform"]


def read_table(
    path: str, domain: Domain, csv: CsvOptions, most: int | None, progress: Progress = no_progress
) -> Table:
    """The codes of a file's declared columns, of at most so many rows."""
    from dpsynth_cli.trusted.rows.read import open_scan

    with closing(open_scan(path, domain.columns, csv)) as scan:
        return scanned(scan, domain, most, progress)


def halves(table: Table, seed: int = 0) -> tuple[Table, Table]:
    """Two tables of half the rows each, at random."""
    order = np.random.default_rng(seed).permutation(len(table))
    middle = len(table) // 2
    return table.take(np.sort(order[:middle])), table.take(np.sort(order[middle:]))


def independent(table: Table, seed: int = 0) -> Table:
    """The same columns, each in an order of its own: the right marginals and nothing else."""
    rng = np.random.default_rng(seed)
    return Table({name: rng.permutation(values) for name, values in table.codes.items()}, table.rows)


def uniform(domain: Domain, rows: int, seed: int = 0) -> Table:
    """A table that knows the declared domain and nothing else."""
    rng = np.random.default_rng(seed)
    return Table({c.name: rng.integers(c.codes, size=rows, dtype=np.int64) for c in domain}, rows)
