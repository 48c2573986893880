"""A synthetic file against the real one: which metrics, on which rows, beside which references."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsynth_cli.domain import Domain, as_written
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.evaluate.files import has_column, read_table
from dpsynth_cli.evaluate.metrics import classifiers
from dpsynth_cli.evaluate.metrics.metrics import (
    CLASSIFIERS,
    REFERENCES,
    Judged,
    check_target,
    chosen,
    distance_of,
    judge,
)
from dpsynth_cli.evaluate.metrics.names import MOST_ROWS, NAMES
from dpsynth_cli.evaluate.written import decimals_as_written
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.documents.junk import for_the_steward
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.rows.problems import Problems


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
    if not spec.input:
        raise UsageError("the spec names no real table.", "", "Name it: --real FILE.")
    if not Path(synthetic).exists():
        raise FileError(
            f"there is no synthetic file {synthetic}.",
            "Nothing was read and nothing was spent.",
            f"Name the one that was released; by the spec it is {spec.output}.",
        )
    domain = _judged(spec, synthetic, test)
    target = target or domain.strata
    check_target(domain, target)
    if metrics is not None and CLASSIFIERS in metrics:
        classifiers.require()
    kept, notes = chosen(NAMES if metrics is None else metrics, domain, target)
    problems = {which: Problems.of(column.name for column in domain) for which in ("real", "synthetic")}
    made = read_table(synthetic, *as_written(domain, spec.csv), rows, progress, problems["synthetic"])
    truth = read_table(spec.input, domain, spec.csv, rows, progress, problems["real"])
    held_out = read_table(test, domain, spec.csv, rows, progress) if test else None
    counted = {which: for_the_steward(own, domain) for which, own in problems.items()}
    references_too = REFERENCES if references else ()
    wanted = Judged(kept, target, references_too, distance=distance_of(spec.params))
    written = {}
    if "quantiles" in kept:
        written = {
            "real": decimals_as_written(spec.input, domain, spec.csv),
            "synthetic": decimals_as_written(synthetic, *as_written(domain, spec.csv)),
        }
    found = judge(truth, made, domain, wanted, held_out, progress, counted, written)
    files = {"confidential": True, "synthetic": synthetic, "real": spec.input}
    return files | found | {"problems": counted, "notes": notes}


def _judged(spec: Spec, synthetic: str, test: str | None) -> Domain:
    """The columns of the model, and those computed ones that all the tables have."""
    modelled = {column.name for column in spec.domain}
    made = as_written(spec.domain, spec.csv)[1]
    files = [(synthetic, made), (spec.input, spec.csv), *([(test, spec.csv)] if test else [])]
    looked_at = all(path != "-" for path, _ in files)  # standard input is read once
    columns = tuple(
        column
        for column in spec.made
        if column.name in modelled
        or (looked_at and all(has_column(path, column, csv) for path, csv in files))
    )
    return replace(spec.domain, columns=columns)
