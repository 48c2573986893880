"""How far psmm's synthetic table is from the real one on average, whatever the real one is: no data needed.

He, Vershynin and Zhu (2023), Theorem 3.6, with all constants. mu has n rows; c = mu N / n is the same measure
with the private total N = n + D; nu = n_i + lambda_i - e_i are the noisy counts with this total, tau is the
closest measure to them. Since c could have been tau, d(tau, c) <= 2 d(nu, c); and

    nu - c = (lambda - e - u) + (u - D mu),    u the amount D, divided evenly over the cells,

where the first part has the sum 0 and knows nothing of mu: its bounded-Lipschitz size is what our own flow
takes to move it to 0. The second is at most |D| diameters. Rows of a cell may be anywhere in it.

    E W1 <= E 2 (size + |D| diam) / N + the diameter of a cell

Under replace_one D is 0. The mean is of simulated noise, and four standard errors of it are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpsynth_cli.numeric.histogram import best_total
from dpsynth_cli.numeric.lattice import Lattice
from dpsynth_cli.numeric.transport import closest, effort, evenly
from dpsynth_cli.questions import Ints

DRAWS = (12, 100)  # of noise: at least, and where they are quick
SECONDS = 0.5  # that one of them may take


def expected_w1(
    lattice: Lattice, widths: Sequence[float], n: float, scale: float, total: float | None
) -> float | None:
    """The bound for n rows; None where it would take too long.

    `scale` is that of discrete Laplace noise in a cell, `total` that of the private total: 0 where it is
    public, None where only the cells say it.
    """
    seconds, rows = effort(lattice)[0], round(n)
    if seconds > SECONDS:
        return None
    rng, found = np.random.default_rng(0), []
    for _ in range(round(min(DRAWS[1], max(DRAWS[0], SECONDS / max(seconds, 1e-9))))):
        noise = laplace(scale, lattice.size, rng)
        private = rows if total == 0 else _private_total(rows, noise, scale, total, rng)
        found.append(of_noise(noise, rows, private, lattice))
    mean = float(np.mean(found) + 4 * np.std(found, ddof=1) / math.sqrt(len(found)))
    return min(mean + of_a_cell(lattice, widths), lattice.diameter / lattice.side)


def of_noise(noise: Ints, n: int, private: int, lattice: Lattice) -> float:
    """2 (size + |D| diam) / N, of one release: at most a diameter."""
    more, diameter = private - n, lattice.diameter / lattice.side
    rest = noise - evenly(int(noise.sum()) - more, lattice.size)  # `closest` takes out u, its sum
    size = closest(rest, 0, lattice).distance / lattice.side
    return min(diameter, 2 * (size + abs(more) * diameter) / max(1, private))


def of_a_cell(lattice: Lattice, widths: Sequence[float]) -> float:
    """The diameter of a cell that is so wide along each column, a column being 1."""
    return max(widths, default=0.0) if lattice.metric == "linf" else float(sum(widths))


def _private_total(n: int, noise: Ints, scale: float, total: float | None, rng: np.random.Generator) -> int:
    known = [(float(n + noise.sum()), 2 * scale**2 * len(noise))]
    if total is not None:
        known.append((max(0.0, float(n + laplace(total, 1, rng)[0])), 2 * total**2))
    return max(0, round(best_total(known)))


def laplace(scale: float, count: int, rng: np.random.Generator) -> Ints:
    """Discrete Laplace numbers for a simulation: never the noise of a release."""
    stop = -math.expm1(-1 / scale)
    return np.asarray(rng.geometric(stop, count) - rng.geometric(stop, count), np.int64)
