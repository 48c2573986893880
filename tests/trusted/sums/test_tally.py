"""Sums are exact, additive and order-free; cells are functions of one row; against slow definitions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.questions import (
    Affine,
    Bins,
    CellCounts,
    Cells,
    CellSums,
    Centres,
    Distance,
    Gram,
    Halves,
    Misfit,
    Moments,
    Question,
    RowScores,
    Scored,
    Total,
)
from dpsynth_cli.trusted.core.checks import check_question
from dpsynth_cli.trusted.core.shapes import cell_count, columns_of, lengths_of, tables_only
from dpsynth_cli.trusted.sums import tables as counting
from dpsynth_cli.trusted.sums.batch import Batch, cells_of, path_of
from dpsynth_cli.trusted.sums.cells import centred, clipped, column_cells, joined
from dpsynth_cli.trusted.sums.tables import together
from dpsynth_cli.trusted.sums.tally import Tally

SMALL = Column("a", "integer", lower=0, upper=9, nullable=True)
WIDE = Column("x", "continuous", lower=0.0, upper=1.0)
HUGE = Column("t", "integer", lower=0, upper=99_999)
KIND = Column("k", "nominal", categories=("r", "g", "b"))
FLAG = Column("f", "boolean", categories=("false", "true"), nullable=True)
OMEGA = Domain((SMALL, WIDE, HUGE, KIND, FLAG))
BINS = Bins("a", (0, 3, 3, 10, 11))
SCORED = Scored(
    (BINS, Halves("x", 1), Bins("k", (0, 1, 2, 3))), ((-5, 0, 3, 9), (2, -2), (0, 7, -1)), (-3, 0, 4, 8)
)
ONE = Centres(((30, 0, 255, 100, -255),))
EACH = Centres(((30, 0, 255, 100, -255), (0, 0, 0, 0, 0), (-255, 7, 7, 7, 99)), "k")

QUESTIONS = [
    Question("n", Total(), Fraction(1)),
    Question("n", Total(), Fraction(1), by="k"),
    Question("tree", CellCounts(Cells((Halves("x", 3), Halves("a", 2)), (0, 1, 0, 1, 0))), Fraction(1)),
    Question("tree", CellCounts(Cells((Halves("x", 1), Halves("a", 1)), (0, 1))), Fraction(1)),
    Question("tree", CellCounts(Cells((Halves("t", 7),), (0,) * 7)), Fraction(1), by="f"),
    Question("tree", CellCounts(Cells((Halves("x", 2), Halves("a", 0)), (0, 0))), Fraction(1)),
    Question("bins", CellCounts(Cells((BINS, Bins("k", (0, 1, 3))))), Fraction(1)),
    Question("own", CellCounts((Cells((Halves("x", 2),)), Cells((BINS,)), Cells(()))), Fraction(1), by="k"),
    Question("mean", Moments(("a", "x", "t"), 8, 1), Fraction(1)),
    Question("cov", Moments(("a", "x", "t"), 8, 2), Fraction(1), by="k"),
    Question("cov", Moments(("a", "x", "t"), 8, 2, Fraction(1, 2)), Fraction(1)),
    Question("hot", Moments(("a", "k", "x"), 8, 1), Fraction(1), by="f"),
    Question("hot", Moments(("a", "k", "x"), 8, 2), Fraction(1), by="f"),
    Question("hot", Moments(("k", "x"), 8, 2, Fraction(1, 2)), Fraction(1)),
    Question("hot", Moments(("k", "x"), 8, 1), Fraction(1)),
    Question("hot", Moments(("k", "x"), 8, 1, Fraction(1, 2)), Fraction(1)),
    Question("about", Moments(("a", "k", "x"), 8, 1, Fraction(9, 8), ONE, 1), Fraction(1)),
    Question("about", Moments(("a", "k", "x"), 8, 2, Fraction(9, 8), EACH), Fraction(1)),
    Question("about", Moments(("a", "k", "x"), 8, 2, Fraction(1), EACH, 1), Fraction(1), by="f"),
    Question("about", Moments(("a", "k", "x"), 8, 1, Fraction(1), EACH), Fraction(1), by="k"),
    *(
        Question(
            "far", CellCounts(Cells((Distance(("a", "k", "x"), EACH, ends, 8, norm), BINS))), Fraction(1)
        )
        for norm, ends in ((1, (0, 200, 400, 600)), (2, (0, 40_000, 120_000, 200_000)))
    ),
    Question(
        "hot",
        CellCounts(Cells((Affine(("k", "x"), (3, -2, 1, 4), (-3000, -100, 300, 3000), 8),))),
        Fraction(1),
    ),
    Question("gram", Gram((BINS, Halves("k", 2), Halves("f", 2)), diagonal=True), Fraction(1)),
    Question("gram", Gram((BINS, Halves("x", 6), Halves("k", 2))), Fraction(1), by="f"),
    Question(
        "gram",
        Gram((BINS, Halves("x", 2), Bins("k", (0, 1, 2, 3)), Halves("f", 2), Halves("t", 7))),
        Fraction(1),
    ),
    Question("scores", Gram((BINS, Halves("k", 1)), scores=((-3, 0, 2, 1), (-1, 3)), bits=2), Fraction(1)),
    Question(
        "sums", CellSums(Cells((Halves("x", 2),)), attributes=(BINS, Halves("k", 2))), Fraction(1), by="f"
    ),
    Question(
        "own sums",
        CellSums((Cells((SCORED,)), Cells(()), Cells((SCORED, BINS))), attributes=(BINS, Halves("f", 2))),
        Fraction(1),
        by="k",
    ),
    Question("scored", CellCounts(Cells((SCORED, Halves("x", 1)))), Fraction(1)),
    Question(
        "affine", CellCounts(Cells((Affine(("a", "x"), (3, -2), (-2000, -100, 50, 2000), 8),))), Fraction(1)
    ),
]


AXES = (BINS, Halves("x", 2), Bins("k", (0, 1, 2, 3)), Halves("f", 2), SCORED, Halves("t", 7), Halves("x", 1))
TABLES = (
    *(Cells(pair) for pair in combinations(AXES, 2)),
    *(Cells((one,)) for one in AXES),
    Cells(()),
    Cells((AXES[2], AXES[0])),  # the other way round
    Cells((AXES[0], AXES[1])),  # a second time
    Cells((AXES[3], AXES[3])),
    *(Cells(three) for three in combinations(AXES[:4], 3)),
    Cells((Affine(("a", "x"), (3, -2), (-2000, -100, 50, 2000), 8), *AXES[1:4])),
    Cells((Halves("t", 9), Halves("x", 8))),  # more cells than rows
)


def misfit(tables: tuple[Cells, ...], by: str | None = None, seed: int = 0, most: int = 40) -> Question:
    """How far rows are from some integers, which may well be negative."""
    rng = np.random.default_rng(seed)
    classes = OMEGA[by].codes if by else 1
    expected = tuple(
        tuple(tuple(rng.integers(-3, most, cell_count(part)).tolist()) for part in tables)
        for _ in range(classes)
    )
    return Question("misfit", Misfit(tables, expected), Fraction(1), by)


MISFITS = [
    misfit(TABLES),
    misfit(TABLES, "k"),
    misfit(TABLES[:3], "f"),
    misfit((Cells((Halves("t", 3), Halves("a", 2))),)),
    misfit((Cells(()),), most=9),
]


def some_rows(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    return {c.name: rng.integers(c.codes, size=rows).astype(np.int32) for c in OMEGA}


def sums(codes: dict[str, np.ndarray], questions=QUESTIONS) -> list[np.ndarray]:
    tally = Tally(questions, OMEGA)
    tally.add(codes, len(codes["a"]))
    return tally.sums()


def slow_halves(u: int, column: Column, bits: int) -> int:
    """The definition: a missing bit first, then floor(u 2^b / size)."""
    b = bits - column.nullable
    if bits == 0:
        return 0
    return 2**b if u == column.size else (u * 2**b) // column.size


def slow_away(columns: tuple[str, ...], row: dict[str, int], bits: int, about: Centres) -> list[int]:
    """z - c, c by the row's class; 0 where a value is missing."""
    centre = list(about.points[row[about.of] if about.of else 0])
    away: list[int] = []
    for name in columns:
        gone = OMEGA[name].type != "nominal" and row[name] == OMEGA[name].size
        away += [0 if gone else z - centre.pop(0) for z in slow_z((name,), row, bits)]
        if gone:
            centre.pop(0)
    return away


