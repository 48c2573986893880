"""Exact noise samplers: nanoseconds of CPU a value, beside numpy's inexact ones and OpenDP's exact ones.

    python -m benchmarks noise [--log2 22]

Ratios are within one run; the best of three runs counts. OpenDP is timed, on fewer values, if installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import sqrt

import numpy as np

from benchmarks.harness import Finding, installed, least
from dpsynth_cli.trusted.noise import samplers
from dpsynth_cli.trusted.noise.words import system_source

SCALES = [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(1000), Fraction(10**6), Fraction(2**55)]
SIGMA2S = [Fraction(1, 4), Fraction(1), Fraction(100), Fraction(10**6), Fraction(10**12), Fraction(2**109)]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log2", type=int, default=22, help="of the number of values; default: 22")


def nanoseconds(draw: Callable[[int], object], size: int) -> float:
    """CPU time a value: the best of three, after a small draw that fills the tables."""
    draw(10)
    return least(lambda: draw(size), 3) / size * 1e9


def opendp(kind: str, parameter: Fraction) -> Callable[[int], object]:
    """OpenDP's exact sampler of the same noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "gaussian":
        measurement = dp.m.make_gaussian(values, dp.l2_distance(T=float), scale=sqrt(parameter))
    else:
        measurement = dp.m.make_laplace(values, dp.l1_distance(T="i64"), scale=float(parameter))
    return lambda size: measurement([0] * size)


def compared(kind: str, parameter: Fraction, size: int) -> dict[str, object]:
    """One kind of noise by each sampler: Laplace by its scale, Gaussian by its variance."""
    source, rng = system_source(), np.random.default_rng()
    exact = {"laplace": samplers.discrete_laplace, "gaussian": samplers.discrete_gaussian}[kind]
    inexact = {"laplace": rng.laplace, "gaussian": rng.normal}[kind]
    scale = float(parameter) if kind == "laplace" else sqrt(parameter)
    ours = nanoseconds(lambda n: exact(parameter, n, source), size)
    theirs = nanoseconds(lambda n: inexact(0.0, scale, n), size)
    other = nanoseconds(opendp(kind, parameter), size >> 12) if installed("opendp") else None
    return {
        "noise": f"discrete {kind}",
        "scale": scale,
        "ns a value": ours,
        "numpy (inexact)": theirs,
        "ours / numpy": ours / theirs,
        "OpenDP (exact)": "not installed" if other is None else other,
        "OpenDP / ours": None if other is None else other / ours,
    }


def of_scales(kinds: dict[str, Sequence[Fraction]], size: int) -> Iterator[Finding]:
    for kind, parameters in kinds.items():
        for parameter in parameters:
            yield compared(kind, parameter, size)


def values(given: argparse.Namespace) -> Iterator[Finding]:
    yield from of_scales({"laplace": SCALES, "gaussian": SIGMA2S}, 1 << given.log2)


PARTS = {"values": values}
