"""Which columns are junk, what they look like, and where a strict release refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.errors import FileError
from dpsynth_cli.mechanisms.search.outer import outer
from dpsynth_cli.release.documents import junk
from dpsynth_cli.trusted.rows.problems import count_problems
from dpsynth_cli.trusted.rows.read import open_scan

NUMBER = Column("n", "integer", lower=0, upper=9)
LABEL = Column("k", "nominal", categories=("a", "b", "rest"), other="rest")


def scan_of(tmp_path: Path, cells: list[str], column: Column):
    """A table of one column and of one that is always as declared."""
    lines = [f"{cell},1" for cell in cells]
    (tmp_path / "t.csv").write_text(f"{column.name},fine\n" + "\n".join(lines) + "\n")
    fine = Column("fine", "integer", lower=0, upper=9)
    return open_scan(str(tmp_path / "t.csv"), (column, fine), CsvOptions()), Domain((column, fine))


def refused(tmp_path: Path, cells: list[str], column: Column = NUMBER) -> bool:
    scan, domain = scan_of(tmp_path, cells, column)
    try:
        junk.refuse_junk(SimpleNamespace(strict=True, domain=domain), scan)
    except FileError as error:
        assert "confidential" in str(error)  # noqa: PT017
        return True
    return False


@pytest.mark.parametrize(("bad", "good", "is_refused"), [(5, 5, False), (6, 5, True)])
def test_half_of_a_column_is_not_more_than_half(tmp_path, bad, good, is_refused):
    assert refused(tmp_path, ["x"] * bad + ["1"] * good) is is_refused


def test_ruined_records_are_junk_of_every_column(tmp_path):
    assert refused(tmp_path, ["1,2,3"] * 4 + ["x"] * 2 + ["1"] * 5)
    assert not refused(tmp_path, ["1,2,3"] * 4 + ["x"] * 1 + ["1"] * 5)


def test_an_unlisted_label_is_declared_where_there_is_a_category_for_the_rest(tmp_path):
    assert not refused(tmp_path, ["zebra"] * 9 + ["a"], LABEL)
    assert refused(tmp_path, ["A"] * 9 + ["a"], LABEL)  # a listed one in other capitals is meant as that
    assert refused(tmp_path, ["zebra"] * 9 + ["a"], Column("k", "nominal", categories=("a", "b")))


def test_a_strict_release_looks_at_the_first_rows_only(tmp_path, monkeypatch):
    monkeypatch.setattr(junk, "FIRST_LOOK", 10)
    seen = []

    def counted(scan, most=None):
        seen.append(most)
        return count_problems(scan, most)

    monkeypatch.setattr(junk, "count_problems", counted)
    assert not refused(tmp_path, ["1"] * 20)
    assert seen == [10]


def test_counting_the_first_rows_ends_with_their_piece(tmp_path):
    scan, _ = scan_of(tmp_path, ["x"] * 30, NUMBER)
    pieces = list(scan.pieces())
    few = SimpleNamespace(columns=scan.columns, cells=scan.cells, pieces=lambda: iter(pieces * 3))
    assert [count_problems(few, most).rows for most in (1, 31, 61, None)] == [30, 60, 90, 90]


def test_a_form_is_named_only_if_most_of_the_strange_cells_have_it(tmp_path):
    scan, domain = scan_of(tmp_path, ["$1"] * 3 + ["zebra"] * 4, NUMBER)
    (line,) = junk.for_the_steward(count_problems(scan), domain)["warnings"]
    assert "they look like" not in line
    scan, domain = scan_of(tmp_path, ["$1"] * 4 + ["zebra"] * 4, NUMBER)
    (line,) = junk.for_the_steward(count_problems(scan), domain)["warnings"]
    assert "they look like amounts with a currency sign" in line


def told(scan, domain: Domain) -> dict:
    return junk.for_the_steward(count_problems(scan), outer(domain), domain)


def test_labels_that_nobody_has_listed_are_no_junk(tmp_path):
    found = Column("k", "nominal", categories=("a", "rest"), other="rest")
    stated = Column("k", "nominal", other="rest", private=True, open=True)
    scan, domain = scan_of(tmp_path, ["zebra"] * 9 + ["a"], found)
    problems = count_problems(scan)
    said = junk.for_the_steward(problems, domain, Domain((stated, domain["fine"])))
    assert (said["warnings"], said["cells"], said["columns"]["k"]["unlisted"]) == ([], 0, 9)
    assert len(junk.for_the_steward(problems, domain)["warnings"]) == 1


def test_what_is_no_candidate_is_the_other_category_and_no_junk(tmp_path):
    stated = replace(LABEL, private=True)
    scan, domain = scan_of(tmp_path, ["zebra"] * 3 + ["a"] * 7, stated)
    scan = scan.declared(outer(domain).columns)
    assert told(scan, domain)["warnings"] == []
    assert told(scan, domain)["cells"] == 0
    assert junk.for_the_steward(count_problems(scan), outer(domain))["cells"] == 3  # without what is stated
