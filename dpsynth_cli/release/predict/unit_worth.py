"""What the number of rows kept of a unit does to noise and error: from the spec and public tables alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.release.predict.candidates import JUDGED_BY
from dpsynth_cli.release.predict.family import EXAMPLE
from dpsynth_cli.release.predict.imagine import LIKE, imagine, references
from dpsynth_cli.release.predict.predict import errors_of
from dpsynth_cli.spec.spec import Spec

SHOWN = (1, 2, 5, 10)  # rows of a unit
MEANING = (
    "the error of simulated releases of one reference table with as many rows kept; what rows left out "
    "change is not in it: check --data counts them"
)


def unit_limits(spec: Spec) -> list[int]:
    """The numbers that are compared: a few usual ones, and the spec's own."""
    unit = spec.privacy.unit
    if unit is None:
        return []
    least = 1 if unit.order is None else 2  # of which one can follow the other
    return [limit for limit in sorted({*SHOWN, unit.rows}) if limit >= least]


def unit_worth(spec: Spec, rows: int, like: Table | None) -> dict[str, Any] | None:
    """The error at each number of rows, all else equal; None where one row is protected."""
    unit = spec.privacy.unit
    if unit is None:
        return None
    table = references(spec, rows, like)[EXAMPLE if like is None else LIKE]
    lines = []
    for limit in unit_limits(spec):
        privacy = replace(spec.privacy, unit=replace(unit, rows=limit))
        other = replace(spec, privacy=privacy, domain=replace(spec.domain, unit_rows=limit))
        errors = errors_of(table, imagine(other, rows, table)[1], other, JUDGED_BY)
        lines.append({"rows": limit, "noise": limit / unit.rows, "errors": errors})
    return {"column": unit.column, "rows": unit.rows, "limits": lines, "meaning": MEANING}
