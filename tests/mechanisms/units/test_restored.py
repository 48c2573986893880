"""Rows of a model as units: sizes agree with the tables, columns of a unit are the same in its rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.units.grouping import grouped, sizes_drawn
from dpsynth_cli.mechanisms.units.restored import with_units
from dpsynth_cli.mechanisms.units.sizes import axis_of, sizes_of
from dpsynth_cli.questions import Answer, Asking, Model, UnitSizes

SEX = Column("sex", "nominal", categories=("F", "M"), of="unit")
BORN = Column("born", "integer", lower=1900, upper=1999, nullable=True, of="unit")
VISIT = Column("visit", "ordinal", categories=("a", "b", "c"))
K = 4
OMEGA = Domain((SEX, BORN, VISIT), unit_rows=K)


def exact(counts: np.ndarray, sd: float = 0.0) -> Answer:
    values = np.rint(counts).astype(np.int64).ravel()
    return Answer(values, (len(values),), "discrete_laplace", sd)


def some_rows(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    sex = rng.integers(0, 2, rows)
    born = np.where(rng.random(rows) < 0.05, 100, rng.integers(0, 50, rows) + 50 * sex)  # linked to sex
    return {"sex": sex, "born": born, "visit": rng.integers(0, 3, rows)}


def test_sizes_agree_with_a_table_that_has_no_noise():
    """Of one column: rows of F are in units of 1 and 2, rows of M in units of 4."""
    rows = some_rows(np.random.default_rng(1), 3000)
    table = np.array([[300, 100, 0, 0], [0, 0, 0, 250]])
    sizes = sizes_of([axis_of(SEX, rows["sex"])], [exact(table)], rows, K)
    chances = sizes.chances(rows)
    assert chances[rows["sex"] == 0].mean(axis=0) == pytest.approx([0.6, 0.4, 0, 0], abs=1e-6)
    assert chances[rows["sex"] == 1].mean(axis=0) == pytest.approx([0, 0, 0, 1], abs=1e-6)
    assert sizes.units == pytest.approx(np.array([300, 100, 0, 250]) / 650)


def test_two_linked_columns_are_not_counted_twice():
    """Both tables say the same of the same rows: multiplying what they say would square it."""
    rng = np.random.default_rng(2)
    rows = some_rows(rng, 20_000)
    rows["born"] = np.where(rows["sex"] == 0, 10, 90)
    axes = [axis_of(SEX, rows["sex"]), axis_of(BORN, rows["born"])]
    by_sex = np.array([[600, 200, 100, 50], [200, 300, 300, 400]])
    of_born = np.zeros((len(axes[1].edges) - 1, K))
    edges = np.array(axes[1].edges)
    of_born[np.searchsorted(edges, 10, side="right") - 1] = by_sex[0]
    of_born[np.searchsorted(edges, 90, side="right") - 1] = by_sex[1]
    chances = sizes_of(axes, [exact(by_sex), exact(of_born)], rows, K).chances(rows)
    for sex in (0, 1):
        expected = by_sex[sex] * np.arange(1, K + 1) / (by_sex[sex] * np.arange(1, K + 1)).sum()
        assert chances[rows["sex"] == sex].mean(axis=0) == pytest.approx(expected, abs=1e-3)


def test_cells_with_fewer_units_than_noise_are_as_the_whole_table():
    rows = some_rows(np.random.default_rng(3), 1000)
    table = np.array([[900, 100, 0, 0], [0, 0, 0, 3]])
    chances = sizes_of([axis_of(SEX, rows["sex"])], [exact(table, 50.0)], rows, K).chances(rows)
    assert chances[rows["sex"] == 1].mean(axis=0)[3] < 0.1


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(0, 300), seed=st.integers(0, 10**6), k=st.integers(1, 9))
def test_rows_are_all_there_and_a_unit_has_the_same_in_all_of_its(rows, seed, k):
    rng = np.random.default_rng(seed)
    block = some_rows(rng, rows)
    size = sizes_drawn(rng.dirichlet(np.ones(k), rows), rng)
    made, units = grouped(block, [SEX, BORN], size, "id", 7, rng)
    assert sorted(made["visit"]) == sorted(block["visit"])
    number = made["id"]
    assert sorted(set(number.tolist())) == list(range(7, 7 + units))
    assert (np.diff(number) >= 0).all()  # rows of a unit are one after the other
    assert np.bincount(number - 7).max(initial=0) <= k
    pairs = set(zip(block["sex"].tolist(), block["born"].tolist(), strict=True))
    for unit in range(7, 7 + units):
        own = number == unit
        own_pairs = set(zip(made["sex"][own].tolist(), made["born"][own].tolist(), strict=True))
        assert len(own_pairs) == 1
        assert own_pairs <= pairs  # of one row: whatever holds of it and a unit's columns still does


def test_what_rows_say_beside_their_units_columns_stays():
    """Rows are put with rows like them: sex is never another, and a birth year moves by little."""
    rng = np.random.default_rng(5)
    block = some_rows(rng, 20_000)
    block["visit"] = block["sex"].copy()
    made, _ = grouped(block, [SEX, BORN], sizes_drawn(np.full((20_000, K), 1 / K), rng), "id", 0, rng)
    assert (made["visit"] == made["sex"]).all()
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
        return [exact(np.tile([40.0, 30.0, 20.0, 10.0], (count, 1))) for count in (2, 13)]

    model = with_units(Asking(answer, lambda q: 1.0), OMEGA, Model(5000, draw), Fraction(1, 20), "id")
    assert [type(question.statistic) for question in asked] == [UnitSizes, UnitSizes]
    assert sum(question.share for question in asked) == Fraction(1, 20)
    first, again = (list(model.draw(5000, np.random.default_rng(4))) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    number = np.concatenate([block["id"] for block in first])
    assert len(number) == 5000
    assert sorted(set(number.tolist())) == list(range(int(number.max()) + 1))
    assert model.facts["units"]["mean"] == pytest.approx(2.0)
    assert list(model.draw(0, np.random.default_rng(4))) == []
