"""Points in groups of at least g that are near each other: by bisection, or by the paper's net.

Boedihardjo, Strohmer, Vershynin (2021), Algorithm 1, steps 1-6; without differential privacy (`groups.py`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.questions import Ints

Points = NDArray[np.float32]
POWERS = 8  # steps towards a principal direction
NET_AXES, NET_STEP = 5, 0.6  # t and alpha: as printed, cells are far too large for practical tables


def bisected(x: Points, g: int) -> Ints:
    """Groups of g to 2g - 1 rows: each is cut across its principal direction until it has less than 2g."""
    of_row = np.empty(len(x), np.int64)
    waiting = [(np.arange(len(x)), x)]
    count = 0
    while waiting:
        index, own = waiting.pop()
        leaves = len(index) // g
        if leaves < 2:
            of_row[index] = count
            count += 1
            continue
        order = np.argsort(own @ principal(own), kind="stable")
        left = leaves // 2
        cut = len(index) * left // leaves  # at least g rows for each group that a side will be
        for part in (order[:cut], order[cut:]):
            waiting.append((index[part], own[part]))
    return of_row


def principal(x: Points) -> Points:
    """About the direction in which rows differ most: a few steps of the power method."""
    centred = x - x.mean(axis=0)
    v = centred[np.argmax(np.einsum("ij,ij->i", centred, centred))]
    for _ in range(POWERS):
        v = centred.T @ (centred @ v)
        v = v / max(float(np.linalg.norm(v)), 1e-30)
    return np.asarray(v)


def by_net(x: Points, g: int, printed: bool = False) -> Ints:
    """The paper's partition: nearest points of a lattice on the leading axes, then sizes made even.

    Cells of the lattice are divided into groups of g; what is left of each is put together, cell after cell,
    and divided again; the last group takes the rest. Rows are centred first (docs/privacy.md, E22); as
    `printed` they are not, and t and alpha are those of Algorithm 1.
    """
    t, alpha = printed_net(len(x) // g) if printed else (NET_AXES, NET_STEP)
    centred = x if printed else x - x.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T.astype(np.float64) @ centred)
    leading = vectors[:, ::-1][:, :t]
    far = max(float(np.sqrt(np.einsum("ij,ij->i", centred, centred).max())), 1e-30)
    step = alpha / np.sqrt(max(1, leading.shape[1]))
    net = np.rint(centred @ (leading / (far * step))).astype(np.int64)
    _, cell = np.unique(net, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    order = np.argsort(cell, kind="stable")
    sizes = np.bincount(cell)
    first = np.cumsum(sizes) - sizes
    place = np.arange(len(x)) - np.repeat(first, sizes)  # of each row in its cell, in this order
    whole = place < np.repeat(sizes // g * g, sizes)
    # Whole groups first, then the residuals as one more cell.
    order = np.concatenate([order[whole], order[~whole]])
    of_row = np.empty(len(x), np.int64)
    of_row[order] = np.minimum(np.arange(len(x)) // g, len(x) // g - 1)
    return of_row


def printed_net(k: int) -> tuple[int, float]:
    """t and alpha of Algorithm 1 for k groups, k' = floor(sqrt(k)): one axis up to some thousand
    groups.

    >>> [printed_net(k)[0] for k in (10, 1_000, 10_000, 10_000_000)]
    [0, 1, 2, 3]
    """
    log = math.log(max(3, math.isqrt(k)))
    alpha = (math.log(max(math.e, log)) / log) ** 0.25
    return math.floor(log / math.log(7 / alpha)), alpha
