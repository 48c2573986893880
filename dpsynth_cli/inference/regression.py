"""Least squares and logistic regressions with a weight a row."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from dpsynth_cli.questions import Floats, Ints

STEPS = 50
SEPARATED = 15.0  # a log-odds that no table of rows can show
TOLERANCE = 1e-9  # of a standardised column, below which it is a sum of others


def least_squares(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Coefficients of columns of x, the first of which is the constant; not a number where undetermined."""
    return _solved(x.T @ (x * weight[:, None]), x.T @ (weight * y))


def logistic(x: Floats, y: Floats, weight: Floats, near: Floats | None = None) -> Floats:
    """The same for a y of 0 and 1, by Newton's method; not a number where it does not come to rest (classes
    that a line separates have no finite estimate). From what is likely to be near, it is there sooner."""
    if near is not None and np.isfinite(near).all():
        found = _newton(x, y, weight, near.copy())
        if np.isfinite(found).all():
            return found
    return _newton(x, y, weight, np.zeros(x.shape[1]))


def distinct(x: Floats, y: Floats) -> tuple[Floats, Floats, Ints]:
    """Each row of x with its y once, and the place of every row among these."""
    _, first, place = np.unique(np.column_stack([x, y]), axis=0, return_index=True, return_inverse=True)
    return x[first], y[first], place.ravel()


def _newton(x: Floats, y: Floats, weight: Floats, beta: Floats) -> Floats:
    undetermined = np.isnan(_solved(x.T @ (x * weight[:, None]), np.zeros(x.shape[1])))
    if weight.sum() <= 0:
        return np.full(x.shape[1], np.nan)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        step = _solved(x.T @ (x * (weight * chance * (1 - chance))[:, None]), x.T @ (weight * (y - chance)))
        step = np.nan_to_num(step)
        largest = float(np.abs(step * np.sqrt(np.average(x**2, axis=0, weights=weight))).max(initial=0.0))
        beta += step * min(1.0, 4.0 / max(largest, 1e-300))
        if largest < 1e-8:
            separated = float(np.abs(x @ beta).max(initial=0.0)) > SEPARATED
            return np.where(undetermined | separated, np.nan, beta)
    return np.full(x.shape[1], np.nan)


def _solved(products: Floats, right: Floats) -> Floats:
    """The solution in the columns that are not constant nothing; each that is a sum of earlier ones is left
    out."""
    size = np.sqrt(np.maximum(np.diag(products), 0.0))
    kept: list[int] = []
    scale = np.where(size > 0, size, 1.0)
    normal = products / np.outer(scale, scale)
    with suppress(np.linalg.LinAlgError):
        lower = np.linalg.cholesky(normal)
        if (np.diag(lower) ** 2 > TOLERANCE).all():
            half = np.linalg.solve(lower, right / scale)
            return np.asarray(np.linalg.solve(lower.T, half) / scale)
    lower = np.zeros((0, 0))
    for j in range(len(size)):  # a Cholesky factor that passes over what depends on columns before
        if size[j] <= 0:
            continue
        row = np.zeros(len(kept))
        for i in range(len(kept)):
            row[i] = (normal[j, kept[i]] - lower[i, :i] @ row[:i]) / lower[i, i]
        left = normal[j, j] - row @ row
        if left > TOLERANCE:
            grown = np.zeros((len(kept) + 1, len(kept) + 1))
            grown[:-1, :-1], grown[-1, :-1], grown[-1, -1] = lower, row, np.sqrt(left)
            lower = grown
            kept.append(j)
    found = np.full(len(size), np.nan)
    if kept:
        half = np.linalg.solve(lower, right[kept] / scale[kept])
        found[kept] = np.linalg.solve(lower.T, half) / scale[kept]
    return found
