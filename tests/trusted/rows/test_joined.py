"""Parents with their children: what a table has of a unit is the unit's own affair."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.questions import no_progress
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import gather, sum_over
from dpsynth_cli.trusted.rows import joined_rows, unit_rows
from dpsynth_cli.trusted.rows.family_counts import family_counts
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.unit_marks import unit_column
from dpsynth_cli.trusted.sums.table_passes import Source, TablePasses

# The first column of both says again whose a row is, so that a test can tell.
WHO = Column("who", "integer", lower=0, upper=99)
HOME = (WHO, Column("size", "integer", lower=0, upper=9))
PERSON = (WHO, Column("age", "integer", lower=0, upper=99, nullable=True))
KEY = "5a" * 32
ENGINE = Engine(sum_over, watches=True, counts=True, gather=gather)


def domains(k: int, t: int) -> tuple[Domain, Domain]:
    number = Column("number", "integer", lower=0, upper=k, origin=("number", "people"))
    homes = Domain((*HOME, number), unit_rows=1, table="homes")
    given_ = (
        replace(HOME[1], name="homes.size", origin=("parent", "size")),
        replace(number, name="homes.number"),
        replace(PERSON[1], name="previous.age", origin=("previous", "age")),
        Column("place", "integer", lower=1, upper=k, origin=("place", "")),
    )
    return homes, Domain((*PERSON, *given_), unit_rows=t, table="people")


def joined(folder, homes, people, k=2, t=None, order=(("age", True),), key=KEY, **options):
    """The rows of both tables, as questions see them."""
    (folder / "homes.csv").write_text("\n".join(["id,who,size", *(",".join(map(str, r)) for r in homes), ""]))
    (folder / "people.csv").write_text(
        "\n".join(["id,who,age", *(",".join(map(str, r)) for r in people), ""])
    )
    above, below = domains(k, k if t is None else t)
    scans = {
        "homes": open_scan(str(folder / "homes.csv"), (*HOME, unit_column("id")), CsvOptions(), **options),
        "people": open_scan(
            str(folder / "people.csv"), (*PERSON, unit_column("id")), CsvOptions(), **options
        ),
    }
    sources = {"homes": Source(scans["homes"], "id", 1), "people": Source(scans["people"], "id", k, order)}
    with closing(TablePasses(sources, above, ENGINE, key, no_progress)) as passes:
        return tuple(
            Counter(zip(*(codes.tolist() for codes in passes.sampled(own, None).codes.values()), strict=True))
            for own in (above, below)
        )


def own(found: Counter, who: int) -> Counter:
    return Counter({row: times for row, times in found.items() if row[0] == who})


homes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)).map(lambda r: (f"h{r[0]}", *r)), max_size=8)
people = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda r: (f"h{r[0]}", *r)), max_size=30
)


@settings(max_examples=40, deadline=None)
@given(homes=homes, people=people, k=st.integers(1, 4), t=st.integers(1, 3))
def test_a_unit_has_one_parent_and_at_most_t_of_its_k_children(tmp_path_factory, homes, people, k, t):
    above, below = joined(tmp_path_factory.mktemp("t"), homes, people, k, t)
    for who in range(6):
        there = any(home[1] == who for home in homes)
        many = min(k, sum(person[1] == who for person in people)) if there else 0
        assert sum(own(above, who).values()) == there
        assert [row[2] for row in own(above, who)] == [many] * there
        assert sum(own(below, who).values()) == min(t, many)
    had = Counter((who, age) for _, who, age in people)
    assert all(times <= had[row[:2]] for row, times in below.items())


@settings(max_examples=40, deadline=None)
@given(
    homes=homes,
    people=people,
    others=st.tuples(homes, people),
    order=st.randoms(use_true_random=False),
    block=st.integers(20, 200),
)
def test_another_units_rows_never_change_what_a_unit_has(
    tmp_path_factory, homes, people, others, order, block
):
    """Other households come, go and change; rows come in another order and in other pieces."""
    folder = tmp_path_factory.mktemp("t")
    before = joined(folder, homes, people, 2, 1)
    again = [
        [row for row in mine if row[1] == 0] + [row for row in other if row[1] != 0]
        for mine, other in zip((homes, people), others, strict=True)
    ]
    for rows in again:
        order.shuffle(rows)
    after = joined(folder, *again, 2, 1, _block=block)
    for one, other in zip(before, after, strict=True):
        assert own(one, 0) == own(other, 0)


def test_a_choice_by_the_order_of_rows_would_be_seen(tmp_path, monkeypatch):
    """The broken twin: the children that come first in the file."""
    homes = [(f"h{n}", n, 1) for n in range(20)]
    people = [(f"h{n}", n, age) for n in range(20) for age in range(6)]
    assert joined(tmp_path, homes, people, 6, 1) == joined(tmp_path, homes, people[::-1], 6, 1)
    monkeypatch.setattr(
        joined_rows, "_some", lambda parent, random, most: np.flatnonzero(np.diff(parent, prepend=-1))
    )
    monkeypatch.setattr(joined_rows, "_sorted", lambda parent, rows, order: (parent, rows))
    monkeypatch.setattr(unit_rows.Units, "order", lambda self, marks, number: marks)
    monkeypatch.setattr(
        unit_rows.Units,
        "of_rows",
        lambda self, units, codes: np.column_stack([np.arange(len(codes))] * 2).astype(np.uint64),
    )
    assert joined(tmp_path, homes, people, 6, 1) != joined(tmp_path, homes, people[::-1], 6, 1)


def test_children_are_in_order_and_each_is_given_the_one_before(tmp_path):
    people = [("7", 7, 10), ("7", 7, 50), ("7", 7, ""), ("7", 7, 40)]
    above, below = joined(tmp_path, [("7", 7, 3)], people, 4)
    missing = 100
    assert above == {(7, 3, 4): 1}
    # who, age, size, number, age before, place
    assert sorted(below, key=lambda row: row[5]) == [
        (7, 50, 3, 4, missing, 0),
        (7, 40, 3, 4, 50, 1),
        (7, 10, 3, 4, 40, 2),
        (7, missing, 3, 4, 10, 3),
    ]
    rising = joined(tmp_path, [("7", 7, 3)], people, 4, order=(("age", False),))[1]
    assert [row[1] for row in sorted(rising, key=lambda row: row[5])] == [10, 40, 50, missing]


def test_every_child_is_asked_about_equally_often_whatever_the_order(tmp_path):
    """Of 4,000 families of four, one child each: every place 1,000 times, with standard deviation 27. Six of
    them leave a false alarm of 1e-8 for the four together; also where children stand in no order."""
    homes = [(f"h{n}", n % 99, 1) for n in range(4000)]
    people = [(f"h{n}", n % 99, age) for n in range(4000) for age in (10, 20, 30, 40)]
    for order in ((), (("age", True),)):
        _, below = joined(tmp_path, homes, people, 4, 1, order, key="7b" * 32)
        places = Counter()
        for row, times in below.items():
            places[row[5]] += times
        assert sum(places.values()) == 4000
        assert all(abs(places[place] - 1000) < 6 * 27 for place in range(4))


def test_children_without_a_parent_second_parents_and_rows_without_a_key(tmp_path):
    homes = [("1", 1, 1), (" 1 ", 1, 2), ("", 9, 1), ("", 9, 2), ("2", 2, 5)]
    people = [("1", 1, 5), ("3", 3, 5), ("3", 3, 6), ("", 9, 1), ("", 9, 2), ("", 9, 3)]
    above, below = joined(tmp_path, homes, people, 2)
    assert sorted((row[0], row[2]) for row in above.elements()) == [(1, 1), (2, 0), (9, 2)]
    assert sorted(row[0] for row in below.elements()) == [1, 9, 9]
    scans = [open_scan(str(tmp_path / f"{name}.csv"), [unit_column("id")]) for name in ("homes", "people")]
    counted = family_counts(scans[0], "id", scans[1], "id", 2)
    expected = {"rows": 6, "parents": 3, "orphans": 2, "cut": 1, "childless": 1, "duplicates": 2}
    assert counted == {"confidential": True} | expected


def test_shelves_that_are_read_one_by_one_join_the_same_rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    homes = [(f"h{n}", n, int(rng.integers(9))) for n in range(60)]
    people = [(f"h{n}", int(n), int(rng.integers(50))) for n in rng.integers(0, 70, 2000)]
    whole = joined(tmp_path, homes, people, 5, 2)
    for name, value in (("TOGETHER", 1), ("IN_MEMORY", 100), ("AT_ONCE", 64), ("SHELVES", 13)):
        monkeypatch.setattr(unit_rows, name, value)
    assert joined(tmp_path, homes, people, 5, 2, _block=3000) == whole


@settings(max_examples=30, deadline=None)
@given(junk=st.lists(st.binary(max_size=20), max_size=12))
def test_no_cell_makes_it_fail(tmp_path_factory, junk):
    folder = tmp_path_factory.mktemp("t")
    joined(folder, [], [])
    for name in ("homes", "people"):
        with (folder / f"{name}.csv").open("ab") as file:
            file.write(b"".join(one + b",1,2\n" for one in junk))
    above, below = domains(2, 2)
    scans = [
        open_scan(str(folder / f"{name}.csv"), (*columns, unit_column("id")))
        for name, columns in (("homes", HOME), ("people", PERSON))
    ]
    sources = {"homes": Source(scans[0], "id", 1), "people": Source(scans[1], "id", 2)}
    with closing(TablePasses(sources, above, ENGINE, KEY, no_progress)) as passes:
        parents = passes.sampled(above, None)
        assert len(passes.sampled(below, None)) <= 2 * len(parents)


@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_worst_case_reaches_the_price_of_t_rows(tmp_path, t):
    """A family of k equal children: t of them are in one cell, and its parent in one."""
    homes, people = [("1", 1, 1)], [("1", 1, 5)]
    with_it = joined(tmp_path, [*homes, ("2", 2, 2)], [*people, *[("2", 2, 7)] * 9], 3, t)
    without = joined(tmp_path, homes, people, 3, t)
    came = [one - other for one, other in zip(with_it, without, strict=True)]
    assert sum(came[0].values()) == 1
    ages = Counter()
    for row, times in came[1].items():
        ages[row[1]] += times
    assert ages == {7: t}
