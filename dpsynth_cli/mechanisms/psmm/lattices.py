"""Which lattice psmm counts on: as fine as the spec asks, or as the number of rows allows; what that takes.

m = epsilon n / 8 cells, at most n. Along a line that is too many where there are many rows: noise moves mass
sqrt(m) / (epsilon n) far, a cell is 1 / m long, and both are about least with m = (epsilon n)^(2/3). That is
so for each of c categories with its part of the rows: together they have c^(1/3) (epsilon n)^(2/3) cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.registry import parameter
from dpsynth_cli.mechanisms.shared.weights import STRUCTURE as WEIGHTS
from dpsynth_cli.mechanisms.shared.weights import faults, lengths
from dpsynth_cli.numeric.lattice import Lattice, Scale, divided, last_where
from dpsynth_cli.numeric.star import MOST_AXES
from dpsynth_cli.numeric.transport import effort

SECONDS, BYTES = 120, 2e9  # what a release may take at worst
EACH_SECOND, EACH_BYTE = 6e-6, 200.0  # of every cell of every class, besides the closest measure: measured
MOST_CELLS = 2**20  # cells
MOST_COLUMNS = 30  # numpy's arrays have 32 axes, or 64


@dataclass(frozen=True)
class Params:
    cells: int | None = parameter(
        None,
        "at most so many cells (in each class); auto: epsilon n / 8, with one ordered column at most about "
        "(epsilon n)^(2/3)",
        low=1,
        auto=True,
    )
    metric: str = parameter(
        "linf",
        "the distance between rows: its largest part, their sum, or the root of the sum of squares",
        choices=("linf", "l1", "l2"),
    )
    weights: Mapping[str, float] | None = parameter(
        None,
        "how much ordered columns count in the distance: heavier ones have more cells",
        structure=WEIGHTS,
    )


def fits(omega: Domain, params: Params) -> list[str]:
    """Why these columns, or so many cells, would take too long or too much memory."""
    d = len(omega.modelled)
    if (
        wrong := faults(params.weights, omega.modelled)
        or _unordered(omega, params)
        or _too_many(omega, params)
    ):
        return wrong
    if d > MOST_COLUMNS:
        return [f"psmm takes at most {MOST_COLUMNS} columns, and there are {d}; use joint or lowdim"]
    lattice = divided(scales_of(omega, params), params.cells or 1, params.metric)
    if not heavy(omega, lattice):
        return []
    finest = largest(omega, params.metric, tuple(scales_of(omega, params)))
    what = f"a lattice of {lattice.size:,} cells"
    what += f" for each of {omega.classes} classes" if omega.strata else ""
    if lattice.size > MOST_CELLS:
        what = f"psmm cannot have {what}"
    else:
        worst = at_worst([lattice] * omega.classes)
        what = f"psmm could take {worst['seconds']:,.0f} s and {worst['bytes'] / 1e9:,.1f} GB for {what}"
    if heavy(omega, finest):
        return [f"{what}, the smallest there is for these columns; release fewer of them, or use marginals"]
    return [f"{what}; mechanism.cells may be at most {finest.size} here"]


def _too_many(omega: Domain, params: Params) -> list[str]:
    """Under l2 a lattice of many dimensions has too many moves."""
    ordered = sum(c.type not in ("nominal", "boolean") and c.size > 1 for c in omega.modelled)
    if params.metric != "l2" or ordered <= MOST_AXES:
        return []
    return [
        f"mechanism.metric is l2, for at most {MOST_AXES} columns with an order, and there are {ordered}; "
        "set it to linf or l1, or release fewer columns"
    ]


def _unordered(omega: Domain, params: Params) -> list[str]:
    """Columns with categories or missing values that are lighter than others: their distances are all 1."""
    long = zip(omega.modelled, lengths(params.weights, omega.modelled), strict=True)
    light = [c.name for c, length in long if length < 1 and (c.type in ("nominal", "boolean") or c.nullable)]
    why = "has categories without an order or missing values; no column may be heavier in mechanism.weights"
    return [f"{name} {why}" for name in light]


def scales_of(omega: Domain, params: Params) -> list[Scale]:
    long = zip(omega.modelled, lengths(params.weights, omega.modelled), strict=True)
    return [Scale(c.size, c.type in ("nominal", "boolean"), c.nullable, length) for c, length in long]


def at_worst(lattices: Sequence[Lattice]) -> dict[str, float]:
    """Seconds and bytes: classes take their time one after the other, and all are kept."""
    efforts = {lattice: effort(lattice) for lattice in set(lattices)}
    cells = sum(lattice.size for lattice in lattices)
    return {
        "seconds": round(sum(efforts[lattice][0] for lattice in lattices) + EACH_SECOND * cells, 3),
        "bytes": round(max(size for _, size in efforts.values()) + EACH_BYTE * cells),
    }


def heavy(omega: Domain, lattice: Lattice) -> bool:
    if lattice.size > MOST_CELLS:
        return True
    worst = at_worst([lattice] * omega.classes)
    return worst["seconds"] > SECONDS or worst["bytes"] > BYTES


@lru_cache(maxsize=8)
def largest(omega: Domain, metric: str, scales: tuple[Scale, ...]) -> Lattice:
    most = last_where(lambda cells: not heavy(omega, divided(scales, cells, metric)), MOST_CELLS)
    return divided(scales, most, metric)


def lattice_for(omega: Domain, params: Params, epsilon: float, n: float) -> Lattice:
    scales = tuple(scales_of(omega, params))
    if params.cells:
        return divided(scales, params.cells, params.metric)
    m = n * min(1.0, epsilon / 8)
    lines = [s.values for s in scales if s.nominal]
    if len(scales) - len(lines) == 1:
        m = min(m, math.prod(lines) ** (1 / 3) * (epsilon * n) ** (2 / 3))
    lattice = divided(scales, round(min(max(1, m), MOST_CELLS)), params.metric, nearest=True)
    return largest(omega, params.metric, scales) if heavy(omega, lattice) else lattice
