"""Latent scores and their correlation from noisy pair tables.

What two columns have to do with each other is the residual of their table, T - p q^T. All residuals, divided
by sqrt((p_c + lambda)(p_c' + lambda)), are one symmetric matrix Z, a correspondence analysis of all columns
at once; its first eigenvectors are the factors that columns share, and a column's scores are its part of
them. lambda, a multiple of the noise, keeps rare cells, whose entries are mostly noise, from being heard.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.spectrum import axes

Floats: TypeAlias = NDArray[np.float64]

DAMPING = 60.0  # lambda in units of the noise of a cell
SURE = 2.0  # standard deviations of its noise that a correlation is shrunk by
NEW = 0.3  # of a factor's part in a column, what must be new in it to be a score of its own
FAINT = 0.2  # the least part of a latent dimension that a link is trusted to carry
ROUNDS = 30  # of the projection on correlation matrices
LEAST = 1e-4  # the least eigenvalue of a correlation matrix


def residual(table: Floats, p: Floats, q: Floats) -> Floats:
    """What a noisy table of frequencies has beyond p q^T, its sums over rows and columns made 0 again."""
    rest = table - np.outer(p, q)
    return np.asarray(rest - rest.mean(axis=0) - rest.mean(axis=1)[:, None] + rest.mean())


def column_scores(
    residuals: Mapping[tuple[int, int], Floats], masses: Sequence[Floats], tau: float, most: int
) -> list[Floats]:
    """The scores of each column's cells (cells x dimensions, perhaps none), at most `most` each.

    `residuals` are those of the pairs i < j, `masses` add up to 1, tau is the noise of a table's cell. In a
    column scores have mean 0, variance 1 and no correlation, over its masses.
    """
    ends = np.cumsum([len(p) for p in masses])
    parts = [slice(end - len(p), end) for end, p in zip(ends, masses, strict=True)]
    weight = np.sqrt(np.concatenate(masses) + DAMPING * tau + 1e-9)[:, None]
    z, heard = np.zeros((ends[-1], ends[-1])), np.full((ends[-1], ends[-1]), tau**2)
    for (i, j), rest in residuals.items():
        z[parts[i], parts[j]], z[parts[j], parts[i]] = rest, rest.T
    for part in parts:
        heard[part, part] = 0.0
    noise = math.sqrt(float((heard / (weight @ weight.T) ** 2).sum())) / len(z)
    found = axes(z / (weight @ weight.T), noise)
    factors = (found.vectors * found.values)[:, :most]
    return [
        _standard(_orthogonal(factors[part]) / weight[part], p) for part, p in zip(parts, masses, strict=True)
    ]


def correlations(
    residuals: Mapping[tuple[int, int], Floats],
    scores: Sequence[Floats],
    carried: Sequence[Floats],
    tau: float,
) -> Floats:
    """The latent correlations that give these residuals: those of the scores, less `SURE` deviations of their
    noise, divided by what the links carry; 1 inside a column."""
    ends = np.cumsum([phi.shape[1] for phi in scores])
    parts = [slice(end - phi.shape[1], end) for end, phi in zip(ends, scores, strict=True)]
    undone = [_undone(a) for a in carried]
    lengths = [np.sqrt((phi**2).sum(axis=0)) for phi in scores]
    matrix = np.eye(int(ends[-1]))
    for i, j in combinations(range(len(scores)), 2):
        seen = scores[i].T @ residuals[i, j] @ scores[j]
        sure = np.maximum(np.abs(seen) - SURE * tau * np.outer(lengths[i], lengths[j]), 0.0)
        latent = undone[i] @ (np.sign(seen) * sure) @ undone[j].T
        matrix[parts[i], parts[j]], matrix[parts[j], parts[i]] = latent, latent.T
    return matrix


def nearest_correlation(matrix: Floats, dimensions: Sequence[int], rank: int | None = None) -> Floats:
    """A positive definite correlation matrix near this one, with blocks of these dimensions as identities.

    With `rank`: that many factors, and a diagonal for what they leave.

    >>> nearest_correlation(np.array([[1.0, 1.2], [1.2, 1.0]]), [1, 1]).round(2).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    near: Floats = matrix.copy()
    if not len(near):
        return near
    blocks = np.repeat(np.arange(len(dimensions)), dimensions)
    same = blocks[:, None] == blocks[None, :]
    for _ in range(ROUNDS):
        near = _definite(near)
        near[same] = np.eye(len(near))[same]
    if rank is not None and rank < len(near):
        values, vectors = np.linalg.eigh(near)
        loadings = vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0))
        loadings /= np.maximum(1.0, np.sqrt((loadings**2).sum(axis=1)))[:, None]
        near = loadings @ loadings.T
        np.fill_diagonal(near, 1.0)
    near = _definite(near)
    scale = np.sqrt(np.diag(near))
    return np.asarray(near / np.outer(scale, scale))


def _undone(carried: Floats) -> Floats:
    """The inverse of what a link carries, enlarging nothing by more than 1 / FAINT."""
    if not carried.size:
        return carried
    left, values, right = np.linalg.svd(carried)
    return np.asarray((right.T / np.maximum(values, FAINT)) @ left.T)


def _definite(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, LEAST)) @ vectors.T)


def _orthogonal(factors: Floats) -> Floats:
    """An orthonormal basis of a column's part of the factors, in their order, less what adds little."""
    basis: list[Floats] = []
    for part in factors.T:
        new = part - sum((q * (q @ part) for q in basis), np.zeros(len(part)))
        length, whole = np.sqrt(new @ new), np.sqrt(part @ part)
        if len(basis) < len(part) - 1 and length > NEW * whole:
            basis.append(new / length)
    return np.stack(basis, axis=1) if basis else np.zeros((len(factors), 0))


def _standard(scores: Floats, p: Floats) -> Floats:
    """Mean 0, variance 1, uncorrelated over the masses p."""
    scores = scores - p @ scores
    own = (scores * p[:, None]).T @ scores
    values, vectors = np.linalg.eigh(own)
    real = values > 1e-9 * max(1.0, float(values.max(initial=0.0)))
    if not real.all():
        scores, own = scores @ vectors[:, real], np.diag(values[real])
    return np.asarray(np.linalg.solve(np.linalg.cholesky(own), scores.T).T) if own.size else scores[:, :0]
