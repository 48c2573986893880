"""Forward substitution: exact without noise, and with the error that it says."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.numeric.running import Running, divided, nothing
from dpsynth_cli.trusted.stream.factorisation import Branches, SquareRoot, next_starts, rows_of

METHODS = {"square root": SquareRoot(), "branches": Branches()}


def driven(method, x: np.ndarray, noise=None):
    """What is known after each release, and the variances until then if each row has noise of one unit."""
    running, starts, errors = nothing(x.shape[1]), [], []
    for release in range(1, len(x) + 1):
        before, starts = starts, next_starts(method, starts, release)
        groups = [sum(start <= old for start in starts) - 1 for old in before]
        running = running.merged(groups).opened()
        for row in rows_of(method, starts, release):
            ends = [*starts[1:], release]
            sums = np.array([x[first:last].sum(axis=0) for first, last in zip(starts, ends, strict=True)])
            exact = np.array(row) @ sums
            running.take(row, exact if noise is None else exact + noise(len(exact)), float(method.unit**2))
        errors.append(running.variance)
        yield running, errors


@pytest.mark.parametrize("name", METHODS)
def test_without_noise_every_prefix_is_exact_for_two_phases(name):
    x = np.random.default_rng(1).integers(0, 50, (300, 4))
    for k, (running, _) in enumerate(driven(METHODS[name], x), 1):
        assert (running.total == x[:k].sum(axis=0)).all()


@pytest.mark.parametrize("name", METHODS)
def test_the_variance_is_that_of_the_inverse_matrix(name):
    """Against the matrix: everything so far is a row of B, where B C adds up."""
    method, releases = METHODS[name], 40
    x, rows, owner = np.eye(releases, dtype=np.int64), [], []
    starts: list[int] = []
    for release in range(1, releases + 1):
        starts = next_starts(method, starts, release)
        for row in rows_of(method, starts, release):
            entries = np.repeat(row, np.diff([*starts, release]))
            rows.append(np.pad(entries, (0, releases - release)) / method.unit)
            owner.append(release)
    *_, (_, variances) = driven(method, x)
    for release in (1, 2, 7, 12, 13, 30, 40):
        C = np.array([row for row, at in zip(rows, owner, strict=True) if at <= release])[:, :release]
        if name == "branches":  # each prefix is made of the largest rows that fit, each with a noise of 1
            expected = release // 12 + release % 12
        else:
            expected = (np.linalg.solve(C.T, np.ones(release)) ** 2).sum()
        # Rounding to whole rows adds a twelfth of what a noise of one row does.
        assert variances[release - 1] == pytest.approx(
            expected * (13 / 12 if method.unit > 1 else 1), rel=1e-3
        )


def test_the_noise_of_128_releases_is_near_that_of_the_best_and_smooth():
    """In multiples of one release: 2.42 on average is what the exact square root of a known horizon has."""
    method = SquareRoot()
    *_, (_, variances) = driven(method, np.zeros((128, 1), np.int64))
    noise = np.sqrt(np.array(variances) * 12 / 13 * method.norm(128)) / method.unit
    assert noise[:120].mean() < 2.53
    assert noise.max() < 2.76
    assert (noise[1:] / noise[:-1]).max() < 1.2


def test_after_two_phases_the_noise_is_still_a_few_releases():
    *_, (_, variances) = driven(SquareRoot(), np.zeros((600, 1), np.int64))
    first, second = (SquareRoot().norm(n) / SquareRoot().unit ** 2 for n in (128, 128**2))
    carried = variances[127]
    noise = np.sqrt((np.array(variances[128:]) * second - carried * (second - first)) * 12 / 13)
    assert noise.max() < 4.8


def test_parts_are_whole_numbers_that_add_up_and_follow_the_guide_where_it_says_much():
    blocks = np.array([[100, -7], [3, 50]])
    guide, room = np.array([90.0, 10.0, 0.0, 0.0]), np.array([1.0, 1.0, 3.0, 1.0])
    parts = divided(blocks, guide, 0.0, room)
    assert (parts.reshape(2, 2, 2).sum(axis=2) == blocks).all()
    assert parts[0].tolist() == [90, 10, -5, -2]
    assert divided(blocks, guide, 1e9, room)[0].tolist() == [50, 50, -5, -2]
    assert divided(blocks, guide, 1.0, np.array([0.0, 1.0, 1.0, 0.0]))[1].tolist() == [0, 3, 50, 0]


def test_levels_come_from_each_other():
    fine = Running(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), np.eye(2))
    coarse = fine.coarser(1)
    assert coarse.blocks.tolist() == [[3, 7], [11, 15]]
    assert coarse.variance == 2 * fine.variance
    again = coarse.finer(np.array([1.0, 2.0, 3.0, 4.0]), 0.0, np.ones(4))
    assert again.coarser(1).blocks.tolist() == coarse.blocks.tolist()
    assert again.blocks[0].tolist() == [1, 2, 3, 4]
    newer = Running(np.array([[10, 30, 5, 5], [0, 0, 0, 0]]), np.eye(2))
    newer.follow(Running(np.array([[40, 10], [8, 6]]), np.eye(2)), np.ones(4))
    assert newer.blocks[1].sum() == 14
    assert newer.blocks[1].tolist()[0] < 4
