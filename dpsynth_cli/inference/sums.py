"""What answers say about released rows: noisy sums over cells of some columns, and which rows are in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from dpsynth_cli.inference.measured import EXACT_SD
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.tables import CellOf, Counted, Signed
from dpsynth_cli.questions import Floats, Ints

MOST_CELLS = 1500  # of all tables together; those with the most noise are left out beyond
OF_TABLE = 1000  # of one
OF_PAIRS, FEWEST = 900, 16  # of all pairs together, and of each at least
TOLD = 1.0  # standard deviations of noise that the cells of a pair have to have in the mean
FULL = 0.1  # part of a matrix that is not nothing, above which it is multiplied as a whole
ADDED = 16  # cells that are added up, above which the noise of a sum is taken as normal


@dataclass(frozen=True, eq=False)
class Sums:
    """One table along some columns, or one signed sum (a table of one cell): the cell of each row, what the
    row adds to it, the noisy sums and their noise."""

    cell: Ints
    adds: Floats
    noisy: Floats
    sd: float
    noise: str
    added: int = 1  # counts in each of the sums
    axes: dict[str, CellOf] = field(default_factory=dict)  # the cells of each column, where it has such
    table: Counted | None = None
    fold: Callable[[Floats], Floats] = np.ravel  # these sums of an array like the table's

    @property
    def size(self) -> int:
        return len(self.noisy)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Other noise of the same distribution."""
        return _noise(self.noise, self.sd / math.sqrt(self.added), self.size, self.added, rng)


def other_noise(sums: Sequence[Sums], rng: np.random.Generator) -> Floats:
    """Noise of the same distribution for all of them; the same for those that are sums of one table."""
    drawn: dict[int, Floats] = {}
    tables = [id(one.table) for one in sums]
    found = []
    for one, own in zip(sums, tables, strict=True):
        if one.table is None or tables.count(own) == 1:
            found.append(one.draw(rng))
            continue
        if own not in drawn:
            values = one.table.values
            drawn[own] = _noise(one.noise, one.table.sd, values.size, 1, rng).reshape(values.shape)
        found.append(one.fold(drawn[own]))
    return np.concatenate([np.zeros(0), *found])


def _noise(noise: str, sd: float, size: int, added: int, rng: np.random.Generator) -> Floats:
    if noise == "discrete_laplace" and added <= ADDED:
        return np.asarray(rng.laplace(0.0, sd / math.sqrt(2), (added, size)).sum(axis=0))
    return rng.normal(0.0, sd * math.sqrt(added), size)


def features(sums: Sequence[Sums], rows: int) -> Any:
    """What each row adds to each sum, as a sparse matrix."""
    from scipy.sparse import csr_array

    starts = np.cumsum([0, *(one.size for one in sums)])
    cells = [one.cell + start for one, start in zip(sums, starts[:-1], strict=True)]
    adds = [one.adds for one in sums]
    places = np.tile(np.arange(rows), len(sums))
    none = np.zeros(0)
    entries = np.concatenate([none, *adds]), (places, np.concatenate([none.astype(np.int64), *cells]))
    return csr_array(entries, shape=(rows, int(starts[-1])))


def products(features: Any) -> Floats:
    """The sums over rows of what each adds to two sums, for any two of these."""
    if features.nnz > FULL * features.shape[0] * features.shape[1]:
        features = features.toarray()
        return np.asarray(features.T @ features)
    return np.asarray((features.T @ features).toarray())


def noisy_sums(sums: Sequence[Sums]) -> Floats:
    return np.concatenate([np.zeros(0), *(one.noisy for one in sums)])


def variances(sums: Sequence[Sums]) -> Floats:
    """Of the noise of each sum."""
    return np.concatenate([np.zeros(0), *(np.full(one.size, max(one.sd, EXACT_SD) ** 2) for one in sums)])


def sums_about(columns: Sequence[str], released: Drawn, known: Known) -> list[Sums]:
    """All that answers say about these columns."""
    folded = [_folded(table, columns, known, OF_TABLE) for table in known.tables]
    found = [_of_rows(one, released) for one in folded if one is not None]
    return _not_too_many(found, columns, released, known)


