"""L1 isotonic regression of integers."""

from __future__ import annotations

from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import NDArray


def isotonic_l1(values: NDArray[np.int64], low: int, high: int) -> NDArray[np.int64]:
    """A non-decreasing sequence in [low, high] with the least sum of absolute differences from values.

    Of the best sequences, the integer part of the middle between the lowest and the highest one, which is
    best too, so that ties lean neither way.

    >>> isotonic_l1(np.array([3, -1, 2, 9]), 0, 5).tolist()
    [0, 0, 2, 5]
    """
    lowest = np.array(_lowest(values.tolist()), np.int64)
    highest = -np.array(_lowest((-values[::-1]).tolist()), np.int64)[::-1]
    middle: NDArray[np.int64] = (lowest + highest) // 2
    return middle.clip(low, high)


def _lowest(values: list[int]) -> list[int]:
    """The lowest best sequence. The slopes of the least cost of what was seen so far, as a function of
    its last value, change at the values in the heap; the largest of them is where that cost is least."""
    heap: list[int] = []
    best = []
    for value in values:
        heappush(heap, -value)
        heappushpop(heap, -value)
        best.append(-heap[0])
    for i in range(len(best) - 2, -1, -1):
        best[i] = min(best[i], best[i + 1])
    return best