def slow_cell(axis, row: dict[str, int]) -> int:
    if isinstance(axis, Distance):
        away = slow_away(axis.columns, row, axis.bits, axis.about)
        size = sum(abs(a) if axis.norm == 1 else a * a for a in away)
        return sum(edge <= size for edge in axis.edges[1:-1])
    if isinstance(axis, Affine):
        score = sum(w * z for z, w in zip(slow_z(axis.columns, row, axis.bits), axis.weights, strict=True))
        return sum(edge <= score for edge in axis.edges[1:-1])
    if isinstance(axis, Scored):
        score = sum(
            own[slow_cell(inner, row)] for inner, own in zip(axis.attributes, axis.scores, strict=True)
        )
        return sum(edge <= score for edge in axis.edges[1:-1])
    if isinstance(axis, Halves):
        return slow_halves(row[axis.column], OMEGA[axis.column], axis.bits)
    return max(i for i in range(len(axis.edges) - 1) if axis.edges[i] <= row[axis.column])


def slow_number(cells: Cells, row: dict[str, int]) -> int:
    at = [slow_cell(axis, row) for axis in cells.axes]
    sizes = [2**a.bits if isinstance(a, Halves) else len(a.edges) - 1 for a in cells.axes]
    if cells.order is None:
        number = 0
        for cell, size in zip(at, sizes, strict=True):
            number = number * size + cell
        return number
    left = [cells.order.count(i) for i in range(len(at))]
    number = 0
    for axis in cells.order:
        left[axis] -= 1
        number = 2 * number + (at[axis] >> left[axis] & 1)
    return number


