"""Characters: products of signs, their noise, and the tables that follow from them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.joint.characters import ask_signs, character, pattern
from dpsynth_cli.mechanisms.joint.estimates import Counted, signed
from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from tests.asking import asking

BITS = tuple(Column(f"b{i}", "nominal", categories=("no", "yes")) for i in range(4))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_answer_is_the_sum_of_products_of_signs(order):
    rows = np.array(list(product((0, 1), repeat=4)) * 3 + [(1, 0, 0, 1)] * 5)
    codes = {column.name: rows[:, i] for i, column in enumerate(BITS)}
    ask, *_ = asking(codes, Domain(BITS), 1e6)
    answer = ask([character("pairs", list(BITS[:order]), Fraction(1), None)])[0]
    assert answer.values.tolist() == [int(np.prod(1 - 2 * rows[:, :order], axis=1).sum())]
    assert answer.sd < 1


def test_one_row_moves_it_by_one_so_its_noise_is_that_of_one_count():
    codes = {column.name: np.zeros(10, int) for column in BITS}
    ask, accountant, *_ = asking(codes, Domain(BITS), 1.0, 1e-6)
    for order in (1, 2, 3, 4):
        question = character("pairs", list(BITS[:order]), Fraction(1, 2), None)
        assert ask.sd(question) == pytest.approx((1 / float(accountant.total) + 1 / 12) ** 0.5, rel=1e-6)


def test_marginals_from_signs_add_up_to_the_class():
    rng = np.random.default_rng(0)
    codes = {column.name: (rng.random(1000) < 0.2).astype(int) for column in BITS}
    ask, *_ = asking(codes, Domain(BITS, strata="b3"), 50.0)
    totals = np.bincount(codes["b3"]).astype(float)
    found = ask_signs(ask, Domain(BITS, strata="b3"), list(BITS[:3]), totals, Fraction(1))
    for column in BITS[:3]:
        for k, mass in enumerate(found[column.name].masses):
            assert mass.sum() == pytest.approx(totals[k])
            assert abs(mass[1] - codes[column.name][codes["b3"] == k].sum()) < 20


def test_a_table_follows_from_its_character_and_what_was_expected():
    even = Marginal(np.arange(2), np.ones(2, np.int64), [np.array([50.0, 50.0])])
    ladders = [ladder(column, even, 8) for column in BITS[:2]]
    frame = Frame(ladders, [np.array([[50.0, 50.0]])] * 2, [0, 0])
    one = Counted(((0, 1), (0, 0)), np.array([60.0]), 1.0)
    (table,) = signed(frame, [one], [np.full((1, 2, 2), 25.0)])
    assert (table.counts[0] * pattern(2)).sum() == pytest.approx(60, abs=0.2)
    assert table.counts.sum(axis=1).round(3).tolist() == [[50, 50]]
    (same,) = signed(frame, [Counted(one.scope, np.array([3.0]), 100.0)], [np.full((1, 2, 2), 25.0)])
    assert np.allclose(same.counts, 25.0)  # no more than its noise
