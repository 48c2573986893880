"""Rows by blocks: factors in few tables say the same as one by one, and differences do not grow with rows."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint import feedback
from dpsynth_cli.mechanisms.joint.chain import Chain
from dpsynth_cli.mechanisms.joint.feedback import Owed
from dpsynth_cli.mechanisms.joint.frame import Frame, Table
from dpsynth_cli.mechanisms.joint.fused import fused
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.joint.steps import Rows
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.numeric.systematic import even_along

ROWS = 60_000


def counted() -> tuple[Frame, list[Table], list[tuple[int, Table | None]]]:
    """Four ordinal columns of two classes, all pairs of them and a triple counted; the chain's own order."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, ROWS)
    a = np.minimum(rng.geometric(0.3, ROWS) - 1, 5)
    b = np.where(rng.random(ROWS) < 0.6, a, rng.integers(0, 6, ROWS))
    c = (a + 2 * classes + rng.integers(0, 3, ROWS)) % 6
    d = np.where(a == b, c, rng.integers(0, 6, ROWS))
    codes = [a, b, c, d]
    ladders, masses = [], []
    for name, own in zip("abcd", codes, strict=True):
        mass = np.array([np.bincount(own[classes == k], minlength=6) for k in (0, 1)], float)
        column = Column(name, "ordinal", categories=tuple("uvwxyz"))
        ladders.append(ladder(column, Marginal(np.arange(6), np.ones(6, np.int64), list(mass)), 512))
        masses.append(mass)
    frame = Frame(ladders, masses, [own.top for own in ladders])

    def table(columns: tuple[int, ...], size: int) -> Table:
        levels = tuple(frame.ladders[j].level(size) for j in columns)
        shape = frame.shape((columns, levels))
        cells = [
            classes,
            *[frame.ladders[j].levels[level][codes[j]] for j, level in zip(columns, levels, strict=True)],
        ]
        counts = np.bincount(np.ravel_multi_index(cells, shape), minlength=int(np.prod(shape)))
        return Table(columns, levels, counts.reshape(shape).astype(float))

    tables = [table((i, j), 6) for i in range(4) for j in range(i + 1, 4)] + [table((0, 1, 3), 3)]
    links = {own.columns: own for own in tables}
    return frame, tables, [(0, None), (1, links[0, 1]), (2, links[0, 2]), (3, links[2, 3])]


@pytest.fixture(scope="module")
def chain() -> Chain:
    frame, tables, order = counted()
    classes = np.repeat([0, 1], 8192)
    return Chain(frame, tables, order, classes, np.random.default_rng(1))


