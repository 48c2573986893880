"""Random small questions: the true worst case over all rows, found without the table, beside what the table
says.

Where there are few rows, all pairs are tried. Where there are too many, HiGHS looks for the worst pair: a
row is a choice of one value in each column, and products of choices are linear constraints on binaries.
"""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import (
    Affine,
    Axis,
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Centres,
    Gram,
    Halves,
    Misfit,
    Moments,
    Question,
    RowScores,
    Scored,
    Statistic,
    Total,
)
from dpsynth_cli.trusted.core import sensitivity as table
from dpsynth_cli.trusted.core.checks import check_question
from dpsynth_cli.trusted.core.sensitivity import Sensitivity, is_free, sensitivity
from dpsynth_cli.trusted.core.shapes import cell_count, classes_of, lengths_of
from tests.enumeration.worlds import RELATIONS, every_row, every_table, moves, sums
from tests.enumeration.worst_pair import WorstPair

KINDS = (
    "Total",
    "CellCounts",
    "CellSums",
    "Gram",
    "Gram of scores",
    "Moments",
    "clipped",
    "RowScores",
    "Misfit",
    "about",
)


# --- random questions -----------------------------------------------------------------------------------


def some_domain(rng: np.random.Generator, neighbours: str) -> Domain:
    """Two or three columns of two to four codes, and a label."""
    columns = []
    for i in range(int(rng.integers(2, 4))):
        nullable = bool(rng.integers(2))
        if rng.integers(3):
            columns.append(
                Column(f"c{i}", "integer", lower=0, upper=int(rng.integers(1, 3)), nullable=nullable)
            )
        else:
            kind = str(rng.choice(["nominal", "ordinal"]))
            own = tuple("abc"[: rng.integers(2, 4)])
            columns.append(Column(f"c{i}", kind, categories=own, nullable=nullable))
    return Domain((*columns, Column("k", "boolean", categories=("false", "true"))), neighbours)


def some_axis(rng: np.random.Generator, omega: Domain, column: str, deep: bool = True) -> Axis:
    codes = omega[column].codes
    choice = int(rng.integers(4 if deep else 2))
    if choice == 0:
        return Halves(column, int(rng.integers(1, omega[column].bits + 1)))
    if choice == 1:
        inner = np.sort(rng.integers(0, codes + 1, int(rng.integers(0, 3))))
        return Bins(column, (0, *map(int, inner), codes))
    edges = tuple(map(int, np.sort(rng.integers(-4, 5, int(rng.integers(2, 5))))))
    if choice == 2:
        return Affine((column,), tuple(map(int, rng.integers(-2, 3, omega[column].width))), edges, 1)
    scores = (tuple(map(int, rng.integers(-3, 4, codes))),)
    return Scored((Bins(column, tuple(range(codes + 1))),), scores, edges)


