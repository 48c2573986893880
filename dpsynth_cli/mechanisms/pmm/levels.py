"""How deep pmm's tree is, which levels are measured, with which shares; and the paper's bound on W1."""

from __future__ import annotations

import math

from dpsynth_cli.domain import Column
from dpsynth_cli.numeric.partition import level_diameters, turns

DEEPEST = 24


def depth_for(epsilon: float, rows: float, columns: tuple[Column, ...], rule: str = "wls") -> int:
    """r = log2(epsilon n), a little more or less."""
    d = len(columns)
    # Measured: few rows a leaf do no harm where the posterior decides, and every column needs its halvings.
    more = min(3 * d - 7, 4) if rule == "wls" else min(d - 2, 0)  # else Corollary 3.11
    r = round(_tempered(math.log2(max(2.0, epsilon * max(1.0, rows))) + more))
    return min(deepest(columns), max(1, r))


def deepest(columns: tuple[Column, ...]) -> int:
    """As often as Omega can be halved."""
    return min(DEEPEST, sum(column.bits for column in columns))


def _tempered(r: float) -> float:
    """Beyond 2^18 cells the depth grows half as fast: the noise is below the cells then, and time is not."""
    return r if r <= 18 else 18 + (r - 18) / 2


def measured_levels(
    columns: tuple[Column, ...],
    order: tuple[int, ...],
    neighbours: str,
    every: bool = False,
    fanout: int | None = None,
) -> tuple[list[float], list[float]]:
    """The measured levels, as parts of the depth, and their weights in the split: every one, by the paper's
    weights, or those of a fan-out."""
    r, d = len(order), len(columns)
    if r == 0:
        return [1.0], [1.0]
    if every:
        weights = _paper_weights(columns, order, neighbours)[0]
        return [j / r for j in range(r + 1 - len(weights), r + 1)], weights
    step = int(math.log2(fanout)) if fanout else (4 if d < 3 else 5)
    count = max(1, round(r / step))
    # Measured: with one column the upper levels deserve a little more, with several all the same.
    ratio = 0.8 if d == 1 else 1.0
    return [(i + 1) / count for i in range(count)], [ratio**i for i in range(count)]


def _paper_weights(
    columns: tuple[Column, ...], order: tuple[int, ...], neighbours: str
) -> tuple[list[float], float]:
    """The weights of eq. 3.7, and the diameter of a leaf.

    sigma_j ~ 1 / sqrt(Delta_{j-1}), where Delta_j is the sum of the diameters of level j and Delta_-1 = 1.
    Under replace_one the root is exact and has no share.
    """
    apart = [column.type in ("nominal", "boolean") for column in columns]
    Delta, leaf = level_diameters([(c.size, c.nullable) for c in columns], apart, order)
    weights = [1.0] + [math.sqrt(diameters) for diameters in Delta[:-1]]
    return weights[neighbours == "replace_one" :], leaf


def paper_bound(columns: tuple[Column, ...], epsilon: float, n: float, neighbours: str) -> float:
    """The paper's bound on the expected W1 distance: 3/2 S^2 / (epsilon n) + the diameter of a leaf.

    Theorem 3.9 with the shares (3.7), S = sum of sqrt(Delta_{j-1}), and the depth of Corollary 3.11. The
    larger of two noises of scale sigma is at most 3/2 sigma on average: what the proof needs (it prints
    2 sqrt(2) in Theorem 3.9 and sqrt(2), too little, in 3.10: E40). Under replace_one noise doubles and the
    root has none. Distances are as in `level_diameters`: l_inf over the columns, each of diameter 1.
    """
    order = turns([(c.size, c.nullable) for c in columns], depth_for(epsilon, n, columns, "uniform"))
    weights, leaf = _paper_weights(columns, order, neighbours)
    moved = 2 if neighbours == "replace_one" else 1
    return 1.5 * moved * sum(weights) ** 2 / (epsilon * n) + leaf
