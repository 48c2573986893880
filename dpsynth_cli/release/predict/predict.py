"""What a spec will give, before any data is read: errors, time and memory.

Errors are simulated: the mechanism runs with its real noise over every table of the reference family, or over
a public table, and the result is compared with that table as `dpsynth evaluate` does it. What is predicted is
the range: data that are no stranger than the family have errors in it.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpsynth_cli.bounds import Bound
from dpsynth_cli.evaluate.lines import TARGETS, targets
from dpsynth_cli.evaluate.metrics.marginals import table_errors
from dpsynth_cli.evaluate.metrics.moments import moment_errors
from dpsynth_cli.evaluate.metrics.scales import ordered
from dpsynth_cli.evaluate.metrics.wasserstein import columns_w1, plane_w1, planes
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.documents.audit import bound_document
from dpsynth_cli.release.predict import costs
from dpsynth_cli.release.predict.family import EXAMPLE, FAMILY, FEW
from dpsynth_cli.release.predict.imagine import LIKE, Imagined, imagine, references
from dpsynth_cli.release.synthesis import w1_bounds
from dpsynth_cli.spec.spec import Spec

_PERCENT = re.compile(r"(\d+(?:\.\d+)?) %")
MARGIN = 1.25  # ends of a range are moved out by this factor: tables and runs are few
MARGINS = {1: 4.0, 2: 2.5, 3: 1.75, 4: 1.5}  # the same, after a quick look at so many tables: FEW of them
QUICK = 1.25  # processor seconds after which a quick look begins no further table


@dataclass(frozen=True)
class Range:
    """Where an error will be: between the least and the largest of the reference tables, with a margin; the
    median of them; and the name of the table that has the largest."""

    low: float
    typical: float
    high: float
    worst: str

    @classmethod
    def of(
        cls, errors: Mapping[str, Sequence[float]], margin: float = MARGIN, most: float = math.inf
    ) -> Range:
        """The errors of each table in some runs; none can be above `most`.

        >>> Range.of({"even": [0.2], "sparse": [0.1, 0.3]})
        Range(low=0.08, typical=0.2, high=0.375, worst='sparse')
        """
        found = [error for each in errors.values() for error in each]
        worst = max(errors, key=lambda name: max(errors[name]))
        middle = float(np.median([np.mean(each) for each in errors.values()]))
        return cls(min(found) / margin, middle, min(most, max(found) * margin), worst)


@dataclass(frozen=True)
class Prediction:
    """Ranges of errors, bounds on W1 if there are any for this setting, time and memory.

    `by_table` has the mean errors of each table that was simulated, `margin` by how much the ends of ranges
    were moved out, `run_seconds` is what a simulated release took.
    """

    rows: int
    runs: int
    margin: float
    reference_rows: int
    errors: dict[str, Range]
    by_table: dict[str, dict[str, float]]
    bounds: list[Bound]
    seconds: float
    bytes: float
    run_seconds: float
    notes: list[str]  # of the mechanism, with how often, where not in all runs

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "runs": self.runs,
            "margin": self.margin,
            "reference_rows": self.reference_rows,
            "errors": {name: asdict(found) for name, found in self.errors.items()},
            "by_table": self.by_table,
            "notes": self.notes,
            "bounds": [bound_document(bound) for bound in self.bounds],
            "cpu_seconds": self.seconds,
            "memory_bytes": self.bytes,
        }


def predict(
    spec: Spec,
    rows: int,
    like: Table | None = None,
    runs: int = 1,
    progress: Progress = no_progress,
    quick: bool = False,
) -> tuple[Prediction, Imagined]:
    """The prediction for so many rows, `runs` releases of each reference table, and one as an example.

    No run: no errors, but the example is still imagined. A quick look takes few tables, as many as
    a second is enough for, and moves the ends of its ranges further out.
    """
    example = EXAMPLE if like is None else LIKE
    tables = references(spec, rows, like, (FEW if quick else FAMILY) if runs else [example])
    found: dict[str, list[Imagined]] = {name: [] for name in tables}
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in tables}
    progress("predicting", 0, len(tables) * max(1, runs))
    start = time.process_time()
    for _ in range(max(1, runs)):
        for name, table in tables.items():
            if quick and found[example] and time.process_time() - start > QUICK:
                continue
            one, made = imagine(spec, rows, table)
            found[name].append(one)
            if runs:
                measured[name].append(errors_of(table, made, spec))
            progress("predicting", 1, None)
    every = [one for each in found.values() for one in each]
    measured = {name: each for name, each in measured.items() if each}
    margin = MARGINS[len(measured)] if quick and like is None else MARGIN
    return Prediction(
        rows,
        runs,
        margin,
        len(tables[example]),
        ranges(measured, margin),
        {name: means(each) for name, each in measured.items()},
        w1_bounds(spec, found[example][-1].model, rows),
        costs.seconds(spec, rows, every),
        costs.size(spec, rows, every),
        (time.process_time() - start) / len(every),
        told_once([one.model.notes for one in every]),
    ), found[example][-1]


def ranges(measured: Mapping[str, Sequence[Mapping[str, float]]], margin: float = MARGIN) -> dict[str, Range]:
    """The range of each error over the tables that have it, by what each table had in some runs."""
    found: dict[str, dict[str, list[float]]] = {}
    for table, each in measured.items():
        for name, error in (pair for one in each for pair in one.items()):
            found.setdefault(name, {}).setdefault(table, []).append(error)
    most = {name: 1.0 if name.startswith("tvd") else math.inf for name in TARGETS}  # of a distance
    return {name: Range.of(found[name], margin, most[name]) for name in TARGETS if name in found}


def means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each error over the runs that have it."""
    names = dict.fromkeys(name for one in found for name in one)
    return {name: float(np.mean([one[name] for one in found if name in one])) for name in names}


