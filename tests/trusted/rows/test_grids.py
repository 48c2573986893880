"""Steps and scales: exact grids, read and written back, whatever the cells are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.cell_format import CellFormat
from dpsynth_cli.domain import GRID, SECOND, Column, CsvOptions, Domain
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.release.files.csv_text import Lines
from dpsynth_cli.release.files.write import decode
from dpsynth_cli.trusted.rows.csv_lines import cells
from dpsynth_cli.trusted.rows.encode import encode_bytes
from tests.asking import asking, drawn

HOUR = 3600 * SECOND
PRICE = Column("price", "continuous", lower=-5.0, upper=9999.99, decimals=2, nullable=True)


def encode(cells, column):
    return encode_bytes(pa.array([cell.encode() for cell in cells], pa.binary()), column).tolist()


def test_a_number_goes_to_the_nearest_multiple():
    codes = encode(["-5", "-4.99", "0", "0.014", "0.016", "9999.99", "1e9", "-inf", "x"], PRICE)
    assert codes == [0, 1, 500, 501, 502, 1_000_499, 1_000_499, 0, PRICE.size]
    five = Column("age", "integer", lower=18, upper=64, step=Fraction(5))
    assert (five.size, encode(["18", "20", "21", "63", "64", "99", "x"], five)) == (10, [0, 0, 1, 9, 9, 9, 0])
    assert decode(np.arange(10), five).to_pylist() == list(range(18, 64, 5))
    short = Column("n", "integer", lower=0, upper=9, step=Fraction(5), nullable=True)
    assert encode(["9", "7", "x"], short) == [1, 1, 2]  # beyond the last value of the grid, and not missing


def test_a_time_goes_down_to_its_step():
    column = Column("t", "datetime", lower=0, upper=86_400 * SECOND - 1, step=Fraction(HOUR))
    assert column.size == 24
    cells = ["1970-01-01 00:59:59", "1970-01-01 01:00:00", "1970-01-01 23:59:59", "1971-01-01"]
    assert encode(cells, column) == [0, 1, 23, 23]
    week = Column("d", "date", lower=4, upper=4 + 27, step=Fraction(7))
    assert (week.size, encode(["1970-01-05", "1970-01-11", "1970-01-12", "2020-01-01"], week)) == (
        4,
        [0, 0, 1, 3],
    )


@given(
    st.integers(0, 12),
    st.integers(-(10**6), 10**6),
    st.integers(0, 10**6),
    st.data(),
)
def test_every_value_of_a_grid_has_its_own_code(decimals, first, span, data):
    """Read from its decimal, and written as that decimal again."""
    ten = 10**decimals
    column = Column("x", "continuous", lower=first / ten, upper=(first + span) / ten, decimals=decimals)
    assert column.size == span + 1
    code = data.draw(st.integers(0, span))
    text = str(Lines([column], CsvOptions()).of([decode(np.array([code]), column)]), "utf-8").strip()
    _, _, digits = text.lstrip("-").partition(".")
    assert len(digits) == decimals
    assert Fraction(text) == Fraction(first + code, ten)
    assert encode([text], column) == [code]


WRITTEN = [
    Column("a", "continuous", lower=-9999.0, upper=9999.0, decimals=2, nullable=True,
           format=CellFormat(decimal=",", thousands=".", currency="1 €", missing=("k.A.",))),
    Column("b", "continuous", lower=-1e6, upper=1e7, step=Fraction(1, 4),
           format=CellFormat(thousands=" ", decimal=",")),
    Column("c", "integer", lower=-10**6, upper=10**6, format=CellFormat(thousands=",", currency="$")),
    Column("d", "continuous", lower=0.0, upper=100.0, decimals=1,
           format=CellFormat(percent=True, decimal=",")),
    Column("e", "date", lower=-300, upper=20_000, nullable=True,
           format=CellFormat(date="%d, %b %y", missing=("-",))),
    Column("f", "datetime", lower=0, upper=HOUR * 24 * 500, format=CellFormat(date="%m/%d/%Y %I:%M:%S %p")),
    Column("g", "datetime", lower=0, upper=HOUR * 24 * 9000, format=CellFormat(date="%d.%m.%Y %H:%M")),
    Column("h", "boolean", categories=("false", "true"), nullable=True,
           format=CellFormat(true=("Ja", "J"), false=("Nein",), missing=("?", ""))),
    Column("i", "nominal", categories=("a;b", 'q"', "x"), nullable=True, format=CellFormat(missing=("NA",))),
    Column("j", "datetime", lower=0, upper=10**9, format=CellFormat(date="%Y-%m-%d %H:%M:%S.%f%z")),
]  # fmt: skip


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "%", "/"])
@pytest.mark.parametrize("column", WRITTEN, ids=lambda column: column.name)
def test_what_is_written_in_a_format_is_read_as_the_same_codes(column, delimiter):
    rng = np.random.default_rng(5)
    codes = np.unique(np.append(rng.integers(0, column.codes, 500), [0, column.size - 1, column.codes - 1]))
    lines = Lines([column, WRITTEN[7]], CsvOptions(delimiter=delimiter))
    data = bytes(lines.of([decode(codes, column), decode(np.zeros(len(codes), int), WRITTEN[7])]))
    (array, _), ruined = cells(data, delimiter.encode(), 2, [0, 1])
    assert ruined == 0
    assert encode_bytes(array, column).tolist() == codes.tolist()


def test_a_format_without_seconds_gives_a_grid_of_minutes():
    assert WRITTEN[6].unit == 60 * SECOND
    assert WRITTEN[5].unit == SECOND


@pytest.mark.parametrize(
    ("scale", "lower", "upper"), [("log", 1e-3, 1e9), ("asinh", -1e6, 1e6), ("log", 1.0, 1.0)]
)
def test_a_scale_is_a_grid_with_its_own_steps(scale, lower, upper):
    column = Column("x", "continuous", lower=lower, upper=upper, scale=scale, nullable=True)
    codes = np.unique(np.random.default_rng(3).integers(0, column.size, 2000))
    values = decode(codes, column).to_pylist()
    assert min(values) >= lower
    assert max(values) <= upper
    assert encode([repr(value) for value in values], column) == codes.tolist()
    assert encode(["x", "-1e300", "1e300"], column) == [column.size, 0, column.size - 1]
    if scale == "log" and upper > lower:
        middle = decode(np.array([GRID // 2]), column)[0].as_py()
        assert middle == pytest.approx((lower * upper) ** 0.5, rel=1e-4)
    if scale == "asinh":
        assert abs(decode(np.array([GRID // 2]), column)[0].as_py()) < 1e-3


def test_a_draw_at_a_large_epsilon_has_the_counts_of_a_grid_and_without_the_step_it_has_not():
    """The grid is what is modelled: spikes of prices, tenths and hours stay, up to how rows are drawn."""
    rng, n = np.random.default_rng(0), 4000
    prices = rng.choice([999, 1999, 4999, 250_000, 999_999], n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    tenths = np.clip(rng.normal(500, 100, n), 0, 1000).astype(np.int64)
    hours = rng.integers(0, 30, n) * 24 + rng.choice([8, 9, 17], n)
    truth = {"price": prices, "tenth": tenths, "hour": hours}
    gridded = (
        Column("price", "continuous", lower=0.0, upper=9999.99, decimals=2),
        Column("tenth", "continuous", lower=0.0, upper=100.0, step=Fraction(1, 10)),
        Column("hour", "datetime", lower=0, upper=24 * 30 * HOUR - 1, step=Fraction(HOUR)),
    )
    floor = {
        name: _distance(values, values[rng.integers(0, n, n)], int(values.max()) + 1)
        for name, values in truth.items()
    }
    for mechanism in ("marginals", "joint"):
        made = _drawn(mechanism, gridded, truth)
        for column in gridded:
            found = _distance(truth[column.name], made[column.name], column.size)
            assert found <= floor[column.name], (mechanism, column.name, found, floor)
    # Without a step the same values are never drawn: each is one of 2^30 codes, and the draw is between them.
    column = Column("tenth", "continuous", lower=0.0, upper=100.0)
    codes = encode([f"{value / 10}" for value in tenths], column)
    made = _drawn("marginals", (column,), {"tenth": np.array(codes)})
    values = np.array(decode(made["tenth"], column).to_pylist())
    assert np.mean(np.abs(values * 10 - np.rint(values * 10)) < 1e-6) < 0.5


def _drawn(mechanism, columns, codes):
    chosen, omega = mechanisms()[mechanism], Domain(columns)
    ask, *_ = asking({name: values.astype(np.int32) for name, values in codes.items()}, omega, 1e6)
    model = chosen.run(ask, omega, chosen.params(), chosen.stages)
    return drawn(model, len(next(iter(codes.values()))))


def _distance(one, other, size):
    """Total variation distance of the counts of codes."""
    counts = [np.bincount(codes, minlength=size) for codes in (one, other)]
    return float(np.abs(counts[0] - counts[1]).sum() / 2 / len(one))


strange = st.one_of(
    st.binary(max_size=14), st.text("0123456789.,/: €$%JanAMPK+-", max_size=14).map(str.encode)
)


@given(st.lists(strange, max_size=6), st.sampled_from(WRITTEN))
def test_any_cell_has_a_code_that_is_its_own(cells, column):
    together = encode_bytes(pa.array(cells, pa.binary()), column)
    alone = [encode_bytes(pa.array([cell], pa.binary()), column)[0] for cell in cells]
    assert together.tolist() == alone
    assert all(0 <= code < column.codes for code in alone)
