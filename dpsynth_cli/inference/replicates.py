"""Replicates: tables that the real one might be, for other people's code.

Each has the released rows, spread in other ways inside of cells (unknown.py) and then weighted for counts
with other noise (draws.py): a draw of the real table, given what was measured of it. The real table is
missing data, and replicates impute it: what a statistic varies by between them is what the release leaves
open, and `combine` is Rubin's rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.calibration import Calibration
from dpsynth_cli.inference.draws import drawn_weights, whole_rows
from dpsynth_cli.inference.empty import with_empty_cells, with_rows_anywhere
from dpsynth_cli.inference.moments import moments
from dpsynth_cli.inference.query import Published, published
from dpsynth_cli.inference.sums import sums_of_pairs
from dpsynth_cli.inference.unknown import changes
from dpsynth_cli.questions import Block, Progress, no_progress
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.files.write import write_table


@dataclass(frozen=True)
class Written:
    """What `replicates` wrote."""

    files: list[str]
    rows: list[int]  # of each
    seed: int


def replicate_tables(release: Published, count: int, seed: int) -> Iterator[Table]:
    """Tables that the real one might be, with as many rows."""
    known, columns = release.known, [column.name for column in release.domain]
    start = np.random.default_rng(seed)
    # Weights that are never negative would have rows wherever the noise of a rare pair is above nothing.
    rows = with_empty_cells(columns, release.released, known, start, pairs=False)
    if not all(map(known.counts, columns)):  # of some there are sums alone
        rows = with_rows_anywhere(rows, known, start)
    not_told = list(changes(columns, rows, known))
    for rng in np.random.default_rng(seed).spawn(count):
        codes = dict(rows.table.codes)
        for change in not_told:
            codes |= change(rng, codes)
        moved = replace(rows, table=Table(codes, rows.table.rows))
        calibration = Calibration(sums_of_pairs(moved, known), moved)
        if not calibration.sums:
            raise UsageError("this release has no counts to draw replicates from.", "")
        about = moments(moved, known)
        weight = drawn_weights(calibration, about, known, rng)
        yield moved.table.take(whole_rows(weight, about, calibration.features, rng))


def replicates(path: Path, output: str, count: int, seed: int, progress: Progress = no_progress) -> Written:
    """Write replicates of a release beside each other: people.csv becomes people.01.csv, people.02.csv ..."""
    suffix = next((end for end in (".csv", ".parquet") if output.endswith(end)), None)
    if suffix is None:
        raise UsageError(f"the output {output} is not a .csv or .parquet file.", "", "Name one.")
    release = published(path, seed=seed, progress=progress)
    spec = release.spec
    if spec.unit_key is not None:
        raise UsageError(
            f"this release has the rows of each {spec.unit_key.name} together; replicates draw rows one "
            "by one, and would tear them apart.",
            "",
            f"dpsynth query answers questions about rows; leave {spec.unit_key.name} out of columns, and "
            "replicates can be drawn of a release.",
        )
    digits = max(2, len(str(count)))
    names = [f"{output.removesuffix(suffix)}.{k + 1:0{digits}}{suffix}" for k in range(count)]
    for name in names:
        files = Files.of(replace(spec, output=name))
        if files.public_audit.exists():
            raise UsageError(
                f"{name} is the table of a release: its audit is beside it.", "", "Choose another name."
            )
        files.check_writable()
    progress("writing", 0, count)
    rows = list[int]()
    for name, table in zip(names, replicate_tables(release, count, seed), strict=True):
        block: Block = {key: codes.astype(np.int64) for key, codes in table.codes.items()}
        rows.append(len(table))
        pending = write_table(
            name,
            spec.made,
            iter([block]),
            len(table),
            None,
            spec.csv,
            spec.stated.relations,
            spec.fillers,
            seed,
        )
        pending.publish()
        progress("writing", 1, count)
    return Written(names, rows, seed)
