"""Files as scans: which format a path means, and its declared columns. No row is read here."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.errors import NOTHING_SPENT, FileError
from dpsynth_cli.trusted.rows.csv import BLOCK, MAX_LINE, CsvScan
from dpsynth_cli.trusted.rows.parquet import ParquetScan
from dpsynth_cli.trusted.rows.scan import Scan, reading

FORMATS = ".csv, .csv.gz, .parquet, a folder of Parquet files, or - for CSV on standard input"


def open_scan(
    path: str,
    columns: Sequence[Column],
    csv: CsvOptions | None = None,
    *,
    _block: int = BLOCK,
    _max_line: int = MAX_LINE,
) -> Scan:
    """A scan of the declared columns; refuses a file that does not have them. No row is read yet."""
    if files := _parquet_files(path):
        return ParquetScan(path, files, tuple(columns))
    return CsvScan(path, tuple(columns), csv or CsvOptions(), _block, _max_line)


def _parquet_files(path: str) -> list[Path]:
    """The Parquet files that a path means; none if it is CSV."""
    found = Path(path)
    if path == "-":
        return []
    with reading(path, NOTHING_SPENT):
        folder = stat.S_ISDIR(os.stat(path).st_mode)
    if folder:
        inside = (file.relative_to(found) for file in found.rglob("*.parquet") if file.is_file())
        files = [found / file for file in sorted(inside) if not any(part[0] in "._" for part in file.parts)]
        if not files:
            raise FileError(
                f"{path} is a folder without Parquet files.", next_step=f"Input can be {FORMATS}."
            )
        return files
    if path.lower().endswith(".parquet"):
        return [found]
    if path.lower().endswith((".csv", ".csv.gz")):
        return []
    raise FileError(f"{path} has no ending that says its format.", next_step=f"Input can be {FORMATS}.")
