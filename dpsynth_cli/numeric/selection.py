"""Which tables are worth their noise, and how fine each should be, when all of them share one budget.

A table that is not counted leaves an error, its misfit; one that is has noise instead, in proportion to its
cells and to the scale its share buys. With shares in proportion to cells^(2/3) (Gaussian noise; cells^(1/2)
for Laplace noise), which make the sum of all noise least, that sum is A W^b with W the sum of these weights
and b = 3/2 (2 for Laplace). So a table is worth counting while it saves more than A b W^(b-1) a weight.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp, power

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

ROUNDS = 60  # of bisection


def worth_counting(saved: Floats, cells: Floats, noise: float, gaussian: bool) -> Ints:
    """For each table (a row) the option (a column) to count it by, or -1 for none.

    `saved` is what each option takes from the error, `cells` how many cells it has, and `noise` the error of
    one cell that gets the whole share.

    >>> saved, cells = np.array([[5.0, 6.0], [0.1, 0.2]]), np.array([[4.0, 400.0], [4.0, 400.0]])
    >>> worth_counting(saved, cells, 0.1, True).tolist()
    [0, -1]
    """
    b = 1.5 if gaussian else 2.0
    weights = power(cells, weight_power(gaussian))
    low, high = 0.0, max(float((saved / weights).max(initial=0.0)), 1e-12)

    def best(price: float) -> Ints:
        left = saved - price * weights
        option = left.argmax(axis=1)
        return np.where(left[np.arange(len(left)), option] > 0, option, -1)

    for _ in range(ROUNDS):
        price = (low + high) / 2
        option = best(price)
        whole = float(weights[np.arange(len(weights)), option][option >= 0].sum())
        low, high = (price, high) if noise * b * whole ** (b - 1) > price else (low, price)
    return best(high)


def weight_power(gaussian: bool) -> float:
    """Shares in proportion to this power of the cells make the sum of all noise least."""
    return 2 / 3 if gaussian else 1 / 2


def sampling_part(expected: Floats) -> Floats:
    """The mean of |X - e| for X Poisson of mean e, about: what sampling alone does to a cell.

    >>> sampling_part(np.array([0.0, 0.1, 100.0])).round(2).tolist()
    [0.0, 0.18, 7.98]
    """
    # 2 e^(k+1) exp(-e) / k! at k = floor(e); by Stirling's series where e is large.
    small = np.minimum(expected, 30.0)
    k = np.floor(small)
    factorial = np.concatenate([[1.0], np.cumprod(np.arange(1.0, 31.0))])
    exact = 2 * power(small, k + 1) * exp(-small) / factorial[k.astype(np.int64)]
    return np.asarray(np.where(expected < 30, exact, np.sqrt(2 * expected / np.pi)))
