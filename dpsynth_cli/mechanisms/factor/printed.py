"""Release by rows: Algorithms 1 to 3 of the paper that `factor.py` names, corrected. Not recommended.

X are the latent scores of the rows, by the private links: normal scores along the order of a numeric, ordinal
or boolean column, one standardised indicator a category of a nominal one. V are the first r eigenvectors of
their private Gram, W = X V + noise the rows' own coordinates, and W V^T goes back through the same links.

Every row is noised by itself, which is local privacy: the noise of a coordinate does not shrink with n. r is
public, or follows from the private Gram, as does the norm to which the core clips each row (docs/privacy.md,
E30, E31).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli.mechanisms.factor.latent import residual
from dpsynth_cli.mechanisms.factor.links import settled
from dpsynth_cli.mechanisms.shared.attributes import Attribute
from dpsynth_cli.mechanisms.shared.drawing import BLOCK_ROWS
from dpsynth_cli.numeric.exact import exp, log
from dpsynth_cli.numeric.pairs import pair_tables
from dpsynth_cli.numeric.projection import rounded
from dpsynth_cli.numeric.sampling import whole
from dpsynth_cli.numeric.spectrum import axes
from dpsynth_cli.questions import Answer, Ask, Block, Floats, Ints, Model, Question, RowScores

INFORMATION = 0.8  # c, the part of all information that r(c) factors have (3)
MOST_SCORES = 2**24  # rows times factors: they are held in memory and in the transcript
HIGHEST = 3.0  # of a latent score, in standard deviations
SCORE, WEIGHT = 255, 1024  # the integers that stand for HIGHEST and for a weight of 1
CLIP = 1.5  # of a row's norm, in units of its root mean square
NOT_RECOMMENDED = (
    "release: rows is a reference implementation and not recommended: it is local differential privacy, "
    "every row noised by itself. A row's coordinates are {ratio:.2g} times their noise (below 1, little is "
    "left of it); release: model is the useful form"
)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A column's latent coordinates: the score of each of its cells in each (cells x dimensions)."""

    own: Attribute
    scores: Floats

    @classmethod
    def of(cls, own: Attribute) -> Coordinates:
        mass = own.masses(0)
        part = np.maximum(mass / max(float(mass.sum()), 1.0), 1e-6)
        part /= part.sum()
        if own.column.type == "nominal":
            scores = (np.eye(len(part)) - part) / np.sqrt(part * (1 - part) + 1e-9)
        else:
            scores = normal_scores(part)[:, None]
        return cls(own, np.clip(scores, -HIGHEST, HIGHEST))

    @property
    def integers(self) -> list[tuple[int, ...]]:
        """The scores as a question has them, one tuple a dimension."""
        return [tuple(row) for row in np.rint(self.scores.T * (SCORE / HIGHEST)).astype(int).tolist()]

    def cells(self, x: Floats, rng: np.random.Generator) -> Ints:
        """The cells of rows with these coordinates (one column each): the link backwards. Thresholds of an
        ordered column are quantiles, of a nominal one the largest coordinate wins; masses are the marginal's.
        """
        mass = self.own.masses(0)
        due = whole(mass, x.shape[1], rng)
        if len(x) == 1:
            cells = np.empty(x.shape[1], np.int64)
            cells[np.lexsort((rng.random(len(cells)), x[0]))] = np.repeat(np.arange(len(due)), due)
            return cells
        part = np.maximum(mass / max(float(mass.sum()), 1.0), 1e-6)
        return settled(np.argmax(x + log(part)[:, None], axis=0), due, rng)


def normal_scores(part: Floats) -> Floats:
    """The mean of a standard normal between the thresholds of each cell: cells in order, masses `part`.

    >>> normal_scores(np.array([0.5, 0.5])).round(2).tolist()
    [-0.8, 0.8]
    """
    from scipy.special import ndtri

    ends = exp(-0.5 * ndtri(np.clip(np.append(0.0, np.cumsum(part)), 0.0, 1.0)) ** 2) / math.sqrt(2 * math.pi)
    return np.asarray((ends[:-1] - ends[1:]) / part)


