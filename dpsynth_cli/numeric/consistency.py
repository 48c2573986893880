"""Noisy counts on a binary tree made consistent: children add up to their parent, nothing is negative.

Two passes. Upwards (`combined`) every node gathers what was measured at it and below it, by least squares
(Hay, Rastogi, Miklau and Suciu, PVLDB 3, 2010), or takes the noisy counts as they are (`as_counted`).
Downwards (`descend`) each parent is divided between its two children by a rule: `clipped`, `uniform` and
`proportional` are Algorithm 3 of He, Vershynin and Zhu; `posterior` is the default of pmm.

Counts are given by level, level j with 2^j nodes by path from the root; None is a level that nobody
measured. `room` is how many combinations of codes each leaf holds: where it is 0 no row can be, so the
count there is 0 and has no variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.exact import exp

Floats: TypeAlias = NDArray[np.float64]


class Siblings(NamedTuple):
    """All pairs of children of one level, left and right, and their parents."""

    left: Floats  # what is known of the left child, the right child
    right: Floats
    left_variance: Floats
    right_variance: Floats
    parent: Floats  # how much is to be divided
    room: Floats  # the left child's part of the parent's room, in [0, 1]


Rule: TypeAlias = Callable[[Siblings], Floats]  # how much of the parent goes to the left child


def pyramid(leaves: Floats) -> list[Floats]:
    """The sums of all levels, root first.

    >>> [level.tolist() for level in pyramid(np.array([1.0, 2.0, 3.0, 4.0]))]
    [[10.0], [3.0, 7.0], [1.0, 2.0, 3.0, 4.0]]
    """
    levels = [leaves]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0][::2] + levels[0][1::2])
    return levels


def combined(
    counts: Sequence[Floats | None], variances: Sequence[float], room: Floats
) -> tuple[list[Floats], list[Floats]]:
    """For each node the least squares estimate from all counts at and below it, and its variance."""
    depth = len(counts) - 1
    estimates: list[Floats] = [np.zeros(0)] * (depth + 1)
    spread: list[Floats] = [np.zeros(0)] * (depth + 1)
    leaf = counts[depth]
    assert leaf is not None, "the leaves must be measured"
    estimates[depth] = np.where(room > 0, leaf, 0.0)
    spread[depth] = np.where(room > 0, max(variances[depth], 1e-12), 0.0)
    for j in range(depth - 1, -1, -1):
        below = estimates[j + 1][::2] + estimates[j + 1][1::2]
        variance = spread[j + 1][::2] + spread[j + 1][1::2]
        own = counts[j]
        if own is not None:
            trust = variance / (variance + max(variances[j], 1e-12))  # 0 where no row can be
            below, variance = below + trust * (own - below), (1 - trust) * variance
        estimates[j], spread[j] = below, variance
    return estimates, spread


def as_counted(counts: Sequence[Floats | None], room: Floats) -> list[Floats]:
    """The noisy counts themselves, negative ones as 0; the sum of the children where not measured."""
    estimates: list[Floats] = []
    possible = pyramid(room)
    for j in range(len(counts) - 1, -1, -1):
        own = counts[j]
        level = estimates[0][::2] + estimates[0][1::2] if own is None else np.maximum(own, 0.0)
        estimates.insert(0, np.where(possible[j] > 0, level, 0.0))
    return estimates


def descend(
    root: float, estimates: Sequence[Floats], spread: Sequence[Floats] | None, room: Floats, rule: Rule
) -> Floats:
    """The leaves, when each parent from the root down is divided between its children by `rule`."""
    rooms = pyramid(room)
    parent = np.array([max(float(root), 0.0)])
    for j in range(1, len(estimates)):
        pair = estimates[j].reshape(-1, 2)
        known = np.zeros_like(pair) if spread is None else spread[j].reshape(-1, 2)
        share = rooms[j][::2] / np.maximum(rooms[j - 1], 1e-300)
        left = rule(Siblings(pair[:, 0], pair[:, 1], known[:, 0], known[:, 1], parent, share))
        left = np.clip(left, 0.0, parent, out=left)
        left[share <= 0] = 0.0
        np.copyto(left, parent, where=share >= 1)
        children = np.empty(2 * len(parent))
        children[::2] = left
        np.subtract(parent, left, out=children[1::2])
        parent = children
    return parent


# --- rules: how much goes to the left child ----------------------------------------------------------


def clipped(pair: Siblings) -> Floats:
    """What is missing or too much goes to the children by their variances, and nobody goes below 0."""
    both = pair.left_variance + pair.right_variance
    part = np.divide(pair.left_variance, both, out=np.full_like(both, 0.5), where=both > 0)
    return pair.left + part * (pair.parent - pair.left - pair.right)


def uniform(pair: Siblings) -> Floats:
    """The nearest point with whole numbers: half of what is missing to each; the odd one in turn."""
    turn = 0.5 * (np.arange(len(pair.left)) % 2)
    return pair.left + np.floor((pair.parent - pair.left - pair.right) / 2 + turn)


def proportional(pair: Siblings) -> Floats:
    """As the children are to each other, in whole numbers; by room where both are 0."""
    both = pair.left + pair.right
    part = np.divide(pair.left, both, out=pair.room.copy(), where=both > 0)
    return np.asarray(np.rint(pair.parent * part))


def posterior(pair: Siblings) -> Floats:
    """Empirical-Bayes shrinkage: the posterior mean under a mixture prior whose weights are fitted by EM.

    Of x, how many of p rows are on the left, the mixture has three components: all rows are on one side; rows
    fall as the room is, x ~ N(fp, f(1-f)p); or x is uniform in [0, p]. The weights are fitted to the splits
    of the same level. Where counts say much this is `clipped`; where they are mostly noise, an empty side
    stays empty and an even split even.
    """
    pairs = len(pair.parent)
    sample = Siblings(*(part[:: -(-pairs // SAMPLE)] for part in pair))
    of_sample = _components(sample)
    weights = _em_weights(sample, of_sample[0])
    left = np.empty(pairs)
    for at in range(0, pairs, SAMPLE):  # in pieces that stay in the cache
        part = slice(at, at + SAMPLE)
        here = _components(Siblings(*(array[part] for array in pair))) if pairs > SAMPLE else of_sample
        joint = [weight * likelihood for weight, likelihood in zip(weights, here[0], strict=True)]
        evidence = joint[0] + joint[1] + joint[2]  # no matrix product: its last bits differ between machines
        mean = joint[0] * here[1][0] + joint[1] * here[1][1] + joint[2] * here[1][2]
        left[part] = mean / evidence
    return left


def normal_cdf(x: Floats) -> Floats:
    """P(Z <= x) of a standard normal Z, exact in the lower tail too. By `math`: scipy takes longer to import
    than most releases to fit.

    >>> normal_cdf(np.array([-40.0, -1.0, 0.0, 1.0])).round(6).tolist()
    [0.0, 0.158655, 0.5, 0.841345]
    """
    return np.fromiter(map(math.erfc, (x * -math.sqrt(0.5)).tolist()), np.float64, len(x)) / 2


SAMPLE = 2**14  # splits that the weights are fitted to
PRIOR = np.array([0.5, 0.25, 0.25])  # before any split was seen; worth four splits


def _components(pair: Siblings) -> tuple[Floats, Floats]:
    """The likelihood of what was counted under each component, and the posterior mean of x under it."""
    p, f, seen = pair.parent, pair.room, clipped(pair)
    both = pair.left_variance + pair.right_variance
    tau2 = np.divide(pair.left_variance * pair.right_variance, both, out=np.zeros_like(both), where=both > 0)
    tau2 = np.maximum(tau2, 1e-12)
    tau, natural = np.sqrt(tau2), f * (1 - f) * p

    def normal(x: Floats, sd: Floats) -> Floats:
        return np.asarray(exp(-0.5 * (x / sd) ** 2) / (np.sqrt(2 * np.pi) * sd))

    nothing, everything = normal(seen, tau), normal(seen - p, tau)
    one_side = (nothing + everything) / 2
    even = normal(seen - f * p, np.sqrt(tau2 + natural))
    side = np.where(seen < 0, -1.0, 1.0)  # of the two tails the one that is not rounded to 1
    inside = np.abs(normal_cdf(side * (p - seen) / tau) - normal_cdf(side * -seen / tau))
    inside = np.maximum(inside, 1e-280)  # never nothing: then x is what was seen
    likelihoods = np.stack([one_side, even, inside / np.maximum(p, 1e-9)])
    means = np.stack(
        [
            p * np.divide(everything, 2 * one_side, out=np.full_like(p, 0.5), where=one_side > 0),
            f * p + (seen - f * p) * natural / (natural + tau2),
            seen + tau2 * (nothing - everything) / inside,
        ]
    )
    return likelihoods, means


def _em_weights(pair: Siblings, likelihoods: Floats) -> Floats:
    """The weights of the components among these splits, by four rounds of EM from PRIOR."""
    left, right = pair.left_variance, pair.right_variance
    above = 4 * pair.parent**2 * (left + right) > left * right  # rows are not far below their noise
    real = above & (pair.room > 0) & (pair.room < 1)
    likelihoods = likelihoods[:, real & (likelihoods.sum(axis=0) > 1e-200)]
    weights = PRIOR
    for _ in range(4):
        joint = weights[:, None] * likelihoods
        weights = 4 * PRIOR + (joint / joint.sum(axis=0)).sum(axis=1)
        weights = weights / weights.sum()
    return np.round(weights, 6)
