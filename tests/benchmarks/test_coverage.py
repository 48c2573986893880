"""Coverage: releases are added up in a file, and shares say what chance leaves."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import main
from benchmarks.covering import MARKED, QUERY, Cell, Held, Results, in_words, share, table


def _cell(*releases: tuple[int, int]) -> Cell:
    """Of releases with so many numbers and so many that miss."""
    cell = Cell("pmm", 1.0, "people", "count", QUERY, "measured")
    for numbers, missed in releases:
        cell.add([Held("count", QUERY, "measured", k >= missed, 2.0) for k in range(numbers)])
    return cell


def test_a_share_has_the_range_of_a_binomial():
    """10 of 200 that miss, each in a release of its own: Wilson's interval by hand."""
    found = share([_cell(*[(1, int(k < 10)) for k in range(200)])])
    assert (found.numbers, found.held) == (200, 95.0)
    assert (found.low, found.high) == pytest.approx((91.04, 97.26), abs=0.01)
    assert found.width == pytest.approx(2.0, abs=1e-3)


def test_numbers_that_miss_together_tell_less():
    """The same 10 of 200, all in one of 20 releases: as if there were 20 numbers."""
    alone, together = (
        share([_cell(*[(10, each(k)) for k in range(20)])])
        for each in (lambda k: int(k < 10), lambda k: 10 * (k == 0))
    )
    assert alone.held == together.held == 95.0
    assert together.low == pytest.approx(76.4, abs=0.1)
    assert alone.low > 90


def test_releases_are_added_to_what_a_file_has(tmp_path):
    path, one = tmp_path / "found.json", Held("count", QUERY, "measured", True, 0.5)
    Results.at(path, 100, 4).add("pmm", 1.0, "people", [one, Held("count", QUERY, MARKED)])
    Results.at(path).add("pmm", 1.0, "varied", [one])
    again = Results.at(path)
    assert (again.rows, again.done) == (100, {"pmm 1": 2})
    (line,) = table(again, {"count": "counts"})
    assert line == {
        "mechanism": "`pmm`", "statistic": "counts", "from": "measured",
        "query, 1": "100.0 (34–100 of 2), ×0.5; 33% marked", "replicates": "",
    }  # fmt: skip


@pytest.mark.parametrize(("missed", "bold"), [(24, True), (10, False), (0, True)])
def test_what_chance_does_not_explain_is_bold(missed, bold):
    words = in_words(share([_cell(*[(1, int(k < missed)) for k in range(200)])]), "measured")
    assert words.startswith("**") == bold


def test_one_release_of_each_is_measured_and_more_are_added(tmp_path, capsys):
    path = tmp_path / "found.json"
    asked = ["coverage", "--mechanism", "marginals", "--epsilon", "3", "--rows", "300", "--replicates", "2"]
    main([*asked, "--runs", "1", "--results", str(path)])
    out = capsys.readouterr().out
    assert "| `marginals` | counts | measured |" in out
    assert Results.at(path).done == {"marginals 3": 1}
    main([*asked, "--runs", "1", "--counts", "2", "--results", str(path)])
    found = Results.at(path)
    assert found.done == {"marginals 3": 3}
    counts = [one for one in found.cells.values() if one.statistic == "count" and one.by == QUERY]
    assert sum(one.numbers for one in counts) == 6
    with pytest.raises(SystemExit, match="has other rows"):
        main([*asked, "--rows", "200", "--results", str(path)])
