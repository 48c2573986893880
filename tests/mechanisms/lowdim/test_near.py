"""Sums about private means: what is asked has room for its noise, whatever the budget and the bound are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.lowdim.lowdim import MECHANISM, Params
from dpsynth_cli.questions import Centres, Distance, Moments, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.sensitivity import sensitivity
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.sums.tally import Tally
from tests.asking import asking

D = 5
BOX = tuple(Column(f"c{i}", "continuous", lower=0.0, upper=1.0) for i in range(D))


def drawn(omega: Domain, rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {column.name: rng.integers(0, column.size, rows) for column in omega}


class Often:
    """2,000 rows, 5,000 times each."""

    def __init__(self, omega: Domain) -> None:
        self.omega, self.rows = omega, drawn(omega, 2000)

    def sums(self, questions):
        tally = Tally(questions, self.omega)
        tally.add(self.rows, 2000)
        return [one * 5000 for one in tally.sums()]


# Bits of a coordinate are chosen for a share; a part of it has more noise, which may not fit beside as many.
@pytest.mark.parametrize("epsilon", ["1e-4", "5e-4", "7e-4", "1e-3", "1.4e-3", "3e-3"])
def test_parts_of_a_share_have_room_for_their_noise(epsilon):
    omega = Domain((*BOX, Column("k", "nominal", categories=("u", "v"))), strata="k")
    accountant = Accountant.pure(Fraction(epsilon))
    ask = open_curator(Often(omega), Bill(omega, accountant), system_source(), InMemory())
    MECHANISM.run(ask, omega, Params(), MECHANISM.stages)
    assert accountant.spent == accountant.total


@pytest.mark.parametrize(("delta", "epsilon", "more"), [(1e-9, 1, {}), (None, 1e-4, {"dimension": 1})])
def test_a_bound_that_is_no_bound_costs_little(delta, epsilon, more):
    omega = Domain(BOX)
    noise = {}
    for clip in (5.0, 1000.0):
        ask, accountant, bill, _ = asking(drawn(omega, 20_000), omega, epsilon, delta)
        MECHANISM.run(ask, omega, Params(clip=clip, **more), MECHANISM.stages)
        assert accountant.spent == accountant.total
        noise[clip] = {
            c.question.step: c.price.sd / (2 * (2**m.bits - 1)) ** m.degree
            for c in bill
            if isinstance(m := c.question.statistic, Moments)
        }
    assert noise[1000.0].keys() == noise[5.0].keys()
    assert all(noise[1000.0][step] < 3 * noise[5.0][step] for step in noise[5.0])


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("degree", [1, 2])
def test_no_bound_makes_a_row_larger_than_the_box(norm, degree):
    omega, bits = Domain(BOX), 5
    q = 2**bits - 1
    corner = Centres(((-q,) * D,), None)  # the row at the other corner is 2 q away in each coordinate
    names = tuple(column.name for column in omega)
    statistic = Moments(names, bits, degree, Fraction(1000), corner, norm)
    found = sensitivity(Question("any", statistic, Fraction(1)), omega)
    w = np.full(D, 2 * q)
    assert found.l1 == (w.sum() if degree == 1 else np.outer(w, w)[np.triu_indices(D)].sum())
    square = (w**2).sum() if degree == 1 else (np.outer(w, w) ** 2).sum()
    assert found.l2_squared == square if norm == 2 else found.l2_squared >= square


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_edges_of_distances_end_at_the_furthest_row_that_there_can_be(delta):
    omega = Domain(tuple(Column(f"c{i}", "continuous", lower=0.0, upper=1.0) for i in range(20)))
    _, _, bill, _ = found = asking(drawn(omega, 5000), omega, 2.0, delta)
    MECHANISM.run(found[0], omega, Params(), MECHANISM.stages)
    axes = [axis for c in bill for axis in axes_of(c.question.statistic) if isinstance(axis, Distance)]
    assert axes
    for axis in axes:
        q = 2**axis.bits - 1
        sizes = [sum(max(c + q, q - c) ** axis.norm for c in point) for point in axis.about.points]
        assert axis.edges[-1] == max(sizes)
        halves = 4 if axis.norm == 1 else 2  # steps that make a factor of two
        assert axis.edges[-1 - halves] == -(-axis.edges[-1] // 2)


def axes_of(statistic) -> tuple:
    return getattr(getattr(statistic, "cells", None), "axes", ())
