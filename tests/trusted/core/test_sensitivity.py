"""No row moves a sum further than declared, and a worst case reaches it: each question, relation, norm."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import (
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Gram,
    Halves,
    Misfit,
    Moments,
    Question,
    RowScores,
    Scored,
    Total,
)
from dpsynth_cli.trusted.core.sensitivity import Sensitivity, is_free, sensitivity
from dpsynth_cli.trusted.core.shapes import cell_count
from dpsynth_cli.trusted.sums.tally import Tally

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
        "mean with a nominal": Moments((*names, "e"), 3, 1),
        "second moment with a nominal": Moments((*names, "e"), 3, 2),
        "clipped second moment with a nominal": Moments((*names, "e"), 6, 2, Fraction(1)),
        "clipped mean": Moments(names, 6, 1, Fraction(1)),
        "clipped second moment": Moments(names, 6, 2, Fraction(1)),
        "one-hot sums": CellSums(Cells((Halves("e", 1),)), attributes=axes),
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


def norms(moved: np.ndarray, declared: Sensitivity, blocks: int) -> tuple[int, int]:
    """The largest L1, and L2 squared with recipe F's weights (twice above the diagonal)."""
    weight = np.ones(moved.shape[1], dtype=np.int64)
    if declared.half_above:
        i, j = np.triu_indices(int((2 * moved.shape[1] // blocks) ** 0.5))
        weight = np.tile(np.where(i == j, 1, 2), blocks)
    return int(np.abs(moved).sum(axis=1).max()), int((moved.astype(np.int64) ** 2 * weight).sum(axis=1).max())


def largest(moved: np.ndarray, blocks: int) -> int:
    """How far any integer moves, added up over the blocks."""
    return int(np.abs(moved).reshape(len(moved), blocks, -1).max(axis=2).sum(axis=1).max())


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
    l1, l2_squared = norms(moves(question, omega), declared, 2 if by else 1)
    assert l1 <= declared.l1
    assert l2_squared <= declared.l2_squared
    if declared.largest is not None:
        most = largest(moves(question, omega), 2 if by else 1)
        assert most <= declared.largest
        # Squares of one column are never negative: two of them cannot be 2 q^2 apart.
        assert most == declared.largest or "clipped" in name or (d == 1 and neighbours == "replace_one")
    loose = "clipped" in name  # a clipped integer row need not lie on the sphere
    if neighbours == "replace_one" and "with a nominal" in name:
        loose = True  # numbers and categories cannot both move the furthest
    if not loose:
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
        l1, l2_squared = norms(moved, declared, 1)
        assert l1 <= declared.l1
        assert l2_squared <= declared.l2_squared
        assert largest(moved, 1) <= declared.largest


def row_scores(d: int, weights: list[list[int]], bound: int) -> Question:
    axes = tuple(Bins(f"c{i}", (0, 1, 2, 3, 4)) for i in range(d))
    scores = ((-3, 0, 3, 1),) * d
    return Question("s", RowScores(axes, scores, tuple(map(tuple, weights)), bound, 1), Fraction(1))


@pytest.mark.parametrize(
    ("weights", "bound", "reached"),
    [
        ([[1, 1]], 4, True),
        ([[1, 0], [0, 1]], 3, False),
        ([[2, 1], [1, -5]], 7, False),
        ([[1, 1]] * 4, 6, True),  # a row of four equal coordinates: L1 is twice sqrt(4) bound
        ([[10**6, 3]] * 3, 10**6, False),
    ],
)
def test_no_row_moves_its_own_scores_further_than_two_bounds(weights, bound, reached):
    omega = domain(2, "replace_one")
    question = row_scores(2, weights, bound)
    declared = sensitivity(question, omega)
    l1, l2_squared = norms(moves(question, omega), declared, 1)
    assert l1 <= declared.l1
    assert l2_squared <= declared.l2_squared == 4 * bound**2
    if reached:
        assert (l1, l2_squared) == (declared.l1, declared.l2_squared)


@pytest.mark.parametrize("seed", range(5))
def test_row_scores_at_random_stay_within_their_sensitivity(seed):
    rng = np.random.default_rng(seed)
    d, r = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    omega = Domain(
        tuple(Column(f"c{i}", "integer", lower=0, upper=99, nullable=True) for i in range(d)), "replace_one"
    )
    axes = tuple(Bins(c.name, tuple(range(102))) for c in omega)
    scores = tuple(tuple(row) for row in rng.integers(-999, 1000, (d, 101)).tolist())
    weights = tuple(tuple(row) for row in rng.integers(-99, 100, (r, d)).tolist())
    question = Question("s", RowScores(axes, scores, weights, int(rng.integers(1, 10**5)), 400), Fraction(1))
    tally = Tally([question], omega)
    tally.add({c.name: rng.integers(101, size=400) for c in omega}, 400)
    w = tally.sums()[0].reshape(400, r)
    moved = (w[:, None] - w[None]).reshape(-1, r)
    declared = sensitivity(question, omega)
    assert np.abs(moved).sum(axis=1).max() <= declared.l1
    assert (moved**2).sum(axis=1).max() <= declared.l2_squared


# --- misfit: it is no sum over rows, so what a row moves depends on the others ------------------------

RELATIONS = ("add_remove", "replace_one")
AXES = (
    Bins("c0", (0, 1, 2, 3, 4)),
    Halves("c1", 1),
    Halves("e", 1),
    Scored((Halves("c0", 1), Halves("c1", 2)), ((0, 3), (-1, 2, 2, 0)), (-9, 0, 2, 9)),
)
SOME_TABLES = st.lists(st.lists(st.sampled_from(AXES), max_size=3), min_size=1, max_size=5).map(
    lambda found: tuple(Cells(tuple(axes)) for axes in found)
)
SOME_ROWS = st.lists(st.tuples(*(st.integers(0, c.codes - 1) for c in domain(2, RELATIONS[0]))), max_size=9)


def distances(question: Question, omega: Domain, rows: list[tuple[int, ...]]) -> np.ndarray:
    codes = np.array(rows, np.int64).reshape(len(rows), len(omega.columns))
    tally = Tally([question], omega)
    tally.add({column.name: codes[:, i] for i, column in enumerate(omega)}, len(rows))
    return tally.sums()[0]


@given(st.data(), SOME_TABLES, SOME_ROWS, st.sampled_from(RELATIONS), st.sampled_from([None, "k"]))
@settings(max_examples=300, deadline=None)
def test_no_row_moves_a_misfit_further_whatever_the_others_are(data, tables, rows, neighbours, by):
    omega = domain(2, neighbours)
    expected = tuple(
        tuple(
            data.draw(st.tuples(*[st.integers(-2, 4)] * cell_count(part)), label="expected")
            for part in tables
        )
        for _ in range(2 if by else 1)
    )
    question = Question("s", Misfit(tables, expected), Fraction(1), by)
    declared, m = sensitivity(question, omega), len(tables)
    before = distances(question, omega, rows)
    for row in data.draw(st.lists(st.sampled_from(every_row(omega)), min_size=1, max_size=6), label="row"):
        others = rows if neighbours == "add_remove" else rows[1:]
        if neighbours == "replace_one" and not rows:
            return
        moved = (distances(question, omega, [*others, tuple(row.values())]) - before).astype(object)
        l1, l2_squared = np.abs(moved).sum(), (moved**2).sum()
        assert l1 <= declared.l1
        assert l2_squared <= declared.l2_squared
        if neighbours == "add_remove":  # of integers |count - expected| moves by 1, no less
            assert l1 == l2_squared == m == declared.l1 == declared.l2_squared


@pytest.mark.parametrize("m", [1, 2, 7])
@pytest.mark.parametrize("by", [None, "k"])
def test_a_worst_case_reaches_the_sensitivity_of_a_misfit(by, m):
    """Cell 0 of each table has a row more than expected, cell 1 one less: to replace a row of the first by
    one of the second moves each distance by 2. A row that changes its class moves twice as many by 1."""
    tables = (Cells((Bins("c0", (0, 1, 4)),)),) * m
    expected = (((1, 1),) * m,) * (2 if by else 1)
    rows = [(0, 0, 0, 0), (0, 0, 0, 0)]
    for neighbours in RELATIONS:
        omega = domain(2, neighbours)
        question = Question("s", Misfit(tables, expected), Fraction(1), by)
        declared, before = sensitivity(question, omega), distances(question, omega, rows)
        if neighbours == "add_remove":
            assert declared == Sensitivity(m, m)
            moved = distances(question, omega, rows[1:]) - before
        else:
            assert declared == Sensitivity(2 * m, 4 * m)
            moved = distances(question, omega, [*rows[1:], (1, 0, 0, 0)]) - before
            other = distances(question, omega, [*rows[1:], (0, 0, 0, 1)]) - before
            assert norms(other[None], declared, 1) == ((2 * m, 2 * m) if by else (0, 0))
        assert norms(moved[None], declared, 1) == (declared.l1, declared.l2_squared)


def test_a_misfit_priced_as_a_table_of_counts_would_be_seen():
    """Counts under replace_one move by 1 in two cells, L2 squared 2; a distance moves by 2, which is 4."""
    omega = domain(2, "replace_one")
    asked = Question("s", Misfit((Cells((AXES[0],)),), (((2, 1, 0, 0),),)), Fraction(1))
    counts = sensitivity(Question("s", CellCounts(Cells((AXES[0],))), Fraction(1)), omega)
    rows = [(0, 0, 0, 0)] * 3
    moved = distances(asked, omega, [*rows[1:], (1, 0, 0, 0)]) - distances(asked, omega, rows)
    assert norms(moved[None], counts, 1) == (counts.l1, 2 * counts.l2_squared)


def test_a_wrong_sensitivity_would_be_seen(monkeypatch):
    """The test above can fail: treating replace_one as add_remove is caught."""
    omega = domain(2, "replace_one")
    question = Question("s", statistics(2)["table"], Fraction(1))
    careless = sensitivity(question, domain(2, "add_remove"))
    l1, _ = norms(moves(question, omega), careless, 1)
    assert l1 > careless.l1


def test_the_total_is_free_only_when_n_is_public_and_plain():
    total = Question("n", Total(), Fraction(0))
    assert is_free(total, domain(1, "replace_one"))
    assert not is_free(total, domain(1, "add_remove"))
    assert not is_free(Question("n", Total(), Fraction(1), by="k"), domain(1, "replace_one"))
