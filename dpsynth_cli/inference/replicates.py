"""Replicates: tables from posterior draws of what the transcript tells, for other people's code.

The released rows get weights from their posterior given the noisy counts (calibration.py), and as many rows
as the release has are drawn by these weights. What a statistic varies by between replicates is what noise
leaves open, and what drawing rows adds; `combine` takes the second away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.calibration import Calibration
from dpsynth_cli.inference.query import Published, published
from dpsynth_cli.inference.unknown import spread_alone
from dpsynth_cli.questions import Block, Progress, no_progress
from dpsynth_cli.release.publish import Files
from dpsynth_cli.release.write import write_table

FREE = 1.0  # variance of a row's weight before anything was counted


@dataclass(frozen=True)
class Written:
    """What `replicates` wrote."""

    files: list[str]
    rows: int
    seed: int


def replicate_tables(release: Published, count: int, seed: int) -> Iterator[Table]:
    """Tables of as many rows as the release has."""
    released = release.released.table
    own = Calibration([column.name for column in release.domain], release.released, release.known, FREE, True)
    if not own.sums:
        raise UsageError(
            "this release has no counts to draw replicates from.",
            "",
            "dpsynth query simulates such releases.",
        )
    for rng in np.random.default_rng(seed).spawn(count):
        weight = own.posterior(rng)
        chances = weight / weight.sum() if weight.any() else None
        codes = dict(released.codes)
        for change in spread_alone(release.released, release.known):
            codes |= change(rng)
        yield Table(codes, released.rows).take(rng.choice(len(released), len(released), p=chances))


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
    rows = 0
    for name, table in zip(names, replicate_tables(release, count, seed), strict=True):
        block: Block = {key: codes.astype(np.int64) for key, codes in table.codes.items()}
        rows = len(table)
        pending = write_table(
            name, spec.made, iter([block]), rows, None, spec.csv, spec.stated.relations, spec.fillers, seed
        )
        pending.publish()
        progress("writing", 1, count)
    return Written(names, rows, seed)
