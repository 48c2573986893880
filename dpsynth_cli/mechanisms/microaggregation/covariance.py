"""The covariance of one-hot rows between attributes, from one noisy Gram matrix; and what of it is noise.

Where every attribute has two cells a row is one sign an attribute, s in {-1, 1}, and one sum of s_i s_j says
what four cells of a pair table say: Cov = (E s_i s_j - E s_i E s_j) / 4, with half the noise. Of the two
questions that ask for it (`Gram` with scores, `Moments` of degree 2) the one with less noise is asked.

Noise has eigenvalues up to an edge of its own: an axis below it is the noise's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.numeric.pairs import pair_tables
from dpsynth_cli.questions import Answer, Ask, Bins, Floats, Gram, Ints, Moments, Question

DRAWS, FEW = 4, 300  # how often noise is drawn again, where there are at most so many cells
BITS = 10  # of a sign in `Moments`
CORRELATION = 0.15  # what two one-hot cells of different attributes may be expected to have


@dataclass(frozen=True, eq=False)
class Covariance:
    """Of one class: as seen; with each entry kept as far as its noise allows; and the noise's edge."""

    seen: Floats
    kept: Floats
    edge: float


def question(
    ask: Ask, omega: Domain, axes: Sequence[Bins], cells: Sequence[int], share: Fraction
) -> Question:
    """What is asked for the covariance of attributes with so many cells."""
    d = len(axes)
    if any(count != 2 for count in cells):
        return Question("gram", Gram(tuple(axes)), share, omega.strata)
    signs = Question("gram", Gram(tuple(axes), scores=((-1, 1),) * d, bits=1), share, omega.strata)
    columns = [omega[axis.column] for axis in axes]
    if any(column.size != 2 or column.nullable or column.type == "nominal" for column in columns):
        return signs
    # On a fine grid the noise of moments can be drawn from a cube: without a delta 0.41 of Laplace noise.
    moments = Question("gram", Moments(tuple(c.name for c in columns), BITS, 2), share, omega.strata)
    return min(signs, moments, key=lambda one: ask.sd(one) / _unit(one))


def expected_edge(asked: Question, sd: float, cells: Sequence[int], n: float) -> float:
    """The noise's edge before anything is asked, as if all cells were alike."""
    if _signed(asked):
        return 4 * sd / _unit(asked) / (4 * n) * math.sqrt(len(cells))
    return 2 * sd / n * math.sqrt(sum(count - 1 for count in cells))


def covariances(
    asked: Question, answer: Answer, attributes: Sequence[Attribute], totals: Floats
) -> list[Covariance]:
    """One a class; `totals` are their numbers of rows."""
    found = []
    for k, block in enumerate(answer.blocks):
        n = max(1.0, float(totals[k]))
        means = [a.masses(k) / n for a in attributes]
        found.append(
            _of_signs(_products(asked, block, len(means)), means, n, answer.sd / _unit(asked))
            if _signed(asked)
            else _of_tables(block, means, n, answer.sd)
        )
    return found


def _signed(asked: Question) -> bool:
    return isinstance(asked.statistic, Moments) or (
        isinstance(asked.statistic, Gram) and asked.statistic.scores is not None
    )


def _unit(asked: Question) -> int:
    """What s_i s_j is in the integers of the answer."""
    return (2**asked.statistic.bits - 1) ** 2 if isinstance(asked.statistic, Moments) else 1


def _products(asked: Question, block: Ints, d: int) -> Floats:
    """Sums of s_i s_j as a symmetric matrix with an empty diagonal."""
    upper = np.triu_indices(d, 0 if isinstance(asked.statistic, Moments) else 1)
    whole = np.zeros((d, d))
    whole[upper] = block / _unit(asked)
    whole = np.triu(whole, 1)
    return np.asarray(whole + whole.T)


def _of_signs(sums: Floats, means: Sequence[Floats], n: float, sd: float) -> Covariance:
    upper = np.array([mean[1] for mean in means])
    sign = 2 * upper - 1
    seen = (sums / n - np.outer(sign, sign)) / 4
    keep = _part(upper * (1 - upper), upper * (1 - upper), sd / (4 * n))
    np.fill_diagonal(seen, 0.0)
    np.fill_diagonal(keep, 0.0)
    edge = _edge(keep * sd / (4 * n))
    # Cells (1 - x, x) of two attributes: the covariance with both signs, eigenvalues twice as large.
    cells = np.array([[1.0, -1.0], [-1.0, 1.0]])
    return Covariance(np.kron(seen, cells), np.kron(keep * seen, cells), 2 * edge)


def _of_tables(block: Ints, means: Sequence[Floats], n: float, sd: float) -> Covariance:
    first = np.cumsum([0, *map(len, means)])
    seen, keep = np.zeros((first[-1], first[-1])), np.zeros((first[-1], first[-1]))
    for (i, j), table in pair_tables(block, [len(mean) for mean in means]).items():
        one, other = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
        own = _centred(table / n - np.outer(means[i], means[j]))
        part = _part(means[i] * (1 - means[i]), means[j] * (1 - means[j]), sd / n)
        seen[one, other], seen[other, one] = own, own.T
        keep[one, other], keep[other, one] = part, part.T
    return Covariance(seen, keep * seen, _edge(keep * sd / n, first))


def _centred(table: Floats) -> Floats:
    """Row and column sums of a pair's covariance are 0, so they are taken out."""
    return np.asarray(
        table + table.mean() - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True)
    )


def _edge(noise: Floats, first: Ints | None = None) -> float:
    """The largest eigenvalue of noise with entries of these standard deviations, as it comes out when it is
    drawn again: normal numbers of a fixed seed, the mean of a few draws. `first`: where attributes begin;
    their tables are without row and column sums.

    >>> 0.9 < _edge(np.full((100, 100), 0.05)) < 1.1
    True
    """
    rng, found = np.random.default_rng(0), []
    for _ in range(DRAWS if len(noise) <= FEW else 1):
        drawn = np.triu(rng.standard_normal(noise.shape), 1)
        for start, end in pairwise([] if first is None else first.tolist()):
            drawn[start:end, end:] -= drawn[start:end, end:].mean(axis=0)
            drawn[:start, start:end] -= drawn[:start, start:end].mean(axis=1, keepdims=True)
        found.append(float(np.linalg.eigvalsh(noise * (drawn + drawn.T))[-1]))
    return float(np.mean(found))


def _part(one: Floats, other: Floats, noise: float) -> Floats:
    """Of each entry the part that its likely square has of itself and the noise's: rare cells, whose entries
    are small and many, would turn the axes otherwise."""
    likely = CORRELATION**2 * np.outer(one, other)
    return np.asarray(likely / np.maximum(likely + noise**2, 1e-300))