def slow_centred(u: int, column: Column, bits: int) -> int:
    q = 2**bits - 1
    if u == column.size:
        return 0
    return 2 * int(Fraction(u * q, column.size - 1) + Fraction(1, 2)) - q


def slow_z(columns: tuple[str, ...], row: dict[str, int], bits: int) -> list[int]:
    """One number a column; of a nominal one q at the row's own code, 0 at the others."""
    z: list[int] = []
    for name in columns:
        if OMEGA[name].type == "nominal":
            z += [(2**bits - 1) * (row[name] == code) for code in range(OMEGA[name].codes)]
        else:
            z.append(slow_centred(row[name], OMEGA[name], bits))
    return z


def slow_sum(question: Question, codes: dict[str, np.ndarray]) -> np.ndarray:
    lengths = lengths_of(question, OMEGA)
    first = np.cumsum([0, *lengths])
    total = np.zeros(first[-1], dtype=object)
    for r in range(len(codes["a"])):
        row = {name: int(values[r]) for name, values in codes.items()}
        block = row[question.by] if question.by else 0
        vector = slow_row(question.statistic, row, block, lengths[block])
        total[first[block] : first[block] + lengths[block]] += vector
    return total


def slow_row(statistic, row, block, length):
    vector = np.zeros(length, dtype=object)
    match statistic:
        case Total():
            vector[0] = 1
        case CellCounts(cells=cells):
            vector[slow_number(cells if isinstance(cells, Cells) else cells[block], row)] = 1
        case Moments(columns=columns, bits=bits, degree=degree, clip=clip, about=about, norm=norm):
            z = np.array([slow_away(columns, row, bits, about) if about else slow_z(columns, row, bits)])
            if clip is not None:
                z = clipped(z, int(clip * (2**bits - 1)), norm)
            z = z[0]
            vector[:] = z if degree == 1 else [z[i] * z[j] for i in range(len(z)) for j in range(i, len(z))]
        case Gram(axes=axes, scores=scores) if scores is not None:
            s = [values[slow_cell(axis, row)] for values, axis in zip(scores, axes, strict=True)]
            vector[:] = [s[i] * s[j] for i, j in combinations(range(len(s)), 2)]
        case Gram(axes=axes, diagonal=diagonal):
            at = [slow_cell(axis, row) for axis in axes]
            sizes = [2**a.bits if isinstance(a, Halves) else len(a.edges) - 1 for a in axes]
            start = 0
            for i in range(len(axes)):
                if diagonal:
                    vector[start + at[i]] = 1
                    start += sizes[i]
                for j in range(i + 1, len(axes)):
                    vector[start + at[i] * sizes[j] + at[j]] = 1
                    start += sizes[i] * sizes[j]
        case CellSums(cells=cells, attributes=attributes):
            sizes = [2**axis.bits if isinstance(axis, Halves) else len(axis.edges) - 1 for axis in attributes]
            cell, start = slow_number(cells if isinstance(cells, Cells) else cells[block], row), 0
            count = length // sum(sizes)
            for axis, size in zip(attributes, sizes, strict=True):
                vector[start + cell * size + slow_cell(axis, row)] = 1
                start += count * size
    return vector


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.step}-{type(q.statistic).__name__}-{q.by}")
def test_sums_follow_the_definition(question):
    codes = some_rows(np.random.default_rng(1), 60)
    assert (sums(codes, [question])[0] == slow_sum(question, codes)).all()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.step}-{type(q.statistic).__name__}-{q.by}")
def test_many_rows_have_the_sums_of_few_as_often_as_they_are_repeated(question):
    """Of many rows several columns are counted at once: 60 rows are too few for that."""
    codes = some_rows(np.random.default_rng(2), 60)
    many = {name: np.tile(u, 200) for name, u in codes.items()}
    assert (sums(many, [question])[0] == 200 * sums(codes, [question])[0]).all()


