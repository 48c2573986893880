"""Small worlds, exhaustively: no output of any question tells two neighbours apart better than its price
says.

Exact sums, prices and noise are those of the tool. The probability of an output under each of two
neighbours is a product of enumerated probabilities of the noise, and their ratio is e^(k / scale) for an
integer k: to compare it with e^epsilon is to compare fractions, where no enclosure of e could tell "equal"
from "above".
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from functools import cache, lru_cache
from itertools import product
from math import prod

import numpy as np
import pytest

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Bins, CellCounts, Cells, Moments, Question, Total, UnitSizes
from dpsynth_cli.trusted.core import curator, prices
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.prices import Charge, charge_for
from dpsynth_cli.trusted.core.sensitivity import is_free
from dpsynth_cli.trusted.sums.unit_sums import counted, unit_domain
from tests.enumeration.bases import Rational
from tests.enumeration.test_noise import laplace_paths
from tests.enumeration.worlds import (
    LABEL,
    NUMBER,
    RELATIONS,
    drawn,
    every_table,
    moves,
    neighbouring,
    statistics,
    sums,
    world,
)

R = F(2, 5)  # stands for e^(-1/scale)
TABLES = every_table(world("add_remove"))
CASES = [(name, relation, by) for relation in RELATIONS for by in (None, "k") for name in statistics(by)]

# Everywhere else a worst case among these tables reaches the price. Clipped integer rows do not lie on the
# sphere, and a number and a category cannot both move as far as two numbers.
LOOSE_L1 = {"Moments 1, clipped", "Moments 2, clipped", ("Moments 2, two columns", "replace_one", None)}
LOOSE_L2 = {("Moments 1, two columns", "replace_one", None), ("Moments 1, two columns", "replace_one", "k")}
LOOSE_L2 |= {("Moments 1, clipped", "replace_one", by) for by in (None, "k")}
LOOSE_L2 |= {("Moments 2, two columns", "replace_one", None), ("Moments 1, about", "replace_one", "k")}


@cache
def moved_by(name: str, neighbours: str, by: str | None, unit: int | None = None) -> np.ndarray:
    question = Question("s", statistics(by)[name], F(1), by)
    return moves(question, world(neighbours, unit), TABLES)


@lru_cache(maxsize=64)
def laplace(scale: F) -> dict[int, F]:
    """The enumerated probabilities at a scale, with R for e^(-1/scale)."""
    found = laplace_paths(scale, Rational(R, 1 / scale))
    largest = max(x for (x,) in found) - 1
    return {x: found[(x,)][0] for x in range(-largest, largest + 1)}


def most_likely(pmf: dict[int, F], moved: int) -> F:
    """The largest P(x) / P(x + moved) over all x: beyond the window it is constant, since both fall by R."""
    return max(pmf[x] / pmf[x + moved] for x in range(-abs(moved) - 2, 3))


@pytest.mark.parametrize(("name", "neighbours", "by"), CASES)
def test_laplace_noise_keeps_every_ratio_below_e_to_the_epsilon(name, neighbours, by):
    omega = world(neighbours)
    question = Question("s", statistics(by)[name], F(2, 3), by)
    budget = Accountant.pure(F(6))
    charge = charge_for(question, omega, budget)
    moved = moved_by(name, neighbours, by)
    if is_free(question, omega):
        assert not moved.any()
        return
    assert charge.price.noise == "discrete_laplace"
    (draw,) = drawn(charge, omega)
    assert draw.places == tuple(range(moved.shape[1]))  # every integer, of empty cells and classes too
    pmf = laplace(draw.parameter)
    ratios = {int(d): most_likely(pmf, int(d)) for d in np.unique(moved)}
    largest = max(prod(ratios[int(d)] for d in row if d) for row in moved)
    claimed = (1 / R) ** (charge.price.cost * draw.parameter)  # e^cost
    assert charge.price.cost == F(4)
    assert largest <= claimed
    assert (largest == claimed) == LOOSE_L1.isdisjoint([name, (name, neighbours, by)])


# Where the price takes noise from a cube: not for second moments of one class under replace_one.
CUBES = [
    (degree, clip, neighbours, by)
    for degree in (1, 2)
    for clip in (None, F(3, 2))
    for neighbours in RELATIONS
    for by in (None, "k")
    if (degree, clip, neighbours, by) != (2, None, "replace_one", None)
]


@pytest.mark.parametrize(("degree", "clip", "neighbours", "by"), CUBES)
def test_cube_noise_keeps_every_ratio_below_e_to_the_epsilon(degree, clip, neighbours, by):
    """All outputs of a box: of each block the ratio is e^((max|o - b| - max|o - a|) / scale). The largest
    is at o = a."""
    omega = Domain((NUMBER, replace(NUMBER, name="y", nullable=False), LABEL), neighbours)
    question = Question("s", Moments(("x", "y"), 3, degree, clip), F(1), by)
    charge = charge_for(question, omega, Accountant.pure(F(1, 60)))
    assert charge.price.noise == "discrete_cube"
    blocks = drawn(charge, omega)
    assert sorted(i for block in blocks for i in block.places) == list(range(sum(charge.lengths)))
    assert [len(block.places) for block in blocks] == list(charge.lengths)
    moved = moves(question, omega, TABLES)
    furthest = np.zeros(len(moved), np.int64)
    for block in blocks:
        own = moved[:, list(block.places)]
        few, back = np.unique(own, axis=0, return_inverse=True)
        outputs = np.array(list(product(*[(-2, 0, 1)] * own.shape[1])))
        best = []
        for d in few:  # the first table's sums are 0, the second's d
            at = np.concatenate([outputs, outputs + d])
            best.append(int((np.abs(at - d).max(axis=1) - np.abs(at).max(axis=1)).max()))
            assert best[-1] == np.abs(d).max()
        furthest += np.array(best)[back.reshape(-1)]
    (scale,) = {block.parameter for block in blocks}
    assert furthest.max() / scale <= charge.price.cost == F(1, 60)
    assert clip or furthest.max() / scale == charge.price.cost


def mu_squared(charge: Charge, omega: Domain, moved: np.ndarray) -> F:
    """The largest squared move, each integer in units of the variance that it really gets."""
    draws = drawn(charge, omega)
    assert sorted(i for draw in draws for i in draw.places) == list(range(moved.shape[1]))
    variance = {i: draw.parameter for draw in draws for i in draw.places}
    parts = {
        own: np.array([variance[i] == own for i in range(moved.shape[1])]) for own in set(variance.values())
    }
    squares = {own: (moved[:, here].astype(object) ** 2).sum(axis=1) for own, here in parts.items()}
    return max(sum(F(squares[own][row]) / own for own in parts) for row in range(len(moved)))


@pytest.mark.parametrize(("name", "neighbours", "by"), CASES)
def test_gaussian_noise_costs_no_more_than_its_rho(name, neighbours, by):
    """The squared lengths of all moves, each integer in units of the variance that it really got: at most 2
    rho."""
    omega = world(neighbours)
    question = Question("s", statistics(by)[name], F(2, 3), by)
    charge = charge_for(question, omega, Accountant.gaussian(F(4), F(1, 1000)))
    moved = moved_by(name, neighbours, by)
    if is_free(question, omega):
        assert not moved.any()
        return
    largest = mu_squared(charge, omega, moved)
    assert largest <= 2 * charge.price.cost
    reached = largest > 2 * charge.price.cost * (1 - F(1, 2**50))  # but for the variance's last bit
    assert reached == ((name, neighbours, by) not in LOOSE_L2)


# --- units of two rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "neighbours", "by"), CASES)
def test_units_of_two_rows_cost_no_more_than_their_price(name, neighbours, by):
    """All units of one or two rows that come, go, or are replaced by one of as many rows, or of fewer:
    nothing is free."""
    omega, moved = world(neighbours, 2), moved_by(name, neighbours, by, 2)
    question = Question("s", statistics(by)[name], F(2, 3), by)
    pure, gaussian = (
        charge_for(question, omega, budget)
        for budget in (Accountant.pure(F(3, 2)), Accountant.gaussian(F(4), F(1, 1000)))
    )
    (draw,) = drawn(pure, omega)
    largest = np.abs(moved).sum(axis=1).max()
    assert 0 < largest / draw.parameter <= pure.price.cost
    assert 0 < mu_squared(gaussian, omega, moved) <= 2 * gaussian.price.cost
    if neighbours == "add_remove" and name not in LOOSE_L1:  # all rows of a unit may be alike
        assert largest / draw.parameter == pure.price.cost


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_how_many_rows_units_have_costs_no_more_than_one_unit(neighbours):
    """A table of units has one row a unit: its cell, and how many rows it has."""
    omega = Domain((NUMBER, LABEL), neighbours, unit_rows=2)
    question = Question("s", UnitSizes(Cells((Bins("x", (0, 1, 2, 3)),)), (0, 1, 2)), F(1))
    charge = charge_for(question, omega, Accountant.pure(F(1)))
    of_units = replace(unit_domain(omega), unit_rows=None)
    moved = moves(counted(question), of_units, every_table(of_units, 2))
    assert np.abs(moved).sum(axis=1).max() / drawn(charge, omega)[0].parameter == charge.price.cost


# --- several questions, the later ones chosen by the answers --------------------------------------------


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_questions_and_shares_chosen_by_answers_keep_the_total(neighbours):
    """Every first answer decides which question is next and what share it has; ratios of a path multiply."""
    omega = world(neighbours)
    budget = Accountant.pure(F(2))
    largest = F(0)
    first = Question("first", Total(), F(1, 3), "k")
    moved = moves_of_pairs(first, omega)
    for answer in product(range(-1, 3), repeat=2):
        column, share = ("x", F(2, 3)) if answer[0] > answer[1] else ("e", F(1, 2))
        then = Question(
            "then", CellCounts(Cells((Bins(column, tuple(range(omega[column].codes + 1))),))), share
        )
        bill = Bill(omega, Accountant.pure(budget.total))
        (one,), (two,) = (bill.charge([question])[0] for question in (first, then))
        assert bill.accountant.spent <= budget.total
        spent = [np.abs(m).sum(axis=1) for m in (moved, moves_of_pairs(then, omega))]
        scales = [drawn(charge, omega)[0].parameter for charge in (one, two)]
        largest = max(
            largest,
            max(a / scales[0] + b / scales[1] for a, b in zip(*(s.tolist() for s in spent), strict=True)),
        )
    assert largest == budget.total


def moves_of_pairs(question: Question, omega: Domain) -> np.ndarray:
    """The moves of one question, a row for each pair of neighbours: so that two questions are about the
    same pair."""
    answers = sums(question, omega, TABLES)
    return np.array([answers[b] - answers[a] for a, b in neighbouring(TABLES, omega.neighbours)])


# --- the enumeration can fail ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CellCounts", "Misfit", "Gram"])
def test_a_price_that_forgets_the_second_cell_would_be_seen(monkeypatch, name):
    """replace_one priced as add_remove."""
    right = prices.sensitivity
    omega = world("replace_one")
    monkeypatch.setattr(prices, "sensitivity", lambda question, _: right(question, world("add_remove")))
    prices._priced_before.cache_clear()
    question = Question("s", statistics(None)[name], F(1))
    charge = charge_for(question, omega, Accountant.pure(F(1)))
    prices._priced_before.cache_clear()
    largest = max(np.abs(row).sum() for row in moves(question, omega, TABLES))
    assert largest / drawn(charge, omega)[0].parameter > charge.price.cost


def test_a_unit_of_two_rows_at_the_price_of_one_would_be_seen():
    omega = world("add_remove")
    question = Question("s", statistics(None)["CellCounts"], F(1))
    charge = charge_for(question, omega, Accountant.pure(F(1)))
    largest = max(np.abs(row).sum() for row in moves(question, omega, TABLES, unit=2))
    assert largest / drawn(charge, omega)[0].parameter == 2 * charge.price.cost


def test_empty_cells_without_noise_would_be_seen(monkeypatch):
    right = curator.noise_for
    monkeypatch.setattr(
        curator, "noise_for", lambda *words: np.where(np.arange(sum(words[0].lengths)) == 1, 0, right(*words))
    )
    omega = world("add_remove")
    charge = charge_for(Question("s", statistics(None)["CellCounts"], F(1)), omega, Accountant.pure(F(1)))
    (draw,) = drawn(charge, omega)
    assert draw.places != tuple(range(sum(charge.lengths)))
