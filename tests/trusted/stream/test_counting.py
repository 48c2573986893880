"""Counting for ever: the binary mechanism, sparse counting and its exact privacy, inhomogeneous counting."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsynth_cli.trusted.stream import counting
from dpsynth_cli.trusted.stream.counting import BinaryMechanism, InhomogeneousCounting, SparseCounting
from tests.trusted.seeded import SeededSource

EXACT = Fraction(10**6)  # an epsilon whose noise is 0


def fed(mechanism: BinaryMechanism, items: np.ndarray, seed: int = 0) -> list[np.ndarray]:
    """The outputs after each row of items, one column a stream."""
    source, everyone = SeededSource(seed), np.arange(items.shape[1])
    outputs = []
    for row in items:
        mechanism.feed(everyone, row, source)
        outputs.append(mechanism.output)
    return outputs


# --- binary mechanism ----------------------------------------------------------------------------------


def test_the_binary_mechanism_gives_running_sums():
    items = np.random.default_rng(1).integers(0, 9, (13, 4))
    outputs = fed(BinaryMechanism.start(4, 13, EXACT), items)
    assert (np.array(outputs) == items.cumsum(axis=0)).all()


def test_streams_may_have_different_numbers_of_items():
    source, mechanism = SeededSource(0), BinaryMechanism.start(3, 7, EXACT)
    for which in ([0, 1], [1], [1, 2], [1]):
        mechanism.feed(np.array(which), np.array([10 + node for node in which]), source)
    assert mechanism.output.tolist() == [10, 44, 12]


def test_an_item_is_in_at_most_one_sum_of_each_position(monkeypatch):
    """So it is in at most H noisy sums, each of which has Lap(H/epsilon): epsilon in all."""
    scales = []
    plain = counting.discrete_laplace
    monkeypatch.setattr(
        counting, "discrete_laplace", lambda scale, *more: (scales.append(scale), plain(scale, *more))[1]
    )
    T = 15
    for place in range(T):
        items = np.zeros((T, 1), np.int64)
        items[place] = 1
        mechanism, seen, source = BinaryMechanism.start(1, T, EXACT), 0, SeededSource(0)
        before = mechanism.alpha.copy()
        for row in items:
            mechanism.feed(np.array([0]), row, source)
            # A sum that now has the item and had it not before was drawn anew.
            seen += int(((mechanism.alpha == 1) & (before == 0)).sum())
            before = mechanism.alpha.copy()
        assert 1 <= seen <= 4
    assert set(scales) == {4 / EXACT}


def test_the_noise_of_a_running_sum_is_that_of_the_sums_that_stand():
    outputs = fed(BinaryMechanism.start(20_000, 7, Fraction(1)), np.zeros((7, 20_000), np.int64), seed=5)
    one = 2 * math.exp(-1 / 3) / (1 - math.exp(-1 / 3)) ** 2  # the variance of Lap_Z(3)
    for c, output in enumerate(outputs, start=1):
        assert abs(output.var() / (c.bit_count() * one) - 1) < 0.08


def test_more_items_than_announced_are_refused():
    with pytest.raises(ValueError, match="fewer items"):
        fed(BinaryMechanism.start(1, 2, EXACT), np.ones((3, 1), np.int64))


# --- sparse counting -----------------------------------------------------------------------------------


def closings(X, thresholds, noises, late: bool = False) -> tuple[int, ...]:
    """The steps that end a segment, from the definition. Thresholds are used up one a segment.

    `late`: the check sees the new rows, but a segment that it closes goes without them, and they are the
    first of the next one: check, close, add.
    """
    N, closed, threshold = 0, [], iter(thresholds)
    limit = next(threshold)
    for t, (x, noise) in enumerate(zip(X, noises, strict=True)):
        if N + x + noise > limit:
            closed.append(t)
            N, limit = (x if late else 0), next(threshold)
        else:
            N += x
    return tuple(closed)


def test_sparse_counting_closes_where_the_definition_says(monkeypatch):
    """The real class under given noise: add, check, close; and its output is the rows of closed segments."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        X, noises = rng.integers(0, 5, 6), rng.integers(-4, 5, 6)
        thresholds = rng.integers(-3, 4, 7).tolist()
        drawn = {"threshold": list(thresholds), "check": noises.tolist()}

        def scripted(scale, size, source, drawn=drawn):
            if scale != 2:  # of the binary mechanism
                return np.zeros(size, np.int64)
            kind = drawn["next"]
            return np.array([drawn[kind].pop(0) for _ in range(size)], np.int64)

        monkeypatch.setattr(counting, "discrete_laplace", scripted)
        monkeypatch.setattr(SparseCounting, "T_0", 5)
        real = SparseCounting._new_thresholds

        def new_thresholds(self, which, source, drawn=drawn, real=real):
            drawn["next"] = "threshold"
            real(self, which, source)
            drawn["next"] = "check"

        monkeypatch.setattr(SparseCounting, "_new_thresholds", new_thresholds)
        sparse = SparseCounting.start(1, 6, Fraction(1), SeededSource(0))
        closed = []
        for t, x in enumerate(X):
            items = int(sparse.A_sub.items[0])
            sparse.step(np.array([x]), SeededSource(0))
            if sparse.A_sub.items[0] > items:
                closed.append(t)
        monkeypatch.undo()
        assert tuple(closed) == closings(X, [5 + y for y in thresholds], noises)
        last = closed[-1] + 1 if closed else 0
        assert sparse.output[0] == X[:last].sum()
        assert sparse.N[0] == X[last:].sum()