def sums_of_pairs(released: Drawn, known: Known) -> list[Sums]:
    """All that answers say; tables of more than two columns as those of their pairs, which are finer than one
    of all columns could be."""
    scopes = list[tuple[Counted, tuple[str, ...]]]()
    for table in known.tables:
        own = [(name,) for name in table.columns] + list(combinations(table.columns, 2))
        scopes += [(table, scope) for scope in (own if len(table.columns) > 2 else [table.columns])]
    most = OF_TABLE
    while True:
        folded = [_folded(table, scope, known, most, TOLD) for table, scope in scopes]
        if most <= FEWEST or sum(one.noisy.size for one in folded if one is not None) <= OF_PAIRS:
            break
        most //= 2
    names = [column.name for column in known.domain]
    found = [_of_rows(one, released) for one in folded if one is not None]
    return _not_too_many(found, names, released, known)


def _not_too_many(found: list[Sums], columns: Sequence[str], released: Drawn, known: Known) -> list[Sums]:
    """With the signed sums about these columns; those with the least noise."""
    about = [one for one in known.signed if set(one.columns) <= set(columns) and one.pooled not in columns]
    found = sorted(found + [_scored(one, released) for one in about], key=lambda one: one.sd)
    sizes = np.cumsum([one.size for one in found])
    return found[: int(np.searchsorted(sizes, MOST_CELLS, side="right"))]


@dataclass(frozen=True, eq=False)
class _Folded:
    """A table added up along axes outside of some columns, and over neighbours along others."""

    table: Counted
    kept: list[int]
    outside: tuple[int, ...]
    halved: list[int]
    noisy: Floats
    added: int

    def __call__(self, values: Floats) -> Floats:
        values = np.asarray(values.sum(axis=self.outside))
        for axis in self.halved:
            values = _halved(values, axis)
        return values.ravel()


def _folded(
    table: Counted, columns: Sequence[str], known: Known, most: int, told: float = -math.inf
) -> _Folded | None:
    """A table added up over all but these columns, and over neighbours until there are at most so many cells,
    which are told from noise; None where it is about one class of another column."""
    kept = [a for a, name in enumerate(table.columns) if name in columns]
    outside = tuple(a for a in range(len(table.columns)) if a not in kept)
    if not all(table.whole(a, known.domain) for a in outside):
        return None
    added = math.prod(table.values.shape[a] for a in outside)
    noisy = table.values.sum(axis=outside)
    numeric = [not known.domain[table.columns[a]].categorical for a in kept]
    halved: list[int] = []
    while noisy.size > most or noisy.mean() < told * table.sd * math.sqrt(added):
        lengths = [size * own for size, own in zip(noisy.shape, numeric, strict=True)]
        if max(lengths, default=0) < 2:
            if noisy.size > most:
                return None
            break
        halved.append(int(np.argmax(lengths)))
        noisy, added = _halved(noisy, halved[-1]), added * 2
    return _Folded(table, kept, outside, halved, noisy, added)


def _of_rows(folded: _Folded, released: Drawn) -> Sums:
    """With the cell of each row."""
    table, noisy = folded.table, folded.noisy
    axes = {
        table.columns[a]: _joined(table.cell[a], 2 ** folded.halved.count(k))
        for k, a in enumerate(folded.kept)
    }
    cell, inside = np.zeros(len(released.table), np.int64), np.ones(len(released.table))
    for size, (name, cell_of) in zip(noisy.shape, axes.items(), strict=True):
        own = cell_of(released.table.codes[name])
        cell, inside = cell * size + np.maximum(own, 0), inside * (own >= 0)
    sd = table.sd * math.sqrt(folded.added)
    return Sums(cell, inside, noisy.ravel(), sd, table.noise, folded.added, axes, table, folded)


def _halved(values: Floats, axis: int) -> Floats:
    return np.asarray(np.add.reduceat(values, np.arange(0, values.shape[axis], 2), axis=axis))


def _joined(cell: CellOf, times: int) -> CellOf:
    return lambda codes: cell(codes) // times


def _scored(one: Signed, released: Drawn) -> Sums:
    adds = np.ones(len(released.table))
    for name, score in zip(one.columns, one.scores, strict=True):
        adds = adds * score(released.table.codes[name])
    return Sums(np.zeros(len(adds), np.int64), adds, np.array([one.value]), one.sd, one.noise)
