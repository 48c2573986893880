"""Random words for tests: repeatable, and so never for a release."""

import numpy as np


class SeededSource:
    """Uniform words from a seed; narrower than usual on request, so that ties become common."""

    def __init__(self, seed, first_bits=16, more_bits=64):
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.first_bits, self.more_bits = first_bits, more_bits

    def words16(self, n):
        return self.rng.integers(1 << self.first_bits, size=n, dtype=np.uint16)

    def words64(self, n):
        return self.rng.integers((1 << self.more_bits) - 1, size=n, dtype=np.uint64, endpoint=True)


class ScriptedSource:
    """The given words, in order; the last one for ever. A number stands for itself, for ever."""

    def __init__(self, first, more=0):
        self.first, self.more = _endless(first), _endless(more)
        self.drawn64 = 0

    def words16(self, n):
        return np.fromiter((next(self.first) for _ in range(n)), np.uint16, n)

    def words64(self, n):
        self.drawn64 += n
        return np.fromiter((next(self.more) for _ in range(n)), np.uint64, n)


def _endless(words):
    word = words
    if not isinstance(words, int):
        for word in words:
            yield word
    while True:
        yield word
