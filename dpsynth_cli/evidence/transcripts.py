"""A recorded run, whose questions are answered again and again: what its transcripts prove.

All that a mechanism learns is its transcript. The questions of one run, once they are fixed, are a release
of their own that the same budget pays for, and its noise can be drawn a hundred thousand times at once, by
the code that draws it for a release. So the likelihood ratio of whole transcripts is seen far out in its
tail, where it proves most; the mechanism itself need not run for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evidence.bounds import epsilon_bound, mu_bound
from dpsynth_cli.evidence.likelihood import CERTAIN, Told
from dpsynth_cli.questions import Floats
from dpsynth_cli.trusted.core.curator import noise_for
from dpsynth_cli.trusted.noise.words import Words

AT_ONCE = 1 << 20  # integers drawn together
THRESHOLDS = 300


def ratios(told: Sequence[Told], omega: Domain, first: bool, count: int, source: Words) -> Floats:
    """The logarithms of the likelihood ratios of fresh transcripts: of the first table, or the second."""
    total = np.zeros(count)
    for each in told:
        if not each.moved.any():
            continue  # says nothing
        size = sum(each.charge.lengths)
        step = max(1, AT_ONCE // size)
        for start in range(0, count, step):
            n = min(step, count - start)
            many = replace(each.charge, lengths=each.charge.lengths * n)
            noise = noise_for(many, omega, source).reshape(n, size)
            total[start : start + n] += each.log_ratios(noise, first)
    return np.clip(total, -CERTAIN, CERTAIN)


def proved(
    told: Sequence[Told],
    omega: Domain,
    count: int,
    delta: float,
    alpha: float,
    gaussian: bool,
    source: Words,
) -> tuple[float, float]:
    """What `count` fresh transcripts of each table prove, but with probability alpha: epsilon, and mu where
    the noise is Gaussian (else 0). The event of each is chosen by a quarter as many that do not count."""
    pilot = [ratios(told, omega, first, max(1, count // 4), source) for first in (True, False)]
    fresh = [ratios(told, omega, first, count, source) for first in (True, False)]
    kinds = (False, True) if gaussian else (False,)
    found = [_bound(pilot, fresh, delta, alpha / len(kinds), kind) for kind in kinds]
    return found[0], found[1] if gaussian else 0.0


def _bound(pilot: list[Floats], fresh: list[Floats], delta: float, alpha: float, as_mu: bool) -> float:
    best, chosen = -1.0, (0.0, False)
    for swapped in (False, True):
        one, other = (-pilot[1], -pilot[0]) if swapped else (pilot[0], pilot[1])
        thresholds = _thresholds(one, other)
        shown = _proved(one, other, thresholds, delta, alpha, as_mu)
        top = int(np.argmax(shown))
        if shown[top] > best:
            best, chosen = float(shown[top]), (float(thresholds[top]), swapped)
    threshold, swapped = chosen
    one, other = (-fresh[1], -fresh[0]) if swapped else (fresh[0], fresh[1])
    return float(_proved(one, other, np.array([threshold]), delta, alpha, as_mu)[0])


def _proved(
    one: Floats, other: Floats, thresholds: Floats, delta: float, alpha: float, as_mu: bool
) -> Floats:
    hits, others = (
        (len(values) - np.searchsorted(np.sort(values), thresholds, "left")).astype(np.float64)
        for values in (one, other)
    )
    if as_mu:
        return mu_bound(hits, others, len(one), alpha)
    return epsilon_bound(hits, others, len(one), delta, alpha)


def _thresholds(one: Floats, other: Floats) -> Floats:
    """Quantiles of both, closer together far out; a little below, so that equal ratios stay together."""
    tail = np.geomspace(1.0, 1 / len(one), THRESHOLDS)
    both = np.concatenate([np.quantile(values, 1 - tail, method="nearest") for values in (one, other)])
    return np.unique(both) - 1e-9
