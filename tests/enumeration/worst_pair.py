"""HiGHS looks for the two rows that are furthest apart in a question about products."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_matrix


class WorstPair:
    """Two rows of d columns, each with one of some scores; the sum over entries of |difference| at its
    largest.

    Entries are products of the scores of two columns, and squares of one where there is a diagonal. u[r, i,
    a] is 1 if row r has score a in column i; a product of two of them is a variable between the linear
    bounds that make it one.
    """

    def __init__(self, scores: list[list[int]], diagonal: bool) -> None:
        self.scores, d = scores, len(scores)
        self.columns: dict[tuple, int] = {}
        self.rows: list[tuple[dict[tuple, float], float, float]] = []
        for r, i in product(range(2), range(d)):
            self.between({("u", r, i, a): 1 for a in range(len(scores[i]))}, 1, 1)
        for i, j in combinations(range(d), 2):
            for r, a, b in product(range(2), range(len(scores[i])), range(len(scores[j]))):
                p, u, v = ("p", r, i, a, j, b), ("u", r, i, a), ("u", r, j, b)
                self.between({p: 1, u: -1}, -1, 0)
                self.between({p: 1, v: -1}, -1, 0)
                self.between({p: 1, u: -1, v: -1}, -1, 0)
            self.entry(
                (i, j),
                {
                    ("p", r, i, a, j, b): (1 - 2 * r) * scores[i][a] * scores[j][b]
                    for r, a, b in product(range(2), range(len(scores[i])), range(len(scores[j])))
                },
            )
        for i in range(d if diagonal else 0):
            squares = {("u", r, i, a): (1 - 2 * r) * s * s for r in range(2) for a, s in enumerate(scores[i])}
            self.entry((i, i), squares)

    def entry(self, name: tuple, difference: dict[tuple, int]) -> None:
        """t = |difference|: at most it or its opposite, whichever the solver takes."""
        far = 4 * max(abs(s) for own in self.scores for s in own) ** 2
        t, side = ("t", name), ("s", name)
        self.between({t: 1, side: -far} | {v: -c for v, c in difference.items()}, -np.inf, 0)
        self.between({t: 1, side: far} | difference, -np.inf, far)

    def between(self, terms: dict[tuple, float], low: float, high: float) -> None:
        for variable in terms:
            self.columns.setdefault(variable, len(self.columns))
        self.rows.append((terms, low, high))

    def solved(self) -> int:
        """The largest sum of all entries."""
        terms = [(r, self.columns[v], c) for r, row in enumerate(self.rows) for v, c in row[0].items()]
        rows, columns, values = zip(*terms, strict=True)
        matrix = coo_matrix((values, (rows, columns)), (len(self.rows), len(self.columns))).tocsc()
        kinds = np.array([variable[0] for variable in self.columns])
        result = milp(
            -(kinds == "t").astype(float),
            constraints=LinearConstraint(
                matrix, [low for _, low, _ in self.rows], [high for *_, high in self.rows]
            ),
            integrality=(kinds == "u") | (kinds == "s"),
            bounds=(np.zeros(len(kinds)), np.where(kinds == "t", np.inf, 1)),
        )
        assert result.status == 0, result.message
        return round(-result.fun)
