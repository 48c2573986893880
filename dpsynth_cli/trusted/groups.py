"""Microaggregation without differential privacy: groups of at least g similar rows, and what is released.

Boedihardjo, Strohmer, Vershynin (2021), Algorithm 1. This path does not fit `ask`: what it releases is
computed from exact rows, and no noise is in it.

Claim: every group has at least g rows; with `centroids` every released row is the same, in all columns, as at
least g - 1 others (k-anonymity with k = g). Nothing is claimed about what one row can change.

The paper's equal groups become groups of g to 2g - 1 rows, so that g need not divide n. Its partition by a
net is `net`; `bisection` halves groups along their principal direction until they are that small, and loses
less.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.questions import Block, Ints
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.similar import Points, bisected, by_net

BLOCK = 2**17  # rows of a block of the output


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every row, numbered from 0, and how many rows each has."""

    of_row: Ints
    sizes: Ints


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The rows of a table, as codes in memory, and their groups."""

    rows: Mapping[str, Ints]
    omega: Domain
    groups: Groups

    def released(self, output: str, count: int | None) -> tuple[int, Iterator[Block]]:
        """How many rows, and the rows: `centroids`, or as many as are wanted by bootstrap.

        Order and draws are nobody's to repeat: a seed would tell row by row.
        """
        rng = np.random.default_rng(secrets.randbits(128))
        whole = len(self.groups.of_row)
        if output == "centroids":
            return whole, rows_of_centroids(centroids(self.rows, self.omega, self.groups), self.groups, rng)
        count = whole if count is None or not whole else count
        return count, rows_by_bootstrap(self.rows, self.omega, self.groups, count, rng)

    def for_the_steward(self) -> dict[str, Any]:
        """How many groups there are, and where one of them gives a category away."""
        return {
            "confidential": True,
            "groups": len(self.groups.sizes),
            "smallest": min(self.groups.sizes.tolist(), default=0),
            "largest": max(self.groups.sizes.tolist(), default=0),
            "homogeneous": homogeneous(self.rows, self.omega, self.groups),
            "meaning": "in so many groups all rows have the same category: whoever is known to be in one of "
            "them is known to have it",
        }


def read_groups(
    scan: Scan,
    omega: Domain,
    g: int,
    partition: str,
    printed: bool = False,
    progress: Callable[[int], None] = lambda done: None,
    counted: Problems | None = None,
) -> GroupedRows:
    """All rows of a table, in groups of at least g. Cells that are not as declared are `counted`."""
    parts: dict[str, list[np.ndarray]] = {column.name: [] for column in scan.columns}
    for piece in scan.pieces():
        for name, codes in scan.encode(piece, counted).items():
            parts[name].append(codes.astype(np.int32))
        progress(piece.size)
    rows = {
        name: np.concatenate(part).astype(np.int64) if part else np.zeros(0, np.int64)
        for name, part in parts.items()
    }
    if 0 < len(next(iter(rows.values()))) < g:
        raise UsageError(
            "the input has fewer rows than one group needs.", next_step="Lower mechanism.group_size."
        )
    return GroupedRows(rows, omega, grouped(rows, omega, g, partition, printed))


# --- the partition -----------------------------------------------------------------------------------


def grouped(rows: Mapping[str, Ints], omega: Domain, g: int, partition: str, printed: bool = False) -> Groups:
    """Groups of at least g rows; there must be g rows or none. `printed`: the net as the paper has it."""
    x = points(rows, omega)
    if not len(x):
        return Groups(np.zeros(0, np.int64), np.zeros(0, np.int64))
    if len(x) < g:
        raise ValueError("fewer rows than a group needs")
    of_row = bisected(x, g) if partition == "bisection" else by_net(x, g, printed)
    return Groups(of_row, np.bincount(of_row))


def points(rows: Mapping[str, Ints], omega: Domain) -> Points:
    """Rows as vectors: categories one-hot; numbers by their ranks, with variance 1, and missing as a bit."""
    columns: list[np.ndarray] = []
    for column in omega:
        codes = rows[column.name]
        if column.categorical:
            columns += [codes == code for code in range(column.codes)]
            continue
        there = codes < column.size
        rank = np.zeros(len(codes))
        rank[there] = _ranks(codes[there])
        columns.append(rank)
        if column.nullable:
            columns.append(~there)
    x = np.empty((len(next(iter(rows.values()))), len(columns)), dtype=np.float32)
    for j, values in enumerate(columns):
        x[:, j] = values
    return x


def _ranks(codes: Ints) -> np.ndarray:
    """Middle ranks, between -sqrt(3) and sqrt(3)."""
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    return np.asarray(((middle / max(1, len(codes)) - 0.5) * np.sqrt(12))[inverse])


# --- what is released --------------------------------------------------------------------------------


def centroids(rows: Mapping[str, Ints], omega: Domain, groups: Groups) -> Block:
    """The centre of each group: the mean of numbers, the middle of ordered and the commonest of other
    categories; missing where half of the group's rows or more are."""
    return {column.name: _centre(rows[column.name], column, groups) for column in omega}


