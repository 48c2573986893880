"""How little noise running counts could have without a delta: of several strategies, by arithmetic on their
matrices, as multiples of the noise of one release.

Prefix sums A x of T releases are estimated from C x + Laplace noise, where no column of C has entries that add
up to more than 1. `so far`: by least squares from the rows of C that end until then, each with noise of its
own. `drawn before`: all noise is drawn at the beginning, so that a sum may be a block minus what is still to come of it (a
tree with negative digits is one of these): by least squares from all rows. `drawn together`: noise u of density exp(-|C u|), the
same price; blocks inside blocks, sampled by rejection.

`endless`: with a delta, one matrix for ever instead of phases, with entries that fall a little faster than those of
the square root, so that a column of 2^24 releases is not much longer than one of 128.

`monotone`: what is gained where a count that never falls is projected, over the releases so far, on those that never
fall.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Finding
from benchmarks.online_growth import noise_of
from dpsynth_cli.trusted.stream.factorisation import FIRST, Branches

Floats = NDArray[np.float64]
SAMPLES = 2000
NESTS = {  # blocks in blocks, and the part of a release's price that each size has; the rest is its own
    128: (((16,), (0.5,)), ((8, 8), (0.4, 0.2)), ((4, 4, 4), (0.2, 0.2, 0.2))),
    1000: (((16, 16), (0.4, 0.15)), ((8, 8, 8), (0.3, 0.15, 0.1))),
}


def attainable(given: argparse.Namespace) -> Iterator[Finding]:
    """Mean and largest noise of a count of everything so far, over T releases."""
    for T in (16, 32, 64, 128):
        yield _line(T, "dpsynth, horizon known", np.array(noise_of("epsilon", T, T)))
        for b in sorted({4, 8, 12, 16} & set(range(T))):
            tree = _tree(T, b)
            yield _line(T, f"tree of {b} branches, so far", np.sqrt(_so_far(tree)))
            yield _line(T, f"tree of {b} branches, drawn before", np.sqrt(_before(tree)))
        best = min((_best_found(T, p, seed) for p in (3, 5, 9) for seed in (0, 1)), key=lambda v: v.mean())
        yield _line(T, "best C found, drawn before", np.sqrt(best))
        yield _line(T, "bound: no noise that is added has less", np.array([_bound(T)]))
    for T, nests in NESTS.items():
        for sizes, parts in nests:
            together = np.sqrt(_drawn_together(T, sizes, parts))
            yield _line(T, f"blocks of {' in '.join(map(str, sizes))}, drawn together", together)


def endless(given: argparse.Namespace) -> Iterator[Finding]:
    """Noise of a count after so many releases: of the phases, of a known end, and of single matrices."""
    at, ever = (8, 60, 120, 365, 1000, 4000, 16_000), 2**24
    for name, most in (("dpsynth, endless", None), ("dpsynth, horizon of 16,000", 16_000)):
        noise = noise_of("rho", 16_000, most)
        yield {"with a delta": name} | {f"{k:,}": noise[k - 1] for k in at}
    ages = np.concatenate([np.arange(at[-1]), np.geomspace(at[-1], ever, 20_000)])
    widths = np.diff(ages, append=ever)
    for slope, power in ((0.0, 0.0), (0.1, 1.0), (0.2, 1.0), (0.05, 2.0)):
        entries = np.where(ages < 0.5, 1.0, 1 / np.sqrt(np.pi * (ages + 0.25)))
        entries *= (1 + slope * np.log1p(ages)) ** -power
        norm = float((entries**2 * widths).sum())
        solved = np.cumsum(_reciprocal(entries[: at[-1]]))
        noise = np.sqrt(norm * np.cumsum(solved**2)).tolist()
        name = f"c(m) (1 + {slope} ln(1 + m))^-{power}" if power else "c(m) for 2^24 releases"
        yield {"with a delta": name} | {f"{k:,}": noise[k - 1] for k in at}


def _reciprocal(series: Floats) -> Floats:
    """The first coefficients of 1 over a power series, by Newton's method."""
    found = np.array([1 / series[0]])
    while len(found) < len(series):
        count = min(2 * len(found), len(series))
        size = 1 << (2 * count).bit_length()
        long = np.fft.rfft(found, size)
        rest = -np.fft.irfft(np.fft.rfft(series[:count], size) * long, size)[:count]
        rest[0] += 2
        found = np.fft.irfft(np.fft.rfft(rest, size) * long, size)[:count]
    return np.asarray(found)


