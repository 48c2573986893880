"""At most k rows of a unit over the life of a stream, whatever others do and however its rows are pushed."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, CsvOptions
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.unit_marks import unit_column
from dpsynth_cli.trusted.stream import unit_quota
from dpsynth_cli.trusted.stream.unit_quota import no_units_yet, within_quota

COLUMNS = (Column("who", "integer", lower=0, upper=9), Column("x", "integer", lower=0, upper=99))
QUOTA = no_units_yet() | {"key": "3c" * 32}
Rows = list[tuple[int, int]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("batch") / "batch.csv"


def pushed(path, batches: list[Rows], k: int, days=None, quota=QUOTA) -> list[Counter]:
    """The rows that are counted of each batch."""
    found = []
    for number, batch in enumerate(batches):
        path.write_text("\n".join(["id,who,x", *(f"p{who},{who},{x}" for who, x in batch), ""]))
        scan = open_scan(str(path), (*COLUMNS, unit_column("id")), CsvOptions())
        kept, quota = within_quota(scan, COLUMNS, "id", k, quota, days and days[number])
        with closing(kept), closing(scan):
            own = Counter()
            for piece in kept.pieces():
                codes = kept.encode(piece)
                own.update(zip(codes["who"].tolist(), codes["x"].tolist(), strict=True))
            found.append(own)
    return found


def of(found: list[Counter], who: int) -> list[dict]:
    return [{row: times for row, times in batch.items() if row[0] == who} for batch in found]


batches = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), max_size=4)


@settings(max_examples=60, deadline=None)
@given(given_batches=batches, k=st.integers(1, 5))
def test_no_unit_is_counted_more_than_k_times_and_one_with_fewer_rows_always(path, given_batches, k):
    found = pushed(path, given_batches, k)
    for batch, counted in zip(given_batches, found, strict=True):
        had = Counter(batch)
        assert all(times <= had[row] for row, times in counted.items())
    for who in range(4):
        left = k
        for batch, counted in zip(given_batches, of(found, who), strict=True):
            own = min(left, sum(one == who for one, _ in batch))  # as many as there is room for
            assert sum(counted.values()) == own
            left -= own


@settings(max_examples=60, deadline=None)
@given(given_batches=batches, others=batches, order=st.randoms(use_true_random=False))
def test_another_units_rows_never_change_which_rows_are_counted(path, given_batches, others, order):
    """Whatever is pushed of others, before, with and after them, and in whatever order."""
    again = []
    for number, batch in enumerate(given_batches):
        own = [row for row in batch if row[0] == 0]
        own += [row for row in (others[number] if number < len(others) else []) if row[0] != 0]
        order.shuffle(own)
        again.append(own)
    assert of(pushed(path, again, 3), 0) == of(pushed(path, given_batches, 3), 0)


def test_a_stream_that_forgets_what_it_counted_would_be_seen(path, monkeypatch):
    """The broken twin: each push has a quota of its own."""
    rows = [(1, x) for x in range(5)]
    honest = pushed(path, [rows, rows, rows], 4)
    assert [sum(batch.values()) for batch in honest] == [4, 0, 0]
    monkeypatch.setattr(unit_quota, "_unpacked", lambda text: unit_quota.np.zeros(0, unit_quota.USED))
    assert sum(sum(batch.values()) for batch in pushed(path, [rows, rows, rows], 4)) == 12


def test_with_a_day_what_was_counted_on_others_does_not_matter_and_a_clock_put_back_gains_nothing(path):
    rows = [(1, x) for x in range(5)]
    days = ["2026-03-01", "2026-03-01", "2026-03-02", "2026-03-01", "2026-03-02"]
    found = pushed(path, [rows[:2], *[rows] * 4], 3, days)
    assert [sum(batch.values()) for batch in found] == [2, 1, 3, 0, 0]


def test_units_that_were_counted_are_kept_under_the_key_alone(path):
    path.write_text("id,who,x\nsomebody-with-a-name,1,1\n,2,2\n,2,3\n")
    scan = open_scan(str(path), (*COLUMNS, unit_column("id")), CsvOptions())
    kept, quota = within_quota(scan, COLUMNS, "id", 3, QUOTA, None)
    with closing(kept), closing(scan):
        used = unit_quota._unpacked(quota["used"])
    assert sorted(used["rows"].tolist()) == [1, 2]  # rows without an id are one unit
    assert "somebody" not in str(quota)
    scan = open_scan(str(path), (*COLUMNS, unit_column("id")), CsvOptions())
    kept, other = within_quota(scan, COLUMNS, "id", 3, no_units_yet(), None)
    kept.close()
    scan.close()
    assert set(unit_quota._text(unit_quota._unpacked(other["used"])["unit"])).isdisjoint(
        set(unit_quota._text(used["unit"]))
    )
