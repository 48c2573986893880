"""Speed of the exact noise samplers: nanoseconds of CPU a value, beside numpy's inexact ones.

    python benchmarks/noise.py [log2 of the number of values, default 22]

Ratios are within one run; the best of three runs counts. OpenDP's exact samplers are timed if installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from math import sqrt

import numpy as np

from dpsynth_cli.trusted.noise import samplers as noise
from dpsynth_cli.trusted.noise.words import system_source

SCALES = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(1000), Fraction(10**6), Fraction(2**55)]
SIGMA2S = [Fraction(1, 4), Fraction(1), Fraction(100), Fraction(10**6), Fraction(10**12), Fraction(2**109)]


def nanoseconds(draw: Callable[[int], object], size: int) -> float:
    """CPU time a value: the best of three, after a small draw that fills the tables."""
    draw(10)
    times = []
    for _ in range(3):
        start = time.process_time()
        draw(size)
        times.append(time.process_time() - start)
    return min(times) / size * 1e9


def opendp(kind: str, parameter: Fraction) -> Callable[[int], object] | None:
    """OpenDP's exact sampler of the same noise, or None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    if kind == "gaussian":
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
        measurement = dp.m.make_gaussian(*space, scale=sqrt(parameter))
    else:
        measurement = dp.m.make_laplace(*space, scale=float(parameter))
    return lambda size: measurement([0] * size)


def main() -> None:
    size = 1 << int(sys.argv[1] if len(sys.argv) > 1 else 22)
    source, rng = system_source(), np.random.default_rng()
    print(f"{size:,} values; nanoseconds of CPU a value (OpenDP: {size >> 12:,} values)")
    print(
        f"{'noise':<18}{'parameter':>12}{'ours':>8}{'numpy':>8}{'ours/numpy':>12}{'OpenDP':>9}{'OpenDP/ours':>13}"
    )
    for kind, parameters in (("laplace", SCALES), ("gaussian", SIGMA2S)):
        exact = {"laplace": noise.discrete_laplace, "gaussian": noise.discrete_gaussian}[kind]
        for parameter in parameters:
            p = float(parameter)
            scale = p if kind == "laplace" else sqrt(p)
            inexact = {"laplace": rng.laplace, "gaussian": rng.normal}[kind]
            ours = nanoseconds(lambda n, exact=exact, parameter=parameter: exact(parameter, n, source), size)
            theirs = nanoseconds(lambda n, inexact=inexact, scale=scale: inexact(0.0, scale, n), size)
            other = opendp(kind, parameter)
            third = f"{'-':>9}{'-':>13}"
            if other is not None:
                slow = nanoseconds(other, size >> 12)
                third = f"{slow:>9.0f}{slow / ours:>13.0f}"
            print(f"discrete {kind:<9}{p:>12.4g}{ours:>8.1f}{theirs:>8.1f}{ours / theirs:>12.2f}{third}")
    if opendp("laplace", Fraction(1)) is None:
        print("OpenDP is not installed, so it was not timed.")


if __name__ == "__main__":
    main()
