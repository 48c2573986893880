"""How many units have how many rows: as counted where there is no noise, right on average where there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.mechanisms.units.distribution import Distribution, distribution_of, size_edges
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer


def noisy(table: np.ndarray, scale: float, rng: np.random.Generator) -> Answer:
    p = -np.expm1(-1 / scale)
    values = table.ravel() + rng.geometric(p, table.size) - rng.geometric(p, table.size)
    return Answer(values, (table.size,), "discrete_laplace", float(np.sqrt(2 * (1 - p)) / p))


def counted(sizes: np.ndarray, k: int) -> np.ndarray:
    edges = size_edges(k)
    groups = np.searchsorted(edges, np.minimum(sizes, k)) - 1
    return np.bincount(groups, minlength=len(edges) - 1)


TABLES = {
    "geometric": (np.random.default_rng(1).geometric(0.2, 3000), 60),
    "lognormal": (np.ceil(np.random.default_rng(2).lognormal(1, 1.2, 2000)).astype(np.int64), 100),
    "few": (1 + np.random.default_rng(3).poisson(0.8, 1500), 6),
}


@pytest.mark.parametrize("name", TABLES)
def test_units_rows_and_large_units_are_right_on_average(name):
    """Cutting off noise below 0 alone would leave units with many rows where none are."""
    sizes, k = TABLES[name]
    sizes, edges, table = np.minimum(sizes, k), size_edges(k), counted(sizes, k)
    rng = np.random.default_rng(4)
    found, plain = [], []
    for _ in range(100):
        answer = noisy(table, 40.0, rng)
        rows = int(sizes.sum() + rng.laplace(0, 5 * k))
        made = distribution_of([answer], edges, rows)
        assert made.each @ np.arange(1, k + 1) == pytest.approx(rows, rel=0.02)
        large = made.each[edges[-3] :].sum()
        found.append((made.units.sum(), rows / made.mean, large))
        cut = on_simplex(answer.values, max(1.0, float(answer.values.sum())))
        plain.append((cut.sum(), 0, cut[-2:].sum()))
    truth = np.array([len(sizes), len(sizes), (sizes > edges[-3]).sum()])
    off, spread = np.mean(found, axis=0) - truth, np.std(found, axis=0)
    assert (np.abs(off[:2]) < 0.02 * len(sizes)).all()
    assert abs(off[2]) < 0.5 * answer.sd
    if k > 10:
        assert np.mean(plain, axis=0)[2] - truth[2] > 2 * abs(off[2])  # so the bound says something
        assert spread[0] < np.std([one[0] for one in plain])  # rows tell of units


def test_counts_without_noise_stay_as_they_are():
    sizes, k = TABLES["geometric"]
    sizes, table = np.minimum(sizes, k), counted(sizes, k)
    exact = Answer(table, (table.size,), "none", 0.0)
    for rows in (None, int(sizes.sum())):
        made = distribution_of([exact], size_edges(k), rows)
        assert made.units == pytest.approx(table, abs=0.5)
    assert made.each @ np.arange(1, k + 1) == pytest.approx(sizes.sum(), rel=1e-3)
    real = np.bincount(sizes, minlength=k + 1)[1:]
    assert np.abs(made.each - real).sum() / 2 < 0.03 * len(
        sizes
    )  # sizes in a group fall as those beside it do


def test_all_sizes_of_a_group_at_its_end_are_found_by_the_rows():
    """Eight rows each, counted as 7 or 8: the number of rows says which."""
    table = np.zeros(len(size_edges(20)) - 1, np.int64)
    table[5] = 500  # 7 and 8
    made = distribution_of([Answer(table, (len(table),), "none", 0.1)], size_edges(20), 4000)
    assert made.each[7] > 450
    assert made.mean == pytest.approx(8, abs=0.1)


@settings(max_examples=80, deadline=None)
@given(k=st.integers(1, 80), seed=st.integers(0, 10**6), rows=st.integers(-50, 10**5) | st.none())
def test_whatever_the_noise_there_are_sizes_to_draw(k, seed, rows):
    rng = np.random.default_rng(seed)
    edges = size_edges(k)
    answers = [
        Answer(rng.integers(-300, 300, cells * (len(edges) - 1)), (cells * (len(edges) - 1),), "", 200.0)
        for cells in (1, 3)
    ]
    made = distribution_of(answers, edges, rows)
    assert np.isfinite(made.each).all()
    assert made.each.min() >= 0
    assert made.units.sum() >= 1 - 1e-6
    assert np.bincount(made.group, made.inside) == pytest.approx(np.ones(len(edges) - 1))
    assert 1 <= made.mean <= k + 1e-9
    drawn = made.sizes(np.repeat(np.arange(len(edges) - 1), 5), rng)
    assert np.array_equal(np.searchsorted(edges, drawn) - 1, np.repeat(np.arange(len(edges) - 1), 5))


def test_sizes_inside_a_group_are_drawn_as_they_are():
    made = Distribution((0, 1, 4), np.array([1.0, 1.0]), np.array([1.0, 0.5, 0.3, 0.2]))
    drawn = made.sizes(np.ones(20_000, np.int64), np.random.default_rng(5))
    assert np.bincount(drawn, minlength=5)[2:] / 20_000 == pytest.approx([0.5, 0.3, 0.2], abs=0.02)