def monotone(given: argparse.Namespace) -> Iterator[Finding]:
    """Counts that double every 8 releases, with the noise of 120 releases without a delta: the root of the mean
    squared error, from release 57 on, in parts of that of the noise."""
    releases, runs, rng = 120, 4000, np.random.default_rng(0)
    b, h = Branches().shape(FIRST)
    assert h == 2
    single, block = (rng.laplace(0, h, (runs, size)) for size in (releases, releases // b))
    noise = np.empty((runs, releases))
    for t in range(1, releases + 1):
        whole = t // b
        noise[:, t - 1] = block[:, :whole].sum(axis=1) + single[:, whole * b : t].sum(axis=1)
    spread = float(noise[:, 56:].std())
    for end in (0, 1, 3, 10, 30, 300):
        exact = end * spread * 2.0 ** ((np.arange(releases) + 1 - releases) / 8)
        noisy = exact + noise
        ways = {"as they are": noisy, "not below 0": np.maximum(noisy, 0), "projected": _never_fall(noisy)}
        errors = {
            name: float(np.sqrt(((made - exact)[:, 56:] ** 2).mean()) / spread) for name, made in ways.items()
        }
        yield {"count at the end, in noise": end} | errors


def _never_fall(noisy: Floats) -> Floats:
    """The last value of the isotonic regression of each beginning: the largest mean of its last values."""
    sums = np.cumsum(np.pad(noisy, ((0, 0), (1, 0))), axis=1)
    found = [
        ((sums[:, [t]] - sums[:, :t]) / (t - np.arange(t))).max(axis=1) for t in range(1, noisy.shape[1] + 1)
    ]
    return np.maximum(np.array(found).T, 0)


def _line(T: int, name: str, noise: Floats) -> Finding:
    return {"releases": T, "strategy": name, "mean": float(noise.mean()), "most": float(noise.max())}


def _tree(T: int, b: int) -> Floats:
    """Single releases, and blocks of b of them: the first T columns."""
    blocks = np.repeat(np.eye(-(-T // b)), b, axis=1)[:, :T]
    return np.vstack([np.eye(T), blocks]) / 2


def _so_far(C: Floats) -> Floats:
    """The variance of each prefix from the rows that have ended."""
    T = C.shape[1]
    ends = T - 1 - np.argmax(C[:, ::-1] > 0, axis=1)
    found = []
    for t in range(T):
        rows = C[ends <= t][:, : t + 1]
        found.append(np.ones(t + 1) @ np.linalg.solve(rows.T @ rows, np.ones(t + 1)))
    return np.array(found)


def _before(C: Floats) -> Floats:
    """The variance of each prefix from all rows."""
    A = np.tri(C.shape[1])
    return np.asarray(np.einsum("ij,ij->i", A @ np.linalg.inv(C.T @ C), A))


def _best_found(T: int, p: int, seed: int) -> Floats:
    """A local optimum of the mean variance, over C with each release by itself and p rows of any entries that
    are not negative (as in McKenna and others, "Optimizing error of high-dimensional statistical queries
    under differential privacy", VLDB 2018)."""
    from scipy.optimize import minimize

    A = np.tri(T)
    gram = A.T @ A / T

    def priced(rest: Floats) -> tuple[Floats, Floats]:
        C = np.vstack([np.eye(T), rest.reshape(p, T)])
        return C / C.sum(axis=0), C.sum(axis=0)

    def loss(rest: Floats) -> tuple[float, Floats]:
        C, sums = priced(rest)
        inverse = np.linalg.inv(C.T @ C)
        spread = inverse @ gram
        slope = -2 * C @ (spread @ inverse)
        slope = (slope - (slope * C).sum(axis=0)) / sums
        return float(np.trace(spread)), slope[T:].ravel()

    start = np.random.default_rng(seed).random(p * T) / 2
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (p * T), options={"maxiter": 300}
    )
    return _before(priced(found.x)[0])


def _drawn_together(T: int, sizes: Sequence[int], parts: Sequence[float]) -> Floats:
    """The variance of each prefix of noise u with density exp(-sum of part |sum of u over each block|)."""
    rng = np.random.default_rng(0)

    def sample(depth: int, count: int) -> Floats:
        """Noise of so many blocks of a size."""
        if depth == 0:
            return rng.laplace(0, 1 / (1 - sum(parts)), (count, 1))
        kept: list[Floats] = []
        while sum(map(len, kept)) < count:
            inner = sample(depth - 1, sizes[depth - 1] * max(100, count))
            inner = inner.reshape(-1, sizes[depth - 1] * inner.shape[1])
            chance = np.exp(-parts[depth - 1] * np.abs(inner.sum(axis=1)))
            kept.append(inner[rng.random(len(inner)) < chance])
        return np.concatenate(kept)[:count]

    times = -(-T // int(np.prod(sizes)))
    noise = sample(len(sizes), SAMPLES * times).reshape(SAMPLES, -1)[:, :T]
    return np.asarray((np.cumsum(noise, axis=1) ** 2).mean(axis=0) / 2)


def _bound(T: int) -> float:
    """A lower bound on the root of the mean variance of noise of any density q that is added to all prefixes.

    The derivative of log q along each column of A is at most epsilon, so that the Fisher information J of a
    shift has (A' J A)_ii <= epsilon^2, and by Cramer and Rao variances are at least those of J^-1. The least
    mean of these is at least (tr S^1/2)^2 / epsilon^2, S = D^1/2 A'A D^1/2 / T, for any weights D of sum 1 (the dual of
    that program): here those of a fixed point. One release has the variance 2 / epsilon^2.
    """
    gram, weights = np.tri(T).T @ np.tri(T) / T, np.full(T, 1 / T)
    for _ in range(200):
        weights = np.diag(_root(np.sqrt(np.outer(weights, weights)) * gram))
        weights = weights / weights.sum()
    value = float(np.trace(_root(np.sqrt(np.outer(weights, weights)) * gram)))
    return value / np.sqrt(2)


def _root(S: Floats) -> Floats:
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