def some_statistic(rng: np.random.Generator, omega: Domain, kind: str, by: str | None) -> Statistic:
    names = [column.name for column in omega if column.name != "k"]
    every = [Bins(name, tuple(range(omega[name].codes + 1))) for name in names]
    axes = tuple(some_axis(rng, omega, name) for name in names)
    bits = int(rng.integers(1, 4))
    match kind:
        case "Total":
            return Total()
        case "CellCounts":
            return CellCounts(Cells(axes[: int(rng.integers(1, len(axes) + 1))]))
        case "CellSums":
            return CellSums(Cells(axes[:1]), tuple(some_axis(rng, omega, name) for name in names[1:]))
        case "Gram":
            return Gram(axes, diagonal=bool(rng.integers(2)))
        case "Gram of scores":
            q = 2**bits - 1
            scores = tuple(tuple(map(int, rng.integers(-q, q + 1, omega[name].codes))) for name in names)
            return Gram(tuple(every), scores=scores, bits=bits)
        case "Moments":
            return Moments(tuple(names), bits, int(rng.integers(1, 3)))
        case "clipped":
            return Moments(tuple(names), bits + 2, int(rng.integers(1, 3)), F(int(rng.integers(1, 16)), 8))
        case "about":
            q, classes = 2**bits - 1, int(rng.integers(2)) + 1
            width = sum(omega[name].width for name in names)
            points = tuple(tuple(map(int, rng.integers(-q, q + 1, width))) for _ in range(classes))
            about = Centres(points, "k" if classes == 2 else None)
            clip, norm = F(int(rng.integers(1, 48)), 8), int(rng.integers(1, 3))
            return Moments(tuple(names), bits, int(rng.integers(1, 3)), max(clip, F(1, q)), about, norm)
        case "RowScores":
            r = int(rng.integers(1, 4))
            scores = tuple(tuple(map(int, rng.integers(-9, 10, omega[name].codes))) for name in names)
            weights = tuple(tuple(map(int, rng.integers(-3, 4, len(names)))) for _ in range(r))
            return RowScores(tuple(every), scores, weights, int(rng.integers(1, 30)), 1)
    tables = tuple(Cells((some_axis(rng, omega, name, False),)) for name in names)
    expected = tuple(
        tuple(tuple(map(int, rng.integers(-1, 3, cell_count(part)))) for part in tables)
        for _ in range(omega["k"].codes if by else 1)
    )
    return Misfit(tables, expected)


def true_moves(question: Question, omega: Domain) -> np.ndarray:
    """All moves that any row can make."""
    if isinstance(question.statistic, Misfit):
        return moves(question, omega, every_table(omega, 2))
    one_row = [(row,) for row in every_row(omega)]
    added = sums(question, omega, one_row)
    if omega.neighbours == "add_remove":
        return added
    return (added[:, None] - added[None]).reshape(-1, added.shape[1])


def true_sensitivity(moved: np.ndarray, declared: Sensitivity, lengths: tuple[int, ...]) -> Sensitivity:
    weight = np.ones(moved.shape[1], np.int64)
    if declared.half_above:
        i, j = np.triu_indices(int((2 * lengths[0]) ** 0.5))
        weight = np.tile(np.where(i == j, 1, 2), len(lengths))
    blocks = np.split(np.abs(moved), np.cumsum(lengths)[:-1], axis=1)
    largest = None if declared.largest is None else int(sum(block.max(axis=1) for block in blocks).max())
    return Sensitivity(
        int(np.abs(moved).sum(axis=1).max()),
        int((moved.astype(np.int64) ** 2 * weight).sum(axis=1).max()),
        declared.half_above,
        largest,
    )


def compared(seed: int, kind: str, neighbours: str, by: str | None) -> tuple[Sensitivity, Sensitivity] | None:
    """What the table says, and what is true; None where there is nothing to pay for or to answer."""
    rng = np.random.default_rng([seed, KINDS.index(kind), RELATIONS.index(neighbours), by is None])
    omega = some_domain(rng, neighbours)
    question = Question("s", some_statistic(rng, omega, kind, by), F(1), by)
    if isinstance(question.statistic, RowScores) and (by or neighbours == "add_remove"):
        with pytest.raises(ValueError, match="row scores are defined under replace_one only"):
            check_question(question, omega)
        return None
    check_question(question, omega)
    if is_free(question, omega):
        assert not true_moves(question, omega).any()
        return None
    declared = sensitivity(question, omega)
    return declared, true_sensitivity(true_moves(question, omega), declared, lengths_of(question, omega))


def never_above(declared: Sensitivity, true: Sensitivity) -> bool:
    fits = true.l1 <= declared.l1 and true.l2_squared <= declared.l2_squared
    return fits and (declared.largest is None or true.largest <= declared.largest)


CASES = [(kind, neighbours, by) for kind in KINDS for neighbours in RELATIONS for by in (None, "k")]
# What no choice of columns makes loose: a row that comes is in one cell of every table, and counts there.
TIGHT = {"Total", "CellCounts", "CellSums", "Gram", "Misfit"}


