"""NOT PRIVATE: the latent-factor paper's Algorithms 1 to 3 as they were printed, on simulated rows, to see where its figures come from.

    python -m benchmarks papers.not_private [--runs 6] [--epsilon 0.1 5]

Zhang, Xu, Tang and Qu. None of these forms may be run on rows of real people: sorted noise (E27) and true thresholds (E29)
tell single records, r and the weights follow true eigenvalues (E30), rows and columns are scaled by their own data (E31).
`as printed` is every line of the paper, the label a nominal column like the others. `raw label` keeps every row's true label.
`without C` leaves out the noise of the factor matrix, which is all that hides a row's own coordinates. The paper's AUC comes out
only with both (E33). Judged as in `papers.factors`, but that the real rows of its validation belong to the synthetic ones,
as in the paper.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Finding, need, releases
from benchmarks.papers.factors import PAPER, Codes, simulated_rows, two_aucs
from dpsynth_cli.domain import GRID, Domain

FORMS = {
    "as printed": (False, True),
    "raw label": (True, True),
    "without C": (False, False),
    "raw label, without C": (True, False),
}
THRESHOLD = 0.8  # c, of the rule for the number of factors


def options(parser: argparse.ArgumentParser) -> None:
    releases(parser, 6, (0.1, 5.0))


def truncated(low: np.ndarray, high: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Standard normals between these ends."""
    from scipy.special import ndtr, ndtri

    a, b = ndtr(low), ndtr(high)
    return np.asarray(ndtri(np.clip(a + (b - a) * rng.random(len(a)), 1e-12, 1 - 1e-12)))


def latent(
    omega: Domain, codes: Codes, names: list[str], rng: np.random.Generator
) -> tuple[np.ndarray, list[slice]]:
    """X*, by the links (5): numbers as they are, thresholds for ordinals, multinomial probit for nominals."""
    from scipy.special import ndtri

    parts, slices, at = [], [], 0
    for name in names:
        column, own = omega[name], codes[name]
        if not column.categorical:
            block = (own / GRID * 8 - 4)[:, None]
        elif column.type == "ordinal":
            ends = ndtri(np.append(0, np.cumsum(np.bincount(own, minlength=column.codes))) / len(own))
            block = truncated(ends[own], ends[own + 1], rng)[:, None]
        else:
            block = -np.abs(rng.standard_normal((len(own), column.codes - 1)))
            there = np.flatnonzero(own > 0)
            block[there, own[there] - 1] = np.abs(rng.standard_normal(len(there)))
        parts.append(block)
        slices.append(slice(at, at + block.shape[1]))
        at += block.shape[1]
    return np.hstack(parts), slices


def algorithm_1(
    x: np.ndarray, epsilon_1: float, epsilon_2: float, with_c: bool, rng: np.random.Generator
) -> np.ndarray:
    """Perturbed eigenvectors, factors with noise C, and back."""
    p = x.shape[1]
    values, vectors = np.linalg.eigh(x.T @ x)
    values, vectors = values[::-1], vectors[:, ::-1]
    r = int(np.searchsorted(np.cumsum(values) / values.sum(), THRESHOLD)) + 1
    weights = values[:r] / values[:r].sum()
    noisy = vectors[:, :r] + rng.laplace(0.0, 2 * math.sqrt(p) / (weights * epsilon_1), (p, r))
    left, _, right = np.linalg.svd(noisy, full_matrices=False)
    loadings = left @ right
    factors = x @ loadings
    if with_c:
        factors = factors + rng.laplace(0.0, 2 * r / epsilon_2, factors.shape)
    return np.asarray(factors @ loadings.T)


def algorithm_3(
    omega: Domain, codes: Codes, epsilon: float, raw_label: bool, with_c: bool, rng: np.random.Generator
) -> Codes:
    """All of it, a third of epsilon each."""
    from scipy.special import ndtri

    names = [c.name for c in omega if not (raw_label and c.name == "y")]
    x, slices = latent(omega, codes, names, rng)
    scale = np.abs(x).max(axis=0)
    x = x / scale
    norms = np.linalg.norm(x, axis=1).max()
    made = algorithm_1(x / norms, epsilon / 3, epsilon / 3, with_c, rng) * norms * scale
    rows: Codes = {"y": codes["y"]} if raw_label else {}
    for name, part in zip(names, slices, strict=True):
        column, block = omega[name], made[:, part]
        if not column.categorical:
            rows[name] = ((np.clip(block[:, 0], -4, 4) + 4) / 8 * (GRID - 1)).astype(np.int64)
        elif column.type == "ordinal":
            own, levels = codes[name], column.codes
            seen = np.append(0, np.cumsum(np.bincount(own, minlength=levels))) / len(own)
            noisy = seen + np.sort(rng.laplace(0.0, (levels - 1) / len(own) / (epsilon / 3), levels + 1))
            ends = ndtri((noisy - noisy.min()) / (noisy.max() - noisy.min()))
            rows[name] = np.clip(np.searchsorted(ends[1:-1], block[:, 0], side="right"), 0, levels - 1)
        else:
            rows[name] = np.where(block.max(axis=1) > 0, block.argmax(axis=1) + 1, 0)
    return rows


def where_it_comes_from(given: argparse.Namespace) -> Iterator[Finding]:
    """Settings (I) and (II), AR-1, n = 200."""
    need("sklearn")
    for setting in ("I", "II"):
        for epsilon in given.epsilon:
            for form, (raw_label, with_c) in FORMS.items():
                found = []
                for run in range(given.runs):
                    rng = np.random.default_rng(run)
                    omega, codes = simulated_rows(setting, False, 200, rng)
                    made = algorithm_3(omega, codes, epsilon, raw_label, with_c, rng)
                    found.append(two_aucs(omega, made, codes, run))
                testing, validating = np.mean(found, axis=0)
                paper = PAPER.get((f"{setting}, AR-1", epsilon), (None, None))
                yield {"setting": f"{setting}, AR-1", "epsilon": epsilon, "form": form, "AUC testing": float(testing),
                       "the paper's": paper[0], "AUC validating": float(validating), "the paper's ": paper[1]}  # fmt: skip


PARTS = {"where_it_comes_from": where_it_comes_from}
DEFAULT = ("where_it_comes_from",)
