"""How often real rows disagree with what a spec states about them: for the steward, and confidential."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.files import has_column, read_table
from dpsynth_cli.evaluate.metrics.names import MOST_ROWS
from dpsynth_cli.questions import Ints
from dpsynth_cli.relations.arrays import Values, of_codes
from dpsynth_cli.relations.relations import category_codes
from dpsynth_cli.spec.spec import Spec

CLOSE = 1e-9  # relative: a real number that was rounded is not another one


def broken_relations(spec: Spec) -> dict[str, Any]:
    """Rows that break each rule, and, of those computed columns that the table has, cells that are not as
    computed; in all rows, or in an even sample of them."""
    relations = spec.stated.relations
    if not (relations.computed or relations.kept) or spec.input == "-":  # which is read already
        return {}
    compared = [one for one in relations.computed if has_column(spec.input, one.column, spec.csv)]
    columns = (*spec.domain.columns, *(replace(one.column, nullable=True) for one in compared))
    table = read_table(spec.input, Domain(columns), spec.csv, MOST_ROWS)
    rows = len(table)
    known = {column.name: of_codes(table.codes[column.name], column) for column in spec.domain}
    values = relations.values(known, rows)
    differing = {
        one.column.name: int(
            _differs(values[one.column.name], one.column, table.codes[one.column.name]).sum()
        )
        for one in compared
    }
    breaking = {
        rule.words: int(relations.broken(table.codes, spec.domain, [rule]).sum()) for rule in relations.kept
    }
    return {
        "confidential": True,
        "rows": rows,
        "of": table.rows,
        "differing": differing,
        "breaking": breaking,
    }


def _differs(made: Values, column: Column, codes: Ints) -> np.ndarray:
    """Where a cell is not what is computed."""
    read = of_codes(codes, replace(column, nullable=True))
    if column.categorical:
        same = category_codes(made, column) == codes
    else:
        same = np.isclose(made.data, read.data, rtol=CLOSE, atol=_step(column))
    return np.asarray((made.missing != read.missing) | (~made.missing & ~same))


def _step(column: Column) -> float:
    """How far a cell may be from its code."""
    return 0.0 if column.type != "continuous" else (float(column.upper) - float(column.lower)) / column.size