def _centre(codes: Ints, column: Column, groups: Groups) -> Ints:
    if column.type in ("nominal", "boolean"):
        return _commonest(codes, column, groups)
    return _middle(codes, column, groups)


def _middle(codes: Ints, column: Column, groups: Groups) -> Ints:
    """The mean code, or of ordered categories the median, of the rows that are not missing.

    Missing where half of the group's rows or more are: what is left is the mean of two rows at least, so
    never the number of one.
    """
    absent = np.bincount(groups.of_row, codes == column.size, minlength=len(groups.sizes))
    return np.where(2 * absent >= groups.sizes, column.size, _middle_of_present(codes, column, groups))


def _middle_of_present(codes: Ints, column: Column, groups: Groups) -> Ints:
    there = codes < column.size
    codes, of_row = codes[there], groups.of_row[there]
    counts = np.bincount(of_row, minlength=len(groups.sizes))
    if column.type != "ordinal":
        means = np.bincount(of_row, codes, minlength=len(counts)) / np.maximum(1, counts)
        return np.asarray(np.rint(means).astype(np.int64))
    middle = np.zeros(len(counts), np.int64)
    some = counts > 0
    order = np.lexsort((codes, of_row))
    middle[some] = codes[order][(np.cumsum(counts) - (counts + 1) // 2)[some]]
    return middle


def _commonest(codes: Ints, column: Column, groups: Groups) -> Ints:
    values, counts = np.unique(groups.of_row * column.codes + codes, return_counts=True)
    group = values // column.codes
    last = np.diff(group, append=-1) != 0
    order = np.lexsort((counts, group))  # in each group the commonest last
    return np.asarray((values % column.codes)[order][last])


def rows_of_centroids(centres: Block, groups: Groups, rng: np.random.Generator) -> Iterator[Block]:
    """Each centre as often as its group has rows, in random order: the order of the input is not kept."""
    which = rng.permutation(np.repeat(np.arange(len(groups.sizes)), groups.sizes))
    for start in range(0, len(which), BLOCK):
        yield {name: values[which[start : start + BLOCK]] for name, values in centres.items()}


def rows_by_bootstrap(
    rows: Mapping[str, Ints], omega: Domain, groups: Groups, count: int, rng: np.random.Generator
) -> Iterator[Block]:
    """Rows drawn from the groups: the group by its size, then each column by itself.

    A category is that of a row of the group, drawn anew for every column; a number is the mean of the group's
    rows that have one, if more than half of them do: no number of one row is released as it is.
    """
    means = {c.name: _middle(rows[c.name], c, groups) for c in omega if not c.categorical}
    order = np.argsort(groups.of_row, kind="stable")
    first = np.cumsum(groups.sizes) - groups.sizes
    for start in range(0, count, BLOCK):
        # A row drawn evenly is in a group drawn by its size.
        which = groups.of_row[rng.integers(len(order), size=min(BLOCK, count - start))]
        block = {}
        for column in omega:
            inside = (rng.random(len(which)) * groups.sizes[which]).astype(np.int64)
            drawn = rows[column.name][order[first[which] + inside]]
            if not column.categorical:
                drawn = np.where(drawn == column.size, column.size, means[column.name][which])
            block[column.name] = drawn
        yield block


def homogeneous(rows: Mapping[str, Ints], omega: Domain, groups: Groups) -> dict[str, int]:
    """In how many groups all rows have one category: who is known to be in such a group is known to have it.

    For the steward only: these counts are exact.
    """
    found = {}
    for column in omega:
        if column.categorical:
            pairs = np.unique(groups.of_row * column.codes + rows[column.name]) // column.codes
            found[column.name] = int((np.bincount(pairs) == 1).sum()) if len(pairs) else 0
    return found
