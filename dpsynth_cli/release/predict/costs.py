"""About how much processor time and memory a release takes, by what an imagined one took."""

from __future__ import annotations

from collections.abc import Iterable

from dpsynth_cli.release.predict.imagine import Imagined
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.shapes import summed_cells
from dpsynth_cli.trusted.sums import memory

# Measured on one core of a small server: seconds of processor time a cell (Parquet, CSV), bytes at the start.
READ, WRITE = {True: 7.5e-8, False: 2.5e-7}, {True: 3.5e-8, False: 8e-8}
START_SECONDS, START_BYTES, BATCH, WORKERS = 0.9, 220e6, 2**17, 4


def seconds(spec: Spec, rows: int, found: Iterable[Imagined]) -> float:
    """Reading in each pass (one, if codes are kept), the mechanism, drawing, writing; the slowest table."""
    return max(_seconds(spec, rows, one) for one in found)


def _seconds(spec: Spec, rows: int, one: Imagined) -> float:
    cells = rows * len(spec.domain.columns)
    passes = 1 if memory.fits(spec.domain, rows) else one.passes
    written = rows if spec.rows is None else spec.rows
    reading = cells * passes * READ[not spec.input.endswith((".csv", ".csv.gz", "-"))]
    writing = written * len(spec.domain.columns) * WRITE[spec.output.endswith(".parquet")]
    return START_SECONDS + one.seconds + reading + writing + written * one.seconds_a_row


def size(spec: Spec, rows: int, found: Iterable[Imagined]) -> float:
    """The process, batches of rows, a copy of the largest round's cells for each worker, a row's leaf, and
    what the model held."""
    found = list(found)
    cells = max(sum(summed_cells(charge.question, spec.domain) for charge in one.bill) for one in found)
    batches = 8 * min(rows, BATCH) * len(spec.domain.columns) * (WORKERS + 1)
    held = max(one.model.held for one in found)
    return START_BYTES + batches + 8 * (cells * (WORKERS + 2) + held + (spec.rows or rows))
