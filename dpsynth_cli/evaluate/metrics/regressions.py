"""What numbers have to do with each other and with the rest: rank correlations, and R^2 on all other
columns."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.cuts import kinds
from dpsynth_cli.evaluate.metrics.marginals import paired
from dpsynth_cli.evaluate.metrics.scales import known, missing, values
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats

TOP = 20  # categories of a column that have a coefficient of their own, less the most frequent one
COEFFICIENTS = 400  # about, at most
LEAST = 50  # rows with a value: fewer are no regression
BATCH = 5_000
RIDGE = 1e-9  # of the variance of a standardised feature: no more than keeps equations solvable
ROWS = 30_000  # of a regression


def regression_errors(real: Table, other: Table, domain: Domain) -> dict[str, Any]:
    """Errors of Spearman's correlation over pairs of numbers, and of R^2 of each number on all the others."""
    few = Domain(paired(domain))
    categories, numbers = kinds(real, few)
    names = [column.name for column in numbers]
    ranks = [spearman(table, numbers) for table in (real, other)]
    pairs: list[tuple[str, str, float, float]] = [
        (names[i], names[j], float(ranks[0][i, j]), float(ranks[1][i, j]))
        for i, j in combinations(range(len(names)), 2)
    ]
    fits = [explained(table.at_most(ROWS), categories, numbers) for table in (real, other)]
    found = {name: {"real": fits[0][name], "synthetic": fits[1][name]} for name in names}
    gaps = {name: abs(own["real"] - own["synthetic"]) for name, own in found.items()}
    worst = max(pairs, key=lambda pair: abs(pair[2] - pair[3]), default=None)
    return {
        "ranks": _mean_and_worst([abs(p - q) for _, _, p, q in pairs])
        | {"worst_columns": list(worst[:2]) if worst else [], "pairs": [list(pair) for pair in pairs]},
        "r2": _mean_and_worst(list(gaps.values()))
        | {"worst_column": max(gaps, key=lambda name: gaps[name], default=None), "columns": found},
    }


def _mean_and_worst(errors: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(errors)) if errors else 0.0, "worst": max(errors, default=0.0)}


def spearman(table: Table, numbers: tuple[Column, ...]) -> Floats:
    """Rank correlations of columns, each pair over the rows that have both; 0 where one is constant."""
    many = len(numbers)
    dense, there = [], []
    for column in numbers:
        codes = table.codes[column.name]
        there.append(~missing(codes, column))
        dense.append(np.unique(codes, return_inverse=True)[1])
    whole = [flags.all() for flags in there]
    ranks = [_ranks(own) for own in dense]
    found = np.eye(many)
    for i, j in combinations(range(many), 2):
        if whole[i] and whole[j]:
            x, y = ranks[i], ranks[j]
        else:
            both = there[i] & there[j]
            x, y = _ranks(dense[i][both]), _ranks(dense[j][both])
        found[i, j] = found[j, i] = _correlation(x, y)
    return found


def _ranks(dense: NDArray[np.intp]) -> Floats:
    """Centred mid-ranks of whole numbers: equal ones share theirs."""
    if not len(dense):
        return np.zeros(0)
    times = np.bincount(dense)
    middle = np.cumsum(times) - (times + 1) / 2 - (len(dense) - 1) / 2
    return np.asarray(middle[dense])


def _correlation(x: Floats, y: Floats) -> float:
    size = float(x @ x) * float(y @ y)
    return float(x @ y) / size**0.5 if size > 0 else 0.0


def explained(table: Table, categories: tuple[Column, ...], numbers: tuple[Column, ...]) -> dict[str, float]:
    """R^2 of each number by least squares on all other columns: numbers as they are, missing ones as their
    mean with a flag, categories by indicators of the most frequent ones."""
    features = _Features(table, categories, numbers)
    everything = features.products(None)
    return {column.name: features.fit(column, everything) for column in numbers}


class _Features:
    """The columns of a regression, standardised, and in which of them each column is."""

    def __init__(self, table: Table, categories: tuple[Column, ...], numbers: tuple[Column, ...]) -> None:
        self.rows, self.gone = len(table), {}
        self.places: dict[str, list[int]] = {}
        self._blocks: list[Any] = []
        top = max(2, min(TOP, COEFFICIENTS // max(1, len(categories) + len(numbers))))
        count = 0
        for column in numbers:
            codes = table.codes[column.name]
            gone = missing(codes, column)
            self.gone[column.name] = gone
            self._blocks.append((column.name, _standardised(codes, gone, column), gone))
            self.places[column.name] = [count, count + 1] if gone.any() else [count]
            count += len(self.places[column.name])
        for column in categories:
            codes = table.codes[column.name]
            labels, times = np.unique(known(codes, column), return_counts=True)
            kept = labels[np.argsort(-times, kind="stable")[1:top]]
            self._blocks.append((column.name, codes, kept))
            self.places[column.name] = list(range(count, count + len(kept)))
            count += len(kept)
        self.count = count

    def products(self, which: NDArray[np.bool_] | None) -> tuple[Floats, Floats, int]:
        """Sums of products of features, sums of features, and rows: of all rows or some."""
        rows = np.arange(self.rows) if which is None else np.flatnonzero(which)
        second, first = np.zeros((self.count, self.count)), np.zeros(self.count)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            x = np.zeros((len(part), self.count))
            for name, cells, more in self._blocks:
                at = self.places[name]
                if name in self.gone:
                    x[:, at[0]] = cells[part]
                    if len(at) > 1:
                        x[:, at[1]] = more[part]
                else:
                    for place, code in zip(at, more, strict=True):
                        x[:, place] = cells[part] == code
            second += x.T @ x
            first += x.sum(axis=0)
        return second, first, len(rows)

    def fit(self, column: Column, everything: tuple[Floats, Floats, int]) -> float:
        """R^2 of one number, over the rows where it is there; 0 where they are too few or all alike."""
        second, first, rows = everything
        gone = self.gone[column.name]
        if gone.any():
            less, lost, fewer = self.products(gone)
            second, first, rows = second - less, first - lost, rows - fewer
        if rows < LEAST:
            return 0.0
        target = self.places[column.name][0]
        others = [k for k in range(self.count) if k not in self.places[column.name]]
        covariance = second / rows - np.outer(first, first) / rows**2
        variance = np.diag(covariance)
        if variance[target] < 1e-12 or not others:
            return 0.0
        scale = np.sqrt(np.maximum(variance[others], 0))
        use = scale > 1e-6
        kept, scale = np.array(others)[use], scale[use]
        if not len(kept):
            return 0.0
        x = covariance[np.ix_(kept, kept)] / np.outer(scale, scale) + RIDGE * np.eye(len(kept))
        y = covariance[kept, target] / scale
        return float(min(1.0, max(0.0, y @ np.linalg.solve(x, y) / variance[target])))


def _standardised(codes: NDArray[Any], gone: NDArray[np.bool_], column: Column) -> Floats:
    """Mean 0 and variance 1 over what is there, and 0 elsewhere."""
    found = np.zeros(len(codes))
    if not gone.all():
        there = values(codes[~gone], column)
        spread = there.std()
        found[~gone] = (there - there.mean()) / (spread if spread > 0 else 1.0)
    return found
