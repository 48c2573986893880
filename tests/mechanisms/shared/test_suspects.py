"""Values that many rows share: what a cell stands out by, and what is spent to see the value."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import joint
from dpsynth_cli.mechanisms.shared.suspects import excess, share_to_see
from tests.asking import asking, drawn

WIDTH = np.full(8, 100)
EVEN = np.full(8, 200.0)
HIGH = np.array([200.0, 200, 200, 400, 200, 200, 200, 200])
OWN, MOST = Fraction(1, 1000), Fraction(1, 100)


def noise(share: Fraction) -> float:
    return 0.1 / float(share)


def test_a_law_that_falls_evenly_has_nothing_that_stands_out():
    assert (
        excess(1000.0 * 0.5 ** np.arange(8.0), WIDTH)[1:].max() < 1e-9
    )  # of the first only one side is known
    assert excess(HIGH, WIDTH).argmax() == 3


def test_nothing_is_spent_where_no_cell_stands_out_or_the_noise_may_be_it():
    assert share_to_see(EVEN, WIDTH, 5.0, noise, OWN, MOST) == 0
    assert share_to_see(HIGH, WIDTH, 60.0, noise, OWN, MOST) == 0


def test_no_more_is_spent_than_it_takes():
    spent = share_to_see(HIGH, WIDTH, 5.0, noise, OWN, MOST)
    assert 0 < spent < MOST
    assert share_to_see(HIGH, WIDTH, 5.0, noise, OWN + spent, MOST) == 0  # seen without
    assert share_to_see(HIGH, WIDTH, 5.0, noise, OWN, spent / 4) == 0  # not enough


@pytest.mark.parametrize("law", ["normal", "lognormal"])
def test_a_value_of_a_tenth_of_three_thousand_rows_is_kept(law):
    """At epsilon 5, among six columns: the share that every column has for spikes is too little for it."""
    n, kept = 3_000, []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(900, 200, n) if law == "normal" else np.exp(rng.normal(6.4, 0.7, n))
        x = np.where(rng.random(n) < 0.1, 499, np.clip(np.rint(x), 0, 9_999)).astype(np.int64)
        kinds = [Column(name, "nominal", categories=tuple("abcde")) for name in "ABC"]
        ages = [Column(name, "integer", lower=0, upper=99) for name in "UV"]
        omega = Domain((*kinds, *ages, Column("x", "integer", lower=0, upper=9_999)))
        codes = {one.name: rng.integers(0, one.codes, n) for one in (*kinds, *ages)} | {"x": x}
        ask, accountant, _, _ = asking(codes, omega, 5.0)
        model = joint.run(ask, omega, joint.Params(), dict(joint.MECHANISM.stages))
        assert accountant.spent == accountant.total
        kept.append((drawn(model, n, seed)["x"] == 499).sum() / (x == 499).sum())
    assert np.sum(np.array(kept) > 0.7) >= 3
    assert np.max(kept) < 1.5