REACH = 160  # noise beyond it has probability below 1e-17


def partition_probabilities(X, epsilon: float, T_0: int, late: bool = False) -> dict[tuple[int, ...], float]:
    """P(steps that close a segment), exactly: every threshold and every check is Lap_Z(2/epsilon)."""
    r = math.exp(-epsilon / 2)
    support = np.arange(-REACH, REACH + 1)
    pmf = (1 - r) / (1 + r) * r ** np.abs(support)
    threshold = T_0 + support

    def above(N: int) -> np.ndarray:
        """P(N + noise > threshold) for each threshold."""
        gap = threshold - N  # noise > gap
        tail = np.where(gap >= 0, r ** (np.abs(gap) + 1.0), 1 + r - r ** np.abs(gap)) / (1 + r)
        return np.asarray(tail)

    def segments(first: int, N: int) -> dict[tuple[int, ...], float]:
        """From step `first`, with N rows already in the new segment."""
        found: dict[tuple[int, ...], float] = {}
        open_until = pmf.copy()  # P(threshold, no close before t)
        for t in range(first, len(X)):
            N += X[t]
            close = above(N)
            chance = float((open_until * close).sum())
            for later, probability in segments(t + 1, X[t] if late else 0).items():
                found[(t, *later)] = found.get((t, *later), 0.0) + chance * probability
            open_until = open_until * (1 - close)
        found[()] = float(open_until.sum())
        return found

    return segments(0, 0)


def worst_loss(epsilon: float, T_0: int, late: bool = False) -> float:
    """The largest privacy loss of the partition over all streams of 4 steps and one row more in any."""
    worst = 0.0
    for X in product((0, 1, 3), repeat=4):
        before = partition_probabilities(X, epsilon, T_0, late)
        assert abs(sum(before.values()) - 1) < 1e-9
        for t in range(4):
            more = [x + (i == t) for i, x in enumerate(X)]
            after = partition_probabilities(more, epsilon, T_0, late)
            worst = max(worst, *(abs(math.log(after[o] / before[o])) for o in before))
    return worst


@pytest.mark.parametrize(("epsilon", "T_0"), [(1.0, 2), (0.5, 3), (2.0, 0)])
def test_the_partition_costs_half_of_epsilon_and_not_more(epsilon, T_0):
    loss = worst_loss(epsilon, T_0)
    assert loss <= epsilon / 2 + 1e-9
    assert loss > 0.95 * epsilon / 2  # the audit has teeth


def test_a_late_closing_check_would_cost_more():
    """Rows that a check has seen, but that are counted in the next segment, are seen by two of them."""
    assert worst_loss(1.0, 2, late=True) > 0.75


# --- inhomogeneous sparse counting ----------------------------------------------------------------------


def test_inhomogeneous_counting_is_exact_at_the_end_of_every_time_level():
    source, rng = SeededSource(0), np.random.default_rng(2)
    node = InhomogeneousCounting.start(3, 4, EXACT, source)
    node.remember(np.array([5, 0, 2]), source)
    total = np.array([5, 0, 2])
    for _ in range(3):
        for _ in range(4):
            X = rng.integers(0, 50, 3)
            total = total + X
            node.step(X, source)
        node.next_level(4, EXACT, source)
        assert node.output.tolist() == total.tolist()


def test_a_time_level_has_its_own_noise():
    """Lap(2/epsilon_r) when level r ends, Lap(1/epsilon) for history; no earlier level is drawn anew."""
    source = SeededSource(7)
    node = InhomogeneousCounting.start(20_000, 2, Fraction(1, 2), source)
    node.next_level(2, Fraction(4), source)
    first = node.S.copy()
    node.next_level(2, Fraction(1), source)
    again = node.S - first
    for drawn, scale in ((first, 4), (again, 0.5)):
        r = math.exp(-1 / scale)
        assert abs(drawn.var() / (2 * r / (1 - r) ** 2) - 1) < 0.08
    node = InhomogeneousCounting.start(20_000, 2, Fraction(1, 2), source)
    node.remember(np.zeros(20_000, np.int64), source)
    r = math.exp(-1 / 2)
    assert abs(node.S.var() / (2 * r / (1 - r) ** 2) - 1) < 0.08


def test_counters_are_the_same_after_a_restart():
    source = SeededSource(1)
    node = InhomogeneousCounting.start(4, 5, Fraction(1), source)
    for _ in range(3):
        node.step(np.array([40, 0, 3, 90]), source)
    again = InhomogeneousCounting.of_parts(*node.as_parts())
    for one in (node, again):
        one.step(np.array([1, 2, 3, 4]), SeededSource(9))
        one.next_level(3, Fraction(2), SeededSource(10))
    assert again.as_parts()[0] == node.as_parts()[0]
    for mine, theirs in zip(node.as_parts()[1], again.as_parts()[1], strict=True):
        assert (mine == theirs).all()
