"""Pages of text: their headers, what is refused by them, and how many rows they let be read at a time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import FileError
from dpsynth_cli.trusted.rows import parquet as read_parquet
from dpsynth_cli.trusted.rows import parquet_plan
from dpsynth_cli.trusted.rows.parquet_form import footer
from dpsynth_cli.trusted.rows.parquet_pages import Page, pages
from dpsynth_cli.trusted.rows.parquet_plan import _few, plan
from dpsynth_cli.trusted.rows.read import open_scan

NOTHING = "Nothing was read and nothing was spent."
SMALLER = (
    "Write the file again with smaller pages; if it has cells as long as that, cut them, or leave the column "
    "out of `columns` in the spec."
)
LABELS = Column("s", "nominal", categories=("a", "b"), other="b", nullable=True)
MIB = 2**20


def named(name: str) -> Column:
    return Column(name, "nominal", categories=("a", "b"), other="b", nullable=True)


def codes(path, *columns: Column) -> list[tuple[int, ...]]:
    scan = open_scan(str(path), columns)
    pieces = (scan.encode(piece) for piece in scan.pieces())
    return [row for own in pieces for row in zip(*(array.tolist() for array in own.values()), strict=True)]


@pytest.fixture
def batches(monkeypatch):
    """The names, rows and bytes of each batch that pyarrow gives out."""
    given, known = [], read_parquet._Opened.batches

    def watched(self, group, rows, names, labels):
        for batch in known(self, group, rows, names, labels):
            given.append((tuple(names), len(batch), batch.nbytes))
            yield batch

    monkeypatch.setattr(read_parquet._Opened, "batches", watched)
    return given


# --- headers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_pages_add_up_to_the_rows_and_to_the_size_of_the_column(tmp_path, version, compression, dictionary):
    table = pa.table({"x": np.arange(3000), "s": [f"label {i * 7 % 2999}" for i in range(3000)]})
    path = tmp_path / "t.parquet"
    pq.write_table(
        table, path, compression=compression, use_dictionary=dictionary, data_page_version=version,
        data_page_size=4000, write_page_checksum=True, write_page_index=version == "2.0", row_group_size=1700,
    )  # fmt: skip
    about = footer(path)
    for group in range(about.num_row_groups):
        for leaf in range(2):
            chunk = about.row_group(group).column(leaf)
            with open(path, "rb") as file:
                found = pages(file, chunk)
            headers = chunk.total_uncompressed_size - sum(page.size for page in found)
            assert len(found) > 1
            assert 8 * len(found) < headers < 120 * len(found)
            assert sum(page.rows for page in found) == about.row_group(group).num_rows
            assert [page.dictionary for page in found] == [dictionary] + [False] * (len(found) - 1)
            assert {page.coded for page in found if page.rows} == {dictionary}


def test_a_dictionary_that_is_full_is_followed_by_pages_of_text(tmp_path):
    rows = ["a"] * 500 + [f"label {i}" for i in range(3000)]
    pq.write_table(
        pa.table({"s": rows}), tmp_path / "t.parquet", data_page_size=4000, dictionary_pagesize_limit=4000,
        write_batch_size=100,
    )  # fmt: skip
    with open(tmp_path / "t.parquet", "rb") as file:
        first, *data = pages(file, footer(tmp_path / "t.parquet").row_group(0).column(0))
    assert first.dictionary
    kinds = [page.coded for page in data]
    assert kinds == sorted(kinds, reverse=True)
    assert len(set(kinds)) == 2


def test_damaged_page_headers_are_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_plan, "TEXT", 100)
    monkeypatch.setattr(parquet_plan, "USUAL_PAGE", 100)
    monkeypatch.setattr(parquet_plan, "LARGEST_PAGE", 100)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": [f"{i}" for i in range(1000)]}), path)
    whole = path.read_bytes()
    rng, said = np.random.default_rng(1), set()
    for _ in range(300):
        data = bytearray(whole)
        data[4:40] = rng.bytes(36)
        path.write_bytes(bytes(data))
        with pytest.raises(FileError) as caught:
            open_scan(str(path), (LABELS,))
        said.add(caught.value.happened.removeprefix(str(path)))
    assert " is damaged or not a Parquet file." in said


def test_pages_of_fewer_rows_than_the_column_has_are_damage(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": ["a"] * 100}), path)
    chunk = footer(path).row_group(0).column(0)
    places = ("data_page_offset", "has_dictionary_page", "dictionary_page_offset", "total_compressed_size")
    told = {name: getattr(chunk, name) for name in (*places, "num_values")}
    with open(path, "rb") as file:
        assert pages(file, SimpleNamespace(**told))
        with pytest.raises(pa.ArrowInvalid):
            pages(file, SimpleNamespace(**told | {"num_values": 101}))


# --- what is refused --------------------------------------------------------------------------------------


def test_a_page_of_more_text_than_the_limit_is_refused_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_plan, "LARGEST_PAGE", MIB)
    monkeypatch.setattr(parquet_plan, "TEXT", MIB)
    monkeypatch.setattr(read_parquet.ParquetScan, "_batches", lambda self: pytest.fail("a row was read"))
    path = tmp_path / "t.parquet"
    rows = [f"some text {i % 5000}" for i in range(200_000)]
    for dictionary in (False, True):
        pq.write_table(pa.table({"s": rows}), path, use_dictionary=dictionary, data_page_size=2**19)
        assert open_scan(str(path), (LABELS,))  # much text, but in small pages
        pq.write_table(pa.table({"s": [*rows, "x" * 2**21]}), path, use_dictionary=dictionary)
        with pytest.raises(FileError) as caught:
            open_scan(str(path), (LABELS,))
        assert str(caught.value) == (
            f"column 's' of {path} has a page of more than 1 MiB of text.\n{NOTHING} {SMALLER}"
        )
    pq.write_table(pa.table({"s": rows, "more": ["x" * 2**21, *rows[1:]]}), path)
    assert open_scan(str(path), (LABELS,))  # what is not declared does not count


@pytest.mark.parametrize("dictionary", [False, True])
def test_pages_that_are_too_large_together_are_refused_before_anything_is_read(tmp_path, dictionary):
    """One row with a long cell in each of three columns, none of which is too long alone."""
    path, columns = tmp_path / "t.parquet", tuple(map(named, "stu"))
    for size, refused in ((22, False), (24, True)):
        table = {name: ["a", name * size * MIB] for name in "stuv"}
        pq.write_table(pa.table(table), path, use_dictionary=dictionary, compression="lz4")
        assert codes(path, *columns[:2]) == [(0, 0), (1, 1)]
        if not refused:
            assert codes(path, *columns) == [(0, 0, 0), (1, 1, 1)]
            continue
        with pytest.raises(FileError) as caught:
            open_scan(str(path), columns)
        assert str(caught.value) == (
            f"the columns of text in {path} have pages that take more than 64 MiB together, beyond 1 MiB for "
            f"each column; the largest is in 's'.\n{NOTHING} {SMALLER}"
        )
    table = {name: [name * 24 * MIB if at == i else "a" for at in range(3)] for i, name in enumerate("stu")}
    pq.write_table(pa.table(table), path, row_group_size=1, compression="lz4")
    assert codes(path, *columns) == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]  # never in memory together


# --- how many rows at a time ------------------------------------------------------------------------------


def test_the_pages_that_a_batch_touches_are_within_the_bound():
    rng = np.random.default_rng(0)
    for _ in range(300):
        own = [Page(int(rng.integers(1, 50)), int(rng.integers(0, 9))) for _ in range(rng.integers(1, 30))]
        own.append(Page(5, 1))
        most = int(rng.integers(max(page.size for page in own), 400))
        of_row = np.repeat(np.arange(len(own)), [page.rows for page in own])

        def touched(rows, own=own, of_row=of_row):
            cuts = range(0, len(of_row), rows)
            return max(sum(own[i].size for i in set(of_row[at : at + rows].tolist())) for at in cuts)

        rows = _few(own, most)
        assert touched(rows) <= most
        assert rows == parquet_plan.BATCH or touched(2 * rows) > most


@pytest.mark.parametrize("where", [0, 2000, 3990])
def test_long_cells_that_lie_together_are_read_few_at_a_time(tmp_path, batches, where):
    """Read by labels they would be held to the end of the row group, and 2^31 bytes of them fail."""
    rows = ["a"] * 4000
    for i in range(50):
        rows.insert(where + i, f"{i}" + "q" * 3 * MIB)
    table = pa.table({"s": pa.array(rows, pa.large_string()), "t": ["b"] * len(rows)})
    options = {"use_dictionary": ["t"], "compression": "lz4", "write_batch_size": 1, "data_page_size": 4096}
    pq.write_table(table, tmp_path / "t.parquet", **options)
    found = codes(tmp_path / "t.parquet", LABELS, named("t"))
    assert sorted(found) == [(0, 1)] * 4000 + [(1, 1)] * 50
    assert {own[1] for own in found[where : where + 50]} == {1}
    assert max(size for _, _, size in batches) < 65 * MIB
    assert [rows for names, rows, _ in batches if names == ("t",)] == [4050]  # others as ever


def test_text_in_several_columns_shares_the_bound(tmp_path, batches):
    table = {name: [f"{name}{i}" + "q" * 1000 for i in range(40_000)] for name in "stu"}
    pq.write_table(pa.table(table), tmp_path / "t.parquet", use_dictionary=False, compression="lz4")
    assert codes(tmp_path / "t.parquet", *map(named, "stu")) == [(1, 1, 1)] * 40_000
    assert 16 * MIB < max(size for _, _, size in batches) < 64 * MIB


@pytest.mark.parametrize("long", [20_000, 300_000])
def test_long_text_told_as_differences_is_read_few_rows_at_a_time(tmp_path, monkeypatch, batches, long):
    monkeypatch.setattr(parquet_plan, "SPREAD", 2**24)
    rows, path = ["z" * long] * (60_000_000 // long), tmp_path / "t.parquet"
    table = pa.table({"s": rows, "t": ["a"] * len(rows), "x": range(len(rows))})
    encoding = {"s": "DELTA_BYTE_ARRAY", "t": "PLAIN", "x": "PLAIN"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    expected = [(1, 0, min(i, 9)) for i in range(len(rows))]
    assert codes(path, LABELS, named("t"), Column("x", "integer", 0, 9)) == expected
    assert 5 * MIB < max(size for _, _, size in batches) < 17 * MIB
    assert [rows for names, rows, _ in batches if names != ("s",)] == [len(rows)]  # others as ever


def test_long_text_in_a_dictionary_that_is_full_is_read_few_rows_at_a_time(tmp_path, monkeypatch, batches):
    monkeypatch.setattr(parquet_plan, "SPREAD", 2**23)
    monkeypatch.setattr(parquet_plan, "TEXT", 2**20)
    rows = ["z" * 200_000] * 2000 + [f"{i} and more text" for i in range(100_000)]
    options = {"dictionary_pagesize_limit": 2**18, "write_batch_size": 100}
    pq.write_table(pa.table({"s": rows}), tmp_path / "t.parquet", **options)
    assert codes(tmp_path / "t.parquet", LABELS) == [(1,)] * len(rows)
    assert max(size for _, _, size in batches) < 2**23


def test_a_small_column_is_read_by_labels_whatever_is_beside_it(tmp_path, batches):
    often = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), pa.array(["z" * 500_000]))
    table = {"s": often, "t": [f"{i:04}" * 3000 for i in range(4000)]}
    pq.write_table(pa.table(table), tmp_path / "t.parquet", use_dictionary=["s"], compression="lz4")
    (group,) = plan(tmp_path / "t.parquet", footer(tmp_path / "t.parquet"), ["s", "t"])
    assert (group.labels, set(group.batch)) == ({"s"}, {"t"})
    assert codes(tmp_path / "t.parquet", LABELS, named("t")) == [(1, 1)] * 4000
    assert max(size for _, _, size in batches) < 64 * MIB


def test_columns_read_in_batches_of_any_sizes_are_put_together_again(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    words = np.array(["a", "b", "", "c" * 5000])
    table = {name: words[rng.integers(0, 4, 700)] for name in "stuvw"}
    pq.write_table(pa.table(table), tmp_path / "t.parquet", row_group_size=300)
    columns = tuple(map(named, "stuvw"))
    expected = codes(tmp_path / "t.parquet", *columns)
    assert len(set(expected)) > 100
    for text in (2**25, 100):
        monkeypatch.setattr(read_parquet, "TEXT", text)
        for _ in range(10):
            scan = open_scan(str(tmp_path / "t.parquet"), columns)
            (file,) = scan._files
            for group in file.groups:
                sizes = 2 ** rng.integers(0, 10, 4)
                group.batch.update(zip("tuvw", sizes.tolist(), strict=True))
            pieces = [scan.encode(piece) for piece in scan.pieces()]
            rows = [
                row for own in pieces for row in zip(*(own[c.name].tolist() for c in columns), strict=True)
            ]
            assert rows == expected


def test_columns_are_told_by_their_names_in_whatever_order_they_are_declared(tmp_path):
    long = "x" * 5000
    table = pa.table({"s": ["a", long], "x": [1, 2], "t": [long, long + "x"], "u": ["b", long]})
    pq.write_table(table, tmp_path / "t.parquet")
    kept = Column("t", "nominal", categories=("a", long), nullable=True)
    columns = (named("u"), kept, Column("x", "integer", 0, 9), LABELS)
    assert codes(tmp_path / "t.parquet", *columns) == [(1, 1, 1, 0), (1, 2, 2, 1)]
    assert codes(tmp_path / "t.parquet", *columns[::-1]) == [(0, 1, 1, 1), (1, 2, 2, 1)]