@pytest.mark.parametrize(
    "edges",
    [(0, 100_000), (0, 1, 50_000, 50_001, 99_999, 100_000), (0, 7, 7, 8, *range(60_000, 60_900), 100_000)],
)
def test_bins_of_many_codes_are_found_by_their_edges(edges):
    u = np.arange(HUGE.codes, dtype=np.int32)
    cells = cells_of(Bins("t", edges), {"t": u}, OMEGA)
    assert (cells == np.searchsorted(edges[1:-1], u, side="right")).all()


@pytest.mark.parametrize("codes", [2**21, 2**30])
@pytest.mark.parametrize("close", [1, 16, 17, 300])
def test_bins_of_a_wide_column_are_found_however_close_their_edges_are(codes, close):
    """Up to 16 edges in a bucket are passed one by one; more are in a table, or searched for."""
    column = Column("x", "integer", lower=0, upper=codes - 1)
    some = codes // 2
    edges = (0, 5, *range(some, some + close), codes - 1, codes)
    near = [edge + step for edge in edges for step in (-1, 0, 1)] + [some + 2**14, some + 2**15]
    u = np.array([code for code in near if 0 <= code < codes], dtype=np.int32)
    cells = column_cells(Bins("x", edges), u, column)
    assert cells.tolist() == np.searchsorted(edges[1:-1], u, side="right").tolist()


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_sums_do_not_depend_on_batches_order_or_workers(seed, rows, batch):
    rng = np.random.default_rng(seed)
    codes = some_rows(rng, rows)
    shuffled = rng.permutation(rows)
    tallies = [Tally(QUESTIONS, OMEGA), Tally(QUESTIONS, OMEGA)]
    for number, start in enumerate(range(0, rows, batch)):
        part = {name: values[shuffled][start : start + batch] for name, values in codes.items()}
        tallies[number % 2].add(part, len(part["a"]))
    tallies[0].merge(tallies[1].partial())
    assert tallies[0].rows == rows
    for one, other in zip(tallies[0].sums(), sums(codes), strict=True):
        assert (one == other).all()


