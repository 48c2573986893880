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
from functools import lru_cache
from itertools import permutations, product
from math import prod

import numpy as np
import pytest

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Bins, CellCounts, Cells, Moments, Question, RowScores, Total
from dpsynth_cli.trusted.core import curator, prices
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.core.sensitivity import is_free
from tests.enumeration.bases import Rational, exp_enclosed
from tests.enumeration.gaussian_profile import delta_at_most, gaussian_delta, renyi_at_most, rounded_pmf
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
LOOSE_L2 |= {("Moments 2, two columns", "replace_one", None)}


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
    budget = Accountant.pure(F(3, 2))
    charge = charge_for(question, omega, budget)
    moved = moves(question, omega, TABLES)
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
    assert charge.price.cost == F(1)
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


@pytest.mark.parametrize(("name", "neighbours", "by"), CASES)
def test_gaussian_noise_costs_no_more_than_its_rho(name, neighbours, by):
    """The squared lengths of all moves, each integer in units of the variance that it really got: at most 2
    rho."""
    omega = world(neighbours)
    question = Question("s", statistics(by)[name], F(2, 3), by)
    charge = charge_for(question, omega, Accountant.gaussian(F(4), F(1, 1000)))
    moved = moves(question, omega, TABLES)
    if is_free(question, omega):
        assert not moved.any()
        return
    draws = drawn(charge, omega)
    assert sorted(i for draw in draws for i in draw.places) == list(range(moved.shape[1]))
    variance = [F(0)] * moved.shape[1]
    for draw in draws:
        for i in draw.places:
            variance[i] = draw.parameter
    largest = max(sum(F(int(d) ** 2) / variance[i] for i, d in enumerate(row) if d) for row in moved)
    assert largest <= 2 * charge.price.cost
    reached = largest > 2 * charge.price.cost * (1 - F(1, 2**50))  # but for the variance's last bit
    assert reached == ((name, neighbours, by) not in LOOSE_L2)


# --- rounded Gaussian noise: the exact profile ----------------------------------------------------------


@pytest.mark.parametrize("moved", [(1,), (2,), (3,), (1, -1), (2, 1)])
@pytest.mark.parametrize("sigma2", [F(1, 2), F(3, 2)])
def test_the_exact_delta_is_never_above_that_of_gaussian_noise(sigma2, moved):
    mu_squared = sum(d * d for d in moved) / sigma2
    for epsilon in (F(0), F(1, 4), F(1), F(5, 2), F(6)):
        assert delta_at_most(epsilon, moved, [sigma2] * len(moved)) <= gaussian_delta(epsilon, mu_squared)


@pytest.mark.parametrize("sigma2", [F(1, 2), F(3, 2), F(9)])
def test_the_exact_renyi_divergence_is_never_above_that_of_gaussian_noise(sigma2):
    """exp(alpha (alpha - 1) d^2 / (2 sigma2)); it adds up over the numbers of an answer, so that any will
    do."""
    for alpha, d in product((2, 3, 5), (1, 2, 4)):
        assert renyi_at_most(alpha, d, sigma2) <= exp_enclosed(alpha * (alpha - 1) * d * d / (2 * sigma2))[0]


def test_a_discrete_gaussian_on_the_integers_would_be_seen():
    """What other libraries draw is no N(0, sigma2): its delta is larger."""
    on_integers = lambda sigma2: rounded_pmf(sigma2, 0, 0)  # noqa: E731
    epsilon, sigma2 = F(1), F(1)
    assert delta_at_most(epsilon, (1,), [sigma2], on_integers) > F(11, 10) * gaussian_delta(epsilon, F(1))


# --- answers that are no sums: rows in a secret order ---------------------------------------------------


@pytest.mark.parametrize("weights", [((1,),), ((1,), (-1,))])
def test_rows_in_a_secret_order_keep_every_ratio_below_e_to_the_epsilon(weights):
    omega = Domain((NUMBER,), "replace_one")
    tables = [table for table in every_table(omega, 2) if len(table) == 2]
    scored = RowScores((Bins("x", (0, 1, 2, 3)),), ((-1, 1, 0),), weights, len(weights), 2)
    question = Question("s", scored, F(1))
    charge = charge_for(question, omega, Accountant.pure(F(1)))
    (draw,) = drawn(charge, omega)
    pmf, r = laplace(draw.parameter), len(weights)
    rows = [answer.reshape(2, r) for answer in sums(question, omega, tables)]
    outputs = list(product(range(-2, 3), repeat=2 * r))

    def likelihood(table: np.ndarray, output: tuple[int, ...]) -> F:
        """Every order alike: `test_rows_in_a_secret_order_are_in_every_order_alike`."""
        orders = [table[list(order)].ravel().tolist() for order in permutations(range(2))]
        return sum(prod(pmf[o - s] for o, s in zip(output, order, strict=True)) for order in orders) / len(
            orders
        )

    claimed = (1 / R) ** (charge.price.cost * draw.parameter)
    every = [[likelihood(table, output) for output in outputs] for table in rows]
    numbers = {table: i for i, table in enumerate(tables)}
    pairs = [(numbers[a], numbers[b]) for a, b in product(tables, repeat=2) if a != b and (set(a) & set(b))]
    largest = max(p / q for a, b in pairs for p, q in zip(every[a], every[b], strict=True))
    assert 1 < largest <= claimed


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
