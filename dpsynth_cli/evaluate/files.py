"""Files to judge: their rows, all or an even sample of them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.errors import DpsynthError
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.sample import Table, scanned


def has_column(path: str, column: Column, csv: CsvOptions) -> bool:
    """Whether a file has such a column: its header says, and no row is read."""
    try:
        open_scan(path, (column,), csv).close()
    except DpsynthError:
        return False
    return True


def read_table(
    path: str,
    domain: Domain,
    csv: CsvOptions,
    most: int | None,
    progress: Progress = no_progress,
    counted: Problems | None = None,
) -> Table:
    """The codes of a file's declared columns, of at most so many rows; cells that are not as declared are
    counted on the way, all of them."""
    with closing(open_scan(path, domain.columns, csv)) as scan:
        return scanned(scan, domain, most, progress, counted)


def real_rows(path: str, spec: Spec, most: int, progress: Progress) -> Table:
    """The real table of a spec: the columns of its model, and those computed ones that the file has."""
    modelled = {column.name for column in spec.domain}
    columns = tuple(
        column for column in spec.released if column.name in modelled or has_column(path, column, spec.csv)
    )
    return read_table(path, replace(spec.domain, columns=columns), spec.csv, most, progress)
