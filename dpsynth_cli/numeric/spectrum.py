"""Covariances from noisy sums, and which of their axes stand above the noise.

Coordinates y lie in [-1/2, 1/2], the centre of the declared box at 0. A symmetric matrix whose entries
carry independent noise of standard deviation tau has, from the noise alone, eigenvalues up to about
2 tau sqrt(d) (Wigner's semicircle); a true eigenvalue L > r = tau sqrt(d) is seen at l = L + r^2 / L
(Benaych-Georges and Nadakuditi, 2011), so what is seen above the edge 2 r can be undone: that is `axes`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

TIE = 1e-6  # of the largest entry: others that are so near may be larger on another machine


@dataclass(frozen=True, eq=False)
class Axes:
    """Orthonormal columns `vectors`, their eigenvalues as `seen` and without the noise's part (`values`)."""

    vectors: Floats
    seen: Floats
    values: Floats
    edge: float

    def __len__(self) -> int:
        return len(self.values)


def mirrored(upper: NDArray[np.generic], d: int) -> Floats:
    """The symmetric matrix whose upper triangle, row by row, is given.

    >>> mirrored(np.array([1, 2, 3]), 2).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = upper
    return np.asarray(matrix + np.triu(matrix, 1).T)


def noise_edge(tau: float, d: int) -> float:
    """The largest eigenvalue that noise of standard deviation tau an entry gives by itself.

    >>> noise_edge(0.5, 16)
    4.0
    """
    return 2 * tau * math.sqrt(d)


def axes(matrix: Floats, tau: float, keep: int | None = None) -> Axes:
    """The eigenvectors whose eigenvalues stand above the noise edge, or the first `keep`; largest first.

    An eigenvalue below the edge says nothing: its value is 0. Signs are fixed by the largest entry: by the
    first of those that are so but for rounding, as the two of a column of two categories.

    >>> axes(np.diag([5.0, 1.0, 0.1]), 0.5).values.round(3).tolist()
    [4.845]
    """
    seen, vectors = np.linalg.eigh(matrix)
    seen, vectors = seen[::-1], vectors[:, ::-1]
    edge = noise_edge(tau, len(matrix))
    count = int((seen > edge).sum()) if keep is None else min(keep, len(matrix))
    seen, vectors = seen[:count], vectors[:, :count]
    above = np.sqrt(np.maximum(seen**2 - edge**2, 0.0))
    values = np.where(seen > edge, (seen + above) / 2, 0.0)
    size = np.abs(vectors)
    largest = (size > (1 - TIE) * size.max(axis=0, initial=0.0)).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(count)])
    return Axes(vectors * signs, seen, values, edge)


def beyond_noise(difference: Floats, tau: float, size: float) -> Floats:
    """What a noisy symmetric matrix, whose true eigenvalues have either sign, says beyond its noise.

    Each eigenvalue is kept in the part that its square has of itself and the noise's r^2 = tau^2 d; all of
    them in the part that size^2 has, `size` being what they may be expected to be at most. Nothing is cut
    off: this corrects a covariance, and a small wrong correction does little harm.

    >>> beyond_noise(np.diag([1.0, -3.0]), 0.5**0.5, 100.0).round(3).tolist()
    [[0.5, 0.0], [0.0, -2.7]]
    """
    values, vectors = np.linalg.eigh(difference)
    noise = max(tau**2 * len(difference), 1e-300)
    values *= values**2 / (values**2 + noise) * (size**2 / (size**2 + noise))
    return np.asarray((vectors * values) @ vectors.T)


def root(matrix: Floats) -> Floats:
    """F with F F^T the nearest positive semidefinite matrix; as few columns as it has rank."""
    values, vectors = np.linalg.eigh(matrix)
    real = values > 1e-9 * max(float(values[-1]), 1e-12) if len(values) else np.zeros(0, bool)
    return np.asarray(vectors[:, real] * np.sqrt(values[real]))
