"""How many rows, or units, each label has: of each cell alone, whatever the batches and the order."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dpsynth_cli.domain import Column
from dpsynth_cli.labels import is_label
from dpsynth_cli.trusted.engines import local
from dpsynth_cli.trusted.rows import unit_rows
from dpsynth_cli.trusted.rows.encode import encode_bytes
from dpsynth_cli.trusted.rows.label_counts import Labelled, LabelShelves
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.text import MARKS
from dpsynth_cli.trusted.rows.unit_marks import Units, unit_column

COLUMNS = (Column("city", "nominal"), Column("code", "nominal"))
KEY = "5a" * 32
CELLS = st.one_of(
    st.sampled_from(
        [
            b"AMS",
            b" AMS ",
            b"ams",
            b"NA",
            b"",
            b"x" * 64,
            b"x" * 65,
            "Orléans".encode(),
            b"\xff",
            b"a\0",
            b"\t7",
        ]
    ),
    st.binary(max_size=70).filter(lambda cell: not set(cell) & set(b'\r\n,"')),
)


def counted(path, units: Units | None = None, **options) -> list[Counter[bytes]]:
    """How many rows or units have each label, for both columns."""
    read = COLUMNS if units is None else (*COLUMNS, unit_column("id"))
    scan = open_scan(str(path), read)
    found: list[Counter[bytes]] = [Counter(), Counter()]
    with closing(LabelShelves(Labelled(scan, COLUMNS, units))) as shelves:
        local.gather(shelves, **options)
        for place, labels, counts in shelves.counts():
            own = dict(zip(labels.tolist(), counts.tolist(), strict=True))
            assert not set(own) & set(found[place])  # each comes once
            found[place].update(own)
    return found


def write(path, rows) -> object:
    path.write_bytes(b"id,city,code\n" + b"".join(b"%d,%s,%s\n" % row for row in rows))
    return path


def label(cell: bytes) -> bytes | None:
    """By the definition, in plain Python."""
    text = cell.strip(b" \t\n\r\v\f")
    return text if is_label(text) and text.decode() not in MARKS else None


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), CELLS, CELLS), max_size=30))
def test_counts_follow_the_definition_whatever_the_cells_are(tmp_path_factory, rows):
    path = write(tmp_path_factory.mktemp("labels") / "t.csv", rows)
    for place in (0, 1):
        expected = Counter(filter(None, (label(row[1 + place]) for row in rows)))
        assert counted(path)[place] == expected


@settings(deadline=None, max_examples=40)
@given(st.lists(CELLS, min_size=1, max_size=20))
def test_a_cell_is_read_as_its_own_label_afterwards(cells):
    """Whatever is found is a category that its cells have: none is found and then taken for the other one."""
    found = sorted({own.decode() for cell in cells if (own := label(cell))})
    column = Column("city", "nominal", categories=(*found, "the rest"), other="the rest")
    codes = encode_bytes(pa.array(cells, pa.binary()), column)
    for cell, code in zip(cells, codes.tolist(), strict=True):
        if own := label(cell):
            assert column.categories[code] == own.decode()


def some_rows(n: int = 4000) -> list[tuple[int, bytes, bytes]]:
    rng = np.random.default_rng(3)
    return [(int(rng.integers(900)), b"city %d" % rng.zipf(1.5), b"%d" % rng.integers(5)) for _ in range(n)]


@pytest.mark.parametrize("units", [None, Units("id", 3, KEY)])
def test_counts_do_not_depend_on_batches_order_workers_or_memory(tmp_path, monkeypatch, units):
    rows = some_rows()
    expected = counted(write(tmp_path / "t.csv", rows), units)
    assert counted(write(tmp_path / "u.csv", rows[::-1]), units, workers=1) == expected
    cells = [pa.array(column) for column in zip(*rows, strict=True)]
    parquet.write_table(pa.table(cells, ["id", "city", "code"]), tmp_path / "t.parquet", row_group_size=70)
    assert counted(tmp_path / "t.parquet", units) == expected
    monkeypatch.setattr(unit_rows, "TOGETHER", 2000)
    monkeypatch.setattr(unit_rows, "IN_MEMORY", 1000)
    assert counted(tmp_path / "t.csv", units) == expected
    if units is None:
        assert expected == [Counter(row[place] for row in rows) for place in (1, 2)]


def test_a_unit_counts_once_at_one_of_its_own_labels(tmp_path):
    rows = some_rows()
    found = counted(write(tmp_path / "t.csv", rows), Units("id", 1, KEY))
    units = {row[0] for row in rows}
    assert [sum(own.values()) for own in found] == [len(units)] * 2
    alone = counted(write(tmp_path / "a.csv", [row for row in rows if row[0] == 7]), Units("id", 1, KEY))
    assert set(alone[0]) <= {row[1] for row in rows if row[0] == 7}
    other_key = counted(tmp_path / "t.csv", Units("id", 1, "77" * 32))
    assert other_key != found


def test_another_units_rows_never_change_a_units_label(tmp_path):
    """Without one unit, whatever its rows are, one count of each column is lower by one; none else moves."""
    rows = some_rows(600)
    units = Units("id", 2, KEY)
    whole = counted(write(tmp_path / "t.csv", rows), units)
    for gone in {row[0] for row in rows[:8]}:
        rest = counted(write(tmp_path / "r.csv", [row for row in rows if row[0] != gone]), units)
        for place in (0, 1):
            assert not rest[place] - whole[place]
            assert sum((whole[place] - rest[place]).values()) == 1


def test_a_choice_by_the_order_of_rows_would_be_seen(tmp_path, monkeypatch):
    rows = [(i // 3, b"city %d" % (i % 7), b"1") for i in range(300)]
    real = Units.order
    monkeypatch.setattr(Units, "order", lambda self, marks, number: real(self, marks, np.arange(len(marks))))
    one, other = (counted(write(tmp_path / "t.csv", own), Units("id", 1, KEY)) for own in (rows, rows[::-1]))
    assert one != other
