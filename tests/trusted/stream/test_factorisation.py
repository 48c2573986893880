"""The rows of C: what any event pays over the whole life of a stream, in exact numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dpsynth_cli.trusted.stream.factorisation import (
    FIRST,
    Branches,
    SquareRoot,
    TooManyReleases,
    needed_from,
    next_starts,
    phase_of,
    rows_of,
)

METHODS = {"square root": (SquareRoot(), 2), "branches": (Branches(), 1)}


def matrix(method, releases: int) -> tuple[np.ndarray, list[int]]:
    """The rows of C as far as `releases`, exact, and how many blocks each release has."""
    starts: list[int] = []
    rows, blocks = [], []
    for release in range(1, releases + 1):
        starts = next_starts(method, starts, release)
        blocks.append(len(starts))
        for row in rows_of(method, starts, release):
            entries = np.repeat(np.array(row, object), np.diff([*starts, release]))
            rows.append(np.pad(entries, (0, releases - release)))
    return np.array(rows), blocks


@pytest.mark.parametrize("name", METHODS)
def test_no_column_is_longer_than_the_norm_of_its_phase_and_one_reaches_it(name):
    method, power = METHODS[name]
    C, _ = matrix(method, FIRST + 200)
    assert (C >= 0).all()
    columns = (C**power).sum(axis=0)
    for i, column in enumerate(columns, 1):
        assert column <= method.norm(phase_of(i).length)
    # Nothing of the first phase is measured in the second, so its columns are whole.
    assert columns[0] == method.norm(FIRST)
    assert not C[-1, :FIRST].any()


@pytest.mark.parametrize("most", [1, 2, 5, 37, 200, 600])
@pytest.mark.parametrize("name", METHODS)
def test_with_a_known_end_no_column_is_longer_than_the_norm_of_so_many_releases(name, most):
    """Exactly, over the whole life: there is one phase and no release beyond it."""
    kind, power = type(METHODS[name][0]), METHODS[name][1]
    method = kind(most)
    C, _ = matrix(method, most)
    assert (C >= 0).all()
    columns = (C**power).sum(axis=0)
    norm = method.norm(phase_of(most, most).length)
    assert columns.max() <= norm
    assert columns[0] >= 0.99 * norm  # and it says no more than that
    if most < FIRST:
        assert norm <= method.norm(FIRST)
    with pytest.raises(TooManyReleases):
        next_starts(method, list(range(most)), most + 1)
    with pytest.raises(TooManyReleases):
        rows_of(method, list(range(most + 1)), most + 1)


def test_the_square_roots_entries_are_no_larger_than_those_of_their_age():
    """What the proof rests on, for every phase: c falls, and an entry is that of the oldest of its block."""
    method = SquareRoot()
    weights = [method.weight(age) for age in range(20_000)]
    assert all(one >= other for one, other in pairwise(weights))
    C, _ = matrix(method, FIRST)
    for k in range(FIRST):
        assert all(C[k, i] <= weights[k - i] for i in range(k + 1))
        assert C[k, k] == method.unit
    for length in (1, 2, 100, 128, 5000, 16384):
        exact = sum(weight**2 for weight in weights[:length])
        assert exact <= method.norm(length) <= 1.01 * exact


def test_an_event_is_in_one_row_of_each_size_of_branches():
    method = Branches()
    for length in (128, 128**2, 128**4):
        b, h = method.shape(length)
        assert b**h >= length
        assert method.norm(length) == h
    C, _ = matrix(method, FIRST)
    assert set(C.sum(axis=0)[:120]) == {2}


@pytest.mark.parametrize("name", METHODS)
def test_there_are_few_blocks_and_none_comes_back(name):
    method, _ = METHODS[name]
    _, blocks = matrix(method, FIRST)
    assert max(blocks) <= 14
    starts: list[int] = []
    for release in range(1, 3000):
        new = next_starts(method, starts, release)
        assert set(new) - set(starts) == {release - 1}
        starts = new
    assert len(starts) < 40


@pytest.mark.parametrize("name", METHODS)
def test_what_is_forgotten_is_in_no_later_row(name):
    method, _ = METHODS[name]
    starts: list[int] = []
    forgotten = 0
    for release in range(1, 400):
        starts = next_starts(method, starts, release)
        for row in rows_of(method, starts, release):
            assert not any(entry for entry, start in zip(row, starts, strict=True) if start < forgotten)
        assert needed_from(method, release) >= forgotten
        forgotten = needed_from(method, release)
    assert forgotten >= FIRST
