"""Tables that the real one might be: released rows with weights for other noise, none of them negative.

Weights that have the noisy sums with other noise (calibration.py) may be negative. The nearest ones that are
not have the same sums as nearly as their noise asks for, and the same moments (moments.py) nearer than that,
where noise does not hide the rows that these are about. In a table of categories a cell with less than
nothing gets as many rows as the noise may hide, so that no count is nothing only because its noise is low.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsynth_cli.inference.calibration import Calibration
from dpsynth_cli.inference.moments import FIRST, Moment
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.sums import Sums, products
from dpsynth_cli.questions import Floats, Ints

HIDDEN = 3.0  # standard deviations of noise that the rows of a moment must have
STEPS, ENOUGH = 60, 1e-9  # of Newton's method; a gain that is nothing, of what is left
LEAST = 1e-3  # what noise counts as, at least
FARTHEST = -8.0  # standard deviations below nothing, beyond which a count is taken as there


def drawn_weights(
    own: Calibration, about: Sequence[Moment], known: Known, rng: np.random.Generator
) -> Floats:
    """A weight for each row, none negative: one draw."""
    from scipy.sparse import csr_array, hstack

    free = own.weights(rng)
    sums, variances, at = own.features.T @ free, own.variances.copy(), 0
    for one in own.sums:
        here = slice(at, at + one.size)
        if one.axes and all(known.domain[name].categorical for name in one.axes):
            hidden = np.where(sums[here] < 0, _hidden(one, rng), np.inf)
            sums[here] = np.where(sums[here] < 0, hidden, sums[here])
            variances[here] = np.minimum(variances[here], (FIRST * hidden) ** 2)
        at += one.size
    adds = np.stack([one.adds for one in about], axis=1)
    rows = np.stack([one.rows for one in about], axis=1)
    told = rows.T @ free > HIDDEN * own.spread(rows)
    near = np.array([one.near for one in about]) * own.spread(adds)
    adds, near = adds[:, told], np.maximum(near[told], LEAST)
    return never_negative(
        csr_array(hstack([own.features, csr_array(adds)])),
        np.concatenate([sums, adds.T @ free]),
        np.concatenate([variances, near**2]),
        own.start,
        own.free,
    )


def _hidden(one: Sums, rng: np.random.Generator) -> Floats:
    """As many rows as the noise of each count may hide: normal, and above nothing."""
    from scipy.special import ndtr, ndtri

    sd = max(one.sd, LEAST)
    middle = np.clip(one.noisy / sd, FARTHEST, 0.0)
    return np.asarray(sd * (middle - ndtri(rng.uniform(1e-12, 1.0, one.size) * ndtr(middle))))


def never_negative(features: Any, sums: Floats, variances: Floats, start: Floats, free: float) -> Floats:
    """The weights w >= 0 that have the least (w - start)^2 / free + (sums - features' w)^2 / variances, by
    Newton's method in one price a sum: w = max(0, start + free * features @ prices)."""
    from scipy.linalg import cho_factor, cho_solve

    prices = np.zeros(len(sums))

    def weighed(prices: Floats) -> tuple[float, Floats]:
        weight = np.maximum(0.0, start + free * (features @ prices))
        return float(weight @ weight) / free / 2 - float(sums @ prices - variances @ prices**2 / 2), weight

    left, weight = weighed(prices)
    there, together = np.zeros(len(start), bool), np.zeros((len(sums), len(sums)))
    for _ in range(STEPS):
        slope = features.T @ weight - sums + variances * prices
        come, gone = ~there & (weight > 0), there & (weight <= 0)  # few, but at first
        together += products(features[come]) - products(features[gone])
        there = weight > 0
        curved = free * together
        curved[np.diag_indices_from(curved)] += variances
        step = cho_solve(cho_factor(curved), -slope)
        gain = -float(slope @ step)
        if gain <= ENOUGH * max(1.0, abs(left)):
            break
        part = 1.0
        while (tried := weighed(prices + part * step))[0] > left - 1e-4 * part * gain and part > 1e-9:
            part /= 2
        prices, (left, weight) = prices + part * step, tried
    return weight


def whole_rows(weight: Floats, about: Sequence[Moment], sums: Any, rng: np.random.Generator) -> Ints:
    """The place of each row of a table, each as often as its weight says, up or down to a whole number: such
    that sums and moments stay what they were."""
    from scipy.sparse import csr_array, hstack

    adds = csr_array(hstack([sums, csr_array(np.stack([one.adds for one in about], axis=1))]))
    largest = np.maximum(abs(adds).max(axis=0).toarray().ravel(), 1e-300)
    times = np.floor(weight).astype(np.int64)
    part = weight - times
    off = np.zeros(adds.shape[1])  # what was rounded up, less what was rounded down
    starts, columns, entries = adds.indptr, adds.indices, adds.data / largest[adds.indices]
    for row in rng.permutation(np.flatnonzero(part > 0)):
        here = slice(starts[row], starts[row + 1])
        own = entries[here]
        above = 2 * float(off[columns[here]] @ own) + (1 - 2 * part[row]) * float(own @ own) < 0
        off[columns[here]] += (above - part[row]) * own
        times[row] += above
    if not times.any():
        times[int(np.argmax(weight))] = 1
    return np.repeat(np.arange(len(weight)), times)
