"""A synthetic file as a pandas data frame, with the declared types, whatever format its cells have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpsynth_cli.domain import Column, CsvOptions, Domain, as_written
from dpsynth_cli.spec.tables import each_table

if TYPE_CHECKING:  # it takes long to import
    import pandas as pd

    from dpsynth_cli.spec.spec import Spec


def read_frame(path: str, omega: Domain, csv: CsvOptions) -> pd.DataFrame:
    """A synthetic file as a pandas data frame, with the declared types."""
    import pandas as pd

    if path.endswith(".parquet"):
        return pd.read_parquet(path)
    omega, csv = as_written(omega, csv)
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, sep=csv.delimiter, encoding=csv.encoding)
    for column in omega:
        absent = [column.format.missing[0]] if column.format.missing else []
        frame[column.name] = _typed(frame[column.name].replace(dict.fromkeys(("", *absent))), column)
    return frame


def _typed(cells: pd.Series, column: Column) -> pd.Series:
    import pandas as pd

    form = column.format
    if column.type in ("date", "datetime"):
        return pd.to_datetime(cells, format=form.date or "ISO8601")
    if column.type == "boolean":
        words = {form.true[0]: True, form.false[0]: False} if form.true else {"true": True, "false": False}
        return cells.map(words).astype("boolean")
    if column.categorical:
        return cells
    for sign in (*form.currency_signs, form.thousands, "%"):
        cells = cells.str.replace(sign, "", regex=False) if sign else cells
    if form.decimal != ".":
        cells = cells.str.replace(form.decimal, ".", regex=False)
    return pd.to_numeric(cells).astype("Int64" if column.type == "integer" else "float64")


def read_frames(spec: Spec, files: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Every table of a release by its name; `files` is where they are, as the receipt says."""
    places = [key for key in files if key.startswith("output")]
    return {
        name: read_frame(files[place], own.released, own.csv)
        for (name, own), place in zip(each_table(spec).items(), places, strict=True)
    }
