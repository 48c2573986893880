"""How far the noise of an answer reaches: what tells a cell with rows from an empty one."""

from __future__ import annotations

import math

NONE = 1e-150  # a standard deviation of less is none: its square is nothing


def reach(noise: str, sd: float, cells: int, failure: float) -> float:
    """The least t such that any of so many cells has noise of t or more, up or down, with probability at most
    `failure`, by the union bound.

    >>> round(reach("discrete_laplace", 2**0.5 * 20, 500, 0.01), 1)
    216.9
    >>> round(reach("rounded_gaussian", 20.0, 500, 0.01), 1)
    85.8
    """
    if noise == "none" or sd < NONE:
        return 1.0
    chance = min(failure / cells, 0.5)
    if noise == "discrete_laplace":
        # sd^2 = 2r/(1-r)^2, and |noise| reaches t with probability 2 r^t / (1+r).
        r = 2 * sd**2 / (1 + math.sqrt(1 + 2 * sd**2)) ** 2
        return max(1.0, math.log(2 / (chance * (1 + r))) / -math.log(r))
    if noise != "rounded_gaussian":
        raise ValueError(f"counts have no noise called {noise}")
    sigma = math.sqrt(max(sd**2 - 1 / 12, 1e-12))
    low, high = 0.0, 40.0  # standard deviations; by bisection: erfc falls
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) > chance else (low, middle)
    return max(1.0, high * sigma + 0.5)
