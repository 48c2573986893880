"""Labels above a threshold, in small worlds, exactly: all tables of up to three rows over two labels.

The probability of every answer follows from the exact probabilities of the noise (`gaussian_profile.py`).
Two neighbours are told apart with at most the delta of Gaussian noise of the question's rho, at every
epsilon, and the delta of the threshold.
"""

from __future__ import annotations

from fractions import Fraction as F
from itertools import combinations_with_replacement, product

import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import OpenLabels, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.gaussian import delta_above
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.core.threshold import threshold
from tests.enumeration.bases import exp_enclosed
from tests.enumeration.gaussian_profile import rounded_pmf

DELTA, APART = F(1, 100), F(1, 50)
OPEN = Column("city", "nominal", categories=("rest",), other="rest", private=True, open=True)
RELATIONS = ("add_remove", "replace_one")


def charged(neighbours: str, unit_rows: int | None = None):
    omega = Domain((OPEN,), neighbours, unit_rows=unit_rows)
    question = Question("domain", OpenLabels("city", APART), F(1, 3))
    return charge_for(question, omega, Accountant.gaussian(F(2), DELTA + APART, APART))


def shown(count: int, sigma2: F, reached: int) -> dict[int | None, tuple[F, F]]:
    """What is shown of a label with so many rows, and with which probability, at least and at most: its noisy
    count, or nothing. Beyond the window is one more answer."""
    if count == 0:
        return {None: (F(1), F(1))}
    pmf, beyond = rounded_pmf(sigma2)
    found: dict[int | None, tuple[F, F]] = {}
    for x, (low, high) in pmf.items():
        at = count + x if count + x >= reached else None
        before = found.get(at, (F(0), F(0)))
        found[at] = before[0] + low, before[1] + high
    found[-1] = F(0), beyond
    return found


def apart_by(one: tuple[int, ...], other: tuple[int, ...], sigma2: F, reached: int, epsilon: F) -> F:
    """Not less than the largest P(S) - e^epsilon Q(S) over sets S of answers."""
    p, q = ([shown(count, sigma2, reached) for count in counts] for counts in (one, other))
    factor, none = exp_enclosed(epsilon)[0], (F(0), F(0))
    return sum(
        max(F(0), p[0][a][1] * p[1][b][1] - factor * q[0].get(a, none)[0] * q[1].get(b, none)[0])
        for a, b in product(p[0], p[1])
    )


def counts_of(table: tuple[str, ...]) -> tuple[int, int]:
    return table.count("a"), table.count("b")


def neighbouring(neighbours: str) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """The counts of labels of all pairs of neighbours, in both directions."""
    found = set()
    for n in range(3):
        for rest in combinations_with_replacement(("a", "b", ""), n):
            ends = [(*rest, row) for row in ("a", "b", "")]
            others = [rest] if neighbours == "add_remove" else ends
            for one, other in product(ends, others):
                found |= {(counts_of(one), counts_of(other)), (counts_of(other), counts_of(one))}
    return {(one, other) for one, other in found if one != other}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
def test_no_two_neighbours_are_told_apart_better_than_the_price_says(neighbours, epsilon):
    price = charged(neighbours).price
    claimed = F(delta_above(price.cost, epsilon)) + APART
    for one, other in neighbouring(neighbours):
        assert apart_by(one, other, price.parameter, price.threshold, epsilon) <= claimed


def test_a_lower_threshold_would_be_seen():
    """At a large epsilon nothing but the new label tells two tables apart, and its threshold is the least."""
    price, epsilon = charged("add_remove").price, F(40)
    pairs = [((1, 0), (0, 0)), ((1, 2), (0, 2))]
    claimed = F(delta_above(price.cost, epsilon)) + APART
    for one, other in pairs:
        assert APART / 4 < apart_by(one, other, price.parameter, price.threshold, epsilon) <= claimed
        assert apart_by(one, other, price.parameter, price.threshold - 1, epsilon) > claimed


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_a_worst_case_reaches_the_sensitivity(neighbours):
    """Of a unit one label is counted, however many rows it has."""
    squares = {
        sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for one, other in neighbouring(neighbours)
    }
    for unit_rows in (None, 5):
        charge = charged(neighbours, unit_rows)
        assert charge.sensitivity.l2_squared == max(squares)
        assert 0 <= charge.price.parameter - max(squares) / (2 * charge.price.cost) < F(1, 2**40)


@pytest.mark.parametrize("sigma2", [F(1, 4), F(3), F(100)])
@pytest.mark.parametrize("delta", [F(1, 10), F(1, 1000), F(1, 10**9)])
def test_the_threshold_is_the_least_that_the_noise_itself_allows_but_for_one(sigma2, delta):
    """By the enumerated noise: a label of one row reaches it with probability at most delta, and would reach
    one that is lower by two with more."""
    reached = threshold(sigma2, delta)
    pmf, beyond = rounded_pmf(sigma2)

    def chance(at: int, side: int) -> F:
        return sum((own[side] for x, own in pmf.items() if 1 + x >= at), F(0))

    assert chance(reached, 1) + beyond <= delta
    assert chance(reached - 2, 0) > delta
