"""Tails: cells that stand above noise are seen, and what is beyond them is about what there is."""

import numpy as np
import pytest

from dpsynth_cli.numeric.tails import beyond, quiet

ROWS = 3_000
LAWS = {
    "lognormal": lambda rng: np.exp(rng.normal(0, 0.8, ROWS)),
    "exponential": lambda rng: rng.exponential(1, ROWS),
    "pareto": lambda rng: rng.pareto(3, ROWS),
    "normal": lambda rng: np.abs(rng.normal(0, 1, ROWS)),
    "uniform": lambda rng: rng.random(ROWS),
}


def laplace(rng, sd: float, size: int) -> np.ndarray:
    return rng.laplace(0, sd / np.sqrt(2), size)


@pytest.mark.parametrize(("far", "most"), [(1.0, 0.12), (100.0, 0.01)])
def test_noise_alone_hardly_ever_stands_far_out(far, most):
    rng = np.random.default_rng(1)
    stood = sum(quiet(laplace(rng, 3.0, 32), 3.0, far) < 32 for _ in range(3_000))
    assert stood <= most * 3_000


def test_cells_that_stand_together_are_kept_and_none_beyond_them():
    assert quiet(np.array([90.0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0]), 1.0) in (1, 2)
    assert quiet(np.array([0.0, 8.0, 0, 0, 0]), 1.0) == 3


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sd", [2.0, 10.0])
def test_sums_and_rows_of_tails_are_about_right_on_average(law, sd):
    """Sixteen even cells, and eleven beyond 97 % of the rows, each ending half an octave further."""
    rng, far, cells = np.random.default_rng(5), [], []
    for _ in range(60):
        x = LAWS[law](rng)
        end = np.quantile(x, 0.97)
        edges = np.append(np.linspace(0, end, 17), end * 2.0 ** np.arange(0.5, 6, 0.5))
        true = np.histogram(x, edges)[0].astype(float)
        counts = true + laplace(rng, sd, len(true))
        last = len(counts) - quiet(counts, sd)
        rows = beyond(edges, counts, np.maximum(counts, 0.0), sd, last, edges[last:])
        assert (rows >= 0).all()
        middle = (edges[1:] + edges[:-1]) / 2
        far.append(float(((rows - true[last:]) * middle[last:]).sum()) / x.sum())
        cells.append(float(true[last:] @ middle[last:]) / x.sum())
    lost = np.mean(cells)  # what it would be to call them empty
    assert abs(np.mean(far)) < max(0.6 * lost, 0.015)


def test_counts_that_say_there_is_nothing_beyond_are_believed():
    edges, masses = np.arange(11.0), np.array([*[100.0] * 5, *[0.0] * 5])
    assert beyond(edges, masses, masses, 1.0, 5, edges[5:]).sum() < 2.0
