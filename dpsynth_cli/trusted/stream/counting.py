"""Counting a stream for ever: the binary mechanism and Algorithms 10 and 11 of Y. He, R. Vershynin and
Y. Zhu, "Online differentially private synthetic data generation", IEEE Transactions on Privacy 2024.

Each class counts many Boolean streams at once, one a node of the partition; arrays are by node. A step is a
public release time: the rows of a step are added, then every node is checked, then segments are closed
(docs/privacy.md, E17). Everything in here but `output` is raw or hides raw numbers, and never leaves the
core.

epsilon is what one row that is added to one node may cost. Under replace_one a row leaves one node and
enters another of the same level: the caller gives half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.questions import Ints
from dpsynth_cli.trusted.noise.samplers import discrete_laplace
from dpsynth_cli.trusted.noise.words import Words


def _zeros() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(eq=False)
class BinaryMechanism:
    """Running sums of streams with at most T items each (Chan, Shi and Song 2011; Dwork et al. 2010).

    Claim: moving one item of one stream by 1 costs epsilon. Item number c is added to alpha_i, i the
    position of the lowest 1 of c, together with alpha_0 .. alpha_{i-1}, which start anew: so every item
    is in at most one sum of each of the H = bit_length(T) positions, and each sum has Lap(H/epsilon).
    The sums that stand, one for each 1 of c, cover all items.
    """

    T: int
    epsilon: Fraction
    alpha: Ints = field(default_factory=_zeros)  # H x nodes, raw
    noisy: Ints = field(default_factory=_zeros)  # H x nodes
    items: Ints = field(default_factory=_zeros)  # c

    @classmethod
    def start(cls, nodes: int, T: int, epsilon: Fraction) -> BinaryMechanism:
        shape = (T.bit_length(), nodes)
        return cls(
            T, epsilon, np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(nodes, np.int64)
        )

    def feed(self, which: Ints, values: Ints, source: Words) -> None:
        """One more item for each of the nodes `which`."""
        H = len(self.alpha)
        self.items[which] += 1
        if len(which) and int(self.items[which].max()) > self.T:
            raise ValueError("the binary mechanism was started for fewer items")
        c = self.items[which]
        lowest = np.log2(c & -c).astype(np.int64)  # a power of two: exact
        noise = discrete_laplace(H / self.epsilon, len(which), source)
        for i in range(H):
            now = lowest == i
            nodes = which[now]
            self.alpha[i, nodes] = self.alpha[:i, nodes].sum(axis=0) + values[now]
            self.alpha[:i, nodes] = 0
            self.noisy[:i, nodes] = 0
            self.noisy[i, nodes] = self.alpha[i, nodes] + noise[now]

    @property
    def output(self) -> Ints:
        return np.asarray(self.noisy.sum(axis=0))


@dataclass(eq=False)
class SparseCounting:
    """Algorithm 10: sparse counting with a finite time horizon T.

    Claim: one more row costs epsilon/2 in the partition into segments and epsilon/2 in the subroutine.
    A segment is closed when its count N + Lap(2/epsilon) is above the threshold T_0 + Lap(2/epsilon),
    and its count is then the next item of the binary mechanism. A row is counted in one segment, and seen
    by every check of it from its own step on, the closing one included. So for a given partition all
    these counts rise by 1 together: shifting the threshold by 1 undoes that for a row that is added, and
    shifting the closing check's noise by 1 for one that is removed. Each costs epsilon/2, and they are
    never needed both. `tests/trusted/stream/test_counting.py` has it by exact enumeration.
    """

    T: int
    epsilon: Fraction
    N: Ints = field(default_factory=_zeros)
    threshold: Ints = field(default_factory=_zeros)
    A_sub: BinaryMechanism = field(default_factory=lambda: BinaryMechanism(0, Fraction(1)))

    @classmethod
    def start(cls, nodes: int, T: int, epsilon: Fraction, source: Words) -> SparseCounting:
        A_sub = BinaryMechanism.start(nodes, T, epsilon / 2)
        counting = cls(T, epsilon, np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), A_sub)
        counting._new_thresholds(np.arange(nodes), source)
        return counting

    @property
    def T_0(self) -> int:
        """The partition threshold 9 log T / epsilon, as a whole number of rows."""
        return math.ceil(9 * math.log(max(2, self.T)) / float(self.epsilon))

    def step(self, X: Ints, source: Words) -> None:
        """One time step: add, check, close."""
        self.N += X
        noise = discrete_laplace(2 / self.epsilon, len(self.N), source)
        closing = np.flatnonzero(self.N + noise > self.threshold)
        self.A_sub.feed(closing, self.N[closing], source)
        self.N[closing] = 0
        self._new_thresholds(closing, source)

    def _new_thresholds(self, which: Ints, source: Words) -> None:
        self.threshold[which] = self.T_0 + discrete_laplace(2 / self.epsilon, len(which), source)

    @property
    def output(self) -> Ints:
        return self.A_sub.output


@dataclass(eq=False)
class InhomogeneousCounting:
    """Algorithm 11: inhomogeneous sparse counting, one time level after the other.

    Claim: a row of time level r costs epsilon_r: half in the level's sparse counting, half in the noisy
    count of the level, Lap(2/epsilon_r), that joins S when the level ends. Rows from before the node was
    there are not counted (start level r_0 = |theta|), or once, with `remember` (r_0 = 0).
    """

    T: int  # of the time level under way
    epsilon: Fraction
    S: Ints = field(default_factory=_zeros)  # noisy: the finished levels
    X: Ints = field(default_factory=_zeros)  # raw: the level under way
    counting: SparseCounting = field(default_factory=lambda: SparseCounting(0, Fraction(1)))

    @classmethod
    def start(cls, nodes: int, T: int, epsilon: Fraction, source: Words) -> InhomogeneousCounting:
        zeros = np.zeros(nodes, np.int64)
        return cls(T, epsilon, zeros, zeros.copy(), SparseCounting.start(nodes, T, epsilon / 2, source))

    def remember(self, history: Ints, source: Words) -> None:
        """Count what came before the node: each such row is in this count alone, at the whole epsilon."""
        self.S = self.S + history + discrete_laplace(1 / self.epsilon, len(history), source)

    def step(self, X: Ints, source: Words) -> None:
        self.X = self.X + X
        self.counting.step(X, source)

    def next_level(self, T: int, epsilon: Fraction, source: Words) -> None:
        """End the time level and start the next, with its own horizon and epsilon."""
        self.S = self.S + self.X + discrete_laplace(2 / self.epsilon, len(self.X), source)
        self.X = np.zeros_like(self.X)
        self.T, self.epsilon = T, epsilon
        self.counting = SparseCounting.start(len(self.X), T, epsilon / 2, source)

    @property
    def output(self) -> Ints:
        return self.S + self.counting.output

    def as_parts(self) -> tuple[dict[str, Any], list[Ints]]:
        """Words and arrays, for the state's file."""
        arrays = [getattr(owner, f.name) for owner in self._owners() for f in fields(owner) if _is_array(f)]
        return {"T": self.T, "epsilon": str(self.epsilon)}, [array.ravel() for array in arrays]

    @classmethod
    def of_parts(cls, said: dict[str, Any], arrays: list[Ints]) -> InhomogeneousCounting:
        T, epsilon = int(said["T"]), Fraction(said["epsilon"])
        A_sub = BinaryMechanism(T, epsilon / 4)
        counting = cls(T, epsilon, counting=SparseCounting(T, epsilon / 2, A_sub=A_sub))
        left = list(arrays)
        for owner in counting._owners():
            for f in fields(owner):
                if _is_array(f):
                    setattr(owner, f.name, left.pop(0).copy())
        nodes = len(counting.S)
        A_sub.alpha, A_sub.noisy = (a.reshape(-1, nodes) for a in (A_sub.alpha, A_sub.noisy))
        return counting

    def _owners(self) -> tuple[InhomogeneousCounting, SparseCounting, BinaryMechanism]:
        return self, self.counting, self.counting.A_sub


def _is_array(f: Any) -> bool:
    return f.default_factory is _zeros
