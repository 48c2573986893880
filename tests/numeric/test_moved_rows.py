"""How far rows are moved, at most: against the exact distance of tables on a line."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.numeric.consistency import pyramid
from dpsynth_cli.numeric.moved_rows import moved_rows
from dpsynth_cli.numeric.sampling import whole


def line_w1(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(np.sort(one) - np.sort(other)).mean())


@pytest.mark.parametrize("seed", range(30))
def test_no_table_with_these_masses_is_further_from_one_with_these_counts(seed):
    """Without noise it is true of every table, not only on average: so also of rows at the ends of cells."""
    rng = np.random.default_rng(seed)
    depth, n = int(rng.integers(1, 6)), 200
    counts = rng.multinomial(n, rng.dirichlet(np.full(2**depth, rng.choice([0.05, 1.0]))))
    made = whole(rng.dirichlet(np.full(2**depth, rng.choice([0.05, 1.0]))), n, rng)
    width = [np.full(2**j, 2.0**-j) for j in range(depth + 1)]
    exact = [level.astype(float) for level in pyramid(counts.astype(float))]
    moved = moved_rows(exact, [np.zeros(2**j) for j in range(depth + 1)], made.astype(float), width)
    cells = np.arange(2**depth) / 2**depth
    for inside in (0.0, 1.0):  # real rows at the lower ends of their cells, synthetic ones at the upper
        real, synthetic = np.repeat(cells, counts), np.repeat(cells + inside / 2**depth, made)
        assert n * line_w1(real, synthetic) <= moved.between + moved.inside + 1e-9


def test_it_stops_where_deeper_cells_are_all_noise():
    n, depth = 1000.0, 8
    even = pyramid(np.full(2**depth, n / 2**depth))
    width = [np.full(2**j, 2.0**-j) for j in range(depth + 1)]
    loud = [np.full(2**j, 0.0 if j <= 3 else 1e6) for j in range(depth + 1)]
    moved = moved_rows(even, loud, even[-1], width)
    assert (moved.between, moved.inside) == (pytest.approx(0.0, abs=1e-9), n / 8)


def test_noise_counts_whether_it_is_seen_or_not():
    """Twice: the real counts may be off from the estimates, and the estimates from the masses."""
    counts, width = [np.array([100.0]), np.array([60.0, 40.0])], [np.ones(1), np.zeros(2)]
    quiet = moved_rows(counts, [np.zeros(1), np.zeros(2)], counts[1], width)
    loud = moved_rows(counts, [np.zeros(1), np.full(2, np.pi / 2)], np.array([58.0, 42.0]), width)
    assert (quiet.between, loud.between) == (0.0, pytest.approx(1.0 + 2.0))


def test_rows_that_are_drawn_whole_are_off_by_their_fractions():
    masses, width = np.array([0.5, 1.5]), [np.ones(1), np.zeros(2)]
    counts = pyramid(masses)
    none = [np.zeros(1), np.zeros(2)]
    found = [moved_rows(counts, none, masses, width, drawn).between for drawn in (1.0, 2.0)]
    seen = [np.abs(whole(masses, 2, np.random.default_rng(s)) - masses).sum() / 2 for s in range(400)]
    assert found == [0.5, 0.0]
    assert np.mean(seen) == pytest.approx(0.5)
