"""How far psmm's synthetic table is from the real one on average, whatever the real one is: no data needed.

He, Vershynin and Zhu (2023), Theorem 3.6, with all constants. mu has n rows; c = mu N / n is the same measure
with the private total N = n + D; nu = n_i + lambda_i - e_i are the noisy counts with this total, tau is the
closest measure to them. Since c could have been tau, d(tau, c) <= 2 d(nu, c); and

    nu - c = (lambda - e - u) + (u - D mu),    u the amount D, divided evenly over the cells,

where the first part has the sum 0 and knows nothing of mu: its bounded-Lipschitz size is what our own flow
takes to move it to 0. The second is at most |D| diameters. Rows of a cell may be anywhere in it.

    E W1 <= E 2 (size + |D| diam) / N + the diameter of a cell

The flow is on the lattice's graph, whose paths are under l2 a little longer than distances, so that it is no
less than that size. Under replace_one D is 0. The mean is of simulated noise, and four standard errors of it
are added.

With classes or a delta the release says it (`by_answers`): d(tau, nu) is known when tau is, so that

    N E W1 <= E sum over classes of d(tau, nu) + size + |D| diam, and the diameter of a cell for each row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.bounds import Bound, Distance
from dpsynth_cli.domain import Column
from dpsynth_cli.numeric.histogram import best_total
from dpsynth_cli.numeric.lattice import Lattice
from dpsynth_cli.numeric.transport import closest, effort, evenly
from dpsynth_cli.questions import Ints

DRAWS = (12, 100)  # of noise: at least, and where they are quick
SECONDS = {"linf": 0.5, "l1": 0.5, "l2": 1.0}  # that one of them may take at worst: noise takes far less
OURS = "this release, by its own noisy counts"


@dataclass(frozen=True, eq=False)
class Settled:
    """A class: its lattice, how wide a cell is along each column, how many times farther apart cells are than
    on the lattice at most, tau, how far (in diameters of a column) it is from the noisy counts, and by how
    many rows its total was moved to that of the table."""

    lattice: Lattice
    widths: Sequence[float]
    stretch: float
    tau: Ints
    distance: float
    levelled: float


def expected_w1(
    lattice: Lattice, widths: Sequence[float], stretch: float, n: float, scale: float, total: float | None
) -> float | None:
    """The bound for n rows; None where it would take too long. `widths` and `stretch` are as in `Settled`.

    `scale` is that of discrete Laplace noise in a cell, `total` that of the private total: 0 where it is
    public, None where only the cells say it.
    """
    seconds, rows = effort(lattice)[0], round(n)
    if seconds > SECONDS[lattice.metric]:
        return None
    rng, found = np.random.default_rng(0), []
    for _ in range(_draws(seconds)):
        noise = laplace(scale, lattice.size, rng)
        private = rows if total == 0 else _private_total(rows, noise, scale, total, rng)
        found.append(of_noise(noise, rows, private, lattice))
    mean = float(np.mean(found) + 4 * np.std(found, ddof=1) / math.sqrt(len(found)))
    return min(stretch * mean + of_a_cell(lattice, widths), lattice.diameter / lattice.side)


def of_noise(noise: Ints, n: int, private: int, lattice: Lattice) -> float:
    """2 (size + |D| diam) / N, of one release: at most a diameter."""
    return min(lattice.diameter / lattice.side, 2 * _off(noise, private - n, lattice) / max(1, private))


def _off(noise: Ints, more: int, lattice: Lattice) -> float:
    """size + |D| diam: `closest` takes out u, the sum of what it is given."""
    rest = noise - evenly(int(noise.sum()) - more, lattice.size)
    return (closest(rest, 0, lattice).distance + abs(more) * lattice.diameter) / lattice.side


def _draws(seconds: float) -> int:
    """How often noise is drawn, if once takes so long."""
    return round(min(DRAWS[1], max(DRAWS[0], 0.5 / max(seconds, 1e-9))))


def by_answers(
    classes: Sequence[Settled], distance: Distance, noise: str, sd: float, total: float, rows: int
) -> Bound | None:
    """The bound for so many rows that are drawn; None where it would take too long.

    `sd` is that of the noise of a cell, of this kind, and `total` of a class's size: 0 where it is public,
    infinite where it was not asked for.
    """
    N = sum(int(one.tau.sum()) for one in classes)
    lattices = dict.fromkeys(one.lattice for one in classes)  # in their order: draws follow each other
    if N < 1 or rows < 1 or sum(effort(lattice)[0] / SECONDS[lattice.metric] for lattice in lattices) > 1:
        return None
    rng = np.random.default_rng(0)
    off = {lattice: mean_off(lattice, noise, sd, total, rng) for lattice in lattices}
    moved = sum(one.stretch * (one.distance + off[one.lattice]) + one.levelled for one in classes)
    inside = sum(of_a_cell(one.lattice, one.widths) * float(one.tau.sum()) for one in classes)
    due = np.concatenate([one.tau for one in classes]) * (rows / N)
    rounding = float(((due - np.floor(due)) * (np.ceil(due) - due)).sum())  # 0 where N rows are drawn
    return Bound.of_terms(OURS, distance, noise=moved / N, cells=inside / N, rounding=rounding / rows)


def mean_off(lattice: Lattice, noise: str, sd: float, total: float, rng: np.random.Generator) -> float:
    """The mean of size + |D| diam, with four standard errors."""
    found = []
    for _ in range(DRAWS[0]):
        drawn = _noise(noise, sd, lattice.size, rng)
        more = 0
        if total > 0:
            own = float(_noise(noise, total, 1, rng)[0]) if math.isfinite(total) else 0.0
            more = round(best_total([(float(drawn.sum()), sd**2 * lattice.size), (own, total**2)]))
        found.append(_off(drawn, more, lattice))
    return float(np.mean(found) + 4 * np.std(found, ddof=1) / math.sqrt(len(found)))


def _noise(kind: str, sd: float, count: int, rng: np.random.Generator) -> Ints:
    """Noise for a simulation: never that of a release."""
    if "laplace" in kind:
        return laplace(1 / (2 * math.asinh(1 / (math.sqrt(2) * max(sd, 1e-9)))), count, rng)
    return np.asarray(np.rint(rng.normal(0.0, sd, count)), np.int64)


def widths(columns: Sequence[Column], long: Sequence[float], lattice: Lattice) -> tuple[list[float], float]:
    """How far apart two rows of a cell can be along each column, whose bounds are so far apart; and how many
    times farther apart cells are than on the lattice, at most: k values have k cells, but k - 1 steps."""
    found, stretch = [], 1.0
    for column, axis, length in zip(columns, lattice.axes, long, strict=True):
        cells = axis.length - column.nullable
        apart = column.type in ("nominal", "boolean")
        found.append(length * (0.0 if cells >= column.size else 1.0 if apart else 1 / cells))
        if axis.cells > 1:
            step = length * column.size / cells / (column.size - 1)
            stretch = max(stretch, step * lattice.side / axis.step)
    return found, stretch


def of_a_cell(lattice: Lattice, widths: Sequence[float]) -> float:
    """The diameter of a cell that is so wide along each column, a column being 1."""
    if lattice.metric == "l2":
        return math.hypot(*widths)
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
