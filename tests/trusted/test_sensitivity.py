"""No row moves a sum further than declared, and a worst case reaches it: each question, relation, norm."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import (
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Gram,
    Halves,
    Moments,
    Question,
    Scored,
    Total,
)
from dpsynth_cli.trusted.sensitivity import Sensitivity, is_free, sensitivity
from dpsynth_cli.trusted.sums import Tally

LABEL = Column("k", "nominal", categories=("u", "v"))
PLACE = Column("e", "nominal", categories=("here", "there"))


def domain(d: int, neighbours: str) -> Domain:
    """d integer columns with three values and missing, and a label: small enough to try every row."""
    columns = tuple(Column(f"c{i}", "integer", lower=0, upper=2, nullable=True) for i in range(d))
    return Domain((*columns, PLACE, LABEL), neighbours)


def statistics(d: int) -> dict[str, object]:
    names = tuple(f"c{i}" for i in range(d))
    axes = tuple(Bins(name, (0, 1, 2, 3, 4)) for name in names)
    scored = Scored(axes, ((-3, 1, 0, 2),) * d, (-2, 0, 1, 5))
    found = {
        "scored cells": CellCounts(Cells((scored, Halves("e", 1)))),
        "one-hot sums in scored cells": CellSums(Cells((scored, Halves("e", 1))), attributes=axes),
        "total": Total(),
        "tree level": CellCounts(Cells((Halves("c0", 3),), (0, 0, 0))),
        "table": CellCounts(Cells(axes)),
        "own cells": CellCounts((Cells(axes[:1]), Cells((Halves("c0", 2),)))),
        "mean": Moments(names, 3, 1),
        "second moment": Moments(names, 3, 2),
        "clipped mean": Moments(names, 6, 1, Fraction(1)),
        "clipped second moment": Moments(names, 6, 2, Fraction(1)),
        "one-hot sums": CellSums(Cells((Halves("e", 1),)), attributes=axes),
        "value sums": CellSums(Cells((Halves("e", 1),)), columns=names, bits=3),
    }
    if d > 1:
        found["gram"] = Gram(axes)
        found["gram with diagonal"] = Gram(axes, diagonal=True)
        found["scores"] = Gram(axes, scores=((-3, 0, 3, 2),) * d, bits=2)
    return found


def every_row(omega: Domain) -> list[dict[str, int]]:
    return [
        dict(zip([c.name for c in omega], row, strict=True))
        for row in product(*(range(c.codes) for c in omega))
    ]


def vectors(question: Question, omega: Domain) -> np.ndarray:
    """What each possible row adds to the sum."""
    out = []
    for row in every_row(omega):
        tally = Tally([question], omega)
        tally.add({name: np.array([u]) for name, u in row.items()}, 1)
        out.append(tally.sums()[0])
    return np.array(out)


def moves(question: Question, omega: Domain) -> np.ndarray:
    rows = vectors(question, omega)
    if omega.neighbours == "add_remove":
        return rows
    return (rows[:, None, :] - rows[None, :, :]).reshape(len(rows) ** 2, -1)


def norms(moved: np.ndarray, declared: Sensitivity, d: int, blocks: int) -> tuple[int, int]:
    """The largest L1, and L2 squared with recipe F's weights (twice above the diagonal)."""
    weight = np.ones(moved.shape[1], dtype=np.int64)
    if declared.half_above:
        i, j = np.triu_indices(d)
        weight = np.tile(np.where(i == j, 1, 2), blocks)
    return int(np.abs(moved).sum(axis=1).max()), int((moved.astype(np.int64) ** 2 * weight).sum(axis=1).max())


CASES = [
    (name, d, neighbours, by)
    for d in (1, 2, 3)
    for name in statistics(d)
    for neighbours in ("add_remove", "replace_one")
    for by in (None, "k")
    if not (name == "own cells" and by is None) and not (d == 3 and neighbours == "replace_one" and by)
]


@pytest.mark.parametrize(("name", "d", "neighbours", "by"), CASES)
def test_no_row_moves_a_sum_further_and_a_worst_case_reaches_it(name, d, neighbours, by):
    omega = domain(d, neighbours)
    question = Question("s", statistics(d)[name], Fraction(1), by)
    if is_free(question, omega):
        assert (moves(question, omega) == 0).all()
        return
    declared = sensitivity(question, omega)
    l1, l2_squared = norms(moves(question, omega), declared, d, 2 if by else 1)
    assert l1 <= declared.l1
    assert l2_squared <= declared.l2_squared
    if "clipped" not in name:  # a clipped integer row need not lie on the sphere
        assert l1 == declared.l1
        assert l2_squared == declared.l2_squared or (name, neighbours) == ("second moment", "replace_one")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("clip", [None, Fraction(1), Fraction(3, 2)])
def test_moments_at_random_interior_points_stay_within_their_sensitivity(neighbours, d, clip):
    columns = tuple(Column(f"c{i}", "continuous", lower=0.0, upper=1.0) for i in range(d))
    omega = Domain(columns, neighbours)
    rng = np.random.default_rng(d)
    corners = rng.choice([0, 2**30 - 1], size=(300, d))
    inside = rng.integers(2**30, size=(300, d))
    rows = np.concatenate([corners, inside, np.where(rng.random((300, d)) < 0.5, corners, inside)])
    for degree in (1, 2):
        question = Question("s", Moments(tuple(c.name for c in columns), 10, degree, clip), Fraction(1))
        declared = sensitivity(question, omega)
        seen = []
        for row in rows:
            tally = Tally([question], omega)
            tally.add({f"c{i}": np.array([u]) for i, u in enumerate(row)}, 1)
            seen.append(tally.sums()[0])
        moved = np.array(seen)
        if neighbours == "replace_one":
            moved = moved - moved[rng.permutation(len(moved))]
        l1, l2_squared = norms(moved, declared, d, 1)
        assert l1 <= declared.l1
        assert l2_squared <= declared.l2_squared


def test_a_wrong_sensitivity_would_be_seen(monkeypatch):
    """The test above can fail: treating replace_one as add_remove is caught."""
    omega = domain(2, "replace_one")
    question = Question("s", statistics(2)["table"], Fraction(1))
    careless = sensitivity(question, domain(2, "add_remove"))
    l1, _ = norms(moves(question, omega), careless, 2, 1)
    assert l1 > careless.l1


def test_the_total_is_free_only_when_n_is_public_and_plain():
    total = Question("n", Total(), Fraction(0))
    assert is_free(total, domain(1, "replace_one"))
    assert not is_free(total, domain(1, "add_remove"))
    assert not is_free(Question("n", Total(), Fraction(1), by="k"), domain(1, "replace_one"))
