"""Groups: every one has at least g rows, what is released is of groups, and rows are as declared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.trusted.groups import (
    Groups,
    centroids,
    grouped,
    homogeneous,
    points,
    rows_by_bootstrap,
    rows_of_centroids,
)
from dpsynth_cli.trusted.similar import bisected, by_net, printed_net

AGE = Column("age", "integer", lower=0, upper=99, nullable=True)
PAY = Column("pay", "continuous", lower=0.0, upper=1.0)
STAGE = Column("stage", "ordinal", categories=("low", "mid", "high"), nullable=True)
KIND = Column("kind", "nominal", categories=("r", "g", "b"), nullable=True)
FLAG = Column("flag", "boolean", categories=("false", "true"))
OMEGA = Domain((AGE, PAY, STAGE, KIND, FLAG))


def some_rows(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {column.name: rng.integers(column.codes, size=n) for column in OMEGA}


def all_rows(blocks) -> dict[str, np.ndarray]:
    blocks = list(blocks)
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@given(st.integers(0, 2**32), st.integers(2, 300), st.integers(2, 40), st.sampled_from(["bisection", "net"]))
@settings(max_examples=150, deadline=None)
def test_every_group_has_at_least_g_rows(seed, rows, g, partition):
    table = some_rows(rows, seed)
    if seed % 3 == 0:  # many equal rows
        table = {name: codes[np.arange(rows) % 2] for name, codes in table.items()}
    if rows < g:
        with pytest.raises(ValueError, match="fewer rows"):
            grouped(table, OMEGA, g, partition)
        return
    found = grouped(table, OMEGA, g, partition)
    assert found.of_row.shape == (rows,)
    assert found.sizes.sum() == rows
    assert (np.bincount(found.of_row) == found.sizes).all()
    assert found.sizes.min() >= g
    assert found.sizes.max() < 2 * g
    assert len(found.sizes) == rows // g  # as many as there can be


@pytest.mark.parametrize("partition", ["bisection", "net"])
@pytest.mark.parametrize("g", [2, 7, 25])
def test_every_released_row_is_the_same_as_g_minus_1_others(partition, g):
    table = some_rows(500)
    found = grouped(table, OMEGA, g, partition)
    made = all_rows(rows_of_centroids(centroids(table, OMEGA, found), found, np.random.default_rng(0)))
    _, counts = np.unique(np.stack(list(made.values())), axis=1, return_counts=True)
    assert counts.sum() == 500
    assert counts.min() >= g
    for column in OMEGA:
        assert made[column.name].min() >= 0
        assert made[column.name].max() < column.codes


def test_centres_are_means_medians_and_the_commonest():
    table = {
        "age": np.array([10, 20, 100, 100, 100, 30]),  # 100 is missing
        "pay": np.array([0, 10, 2, 5, 7, 9]),
        "stage": np.array([0, 2, 2, 3, 1, 1]),  # 3 is missing
        "kind": np.array([1, 1, 0, 3, 3, 2]),
        "flag": np.array([0, 1, 1, 0, 0, 1]),
    }
    found = Groups(np.array([0, 0, 0, 1, 1, 1]), np.array([3, 3]))
    made = centroids(table, OMEGA, found)
    assert {name: codes.tolist() for name, codes in made.items()} == {
        "age": [15, 100],
        "pay": [4, 7],
        "stage": [2, 1],
        "kind": [1, 3],
        "flag": [1, 0],
    }


def test_the_order_of_the_input_is_not_kept():
    table = {name: np.sort(codes) for name, codes in some_rows(400).items()}
    found = grouped(table, OMEGA, 5, "bisection")
    made = all_rows(rows_of_centroids(centroids(table, OMEGA, found), found, np.random.default_rng(0)))
    assert abs(np.corrcoef(made["pay"], np.arange(400))[0, 1]) < 0.3


def test_drawn_rows_are_valid_and_no_number_of_a_row_is_released():
    table = some_rows(3000)
    table["flag"] = (table["pay"] > PAY.size // 2).astype(np.int64)
    found = grouped(table, OMEGA, 10, "bisection")
    made = all_rows(rows_by_bootstrap(table, OMEGA, found, 5000, np.random.default_rng(0)))
    for column in OMEGA:
        assert len(made[column.name]) == 5000
        assert made[column.name].min() >= 0
        assert made[column.name].max() < column.codes
    assert len(np.intersect1d(made["pay"], table["pay"])) < 5
    high = made["pay"] > PAY.size // 2
    assert np.corrcoef(made["flag"], high)[0, 1] > 0.6  # what goes together in groups still does
    assert abs((made["age"] == AGE.size).mean() - (table["age"] == AGE.size).mean()) < 0.02


@pytest.mark.parametrize("present", [1, 2, 3])
def test_a_number_that_few_of_a_group_have_is_never_released(present):
    table = some_rows(6)
    table["age"] = np.where(np.arange(6) < present, 37, AGE.size)
    found = Groups(np.zeros(6, np.int64), np.array([6]))
    made = all_rows(rows_by_bootstrap(table, OMEGA, found, 300, np.random.default_rng(0)))
    assert set(made["age"].tolist()) == {AGE.size}
    pair = Groups(np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 2]))
    one = centroids(table | {"age": np.array([37] + [AGE.size] * 5)}, OMEGA, pair)
    assert one["age"].tolist() == [AGE.size] * 3


def test_homogeneous_groups_are_counted():
    table = some_rows(6)
    table["flag"] = np.array([0, 0, 0, 1, 0, 1])
    table["kind"] = np.array([0, 1, 2, 3, 3, 3])
    found = Groups(np.array([0, 0, 0, 1, 1, 1]), np.array([3, 3]))
    counted = homogeneous(table, OMEGA, found)
    assert (counted["flag"], counted["kind"]) == (1, 1)
    assert set(counted) == {"stage", "kind", "flag"}


def test_bisection_loses_less_of_the_second_moment_than_the_net_and_that_less_than_chance():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(4000, 3))
    x = (hidden @ rng.normal(size=(3, 30)) + rng.normal(size=(4000, 30)) > 0).astype(np.float32)

    def lost(of_row: np.ndarray) -> float:
        sizes = np.bincount(of_row)
        means = np.stack([np.bincount(of_row, x[:, j]) for j in range(30)], axis=1) / sizes[:, None]
        error = (x.T @ x - (means * sizes[:, None]).T @ means) / len(x)
        return float((error[~np.eye(30, dtype=bool)] ** 2).mean())

    chance = rng.permutation(4000) // 20
    assert lost(bisected(x, 20)) < 0.5 * lost(by_net(x, 20)) < 0.5 * lost(chance)
    # As printed: one axis for these 200 groups, rows not centred, cells of nearly the whole ball.
    assert printed_net(200)[0] == 1
    printed = by_net(x, 20, printed=True)
    assert np.bincount(printed).min() >= 20
    assert lost(by_net(x, 20)) < lost(printed)


def test_an_empty_table_has_no_groups_and_numbers_count_by_rank():
    empty = {column.name: np.zeros(0, np.int64) for column in OMEGA}
    assert len(grouped(empty, OMEGA, 5, "net").sizes) == 0
    far = {name: codes.copy() for name, codes in some_rows(100).items()}
    far["pay"] = np.append(np.arange(99), PAY.size - 1)
    assert np.abs(points(far, OMEGA)).max() < 1.8