@given(st.integers(0, 2**32), st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_inserting_a_row_never_changes_another_rows_integers(seed, rows):
    rng = np.random.default_rng(seed)
    codes, extra = some_rows(rng, rows), some_rows(rng, 7)
    both = {name: np.concatenate([extra[name], codes[name]]) for name in codes}
    for axis in (
        Halves("x", 9),
        Halves("t", 13),
        Halves("a", 4),
        BINS,
        SCORED,
        QUESTIONS[-1].statistic.cells.axes[0],
    ):
        assert (cells_of(axis, both, OMEGA)[7:] == cells_of(axis, codes, OMEGA)).all()
    z = np.stack([centred(both[c], OMEGA[c], 10) for c in ("a", "x", "t")], axis=1)
    assert (clipped(z, 700)[7:] == clipped(z[7:], 700)).all()


def test_a_level_of_a_tree_is_the_sum_of_the_level_below():
    codes = some_rows(np.random.default_rng(5), 500)
    order = (0, 1, 0, 0, 1, 0)
    for depth in range(1, 7):
        levels = []
        for part in (order[:depth], order[: depth - 1]):
            axes = (Halves("t", part.count(0)), Halves("x", part.count(1)))
            levels.append(np.bincount(path_of(Cells(axes, part), codes, OMEGA), minlength=2 ** len(part)))
        assert (levels[0].reshape(-1, 2).sum(axis=1) == levels[1]).all()


def test_the_upper_bound_is_in_the_last_cell_and_missing_in_its_own():
    last = {
        "x": np.array([WIDE.size - 1]),
        "a": np.array([SMALL.size]),
    }
    assert cells_of(Halves("x", 5), last, OMEGA)[0] == 31
    assert cells_of(Halves("a", 5), last, OMEGA)[0] == 16  # upper half, first cell


def test_clipping_holds_in_integers_and_leaves_short_rows_alone():
    rng = np.random.default_rng(0)
    z = rng.integers(-1023, 1024, size=(4000, 5))
    short = clipped(z, 900, 1)
    assert (np.abs(short).sum(axis=1) <= 900).all()
    inside = np.abs(z).sum(axis=1) <= 900
    assert (short[inside] == z[inside]).all()
    assert (np.abs(short[~inside]).sum(axis=1) > 890).all()
    short = clipped(z, 900)
    assert ((short * short).sum(axis=1) <= 900 * 900).all()
    inside = (z * z).sum(axis=1) <= 900 * 900
    assert (short[inside] == z[inside]).all()
    assert (np.sqrt((short[~inside] ** 2).sum(axis=1)) > 890).all()


def test_only_the_columns_that_are_asked_for_are_read():
    assert columns_of(QUESTIONS[:1]) == set()
    assert columns_of(QUESTIONS[4:5]) == {"t", "f"}
    assert columns_of(QUESTIONS[-1:]) == {"a", "x"}
    assert columns_of(QUESTIONS[-2:-1]) == {"a", "x", "k"}


@pytest.mark.parametrize(
    "statistic",
    [
        CellCounts(Cells((Bins("a", (0, 3, 10)),))),  # misses the code of missing
        CellCounts(Cells((Bins("a", (0, 5, 3, 11)),))),
        CellCounts(Cells((Halves("x", 2),), (0,))),
        CellCounts(Cells((Halves("a", -1),))),
        CellCounts((Cells(()),)),
        CellCounts(Cells((Affine(("k", "x"), (1, 1), (0, 1), 8),))),  # a weight for each category is due
        Moments(("x",), 8, 3),
        Moments(("x",), 15, 2),
        Moments(("x",) * 129, 28, 1, Fraction(1)),  # a row's norm would wrap around
        CellCounts(Cells((Halves("x", 29),), (0,) * 29)),
        CellCounts(Cells((Affine(("x",), (1,), (0, 1), 40),))),
        CellCounts(
            Cells((Affine(("x",), (1,), (2**62, -(2**62), 0), 8),))
        ),  # their difference would wrap around
        Moments((), 8, 1),
        Moments(("x",), 8, 1, Fraction(1), None, 1),
        Moments(("x",), 8, 1, None, Centres(((0,),))),  # no row is known to be near a centre
        Moments(("x",), 8, 1, Fraction(1), Centres(((0,),)), 3),
        Moments(("x",), 8, 1, Fraction(1), Centres(((0,), (0,)), "k")),  # one a class
        Moments(("x", "k"), 8, 1, Fraction(1), Centres(((0, 0),))),
        Moments(("x",), 8, 1, Fraction(1), Centres(((256,),))),  # no value is there
        Moments(("x",) * 33, 28, 1, Fraction(1), Centres(((0,) * 33,))),  # a row's norm would wrap around
        Moments(("x",), 14, 2, Fraction(9), Centres(((0,),))),
        CellCounts(Cells((Distance(("x",), Centres(((0,),), "x"), (0, 1), 8),))),
        CellCounts(Cells((Distance((), Centres(((),)), (0, 1), 8),))),
        Gram((Halves("x", 2),)),
        Gram((BINS, Halves("x", 1)), scores=((1, 1, 1, 4), (0, 1)), bits=2),
        CellSums(Cells((Halves("x", 1),)), ()),
        CellCounts(Cells((Affine(("x", "a"), (2**46, 1), (0, 1), 8),))),
        CellCounts(Cells((Scored((), (), (0, 1)),))),
        CellCounts(Cells((Scored((BINS,), ((1, 2, 3),), (0, 1)),))),  # one score a cell
        CellCounts(Cells((Scored((BINS,), ((1, 2, 3, 2**62),), (0, 1)),))),
        CellCounts(Cells((Scored((BINS,), ((1, 2, 3, 4),), (0, 2**63)),))),
        CellCounts(Cells((Scored((Bins("a", (0, 3)),), ((1,),), (0, 1)),))),  # its attribute misses codes
        CellCounts(Cells((Scored((SCORED,), ((1, 2, 3),), (0, 1)),))),  # of columns only
        CellCounts(Cells((Scored((BINS,), ((1, 2, 3, 4),), (1, 0)),))),
    ],
)
def test_what_is_not_a_question_is_refused(statistic):
    with pytest.raises(ValueError, match=r"."):
        check_question(Question("s", statistic, Fraction(1), by="k"), OMEGA)


def test_a_question_gets_the_same_sum_alone_and_among_others():
    codes = some_rows(np.random.default_rng(3), 500)
    for question, among in zip(QUESTIONS, sums(codes), strict=True):
        assert (sums(codes, [question])[0] == among).all()


ROW_SCORES = RowScores((BINS, Halves("k", 2)), ((-3, 0, 2, 1), (5, -1, 0, 2)), ((1, 2), (-3, 1)), 9, 40)
PUBLIC_N = Domain(OMEGA.columns, "replace_one")


def test_row_scores_follow_the_definition_row_by_row():
    codes = some_rows(np.random.default_rng(0), 40)
    question = Question("w", ROW_SCORES, Fraction(1))
    assert lengths_of(question, PUBLIC_N) == (80,)
    assert columns_of([question]) == {"a", "k"}
    tallies = [Tally([question], PUBLIC_N) for _ in range(2)]
    for number, part in enumerate((slice(0, 13), slice(13, 40))):
        tallies[number].add({name: u[part] for name, u in codes.items()}, len(codes["a"][part]))
    tallies[0].merge(tallies[1].partial())
    got = tallies[0].sums()[0].reshape(40, 2)
    for u, k, w in zip(codes["a"], codes["k"], got, strict=True):
        s = ((-3, 0, 2, 1)[0 if u < 3 else 2 if u < 10 else 3], (5, -1, 0, 2)[(4 * int(k)) // 3])
        exact = np.array([s[0] + 2 * s[1], -3 * s[0] + s[1]])
        length = np.sqrt((exact**2).sum())
        assert (w == exact).all() if length <= 9 else (np.abs(w - exact * 9 / length) <= 1).all()
        assert (w**2).sum() <= 81


@pytest.mark.parametrize(
    ("changed", "omega", "by"),
    [
        ({}, OMEGA, None),
        ({}, PUBLIC_N, "k"),
        ({"bound": 0}, PUBLIC_N, None),
        ({"rows": -1}, PUBLIC_N, None),
        ({"weights": ()}, PUBLIC_N, None),
        ({"weights": ((1,),)}, PUBLIC_N, None),
        ({"scores": ((1, 2), (5, -1, 0, 2))}, PUBLIC_N, None),
        ({"weights": ((2**40, 2),)}, PUBLIC_N, None),
        ({"rows": 2**29}, PUBLIC_N, None),
    ],
)
def test_row_scores_that_are_not_defined_are_refused(changed, omega, by):
    check_question(Question("w", ROW_SCORES, Fraction(1)), PUBLIC_N)
    with pytest.raises(ValueError):  # noqa: PT011
        check_question(Question("w", replace(ROW_SCORES, **changed), Fraction(1), by), omega)


# --- how far tables are from what was expected -------------------------------------------------------


def slow_misfit(question: Question, codes: dict[str, np.ndarray]) -> list[int]:
    """The definition, in Python's integers."""
    asked, found = question.statistic, []
    for k, expected in enumerate(asked.expected):
        for part, own in zip(asked.tables, expected, strict=True):
            left = [-e for e in own]
            for r in range(len(codes["a"])):
                row = {name: int(values[r]) for name, values in codes.items()}
                if question.by is None or row[question.by] == k:
                    left[slow_number(part, row)] += 1
            found.append(sum(map(abs, left)))
    return found


@pytest.mark.parametrize("question", MISFITS, ids=lambda q: f"{len(q.statistic.tables)} by {q.by}")
@pytest.mark.parametrize("rows", [0, 1, 70])
def test_distances_follow_the_definition(question, rows):
    check_question(question, OMEGA)
    codes = some_rows(np.random.default_rng(rows), rows)
    (found,) = sums(codes, [question])
    assert found.dtype == np.int64
    assert found.tolist() == slow_misfit(question, codes)
    classes = 1 if question.by is None else OMEGA[question.by].codes
    assert lengths_of(question, OMEGA) == (len(question.statistic.tables),) * classes


@pytest.mark.parametrize("by", [None, "k"])
def test_of_many_rows_tables_are_counted_together_and_are_the_same(by):
    """70 rows are too few to count several tables at once."""
    codes = some_rows(np.random.default_rng(5), 4000)
    tables = (*TABLES, *(Cells(some) for many in (2, 3) for some in permutations(AXES, many)))
    question = misfit(tables, by, most=400)
    alone = [
        np.bincount(path_of(part, own, OMEGA), minlength=cell_count(part))
        for own in (
            {name: u[codes["k"] == k] if by else u for name, u in codes.items()}
            for k in range(OMEGA["k"].codes if by else 1)
        )
        for part in tables
    ]
    expected = [table for own in question.statistic.expected for table in own]
    exact = [int(np.abs(counts - e).sum()) for counts, e in zip(alone, expected, strict=True)]
    assert sums(codes, [question])[0].tolist() == exact
    tally = Tally([question], OMEGA)
    tally.add(codes, 4000)
    assert tally.partial()[1][0].tolist() == np.concatenate(alone).tolist()  # raw, before it is compared


def test_triples_of_few_cells_are_not_counted_one_by_one(monkeypatch):
    """Six columns of 3 or 4 cells: all 20 triples, in any order, from one count."""
    axes = [
        Bins(name, edges)
        for name, edges in (("a", (0, 3, 10, 11)), ("a", (0, 5, 6, 11)), ("k", (0, 1, 2, 3)))
    ]
    axes += [Halves("x", 2), Bins("t", (0, 70, 50_000, 100_000)), Bins("f", (0, 1, 2, 3))]
    tables = [Cells(three) for three in combinations(axes, 3)] + [Cells((axes[5], axes[0], axes[3]))]
    codes = some_rows(np.random.default_rng(6), 5000)
    alone = [np.bincount(path_of(part, codes, OMEGA), minlength=cell_count(part)) for part in tables]
    monkeypatch.setattr(Batch, "path", None)
    tally = Tally([misfit(tuple(tables))], OMEGA)
    tally.add(codes, 5000)
    assert tally.partial()[1][0].tolist() == np.concatenate(alone).tolist()


def test_there_may_be_any_number_of_axes_of_one_cell():
    """Arrays have at most 64 axes, and these would fit into any count."""
    omega = Domain((KIND, *(Column(f"c{i}", "nominal", categories=("one",)) for i in range(70))))
    axes = tuple(Bins(column.name, tuple(range(column.codes + 1))) for column in omega)
    scored = Cells((Scored(axes, ((0, 1, 2), *((1,) for _ in range(70))), (0, 71, 72, 99)),))
    asked = [Gram(axes, diagonal=True), CellSums(Cells(axes[:1]), axes), CellCounts(scored)]
    asked += [CellCounts(Cells(axes)), CellCounts(Cells(axes[::-1]))]
    questions = [Question("q", statistic, Fraction(1)) for statistic in asked]
    tally = Tally(questions, omega)
    for question in questions:
        check_question(question, omega)
    codes = {column.name: np.zeros(9, np.int32) for column in omega} | {"k": np.repeat([0, 1, 2], [2, 3, 4])}
    tally.add(codes, 9)
    gram, cell_sums, *tables = tally.sums()
    assert gram.tolist() == [2, 3, 4] * 71 + [9] * (70 * 71 // 2)
    assert cell_sums.tolist() == [2, 0, 0, 0, 3, 0, 0, 0, 4, *[2, 3, 4] * 70]
    assert [table.tolist() for table in tables] == [[2, 3, 4]] * 3


@given(st.lists(st.sets(st.integers(0, 7), max_size=4), max_size=40), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_every_table_is_in_one_count_that_has_its_axes_and_is_not_too_large(tables, most):
    axes = [Bins(f"x{i}", tuple(range(i + 2))) for i in range(8)]
    wanted = [tuple(axes[i] for i in own) for own in tables]
    groups = together(wanted, most)
    assert sorted(at for group in groups for at, _ in group.tables) == list(range(len(tables)))
    for group in groups:
        assert group.cells == cell_count(Cells(tuple(group.axes)))
        assert group.cells <= most or len(group.tables) == 1
        assert len(set(group.axes)) == len(group.axes)
        for at, places in group.tables:
            assert tuple(group.axes[place] for place in places) == wanted[at]


def test_tables_of_several_questions_are_counted_at_once(monkeypatch):
    """All pairs of three columns, a question each, and by class: one count of all four columns."""
    axes = [Bins("a", (0, 3, 10, 11)), Bins("f", (0, 1, 2, 3)), Halves("x", 1)]
    pairs = [Cells(pair) for pair in combinations(axes, 2)]
    questions = [Question("links", CellCounts(pair), Fraction(1), "k") for pair in pairs]
    questions += [Question("gram", Gram(tuple(axes)), Fraction(1), "k"), misfit(tuple(pairs), "k")]
    codes = some_rows(np.random.default_rng(8), 3000)
    due = [sums(codes, [question])[0].tolist() for question in questions]
    counts = []
    monkeypatch.setattr(counting, "joined", lambda parts: counts.append(parts) or joined(parts))
    tally = Tally(questions, OMEGA)
    for start in (0, 2048):  # what was given away between is not counted twice
        tally.add({name: u[start : start + 2048] for name, u in codes.items()}, min(2048, 3000 - start))
        tally.partial()
    assert [own.tolist() for own in tally.sums()] == due
    assert len(counts) == 2


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_distances_do_not_depend_on_batches_order_or_workers(seed, rows, batch):
    """They are no sums: were they made of one batch or of one worker, these would differ."""
    rng = np.random.default_rng(seed)
    codes = some_rows(rng, rows)
    shuffled = rng.permutation(rows)
    here = Tally(MISFITS, OMEGA)
    others = [Tally([tables_only(question) for question in MISFITS], OMEGA) for _ in range(2)]
    for number, start in enumerate(range(0, rows, batch)):
        part = {name: values[shuffled][start : start + batch] for name, values in codes.items()}
        (here, *others)[number % 3].add(part, len(part["a"]))
    for other in others:
        here.merge(other.partial())
    for one, other in zip(here.sums(), sums(codes, MISFITS), strict=True):
        assert (one == other).all()
    for one, other in zip(here.sums(), sums(codes, MISFITS), strict=True):
        assert (one == other).all()  # to look is not to change


def test_what_is_expected_exactly_is_at_distance_zero_and_nothing_is_at_that_of_all_rows():
    codes = some_rows(np.random.default_rng(6), 300)
    tally = Tally(MISFITS[:1], OMEGA)
    tally.add(codes, 300)
    raw = tally.partial()[1][0].tolist()
    own = iter(raw)
    found = tuple(tuple(next(own) for _ in range(cell_count(part))) for part in TABLES)
    none = tuple((0,) * cell_count(part) for part in TABLES)
    for expected, distance in ((found, 0), (none, 300)):
        question = replace(MISFITS[0], statistic=Misfit(TABLES, (expected,)))
        assert sums(codes, [question])[0].tolist() == [distance] * len(TABLES)


def test_a_misfit_reads_the_columns_of_all_its_tables():
    assert columns_of([misfit((Cells((BINS,)), Cells((SCORED,))), "f")]) == {"a", "x", "k", "f"}
    assert columns_of(MISFITS[-1:]) == set()


PAIR = Cells((BINS, Halves("x", 1)))
ZEROS = (0,) * 8


@pytest.mark.parametrize(
    ("tables", "expected", "by", "why"),
    [
        ((), ((),), None, "one table or more"),
        ([PAIR], ((ZEROS,),), None, "one table or more"),
        (PAIR, ((ZEROS,),), None, "one table or more"),
        ((BINS,), (((0,) * 4,),), None, "one table or more"),
        ((Cells((Halves("x", 1),), (0,)),), (((0, 0),),), None, "no order"),
        ((Cells((Bins("a", (0, 3, 10)),)),), (((0, 0),),), None, "cover all codes"),
        ((Cells((Halves("y", 1),)),), (((0, 0),),), None, "y"),
        ((PAIR,), (), None, "a class"),
        ((PAIR,), ((ZEROS,),) * 2, None, "a class"),
        ((PAIR,), ((ZEROS,),), "k", "a class"),
        ((PAIR,), ((ZEROS,),) * 3, "x", "categorical"),
        ((PAIR,), [(ZEROS,)], None, "a class"),
        ((PAIR,), ([ZEROS],), None, "tuples"),
        ((PAIR,), (([0] * 8,),), None, "tuples"),
        ((PAIR,), ((np.zeros(8, np.int64),),), None, "tuples"),
        ((PAIR,), ((ZEROS, ZEROS),), None, "do not fit the tables"),
        ((PAIR, PAIR), ((ZEROS,),), None, "do not fit the tables"),
        ((PAIR,), ((ZEROS[1:],),), None, "do not fit the tables"),
        ((PAIR,), ((ZEROS,), (ZEROS,), ((0,) * 9,)), "k", "do not fit the tables"),
        ((PAIR,), (((0,) * 7 + (0.5,),),), None, "an integer"),
        ((PAIR,), (((0,) * 7 + (True,),),), None, "an integer"),
        ((PAIR,), (((0,) * 7 + (None,),),), None, "an integer"),
        ((PAIR,), (((0,) * 7 + (np.int64(1),),),), None, "an integer"),
        ((PAIR,), (((0,) * 7 + (2**53 + 1,),),), None, r"at most 2\^53"),
        ((PAIR,), (((0,) * 7 + (-(2**53) - 1,),),), None, r"at most 2\^53"),
        ((Cells((Halves("x", 9),)),), (((-(2**53),) * 512,),), None, "64 bits"),
        ((Cells((Halves("x", 13), Halves("t", 11))),) * 2, (((0,), (0,)),), None, "too many expected cells"),
        ((Cells((Halves("x", 23),)),), (((0,),),) * 3, "k", "too many expected cells"),
    ],
)
def test_a_misfit_that_is_not_defined_is_refused(tables, expected, by, why):
    check_question(Question("s", Misfit((PAIR,), ((ZEROS,),)), Fraction(1)), OMEGA)
    with pytest.raises((ValueError, KeyError), match=why):
        check_question(Question("s", Misfit(tables, expected), Fraction(1), by), OMEGA)


def test_the_largest_distances_that_are_allowed_are_exact():
    """511 cells of 2^53 are just below 2^62, with all rows that there may be: no sum on the way is above."""
    edges = (*range(511), 100_000)
    part = Cells((Bins("t", edges),))
    question = Question("s", Misfit((part, part), ((((2**53),) * 511, (-(2**53),) * 511),)), Fraction(1))
    check_question(question, OMEGA)
    (found,) = sums(some_rows(np.random.default_rng(7), 90), [question])
    assert found.tolist() == [511 * 2**53 - 90, 511 * 2**53 + 90]