def check(kind: str, neighbours: str, by: str | None, seeds: range) -> None:
    reached = 0
    found = [pair for seed in seeds if (pair := compared(seed, kind, neighbours, by)) is not None]
    for declared, true in found:
        assert never_above(declared, true)
        reached += true.l1 == declared.l1
        if kind in TIGHT and neighbours == "add_remove":
            assert (true.l1, true.l2_squared) == (declared.l1, declared.l2_squared)
    # Some worst case reaches every line of the table.
    assert reached or not found or kind in ("clipped", "about")


@pytest.mark.parametrize(("kind", "neighbours", "by"), CASES)
def test_no_row_moves_a_random_question_further_than_the_table_says(kind, neighbours, by):
    check(kind, neighbours, by, range(4 if kind == "Misfit" else 12))  # its tables of two rows are many


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "neighbours", "by"), CASES)
def test_no_row_moves_hundreds_of_random_questions_further(kind, neighbours, by):
    check(kind, neighbours, by, range(12, 52 if kind == "Misfit" else 412))


@pytest.mark.parametrize(
    ("kind", "neighbours", "wrong"),
    [
        ("CellCounts", "replace_one", Sensitivity(1, 1)),
        ("Misfit", "replace_one", Sensitivity(2, 2)),
        ("Gram of scores", "add_remove", Sensitivity(1, 1)),
    ],
)
def test_a_wrong_line_of_the_table_would_be_seen(monkeypatch, kind, neighbours, wrong):
    line = "_add_remove" if neighbours == "add_remove" else "_replace_one"
    monkeypatch.setattr(table, line, lambda *_: wrong)
    pairs = [compared(seed, kind, neighbours, None) for seed in range(4)]
    assert not all(never_above(*pair) for pair in pairs if pair)


# --- more rows than can be tried: a solver looks for the worst pair --------------------------------------


def numbers(d: int, neighbours: str, upper: int = 3) -> Domain:
    return Domain(tuple(Column(f"c{i}", "integer", lower=0, upper=upper) for i in range(d)), neighbours)


@pytest.mark.parametrize(("d", "bits"), [(2, 1), (3, 1), (3, 2), pytest.param(4, 2, marks=pytest.mark.slow)])
def test_the_solver_finds_no_worse_pair_for_second_moments_and_one_as_bad(d, bits):
    """All values of a grid of 2^bits, and missing; q^2 d (d + 1) / 2 by the proof that two rows do no more
    than one."""
    q = 2**bits - 1
    values = [*range(-q, q + 1, 2), 0]
    asked = Question("s", Moments(tuple(f"c{i}" for i in range(d)), bits, 2), F(1))
    assert WorstPair([values] * d, diagonal=True).solved() == sensitivity(asked, numbers(d, "replace_one")).l1


@pytest.mark.parametrize("d", [2, 3, *(pytest.param(d, marks=pytest.mark.slow) for d in (4, 5))])
def test_the_solver_finds_no_worse_pair_for_scores_and_one_as_bad(d):
    q = 3
    axes = tuple(Bins(f"c{i}", (0, 1, 2, 3, 4)) for i in range(d))
    asked = Question("s", Gram(axes, scores=((-q, q, 0, 1),) * d, bits=2), F(1))
    worst = WorstPair([[-q, q, 0, 1]] * d, diagonal=False).solved()
    assert worst == sensitivity(asked, numbers(d, "replace_one")).l1


def test_the_solver_agrees_with_trying_all_pairs():
    rng = np.random.default_rng(3)
    for _ in range(5):
        scores = [[int(s) for s in rng.integers(-3, 4, 3)] for _ in range(3)]
        omega = numbers(3, "replace_one", upper=2)
        axes = tuple(Bins(f"c{i}", (0, 1, 2, 3)) for i in range(3))
        asked = Question("s", Gram(axes, scores=tuple(map(tuple, scores)), bits=2), F(1))
        assert classes_of(asked, omega) == 1
        assert (
            WorstPair(scores, diagonal=False).solved() == np.abs(true_moves(asked, omega)).sum(axis=1).max()
        )