def told_once(found: Sequence[Sequence[str]]) -> list[str]:
    """What the mechanism noted in each of some runs, each note once: in how many, where a choice by noisy
    numbers went both ways, and between which percentages.

    >>> told_once([["a is b in 7 % of the rows"], ["a is b in 12 % of the rows"], []])
    ['In 2 of 3 simulated releases: a is b in 7 to 12 % of the rows']
    """
    alike: dict[str, list[str]] = {}
    for note in (note for notes in found for note in notes):
        alike.setdefault(_PERCENT.sub("%", note), []).append(note)
    said = []
    for notes in alike.values():
        words, few = _PERCENT.split(notes[0]), len(notes) < len(found)
        parts = zip(*(_PERCENT.findall(note) for note in notes), strict=True)
        words[1::2] = [_between(min(part, key=float), max(part, key=float)) for part in parts]
        times = f"In {len(notes)} of {len(found)} simulated releases: " if few else ""
        said.append(times + "".join(words))
    return said


def _between(low: str, high: str) -> str:
    return f"{low} %" if low == high else f"{low} to {high} %"


def errors_of(real: Table, made: Table, spec: Spec, only: Iterable[str] = tuple(TARGETS)) -> dict[str, float]:
    """The errors that can be a target, by name, as far as this table has them."""
    kept, domain = set(only), spec.domain
    ways = [k for k in (1, 2, 3) if f"tvd{k}" in kept]
    compared = {"marginals": table_errors(real, made, domain, ways)}
    if "w1" in kept:
        compared["w1"] = columns_w1(real, made, domain)
    if "w1_2d" in kept and len(planes(domain)) == 1:  # several take long
        compared["w1_2d"] = plane_w1(real, made, domain)
    if kept & {"mean", "covariance"} and ordered(domain):
        compared["moments"] = moment_errors(real, made, domain)
    return {name: value for name, value in targets(compared).items() if name in kept and np.isfinite(value)}
