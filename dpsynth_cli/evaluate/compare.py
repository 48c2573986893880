"""A synthetic file against the real one: which metrics, on which rows, beside which references."""

from __future__ import annotations

from typing import Any

from dpsynth_cli.domain import as_written
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate import classifiers
from dpsynth_cli.evaluate.files import read_table
from dpsynth_cli.evaluate.metrics import CLASSIFIERS, Judged, check_target, chosen, judge
from dpsynth_cli.evaluate.names import MOST_ROWS, NAMES
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.spec.spec import Spec


def compare(
    spec: Spec,
    synthetic: str,
    *,
    metrics: tuple[str, ...] | None = None,
    target: str | None = None,
    references: bool = True,
    rows: int = MOST_ROWS,
    test: str | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The figures, and notes on what could not be had. `metrics` None: all that can."""
    domain = spec.domain
    if not spec.input:
        raise UsageError("the spec names no real table.", "", "Name it: --real FILE.")
    target = target or domain.strata
    check_target(domain, target)
    if metrics is not None and CLASSIFIERS in metrics:
        classifiers.require()
    kept, notes = chosen(NAMES if metrics is None else metrics, domain, target)
    made = read_table(synthetic, *as_written(domain, spec.csv), rows, progress)
    truth = read_table(spec.input, domain, spec.csv, rows, progress)
    held_out = read_table(test, domain, spec.csv, rows, progress) if test else None
    found = judge(truth, made, domain, Judged(kept, target, references), held_out, progress)
    return {"confidential": True, "synthetic": synthetic, "real": spec.input} | found | {"notes": notes}
