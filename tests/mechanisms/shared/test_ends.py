"""The ends of a number's marginal: a skewed number keeps its mean under bounds that are far too wide."""

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms import joint, marginals
from dpsynth_cli.mechanisms.shared.ends import Ends
from dpsynth_cli.numeric.scale import Scale
from tests.asking import asking, drawn

ROWS = 3_000


def counts(nullable: bool) -> np.ndarray:
    found = np.zeros(32)
    found[8:14] = [20, 200, 900, 300, 100, 30]
    found[[7, 14, 15]] = [4, 9, 3]
    return np.append(found[:16], np.append(500.0, np.zeros(15))) if nullable else found


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("bits", [5, 7])
def test_sums_of_classes_and_missing_values_stay(nullable, bits):
    scale, known = Scale.even(2**20, nullable), counts(nullable)
    ends = Ends.of(scale, 5, known, 3.0)
    outside = ends.outside(bits)
    part = np.repeat(known / 2 ** (bits - 5), 2 ** (bits - 5))
    inside = [np.where(outside, 0.0, part), np.where(outside, 0.0, part / 2)]
    found = ends.filled(inside, bits)
    assert np.allclose([one.sum() for one in found], [one.sum() for one in inside])
    assert np.allclose(found[0], 2 * found[1])
    assert all((one >= 0).all() for one in found)
    assert found[0][outside].sum() > 1
    if nullable:
        assert np.array_equal(found[0][16 << (bits - 5) :], inside[0][16 << (bits - 5) :])


def test_both_ends_are_alike():
    scale, known = Scale.even(2**20, False), counts(False)
    each = []
    for way in (1, -1):
        ends = Ends.of(scale, 5, known[::way], 3.0)
        each.append(ends.filled([np.where(ends.outside(5), 0.0, known[::way])], 5)[0][::way])
    assert np.allclose(each[0], each[1], rtol=1e-6)


def test_where_nothing_stands_every_cell_stays():
    ends = Ends.of(Scale.even(2**20, False), 4, np.zeros(16), 3.0)
    assert not ends.outside(6).any()
    masses = [np.arange(64.0)]
    assert np.array_equal(ends.filled(masses, 6)[0], masses[0])


@pytest.mark.parametrize(("mechanism", "epsilon"), [(marginals, 4.0), (joint, 10.0), (joint, 30.0)])
def test_a_skewed_number_keeps_its_mean_and_its_upper_part(mechanism, epsilon):
    """Bounds are forty times the largest value; cells far outside that are taken to be empty cost 5 %."""
    rng = np.random.default_rng(2)
    kind = rng.integers(0, 4, ROWS)
    x = np.exp(rng.normal(0.2 * kind, 1.0))
    high = 40 * x.max()
    omega = Domain(
        (
            Column("kind", "nominal", categories=tuple("abcd")),
            Column("x", "continuous", lower=0, upper=high),
            Column("y", "integer", lower=0, upper=99),
        ),
        "replace_one",
    )
    codes = {"kind": kind, "x": (x / high * GRID).astype(np.int64), "y": rng.integers(0, 100, ROWS)}
    means, upper = [], []
    for seed in range(10):
        ask, *_ = asking(codes, omega, epsilon)
        made = drawn(mechanism.run(ask, omega, mechanism.Params(), mechanism.MECHANISM.stages), ROWS, seed)
        made_x = made["x"] * (high / GRID)
        means.append(made_x.mean() / x.mean())
        upper.append(np.log(np.quantile(made_x, 0.99) / np.quantile(x, 0.99)))
    assert abs(np.median(means) - 1) < 0.03
    assert abs(np.median(upper)) < 0.15