def drawn(chain: Chain, blocks: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng, state = np.random.default_rng(seed), chain.feedback()
    classes = np.repeat([0, 1], size // 2)
    return np.tile(classes, blocks), np.hstack([chain.draw(classes, state, rng) for _ in range(blocks)])


@pytest.mark.parametrize("most", [1, 300, 2**14])
def test_a_row_of_fused_tables_is_the_product_of_its_factors(chain, most):
    rng = np.random.default_rng(2)
    rows = Rows(chain.frame, rng.integers(0, 2, 500), rng)
    rows.cells[:] = rng.integers(0, 6, rows.cells.shape)
    for step in chain.steps[1:]:
        tables = fused(chain.frame, step, most)
        assert len(tables) <= len(step.factors)
        assert len(tables) == (len(step.factors) if most == 1 else len(tables))
        fit = np.concatenate([own.fit.ravel() for own in step.factors])
        found = np.ones((500, 6))
        for table in tables:
            found *= table.product(fit)[rows.index(table.others, table.levels)]
        due = np.ones((500, 6))
        for own in step.factors:
            due *= own.fit[rows.index(own.others, own.levels)][:, own.group]
        assert np.allclose(found, due)
        assert tables[0].linked is not None
        link = step.factors[-1]
        at = rows.index(tables[0].others, tables[0].levels)
        assert np.array_equal(tables[0].linked[at], rows.index(link.others, link.levels))


def test_what_rows_had_in_fused_tables_adds_up_to_what_they_had_in_each(chain):
    rng = np.random.default_rng(3)
    rows = Rows(chain.frame, rng.integers(0, 2, 500), rng)
    rows.cells[:] = rng.integers(0, 6, rows.cells.shape)
    step, v = chain.steps[3], rng.integers(0, 6, 500)
    found = np.zeros(sum(own.counts.size for own in step.factors))
    for table in fused(chain.frame, step, 300):
        counts = np.bincount(
            rows.index(table.others, table.levels) * 6 + v, minlength=int(np.prod(table.shape))
        )
        table.sums(counts.astype(float), found)
    due = [
        np.bincount(
            rows.index(own.others, own.levels) * own.counts.shape[1] + own.group[v], minlength=own.counts.size
        )
        for own in step.factors
    ]
    assert np.array_equal(found, np.concatenate(due))


def test_draws_are_even_over_all_columns_so_far_whatever_was_counted(chain):
    rng = np.random.default_rng(4)
    rows, cells = Rows(chain.frame, np.zeros(6000, np.int64), rng), rng.integers(0, 6, (3, 6000))
    for j, own in enumerate(cells):
        rows.set(j, own)
    u = even_along(rows.sorted(rows.index((0,), (chain.frame.ladders[0].top,))), rng)
    for columns in ((0,), (0, 1, 2), (0, 2)):  # those of one cell are next to each other
        key = np.ravel_multi_index(tuple(cells[list(columns)]), (6,) * len(columns))
        for cell in np.unique(key):
            own = np.sort(u[key == cell])
            assert np.abs(own - (np.arange(len(own)) + 0.5) / len(own)).max() < 6 / len(own)


def away(chain: Chain, tables: list[Table], classes: np.ndarray, cells: np.ndarray) -> float:
    """The mean total variation distance of the tables."""
    found = []
    for own in tables:
        index = [
            classes,
            *[
                chain.frame.ladders[j].levels[level][cells[j]]
                for j, level in zip(own.columns, own.levels, strict=True)
            ],
        ]
        counts = np.bincount(np.ravel_multi_index(index, own.counts.shape), minlength=own.counts.size)
        found.append(np.abs(counts / counts.sum() - own.counts.ravel() / own.counts.sum()).sum() / 2)
    return float(np.mean(found))


def test_differences_fall_as_rows_not_as_their_root(chain, monkeypatch):
    _, tables, _ = counted()
    few, many = (away(chain, tables, *drawn(chain, blocks, 2000, 0)) for blocks in (2, 32))
    monkeypatch.setattr("dpsynth_cli.mechanisms.joint.feedback.PULL", 0.0)
    without = away(chain, tables, *drawn(chain, 32, 2000, 0))
    assert many < few / 4
    assert many < without / 1.5


def test_few_rows_have_less_than_the_noise_of_drawing(chain):
    """120 rows: most cells of a pair of columns are due two rows or fewer."""
    _, tables, _ = counted()
    classes = np.repeat([0, 1], 60)
    off = {False: 0.0, True: 0.0}
    for few in off:
        for seed in range(8):
            rng = np.random.default_rng(seed)
            cells = chain.draw(classes, chain.feedback(), rng, few=few)
            off[few] += away(chain, tables, classes, cells)
    assert off[True] < 0.75 * off[False]


def test_few_rows_never_have_what_no_row_of_a_table_has(chain):
    frame, tables, order = counted()
    never = np.zeros((6, 6), bool)
    never[2:4, 1] = True
    pair = next(own for own in tables if own.columns == (0, 1))
    pair.counts[:, never] = 0.0
    small = Chain(frame, tables, order, np.repeat([0, 1], 2048), np.random.default_rng(1))
    for seed in range(5):
        cells = small.draw(np.repeat([0, 1], 100), small.feedback(), np.random.default_rng(seed), few=True)
        assert not never[cells[0], cells[1]].any()


def test_the_same_seed_gives_the_same_rows_and_blocks_differ(chain):
    first, again = (drawn(chain, 2, 1000, 5)[1] for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:, :1000], first[:, 1000:])


def test_what_factors_of_one_table_contradict_is_drawn_by_the_link_alone(chain):
    """The last column, whose factors forbid everything: rows follow the link, and its zeros stay."""
    step = chain.steps[3]
    own = feedback.Feedback(chain.frame, step, 2**14)
    own._fit[:] = 0.0
    first = own.products()[0]
    given = step.given()[own.tables[0].linked]
    assert np.allclose(first, given / given.max(axis=1, keepdims=True))


def test_what_cannot_be_corrected_is_not_remembered_for_ever():
    """Two values that are due half of the rows each, and one of them never comes."""
    owed = Owed(np.array([1.0, 1.0]), np.zeros(2, np.int64))
    for _ in range(100):
        owed.add(np.array([100.0, 0.0]))
    most = feedback.PULL * feedback.OWED * 50**0.5 / (50 + feedback.CALM)
    assert owed.correction().tolist() == pytest.approx([1 - most, 1 + most])


def test_an_excess_of_the_column_itself_is_not_corrected_in_its_tables():
    """Both rows of the table have too many of the first value: that is corrected once, elsewhere."""
    margin = (np.arange(4), np.array([0, 1, 0, 1]))
    owed = Owed(np.full(4, 100.0), np.array([0, 0, 1, 1]), [margin])
    owed.add(np.array([110.0, 90.0, 110.0, 90.0]))
    assert np.allclose(owed.correction(), 1.0)
    owed.add(np.array([90.0, 110.0, 110.0, 90.0]))
    assert (owed.correction() > 1).tolist() == [True, False, False, True]


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_what_many_tables_by_class_have_in_common_is_corrected_once(classes):
    """Twelve columns with tables of all pairs: corrected by each of them, drawing in turns would swing."""
    rng, d = np.random.default_rng(0), 12
    label = rng.integers(0, classes, ROWS)
    hidden = (label + rng.integers(0, 3, ROWS)) % 6
    codes = [np.where(rng.random(ROWS) < 0.5, (hidden + j) % 6, rng.integers(0, 6, ROWS)) for j in range(d)]
    ladders, masses = [], []
    for j, own in enumerate(codes):
        mass = np.array([np.bincount(own[label == k], minlength=6) for k in range(classes)], float)
        column = Column(f"x{j}", "ordinal", categories=tuple("uvwxyz"))
        ladders.append(ladder(column, Marginal(np.arange(6), np.ones(6, np.int64), list(mass)), 512))
        masses.append(mass)
    tables = {}
    for i in range(d):
        for j in range(i + 1, d):
            cells = np.ravel_multi_index((label, codes[i], codes[j]), (classes, 6, 6))
            counts = np.bincount(cells, minlength=classes * 36).reshape(classes, 6, 6).astype(float)
            tables[i, j] = Table((i, j), (ladders[i].top, ladders[j].top), counts)
    order = [(0, None), *((j, tables[j - 1, j]) for j in range(1, d))]
    frame = Frame(ladders, masses, [own.top for own in ladders])
    chain = Chain(frame, [*tables.values()], order, np.repeat(np.arange(classes), 8192 // classes), rng)
    rows = np.repeat(np.arange(classes), 16384 // classes)
    made = chain.draw(rows, chain.feedback(), rng, turns=16)
    for j in range(d):
        for k in range(classes):
            there = np.bincount(made[j, rows == k], minlength=6) / np.sum(rows == k)
            assert np.abs(there - masses[j][k] / masses[j][k].sum()).sum() / 2 < 0.02
