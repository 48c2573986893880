"""Rows of a model as units: sizes agree with the tables, columns of a unit are the same in its rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.units.distribution import Distribution, distribution_of, size_edges
from dpsynth_cli.mechanisms.units.grouping import grouped, groups_drawn, sizes_drawn
from dpsynth_cli.mechanisms.units.restored import with_units
from dpsynth_cli.mechanisms.units.sizes import Sizes, axis_of, sizes_of
from dpsynth_cli.questions import Answer, Asking, Model, UnitSizes

SEX = Column("sex", "nominal", categories=("F", "M"), of="unit")
BORN = Column("born", "integer", lower=1900, upper=1999, nullable=True, of="unit")
VISIT = Column("visit", "ordinal", categories=("a", "b", "c"))
K = 4
EDGES = size_edges(K)
OMEGA = Domain((SEX, BORN, VISIT), unit_rows=K)


def exact(counts: np.ndarray, sd: float = 0.0) -> Answer:
    values = np.rint(counts).astype(np.int64).ravel()
    return Answer(values, (len(values),), "discrete_laplace", sd)


def found_sizes(axes, answers, rows, edges=EDGES) -> Sizes:
    return sizes_of(axes, answers, rows, distribution_of(answers, edges, None))


def some_rows(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    sex = rng.integers(0, 2, rows)
    born = np.where(rng.random(rows) < 0.05, 100, rng.integers(0, 50, rows) + 50 * sex)  # linked to sex
    return {"sex": sex, "born": born, "visit": rng.integers(0, 3, rows)}


def test_sizes_agree_with_a_table_that_has_no_noise():
    """Of one column: rows of F are in units of 1 and 2, rows of M in units of 4."""
    rows = {"sex": np.repeat([0, 1], [500, 1000])}
    table = np.array([[300, 100, 0, 0], [0, 0, 0, 250]])
    sizes = found_sizes([axis_of(SEX, rows["sex"])], [exact(table)], rows)
    chances = sizes.chances(rows)
    assert chances[rows["sex"] == 0].mean(axis=0) == pytest.approx([0.6, 0.4, 0, 0], abs=1e-6)
    assert chances[rows["sex"] == 1].mean(axis=0) == pytest.approx([0, 0, 0, 1], abs=1e-6)
    assert sizes.units.each == pytest.approx(np.array([300, 100, 0, 250]))


def test_two_linked_columns_are_not_counted_twice():
    """Both tables say the same of the same rows: multiplying what they say would square it."""
    rng = np.random.default_rng(2)
    rows = some_rows(rng, 20_000)
    axes = [axis_of(SEX, rows["sex"]), axis_of(BORN, rows["born"])]
    by_sex = np.array([[600, 200, 100, 50], [200, 300, 300, 400]])
    each = by_sex @ np.arange(1, K + 1)  # rows
    rows["sex"] = (np.arange(20_000) >= 20_000 * each[0] / each.sum()).astype(np.int64)
    rows["born"] = np.where(rows["sex"] == 0, 10, 90)
    of_born = np.zeros((len(axes[1].edges) - 1, K))
    edges = np.array(axes[1].edges)
    of_born[np.searchsorted(edges, 10, side="right") - 1] = by_sex[0]
    of_born[np.searchsorted(edges, 90, side="right") - 1] = by_sex[1]
    chances = found_sizes(axes, [exact(by_sex), exact(of_born)], rows).chances(rows)
    for sex in (0, 1):
        expected = by_sex[sex] * np.arange(1, K + 1) / (by_sex[sex] * np.arange(1, K + 1)).sum()
        assert chances[rows["sex"] == sex].mean(axis=0) == pytest.approx(expected, abs=1e-3)


def test_cells_with_fewer_units_than_noise_are_as_the_whole_table():
    rows = some_rows(np.random.default_rng(3), 1000)
    table = np.array([[900, 100, 0, 0], [0, 0, 0, 3]])
    chances = found_sizes([axis_of(SEX, rows["sex"])], [exact(table, 50.0)], rows).chances(rows)
    assert chances[rows["sex"] == 1].mean(axis=0)[3] < 0.1


def even(k: int) -> Distribution:
    """As many units of each size."""
    edges = size_edges(k)
    widths = np.diff(edges)
    return Distribution(edges, widths.astype(float), np.repeat(1 / widths, widths))


def as_units(block, columns, units: Distribution, chances, first, rng):
    """Rows in units, and how many rows units have."""
    size = sizes_drawn(units, len(chances), rng)
    group = np.searchsorted(units.edges, size) - 1
    wanted = np.bincount(group, size, len(units.units)).astype(np.int64)
    groups = groups_drawn(chances, wanted, rng)
    assert np.array_equal(np.bincount(groups, minlength=len(wanted)), wanted)
    by_group = [size[group == one] for one in range(len(wanted))]
    return grouped(block, columns, groups, by_group, "id", first, rng), size


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 300), seed=st.integers(0, 10**6), k=st.integers(1, 9))
def test_rows_are_all_there_and_a_unit_has_the_same_in_all_of_its(rows, seed, k):
    rng = np.random.default_rng(seed)
    block = some_rows(rng, rows)
    chances = rng.dirichlet(np.ones(len(size_edges(k)) - 1), rows)
    made, size = as_units(block, [SEX, BORN], even(k), chances, 7, rng)
    assert sorted(made["visit"]) == sorted(block["visit"])
    number, units = made["id"], len(size)
    assert sorted(set(number.tolist())) == list(range(7, 7 + units))
    assert (np.diff(number) >= 0).all()  # rows of a unit are one after the other
    assert sorted(np.bincount(number - 7)) == sorted(size)
    assert max(size) <= k
    pairs = set(zip(block["sex"].tolist(), block["born"].tolist(), strict=True))
    for unit in range(7, 7 + units):
        own = number == unit
        own_pairs = set(zip(made["sex"][own].tolist(), made["born"][own].tolist(), strict=True))
        assert len(own_pairs) == 1
        assert own_pairs <= pairs  # of one row: whatever holds of it and a unit's columns still does


@settings(max_examples=100, deadline=None)
@given(rows=st.integers(1, 500), seed=st.integers(0, 10**6), k=st.integers(1, 60))
def test_sizes_add_up_and_units_are_as_many_as_their_mean_says(rows, seed, k):
    rng = np.random.default_rng(seed)
    units = even(k)
    units = Distribution(units.edges, rng.dirichlet(np.full(len(units.units), 0.3)), units.inside)
    size = sizes_drawn(units, rows, rng)
    assert size.sum() == rows
    assert min(size) >= 1
    assert max(size) <= k
    assert abs(len(size) - rows / units.mean) <= 2 + k / units.mean


def test_rows_that_are_left_over_go_to_units_that_can_have_them():
    """Units of 2 to 4 and of 5 to 8 rows: there is none of one row, and as many of both."""
    units = Distribution((0, 1, 4, 8), np.array([0.0, 10, 10]), np.repeat([1.0, 1 / 3, 1 / 4], [1, 3, 4]))
    for rows in range(190, 230):
        size = sizes_drawn(units, rows, np.random.default_rng(rows))
        assert size.sum() == rows
        assert size.min() > 1
        assert abs((size > 4).sum() - (size <= 4).sum()) <= 1


def test_units_have_the_sizes_they_should_where_the_model_has_other_parts_of_a_column():
    """By the tables three rows of four are of M, in the model one of two."""
    rows = {"sex": np.repeat([0, 1], 1000)}
    table = np.array([[300, 100, 50, 50], [50, 150, 300, 500]])
    sizes = found_sizes([axis_of(SEX, rows["sex"])], [exact(table)], rows)
    whole = table.sum(axis=0) * np.arange(1, K + 1)
    assert sizes.chances(rows).mean(axis=0) == pytest.approx(whole / whole.sum(), abs=1e-4)
    chances = sizes.chances(rows)
    assert chances[rows["sex"] == 0, 0].mean() > 3 * chances[rows["sex"] == 1, 0].mean()


def test_no_unit_is_short_of_rows_because_few_have_its_size():
    """A hundred sizes, forty units: each has one of the sizes that there are, and no more units than that."""
    each = np.zeros(100)
    each[[0, 1, 2, 40, 60, 80, 97]] = [20, 10, 4, 1, 1, 2, 2]
    units = Distribution(tuple(range(101)), each, np.ones(100))
    rows = int(each @ np.arange(1, 101))
    rng = np.random.default_rng(3)
    chances = np.tile(each * np.arange(1, 101), (rows, 1))
    made, _ = as_units({"visit": rng.integers(0, 3, rows)}, [], units, chances, 0, rng)
    assert sorted(np.bincount(made["id"])) == sorted(np.repeat(np.arange(1, 101), each.astype(int)))


def test_rows_that_are_moved_to_another_group_are_those_that_fit_it():
    """Most are drawn for the first of three groups, which wants none: half can only be in the second then,
    half only in the third."""
    chances = np.repeat([[0.8, 0.2, 0], [0.8, 0, 0.2]], 500, axis=0)
    groups = groups_drawn(chances, np.array([0, 500, 500]), np.random.default_rng(1))
    assert (groups == np.repeat([1, 2], 500)).all()


def test_what_rows_say_beside_their_units_columns_stays():
    """Rows are put with rows like them: sex is never another, and a birth year moves by little."""
    rng = np.random.default_rng(5)
    block = some_rows(rng, 20_000)
    block["visit"] = block["sex"].copy()
    made, _ = as_units(block, [SEX, BORN], even(K), np.full((20_000, K), 1 / K), 0, rng)
    assert (made["visit"] == made["sex"]).mean() > 0.999
    assert (
        np.abs(np.bincount(made["born"], minlength=101) - np.bincount(block["born"], minlength=101)).max()
        < 60
    )


def test_a_model_with_units_numbers_them_through_all_blocks_and_draws_the_same_again():
    def draw(rows, rng):
        for start in range(0, rows, 700):
            yield some_rows(rng, min(700, rows - start))

    asked = []

    def answer(questions):
        asked.extend(questions)
        units = np.array([1000.0, 750, 500, 250])
        return [exact(np.tile(units / count, (count, 1))) for count in (2, 13)]

    model = with_units(Asking(answer, lambda q: 1.0), OMEGA, Model(5000, draw), Fraction(1, 20), "id")
    assert [type(question.statistic) for question in asked] == [UnitSizes, UnitSizes]
    assert sum(question.share for question in asked) == Fraction(1, 20)
    first, again = (list(model.draw(5000, np.random.default_rng(4))) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    number = np.concatenate([block["id"] for block in first])
    assert len(number) == 5000
    assert sorted(set(number.tolist())) == list(range(int(number.max()) + 1))
    assert model.facts["units"]["mean"] == pytest.approx(2.0, rel=0.01)
    assert list(model.draw(0, np.random.default_rng(4))) == []


def test_large_sizes_are_counted_together_and_the_largest_alone():
    rows = some_rows(np.random.default_rng(6), 2000)
    edges = size_edges(12)
    assert edges == (0, 1, 2, 3, 4, 6, 8, 11, 12)
    table = np.array([[0, 0, 0, 0, 100, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 50]])
    rows["sex"] = (np.arange(2000) >= 2000 * 550 / 1150).astype(np.int64)
    sizes = found_sizes([axis_of(SEX, rows["sex"])], [exact(table)], rows, edges)
    chances = sizes.chances(rows)
    assert chances[rows["sex"] == 1].mean(axis=0)[7] == pytest.approx(1)
    assert chances[rows["sex"] == 0].mean(axis=0)[4] == pytest.approx(1)
    assert sizes.units.inside[4:6] == pytest.approx([0.5, 0.5], abs=0.2)  # about as many units of each