def by_rows(
    ask: Ask, attributes: list[Attribute], gram: Answer, share: Fraction, r: int | None, n: int
) -> Model:
    """The release, once marginals and Gram are known: one synthetic row for each of the n rows."""
    columns = [Coordinates.of(own) for own in attributes]
    ends = np.cumsum([own.scores.shape[1] for own in columns])
    parts = [slice(end - own.scores.shape[1], end) for end, own in zip(ends, columns, strict=True)]

    # Loadings: V, the first r eigenvectors of the private second moments of the scores.
    moments = _moments(columns, parts, gram, n)
    if r is None:
        r = number_of_factors(moments, _noise(columns, gram.sd / max(1, n)))
        r = min(r, max(1, MOST_SCORES // max(1, n)))
    found = axes(moments, 0.0, min(r, int(ends[-1])))
    weights = np.rint(found.vectors * WEIGHT)

    # Factors: W = X V, clipped to norm C by the core, with noise.
    unit = WEIGHT * SCORE / HIGHEST
    scale = CLIP * math.sqrt(max(float(found.values.sum()), 1.0))
    question = RowScores(
        tuple(own.own.axis for own in columns for _ in own.integers),
        tuple(row for own in columns for row in own.integers),
        tuple(tuple(row) for row in weights.T.astype(int).tolist()),
        math.ceil(scale * unit),
        n,
    )
    answer = ask([Question("scores", question, share)])[0]
    w = rounded(answer.values.reshape(n, len(found)) / (unit * scale + answer.sd))
    spread = (answer.sd**2 + unit**2 * found.values) / (unit * scale + answer.sd) ** 2

    # Back: x = W V^T in units of its own deviation, cells by the links, codes by the marginals.
    vectors = rounded(found.vectors)
    deviation = np.sqrt(np.maximum((vectors**2) @ spread, 1e-12))

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        for start in range(0, rows, BLOCK_ROWS):
            count = min(BLOCK_ROWS, rows - start)
            mine = w[start : start + count] if rows == n else w[rng.integers(n, size=count)] if n else w
            x = vectors @ np.resize(mine, (count, len(found))).T / deviation[:, None]
            yield {
                own.own.column.name: own.own.codes(np.zeros(count, np.int64), own.cells(x[part], rng), rng)
                for own, part in zip(columns, parts, strict=True)
            }

    signal = unit * math.sqrt(float(found.values.mean()))
    note = NOT_RECOMMENDED.format(ratio=signal / max(answer.sd, 1e-9))
    return Model(n, draw, (note,), {"factors": len(found), "signal_to_noise": signal / max(answer.sd, 1e-9)})


def number_of_factors(moments: Floats, tau: float) -> int:
    """r(c): as few factors as have the part c of all information, or all that stand above noise of this
    standard deviation in an entry; one at least.

    >>> [number_of_factors(np.diag([5.0, 3.0, 1.0, 1.0]), noise) for noise in (0.0, 1.0)]
    [3, 1]
    """
    above = axes(moments, tau).values
    reached = np.cumsum(above) > INFORMATION * max(float(np.trace(moments)), 1e-12)
    return max(1, int(np.argmax(reached)) + 1 if reached.any() else len(above))


def _noise(columns: list[Coordinates], tau: float) -> float:
    """The standard deviation of the noise of an average entry; tau is that of a cell of a pair table."""
    lengths = np.concatenate([np.sqrt((own.scores**2).sum(axis=0)) for own in columns])
    return float(tau * (lengths**2).mean())


def _moments(columns: list[Coordinates], parts: list[slice], gram: Answer, n: int) -> Floats:
    """The second moments of all scores: across columns from the pair tables, inside one from its marginal."""
    p = [own.own.masses(0) / max(1, n) for own in columns]
    matrix = np.zeros((parts[-1].stop, parts[-1].stop))
    for own, part, mass in zip(columns, parts, p, strict=True):
        matrix[part, part] = own.scores.T @ (own.scores * mass[:, None])
    for (i, j), table in pair_tables(gram.values, [own.own.cells for own in columns]).items():
        cross = columns[i].scores.T @ residual(table / max(1, n), p[i], p[j]) @ columns[j].scores
        matrix[parts[i], parts[j]], matrix[parts[j], parts[i]] = cross, cross.T
    return matrix
