"""The noise of a stream's running counts, release after release, as a multiple of one release's."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Finding, pictures, save
from dpsynth_cli.numeric.running import nothing
from dpsynth_cli.trusted.stream.factorisation import factorisation, next_starts, phase_of, rows_of


def horizons(given: argparse.Namespace) -> Iterator[Finding]:
    """What is saved where it is known how many releases there will be."""
    for name, currency in (("with a delta", "rho"), ("without", "epsilon")):
        for count in (10, 20, 60, 128, 365, 1000):
            unknown, known = (noise_of(currency, count, most) for most in (None, count))
            yield {
                "noise": name,
                "releases": count,
                "mean, unknown": float(np.mean(unknown)),
                "mean, known": float(np.mean(known)),
                "most, unknown": max(unknown),
                "most, known": max(known),
            }


def noise_of(currency: str, count: int, most: int | None) -> list[float]:
    """By release, as a multiple of one release's."""
    method = factorisation(currency, most)
    running, starts, noise = nothing(1), list[int](), []
    sizes: dict[int, int] = {}
    for release in range(1, count + 1):
        before, starts = starts, next_starts(method, starts, release)
        running = running.merged([sum(s <= old for s in starts) - 1 for old in before]).opened()
        length = phase_of(release, most).length
        norm = sizes.setdefault(length, method.norm(length))
        # Laplace noise grows with it, Gaussian noise with its root.
        for row in rows_of(method, starts, release):
            running.take(row, np.zeros(1, np.int64), float(norm if currency == "rho" else norm**2))
            if method.unit > 1:
                running.errors[-1, -1] -= 1 / 12
        noise.append(math.sqrt(running.variance))
    return noise


def growth(given: argparse.Namespace) -> Iterator[Finding]:
    """What noise a count of everything so far has: of the rows of C alone, without rounding."""
    curves = {}
    for name, currency in (("with a delta", "rho"), ("without", "epsilon")):
        noise = noise_of(currency, 16_000, None)
        curves[name] = noise
        for k in (8, 32, 120, 128, 129, 256, 1024, 4096, 16_000):
            mean = float(np.mean(noise[:k]))
            yield {
                "noise": name,
                "releases": k,
                "of the last": noise[k - 1],
                "mean": mean,
                "most": max(noise[:k]),
            }
    if given.picture:
        figure, axis = pictures().subplots(figsize=(5, 3.2))
        for name, noise in curves.items():
            axis.semilogx(range(1, len(noise) + 1), noise, label=name)
        axis.set_xlabel("releases")
        axis.set_ylabel("noise, in multiples of one release")
        axis.legend(fontsize=7)
        yield save(figure, given.picture)
