"""No unit of k rows moves a sum further than declared, and a worst case reaches it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.questions import Bins, Cells, Halves, Misfit, Question, Total, UnitSizes
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.checks import check_question
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.core.sensitivity import Sensitivity, is_free, sensitivity
from dpsynth_cli.trusted.core.shapes import lengths_of
from dpsynth_cli.trusted.sums.tally import Tally
from tests.trusted.core.test_sensitivity import (
    RELATIONS,
    SOME_ROWS,
    SOME_TABLES,
    distances,
    domain,
    every_row,
    largest,
    norms,
    row_scores,
    statistics,
    vectors,
)

K = 2


def unit_domain(d: int, neighbours: str, k: int = K):
    return replace(domain(d, neighbours), unit_rows=k)


def unit_moves(question: Question, omega, k: int) -> np.ndarray:
    """What each possible unit of at most k rows adds up to; under replace_one, less what each other does."""
    rows = vectors(question, omega)
    sums = [np.zeros_like(rows[0])]
    for size in range(1, k + 1):
        sums += [rows[list(own)].sum(axis=0) for own in combinations_with_replacement(range(len(rows)), size)]
    every = np.unique(np.array(sums), axis=0)
    if omega.neighbours == "add_remove":
        return every
    return (every[:, None, :] - every[None, :, :]).reshape(len(every) ** 2, -1)


# Every unit of two rows out of 16 (d = 1), or out of 64 where units only come and go.
CASES = [
    (name, d, neighbours, by)
    for d in (1, 2)
    for name in statistics(d)
    for neighbours in RELATIONS
    for by in (None, "k")
    if not (name == "own cells" and by is None) and not (d == 2 and neighbours == "replace_one")
]


@pytest.mark.parametrize(("name", "d", "neighbours", "by"), CASES)
def test_no_unit_moves_a_sum_further_and_a_worst_case_reaches_it(name, d, neighbours, by):
    omega = unit_domain(d, neighbours)
    question = Question("s", statistics(d)[name], Fraction(1), by)
    declared, moved = sensitivity(question, omega), unit_moves(question, omega, K)
    l1, l2_squared = norms(moved, declared, 2 if by else 1)
    assert l1 <= declared.l1
    assert l2_squared <= declared.l2_squared
    if declared.largest is not None:
        assert largest(moved, 2 if by else 1) <= declared.largest
    loose = "clipped" in name or (neighbours == "replace_one" and "with a nominal" in name)  # as for one row
    if not loose:
        assert l1 == declared.l1
        assert l2_squared == declared.l2_squared or (name, neighbours) == ("second moment", "replace_one")


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("by", [None, "k"])
def test_noise_for_one_row_would_be_seen(neighbours, by):
    """The broken twin prices a unit as a row: its worst case moves k times as far."""
    question = Question("s", statistics(1)["table"], Fraction(1), by)
    careless = sensitivity(question, domain(1, neighbours))
    l1, l2_squared = norms(unit_moves(question, unit_domain(1, neighbours), K), careless, 2 if by else 1)
    assert (l1, l2_squared) == (K * careless.l1, K**2 * careless.l2_squared)


def test_more_rows_than_are_priced_would_be_seen():
    """The broken twin does not truncate: a unit of three rows moves further than two are priced for."""
    question = Question("s", statistics(1)["table"], Fraction(1))
    omega = unit_domain(1, "add_remove", 2)
    l1, l2_squared = norms(unit_moves(question, omega, 3), sensitivity(question, omega), 1)
    assert l1 > sensitivity(question, omega).l1
    assert l2_squared > sensitivity(question, omega).l2_squared


@given(st.data(), SOME_TABLES, SOME_ROWS, st.sampled_from(RELATIONS), st.sampled_from([None, "k"]))
@settings(max_examples=150, deadline=None)
def test_no_unit_moves_a_misfit_further_whatever_the_others_are(data, tables, rows, neighbours, by):
    k = 3
    omega = unit_domain(2, neighbours, k)
    expected = tuple(
        tuple(
            data.draw(st.tuples(*[st.integers(-2, 4)] * int(np.prod([axes_cells(a) for a in part.axes]))))
            for part in tables
        )
        for _ in range(2 if by else 1)
    )
    question = Question("s", Misfit(tables, expected), Fraction(1), by)
    declared = sensitivity(question, omega)
    units = st.lists(st.sampled_from([tuple(row.values()) for row in every_row(omega)]), max_size=k)
    one, other = data.draw(units), data.draw(units) if neighbours == "replace_one" else []
    moved = (distances(question, omega, rows + one) - distances(question, omega, rows + other)).astype(object)
    assert np.abs(moved).sum() <= declared.l1
    assert (moved**2).sum() <= declared.l2_squared


def axes_cells(axis) -> int:
    return 2**axis.bits if hasattr(axis, "bits") else len(axis.edges) - 1


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("k", [1, 4])
def test_a_worst_case_reaches_the_sensitivity_of_a_misfit(neighbours, k):
    """Cell 0 of each table has k rows too many, cell 1 k too few."""
    m = 3
    tables, expected = (Cells((Bins("c0", (0, 1, 4)),)),) * m, (((1, k),) * m,)
    omega = unit_domain(2, neighbours, k)
    question = Question("s", Misfit(tables, expected), Fraction(1))
    before = distances(question, omega, [(0, 0, 0, 0)] * (k + 1))
    after = [(0, 0, 0, 0)] + ([(1, 0, 0, 0)] * k if neighbours == "replace_one" else [])
    moved, declared = distances(question, omega, after) - before, sensitivity(question, omega)
    assert norms(moved[None], declared, 1) == (declared.l1, declared.l2_squared)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_number_of_rows_is_never_free_and_moves_by_k(neighbours):
    """Under replace_one too: a unit may be replaced by one of fewer rows."""
    omega, total = unit_domain(1, neighbours, 5), Question("n", Total(), Fraction(1))
    assert not is_free(total, omega)
    assert not omega.rows_public
    assert sensitivity(total, omega) == Sensitivity(5, 25)
    assert unit_moves(total, unit_domain(1, neighbours), K).max() == K
    assert charge_for(total, omega, Accountant.pure(Fraction(1))).price.parameter == 5


def test_row_scores_are_refused_for_units():
    with pytest.raises(ValueError, match="not by class or for units"):
        check_question(row_scores(2, [[1, 1]], 4), unit_domain(2, "replace_one"))


def test_the_noise_of_a_unit_is_that_of_k_rows():
    """Pure epsilon: the scale is k times as large; with a delta the variance k^2 times."""
    question = Question("s", statistics(1)["table"], Fraction(1))
    for neighbours in RELATIONS:
        one, five = domain(1, neighbours), unit_domain(1, neighbours, 5)
        pure, gaussian = Accountant.pure(Fraction(1)), Accountant.gaussian(Fraction(1), Fraction(1, 10**6))
        assert (
            charge_for(question, five, pure).price.parameter
            == 5 * charge_for(question, one, pure).price.parameter
        )
        ratio = (
            charge_for(question, five, gaussian).price.parameter
            / charge_for(question, one, gaussian).price.parameter
        )
        assert abs(ratio - 25) < Fraction(1, 10**12)


def test_sizes_of_units_are_asked_of_units_only():
    asked = Question("s", UnitSizes(Cells((Bins("c0", (0, 1, 4)),))), Fraction(1))
    check_question(asked, unit_domain(1, "add_remove", 5))
    assert sum(lengths_of(asked, unit_domain(1, "add_remove", 5))) == 2 * 5
    # One unit is in one cell at one size, whatever k is; one that is replaced leaves it for another.
    assert sensitivity(asked, unit_domain(1, "add_remove", 5)) == Sensitivity(1, 1)
    assert sensitivity(asked, unit_domain(1, "replace_one", 5)) == Sensitivity(2, 2)
    for wrong in (
        replace(asked, by="k"),
        replace(asked, statistic=UnitSizes(Cells((Halves("c0", 1),), (0,)))),
    ):
        with pytest.raises(ValueError, match="sizes are of units"):
            check_question(wrong, unit_domain(1, "add_remove", 5))
    with pytest.raises(ValueError, match="sizes are of units"):
        check_question(asked, domain(1, "add_remove"))
    with pytest.raises(ValueError, match="a table of their own"):
        Tally([asked], unit_domain(1, "add_remove", 5))
