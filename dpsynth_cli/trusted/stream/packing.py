"""Whole numbers of a state in few bytes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dpsynth_cli.questions import Floats, Ints
from dpsynth_cli.trusted.stream.leaves import Leaves

CODEC = pa.Codec("zstd")


def leaf_steps(part: Leaves, kept: Callable[[Ints], list[int]]) -> list[list[int]]:
    """Codes rise, so that the steps between them are small."""
    return [kept(np.diff(part.codes, prepend=0)), kept(part.counts)]


def matrix(errors: Floats) -> list[float]:
    """The upper triangle; four digits are enough for weights."""
    return [float(f"{value:.4g}") for value in errors[np.triu_indices(len(errors))]]


def square(triangle: list[float]) -> Floats:
    size = math.isqrt(2 * len(triangle))
    errors = np.zeros((size, size))
    errors[np.triu_indices(size)] = triangle
    return np.asarray(errors + np.triu(errors, 1).T)


def packed(values: Ints) -> tuple[int, bytes]:
    """Whole numbers, mostly small, in few bytes; and how many bytes each had.

    0, -1, 1, -2 .. become 0, 1, 2, 3 ..; then come all lowest bytes, then all next ones, which are mostly 0.
    """
    positive = ((values << 1) ^ (values >> 63)).view(np.uint64)
    most = int(positive.max(initial=0)).bit_length()
    width = next(w for w in (1, 2, 4, 8) if most <= 8 * w)
    planes = positive.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T
    return width, CODEC.compress(planes.tobytes(), asbytes=True)


def unpacked(data: bytes, width: int, count: int) -> Ints:
    planes = np.frombuffer(CODEC.decompress(data, count * width, asbytes=True), np.uint8)
    positive = np.ascontiguousarray(planes.reshape(width, -1).T).view(f"<u{width}").ravel().astype(np.uint64)
    return np.asarray((positive >> 1).view(np.int64) ^ -(positive & 1).view(np.int64))
