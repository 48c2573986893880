"""The cells of a group of rows: codes in their declared types, and columns that are computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth_cli.arrow import from_numpy, from_texts
from dpsynth_cli.domain import Column
from dpsynth_cli.relations.arrays import Values, of_codes
from dpsynth_cli.relations.relations import Relations, category_codes


def computed_cells(
    columns: Sequence[Column], relations: Relations, codes: Mapping[str, NDArray[Any]]
) -> dict[str, pa.Array]:
    """The columns that are computed, from the codes of the others."""
    if not relations.computed:
        return {}
    rows = len(next(iter(codes.values())))
    by_name = {column.name: column for column in columns}
    used = {name for one in relations.computed for name in relations.modelled(one.expression)}
    values = relations.values({name: of_codes(codes[name], by_name[name]) for name in used}, rows)
    return {one.column.name: _cells(values[one.column.name], one.column) for one in relations.computed}


def _cells(values: Values, column: Column) -> pa.Array:
    """Values in the type of their column; what is missing is null."""
    missing = values.missing if column.nullable else None
    if column.type == "boolean":
        return from_numpy(np.asarray(values.data, bool), missing)
    if column.categorical:
        places = from_numpy(category_codes(values, column).astype(np.int32), missing)
        labels = from_texts(column.categories, pa.string())
        return pa.DictionaryArray.from_arrays(places, labels, ordered=column.type == "ordinal")
    if column.type == "continuous":
        return from_numpy(np.asarray(values.data, np.float64), missing)
    whole = np.where(values.missing, 0, values.data).astype(np.int64)
    if column.type == "date":
        return from_numpy(whole.astype(np.int32), missing).cast(pa.date32())
    cells = from_numpy(whole, missing)
    return cells.cast(pa.timestamp("us")) if column.type == "datetime" else cells
