"""What a spec will give, before any data is read: errors, time and memory, and the epsilon for a target.

Errors are simulated: the mechanism runs with its real noise over a public reference table, and the result is
compared with that table. How close the real release comes depends on how much the reference is like the data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.lines import TARGETS, targets
from dpsynth_cli.evaluate.metrics import METRICS
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.evaluate.wasserstein import planes
from dpsynth_cli.release.imagine import Imagined, imagine, reference
from dpsynth_cli.release.synthesis import paper_bound
from dpsynth_cli.spec.reader import did_you_mean
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.shapes import summed_cells
from dpsynth_cli.trusted.sums import memory

LEAST, MOST = 1e-3, 100.0  # epsilons that are looked at
BISECTIONS = 4
# Measured on one core of a small server: seconds of processor time a cell (Parquet, CSV), bytes at the start.
READ, WRITE = {True: 7.5e-8, False: 2.5e-7}, {True: 3.5e-8, False: 8e-8}
START_SECONDS, START_BYTES, BATCH, WORKERS = 0.9, 220e6, 2**17, 4


@dataclass(frozen=True)
class Prediction:
    """Mean errors over some runs, the paper's bound if it has one for this setting, time and memory."""

    rows: int
    runs: int
    reference_rows: int
    errors: dict[str, float]
    bound: float | None
    seconds: float
    bytes: float
    notes: list[str]  # of the mechanism, with how often, where not in all runs

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "runs": self.runs,
            "reference_rows": self.reference_rows,
            "errors": self.errors,
            "notes": self.notes,
            "paper_bound_w1": self.bound,
            "cpu_seconds": self.seconds,
            "memory_bytes": self.bytes,
        }


def predict(spec: Spec, rows: int, table: Table | None = None, runs: int = 3) -> tuple[Prediction, Imagined]:
    """The prediction for so many rows like the table (else uniform ones), and the last imagined release."""
    like = reference(spec, rows, table)
    found = [imagine(spec, rows, like) for _ in range(max(1, runs))]
    errors = _means([errors_of(like, one.made, spec) for one in found[:runs]])
    last = found[-1]
    return Prediction(
        rows,
        runs,
        len(like),
        errors,
        paper_bound(spec, rows),
        _seconds(spec, rows, last),
        _bytes(spec, rows, last),
        _counted(found),
    ), last


def _counted(found: Sequence[Imagined]) -> list[str]:
    """What the mechanism noted, and in how many runs: a choice by noisy numbers may go both ways."""
    times = Counter(note for one in found for note in one.model.notes)
    return [
        note if many == len(found) else f"In {many} of {len(found)} runs: {note}"
        for note, many in times.items()
    ]


def errors_of(real: Table, made: Table, spec: Spec, only: Sequence[str] = tuple(TARGETS)) -> dict[str, float]:
    """The errors that can be a target, by name, as far as this table has them."""
    wanted = {TARGETS[target][1] for target in only}
    if len(planes(spec.domain)) != 1:  # several take long
        wanted.discard("w1_2d")
    domain = spec.domain
    compared = {
        name: metric.compare(real, made, domain)
        for name, metric in METRICS.items()
        if name in wanted and metric.fits(domain)
    }
    return {name: value for name, value in targets(compared).items() if name in only}


@dataclass(frozen=True)
class Plan:
    """The least epsilon found, to two digits, that reaches a target; its error; and all that was tried."""

    epsilon: float
    error: float
    tried: list[tuple[float, float]]


def plan(
    spec: Spec,
    target: str,
    value: float,
    rows: int,
    table: Table | None = None,
    runs: int = 3,
    tell: Callable[[float, float], None] = lambda epsilon, error: None,
) -> Plan:
    """Solve for epsilon by bisection on its logarithm: errors fall as epsilon grows, but for the noise."""
    like = reference(spec, rows, table)
    if target not in TARGETS or target not in errors_of(like, like, spec, [target]):
        here = errors_of(like.at_most(2), like.at_most(2), spec)
        raise UsageError(
            f"{target} is not an error of this table{did_you_mean(target, here)}.",
            next_step=f"Errors here: {', '.join(here)}.",
        )
    tried: list[tuple[float, float]] = []

    def error(epsilon: float) -> float:
        exact = Fraction(f"{epsilon:.3g}")
        wanted = replace(spec, privacy=replace(spec.privacy, epsilon=exact))
        made = [imagine(wanted, rows, like).made for _ in range(runs)]
        found = _means([errors_of(like, one, wanted, [target]) for one in made])[target]
        tried.append((float(exact), found))
        tell(float(exact), found)
        return found

    least = max(LEAST, 2 * float(spec.evaluation.epsilon or 0))
    low = high = min(MOST, max(least, float(spec.privacy.budget)))
    if error(high) <= value:
        while low > least and error(low := max(least, high / 4)) <= value:
            high = low
    else:
        while error(high := min(MOST, low * 4)) > value:
            if high == MOST:
                raise UsageError(
                    f"no epsilon up to {MOST:g} reaches {target} = {value:g} with {rows:,} rows: "
                    f"at {MOST:g} it is {tried[-1][1]:.3g}.",
                    next_step="Release fewer columns, take another mechanism, or ask for less.",
                )
            low = high
    for _ in range(BISECTIONS if low < high else 0):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if error(middle) <= value else (middle, high)
    # What was found is the mean of a few noisy runs: looked at again, and raised until it holds.
    best = _rounded_up(high)
    while (found := (error(best) + error(best)) / 2) > value and best < MOST:
        best = min(MOST, _rounded_up(best * 1.1))
    return Plan(best, found, tried)


def _rounded_up(epsilon: float) -> float:
    """Two digits, not below."""
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    return float(f"{math.ceil(epsilon / step - 1e-9) * step:.3g}")


def _means(found: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: sum(one[name] for one in found) / len(found) for name in (found[0] if found else {})}


def _seconds(spec: Spec, rows: int, last: Imagined) -> float:
    """Reading in each pass (one, if codes are kept), the mechanism, drawing, writing."""
    cells = rows * len(spec.domain.columns)
    passes = 1 if memory.fits(spec.domain, rows) else last.passes
    written = rows if spec.rows is None else spec.rows
    reading = cells * passes * READ[not spec.input.endswith((".csv", ".csv.gz", "-"))]
    writing = written * len(spec.domain.columns) * WRITE[spec.output.endswith(".parquet")]
    return START_SECONDS + last.seconds + reading + writing + written * last.seconds_a_row


def _bytes(spec: Spec, rows: int, last: Imagined) -> float:
    """The process, batches of rows, a copy of the largest round's cells for each worker, and a row's leaf."""
    cells = sum(summed_cells(charge.question, spec.domain) for charge in last.bill)
    batches = 8 * min(rows, BATCH) * len(spec.domain.columns) * (WORKERS + 1)
    return START_BYTES + batches + 8 * cells * (WORKERS + 2) + 8 * (spec.rows or rows)
