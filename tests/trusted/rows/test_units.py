"""At most k rows of each unit, and which they are is the unit's own affair."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.trusted.engines.local import gather
from dpsynth_cli.trusted.rows import unit_rows
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.unit_marks import Units, fresh_key, unit_column
from dpsynth_cli.trusted.rows.unit_rows import Marked, Truncation

# The first column says again whose a row is, so that a test can tell.
COLUMNS = (
    Column("who", "integer", lower=0, upper=1000, nullable=True),
    Column("x", "integer", lower=0, upper=9),
    Column("y", "nominal", categories=("a", "b", "c"), other="c"),
)
KEY = "5a" * 32


def marked(path, units: Units, **options) -> Marked:
    columns = (*COLUMNS, unit_column(units.column))
    return Marked(open_scan(str(path), columns, CsvOptions(), **options), COLUMNS, units)


def truncated(scan: Marked) -> tuple[Counter[tuple[int, ...]], int]:
    """The rows that are kept, and of how many units they are."""
    found: Counter[tuple[int, ...]] = Counter()
    with closing(Truncation(scan)) as truncation:
        gather(truncation)
        kept, units, pairs = truncation.kept()
        with closing(kept), closing(units), closing(pairs):
            for piece in kept.pieces():
                codes = kept.encode(piece)
                found.update(zip(*(codes[column.name].tolist() for column in COLUMNS), strict=True))
            assert kept.rows == sum(found.values()) <= truncation.rows
            sizes = [units.encode(piece)[unit_rows.SIZE] + 1 for piece in units.pieces()]
            assert sum(int(size.sum()) for size in sizes) == kept.rows
            return found, units.rows


def write(path, rows: list[tuple[str, int, int, str]]):
    lines = ["id,who,x,y", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def kept_rows(path, rows, k: int = 2, key: str = KEY, **options) -> Counter[tuple[int, ...]]:
    return truncated(marked(write(path, rows), Units("id", k, key), **options))[0]


def own(found: Counter[tuple[int, ...]], who: int) -> dict[tuple[int, ...], int]:
    return {row: times for row, times in found.items() if row[0] == who}


def encoded(rows) -> Counter[tuple[int, ...]]:
    return Counter((who, x, "abc".index(y)) for _, who, x, y in rows)


people = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from("abc")).map(
        lambda row: (f"p{row[0]}", *row)
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(rows=people, k=st.integers(1, 4))
def test_at_most_k_rows_of_each_unit_are_kept_and_all_of_one_that_has_no_more(tmp_path_factory, rows, k):
    found = kept_rows(tmp_path_factory.mktemp("t") / "t.csv", rows, k)
    had = encoded(rows)
    assert all(times <= had[row] for row, times in found.items())
    for who in range(5):
        assert sum(own(found, who).values()) == min(k, sum(own(had, who).values()))


@settings(max_examples=60, deadline=None)
@given(rows=people, others=people, order=st.randoms(use_true_random=False), block=st.integers(20, 200))
def test_another_units_rows_never_change_which_rows_are_kept(tmp_path_factory, rows, others, order, block):
    """Other units come, go and change; rows come in another order and in other pieces: unit 0 keeps its
    own."""
    path = tmp_path_factory.mktemp("t") / "t.csv"
    before = kept_rows(path, rows)
    again = [row for row in rows if row[1] == 0] + [row for row in others if row[1] != 0]
    order.shuffle(again)
    assert own(kept_rows(path, again, _block=block), 0) == own(before, 0)


def test_a_choice_by_the_order_of_rows_would_be_seen(tmp_path, monkeypatch):
    """The broken twin: the first k rows as they come."""
    rows = [(f"p{who}", who, x, "a") for who in range(20) for x in range(6)]
    honest = kept_rows(tmp_path / "t.csv", rows), kept_rows(tmp_path / "t.csv", rows[::-1])
    assert honest[0] == honest[1]

    def places(self, units, codes):
        return np.column_stack([np.arange(len(codes)), np.zeros(len(codes))]).astype(np.uint64)

    monkeypatch.setattr(Units, "of_rows", places)
    monkeypatch.setattr(Units, "order", lambda self, marks, number: marks)
    assert kept_rows(tmp_path / "t.csv", rows) != kept_rows(tmp_path / "t.csv", rows[::-1])


def test_shelves_that_are_read_one_by_one_keep_the_same_rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    rows = [(f"p{w}", int(w), int(rng.integers(3)), "ab"[w % 2]) for w in rng.integers(0, 40, 3000)]
    rows += [("", 999, 1, "c")] * 700  # a large unit of equal rows
    whole = kept_rows(tmp_path / "t.csv", rows, 7)
    for name, value in (("TOGETHER", 1), ("IN_MEMORY", 100), ("AT_ONCE", 64), ("SHELVES", 13)):
        monkeypatch.setattr(unit_rows, name, value)
    assert kept_rows(tmp_path / "t.csv", rows, 7, _block=3000) == whole
    assert sum(whole.values()) == 41 * 7


def test_every_row_of_a_unit_is_kept_equally_often_and_equal_rows_as_often_as_others(tmp_path):
    """Nine rows are equal and the tenth is another: of 4000 units, k = 1, that is kept 400 times, with
    standard deviation 19. Six of them leave a false alarm of 2e-9; ranking by the rows' values alone would
    give 2000."""
    rows = [(f"p{n}", n % 1000, x, "a") for n in range(4000) for x in [0] * 9 + [1]]
    found = kept_rows(tmp_path / "t.csv", rows, 1, fresh_key())
    other = sum(times for (_, x, _), times in found.items() if x == 1)
    assert sum(found.values()) == 4000
    assert abs(other - 400) < 6 * 19


def test_another_key_keeps_other_rows_and_the_same_key_the_same(tmp_path):
    rows = [(f"p{who}", who, x, "a") for who in range(50) for x in range(10)]
    assert kept_rows(tmp_path / "t.csv", rows, 2, fresh_key()) != kept_rows(tmp_path / "t.csv", rows)
    assert kept_rows(tmp_path / "t.csv", rows) == kept_rows(tmp_path / "t.csv", rows)
    assert KEY not in repr(Units("id", 2, KEY))


def test_rows_without_an_id_and_ruined_records_are_one_unit_and_spaces_do_not_matter(tmp_path):
    path = tmp_path / "t.csv"
    without = b",1,1,a\n  ,1,2,a\n,1,3,b\nruined,1\n too,many,cells,in,it\n"
    path.write_bytes(b"id,who,x,y\n" + without + b"7,2,1,a\n 7 ,2,2,a\n7,2,3,a\n")
    found, units = truncated(marked(path, Units("id", 2, KEY)))
    assert (sum(found.values()), units) == (4, 2)
    assert sum(own(found, 2).values()) == 2


@pytest.mark.parametrize("kind", ["integers", "floats", "decimals", "text", "labels", "nulls"])
def test_a_unit_is_the_same_in_csv_and_in_parquet_of_any_type(tmp_path, kind):
    rows = [(str(who), who, x, "abc"[x % 3]) for who in range(12) for x in range(6)]
    ids = [row[0] for row in rows]
    array = {
        "integers": lambda: pa.array(list(map(int, ids)), pa.int64()),
        "floats": lambda: pa.array(list(map(float, ids))),
        "decimals": lambda: pa.array(list(map(Decimal, ids)), pa.decimal128(9, 3)),
        "text": lambda: pa.array([f" {text}" for text in ids]),
        "labels": lambda: pa.array(ids).dictionary_encode(),
        "nulls": lambda: pa.nulls(len(ids)),
    }[kind]()
    columns = dict(zip(("who", "x", "y"), list(zip(*rows, strict=True))[1:], strict=True))
    table = pa.table({"id": array} | {name: list(values) for name, values in columns.items()})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=11)
    found, _ = truncated(marked(tmp_path / "t.parquet", Units("id", 2, KEY)))
    if kind == "nulls":
        rows = [("", *row[1:]) for row in rows]
    assert found == kept_rows(tmp_path / "t.csv", rows)


@settings(max_examples=40, deadline=None)
@given(junk=st.lists(st.binary(max_size=30), max_size=20))
def test_no_cell_makes_it_fail(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(b"id,who,x,y\n" + b"".join(one + b",1,2,a\n" for one in junk))
    found, units = truncated(marked(path, Units("id", 3, KEY)))
    assert sum(found.values()) <= 3 * units
