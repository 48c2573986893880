"""One table told in many ways has the same exact sums: any order of rows or columns, any names, any cut into
files, CSV, compressed CSV or Parquet, any line ends and quotes."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.questions import (
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Gram,
    Halves,
    Misfit,
    Moments,
    Question,
    Total,
)
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.rows.read import open_scan

AGE = Column("age", "integer", lower=0, upper=99, nullable=True)
X = Column("x", "continuous", lower=-1.0, upper=1.0)
CITY = Column("city", "nominal", categories=("Arden", "Brook, upper", 'the "Dale"'), nullable=True)
SEEN = Column("seen", "date", lower=18000, upper=19000)
OMEGA = Domain((AGE, X, CITY, SEEN))

row = st.tuples(
    st.one_of(st.none(), st.integers(-5, 120)),
    st.floats(-1.5, 1.5, width=32),
    st.sampled_from([*CITY.categories, "elsewhere", None]),
    st.dates(date(2019, 1, 1), date(2022, 12, 31)),
)
tables = st.lists(row, min_size=1, max_size=12)


def asked(names: dict[str, str]) -> list[Question]:
    """A question of every kind, about columns of these names."""
    age, x, city, seen = (names[column.name] for column in OMEGA)
    bins = Bins(city, (0, 1, 2, 3, 4))
    tree = Cells((Halves(x, 2), Halves(seen, 2)), (0, 1, 0, 1))
    share = Fraction(1, 6)
    return [
        Question("n", Total(), share),
        Question("sizes", Total(), share, city),
        Question("tree", CellCounts(tree), share),
        Question("moments", Moments((x, age, seen), 8, 2), share),
        Question("gram", Gram((bins, Halves(age, 3), Halves(x, 2)), True), share),
        Question("sums", CellSums(Cells((bins,)), (Halves(x, 2), Halves(seen, 3))), share),
        Question("misfit", Misfit((Cells((bins, Halves(age, 1))),), ((tuple(range(8)),),)), share),
    ]


def sums(path: object, names: dict[str, str] | None = None, options: CsvOptions | None = None) -> list:
    names = names or {column.name: column.name for column in OMEGA}
    omega = Domain(tuple(replace(column, name=names[column.name]) for column in OMEGA))
    scan = open_scan(str(path), omega.columns, options)
    exact, rows = sum_over(scan, omega, asked(names), workers=2)
    return [rows, *(part.tolist() for part in exact)]


def text(rows: list, order=(0, 1, 2, 3), names=("age", "x", "city", "seen"), end="\n", quoting=0, mark=","):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end, quoting=quoting, delimiter=mark)
    writer.writerow([names[i] for i in order])
    writer.writerows([[each[i] for i in order] for each in rows])
    return out.getvalue().encode()


def arrow(rows: list) -> pa.Table:
    fields = [("age", pa.int64()), ("x", pa.float64()), ("city", pa.string()), ("seen", pa.date32())]
    columns = [[each[i] for each in rows] for i in range(len(fields))]
    return pa.table(columns, pa.schema(fields))


def parquet_parts(folder, rows):
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    for old in parts.iterdir():
        old.unlink()
    for i in range(3):
        pq.write_table(arrow(rows[i::3]), parts / f"{i}.parquet")
    return parts


def as_parquet(folder, rows):
    pq.write_table(arrow(rows), folder / "t.parquet", row_group_size=2)
    return folder / "t.parquet"


def as_csv(folder, data: bytes):
    (folder / "t.csv").write_bytes(data)
    return folder / "t.csv"


def as_gzip(folder, data: bytes):
    (folder / "t.csv.gz").write_bytes(gzip.compress(data))
    return folder / "t.csv.gz"


RENAMED = {"age": "years old", "x": "ξ", "city": "age", "seen": "when, if ever"}
TELLINGS: dict[str, Callable] = {
    "rows in another order": lambda folder, rows: sums(as_csv(folder, text(rows[::-1]))),
    "columns in another order": lambda folder, rows: sums(as_csv(folder, text(rows, (2, 0, 3, 1)))),
    "other names": lambda folder, rows: sums(
        as_csv(folder, text(rows, names=tuple(RENAMED.values()))), RENAMED
    ),
    "windows line ends": lambda folder, rows: sums(as_csv(folder, text(rows, end="\r\n"))),
    "everything quoted": lambda folder, rows: sums(as_csv(folder, text(rows, quoting=csv.QUOTE_ALL))),
    "semicolons": lambda folder, rows: sums(
        as_csv(folder, text(rows, mark=";")), None, CsvOptions(delimiter=";")
    ),
    "compressed": lambda folder, rows: sums(as_gzip(folder, text(rows))),
    "parquet": lambda folder, rows: sums(as_parquet(folder, rows)),
    "parquet in parts": lambda folder, rows: sums(parquet_parts(folder, rows)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("told")


@pytest.mark.parametrize("telling", TELLINGS)
@settings(max_examples=15, deadline=None)
@given(rows=tables)
def test_a_table_told_otherwise_has_the_same_sums(folder, telling, rows):
    plain = sums(as_csv(folder, text(rows)))
    assert plain[0] == len(rows)
    assert TELLINGS[telling](folder, rows) == plain


@settings(max_examples=20, deadline=None)
@given(one=tables, other=tables)
def test_sums_of_two_tables_add_up(folder, one, other):
    parts = [sums(as_csv(folder, text(rows))) for rows in (one, other, one + other)]
    *added_up, _ = zip(*parts, strict=True)  # the last, a misfit, is no sum
    for a, b, both in added_up:
        assert (np.add(a, b) == both).all()


def test_another_value_has_other_sums(folder):
    """The comparison is not of constants."""
    rows = [(30, 0.5, "Arden", date(2020, 5, 1)), (31, -0.5, None, date(2021, 5, 1))]
    moved = [(30, 0.5, "Arden", date(2020, 5, 1)), (31, 0.5, None, date(2021, 5, 1))]
    assert sums(as_csv(folder, text(rows))) != sums(as_csv(folder, text(moved)))
