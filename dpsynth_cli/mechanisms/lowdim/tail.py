"""How large the noise of lowdim's sums is: what it can hide of the rows' squared distances from the axes.

S = sum of x x^T + A, s_k = sum of x over class k + a_k and n_k + e_k are told. For the private means m_k, and
P = I - V V^T, the rows' B = sum of (x - m_k)(x - m_k)^T over all classes has

    tr(P^2 B) = tr(P^2 B') - tr(P^2 A) + 2 sum a_k P^2 m_k - sum e_k m_k P^2 m_k,

B' being B as told. V and m_k follow from the noise, so nothing is said of means here; the claim is for all V
and m_k together, where A, a and e are no larger than they were in N simulations:

- V = Q S, Q orthonormal, S^2 = V^T V = I + E. So I - P^2 = V (I - E) V^T = Q (I - E^2) Q^T has rank k, and
  eigenvalues between 0 and 1 where |E| <= 1. So -tr(P^2 A) <= -tr(A) + the sum of A's k largest eigenvalues,
  as far as these are above 0.
- |sum a_k P^2 m_k| <= |a| (sum |P^2 m_k|^2)^(1/2), and the like for e (Cauchy and Schwarz). A size that was
  told below 1 was taken for 1: of an empty class that is too much, which makes B' no smaller.
- Each of these numbers is measured against what a first series of simulations has of it; the largest of these
  measures is, as one of N + 1 alike, above all of N others with probability 1 / (N + 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.mechanisms.lowdim.classes import Sums
from dpsynth_cli.questions import Floats

MOST, LEAST = 100, 30  # simulations
WORK = 10**9  # that they may take: classes times coordinates cubed, each time


@dataclass(frozen=True)
class Noises:
    """The kinds of noise of second moments, of the sums of x and of the sizes."""

    second: str
    first: str
    sizes: str


@dataclass(frozen=True)
class Noise:
    """What it is at most, but for a chance: -tr(A) and the largest eigenvalues of all A; the largest
    eigenvalue of any -A; the lengths of a and of e; how many classes have a size that was told."""

    tail: float
    largest: float
    first: float
    sizes: float
    told: int
    chance: float

    @property
    def of_rows(self) -> float:
        """By how many rows their number is told too large."""
        return math.sqrt(self.told) * self.sizes + self.told

    def of_means(self, left: Floats, right: Floats) -> float:
        """2 sum a_k left_k - sum e_k left_k right_k."""
        squares = np.abs((left * right).sum(axis=1))
        return 2 * self.first * float(np.linalg.norm(left)) + self.sizes * float(np.linalg.norm(squares))


def noise_of(sums: Sums, noises: Noises, shapes: Sequence[tuple[int, int]]) -> Noise:
    """For matrices of so many coordinates, with so many axes each: simulated, never a release's own."""
    rng = np.random.default_rng(0)
    count = int(min(MOST, max(LEAST, WORK // (len(shapes) * shapes[0][0] ** 3))))
    seen = np.array([_stats(sums, noises, shapes, rng) for _ in range(2 * count)])
    mean, spread = seen[:count].mean(axis=0), seen[:count].std(axis=0)
    measures = (seen[count:] - mean) / np.maximum(spread, 1e-300)
    most = mean + spread * max(0.0, float(measures[:, spread > 0].max(initial=0.0)))
    told = len(sums.sizes) if sums.size_noise > 0 else 0
    tail, largest, first, sizes = most.tolist()
    return Noise(tail, largest, first, sizes, told, 1 / (count + 1))


def _stats(
    sums: Sums, noises: Noises, shapes: Sequence[tuple[int, int]], rng: np.random.Generator
) -> tuple[float, float, float, float]:
    tail = largest = 0.0
    variance = sums.second_noise if sums.by_class is None else sums.class_noise
    for d, k in shapes:
        matrix = np.zeros((d, d))
        matrix[np.triu_indices(d)] = drawn(noises.second, math.sqrt(variance), d * (d + 1) // 2, rng)
        values = np.linalg.eigvalsh(matrix + np.triu(matrix, 1).T)
        tail += float(np.maximum(values[d - k :], 0.0).sum() - values.sum())
        largest = max(largest, float(-values[0]))
    K, d = sums.first.shape
    first = [drawn(noises.first, math.sqrt(sums.first_noise), d, rng) for _ in range(K)]
    sizes = drawn(noises.sizes, math.sqrt(sums.size_noise), K, rng)
    return tail, largest, float(np.linalg.norm(first)), float(np.linalg.norm(sizes))


def drawn(kind: str, sd: float, count: int, rng: np.random.Generator) -> Floats:
    """Noise of one block for a simulation. From a cube: all numbers are uniform up to one common radius."""
    if kind == "discrete_cube":
        radius = rng.gamma(count + 1) * math.sqrt(3 / ((count + 1) * (count + 2)))
        return np.asarray(sd * radius * rng.uniform(-1.0, 1.0, count))
    if kind == "discrete_laplace":
        return np.asarray(rng.laplace(0.0, sd / math.sqrt(2), count))
    return np.asarray(rng.normal(0.0, sd, count))
