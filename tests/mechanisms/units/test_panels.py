"""Units whose rows follow one another: times rise, gaps and values are as the tables of pairs say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.changes import change_zero, changes
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.units import pool as pool_module
from dpsynth_cli.mechanisms.units.distribution import Distribution, distribution_of, size_edges
from dpsynth_cli.mechanisms.units.gaps import Gaps
from dpsynth_cli.mechanisms.units.heads import heads_of, in_time
from dpsynth_cli.mechanisms.units.links import change_axis, gap_axis, link_of, most_pairs, told
from dpsynth_cli.mechanisms.units.panels import with_order
from dpsynth_cli.mechanisms.units.paths import Steps
from dpsynth_cli.mechanisms.units.pool import CANDIDATES, Pool
from dpsynth_cli.questions import Answer, Asking, Bins, Model, UnitPairs, UnitSizes

K = 4
SEX = Column("sex", "nominal", categories=("F", "M"), of="unit")
YEAR = Column("year", "integer", lower=2000, upper=2019)
AGE = Column("age", "integer", lower=0, upper=99)
LATE = Column("late", "nominal", categories=("no", "yes"))
JOB = Column("job", "nominal", categories=tuple(f"j{i}" for i in range(40)))
OMEGA = Domain((SEX, YEAR, AGE, LATE, JOB), unit_rows=K, unit_order="year")


def people(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Rows of units of four, one after the other: a year apart or two, older by as much; a third is mostly
    late, the others seldom; jobs change once in ten times."""
    rng = np.random.default_rng(seed)
    gaps = np.where(rng.random((count, K)) < 0.7, 1, 2)
    gaps[:, 0] = 0
    passed = np.cumsum(gaps, axis=1)
    late = rng.random((count, K)) < np.where(rng.random((count, 1)) < 1 / 3, 0.9, 0.05)
    job = rng.integers(0, 40, (count, K))
    for i in range(1, K):
        job[:, i] = np.where(rng.random(count) < 0.9, job[:, i - 1], job[:, i])
    codes = {
        "sex": np.repeat(rng.integers(0, 2, (count, 1)), K, axis=1),
        "year": rng.integers(0, 12, (count, 1)) + passed,
        "age": rng.integers(18, 80, (count, 1)) + passed,
        "late": late.astype(np.int64),
        "job": job,
    }
    return {name: values.ravel() for name, values in codes.items()}


def rows_of(count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows as a model has them: each by itself."""
    rows = people(count // K + 1, int(rng.integers(2**31)))
    which = rng.permutation(len(rows["sex"]))[:count]
    return {name: codes[which] for name, codes in rows.items()}


def draw(count: int, rng: np.random.Generator):
    yield rows_of(count, rng)


def exact_ask(real: dict[str, np.ndarray], sd: float = 0.3) -> Asking:
    """Counts of pairs and sizes from their definitions, without noise; all units have K rows."""
    by_unit = {name: codes.reshape(-1, K) for name, codes in real.items()}

    def cells(axis: Bins, codes: np.ndarray) -> np.ndarray:
        return np.searchsorted(axis.edges, codes, side="right") - 1

    def one(question) -> Answer:
        asked = question.statistic
        if isinstance(asked, UnitSizes):
            (axis,) = asked.cells.axes
            found = np.zeros((len(axis.edges) - 1, len(asked.edges) - 1), np.int64)
            np.add.at(found, (cells(axis, by_unit[axis.column][:, 0]), len(asked.edges) - 2), 1)
        else:
            pairs = [(0, j) for j in range(2, K)] if asked.far else [(j - 1, j) for j in range(1, K)]
            index, size = 0, 1
            for axes, pick in (
                (asked.before, lambda name, i, j: by_unit[name][:, i]),
                (asked.after, lambda name, i, j: by_unit[name][:, j]),
                (
                    asked.change,
                    lambda name, i, j: changes(OMEGA[name], by_unit[name][:, i], by_unit[name][:, j]),
                ),
            ):
                for axis in axes:
                    values = np.concatenate([pick(axis.column, i, j) for i, j in pairs])
                    index, size = (
                        index * (len(axis.edges) - 1) + cells(axis, values),
                        size * (len(axis.edges) - 1),
                    )
            found = np.bincount(index, minlength=size)
        return Answer(found.ravel(), (found.size,), "discrete_laplace", sd)

    return Asking(lambda questions: [one(question) for question in questions], lambda question: sd)


@pytest.fixture(scope="module")
def made() -> dict[str, np.ndarray]:
    real = people(5000)
    model = with_order(exact_ask(real), OMEGA, Model(20_000, draw), Fraction(1, 4), "id", ())
    blocks = list(model.draw(20_000, np.random.default_rng(3)))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def followed(rows: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    same = rows["id"][1:] == rows["id"][:-1]
    return rows[name][:-1][same], rows[name][1:][same]


def test_units_have_as_many_rows_as_they_should_and_the_same_in_their_own_columns(made):
    assert len(made["id"]) == 20_000
    sizes = np.bincount(made["id"])
    assert (np.diff(made["id"]) >= 0).all()
    assert sizes.min() >= 1
    assert (sizes == K).mean() > 0.999  # nobody's time ends before
    assert len(sizes) <= 5001  # so there are no more units than there were
    before, after = followed(made, "sex")
    assert (before == after).all()


def test_times_rise_by_gaps_as_they_were(made):
    before, after = followed(made, "year")
    gaps = np.bincount(after - before, minlength=3) / len(after)
    assert gaps[:3] == pytest.approx([0, 0.7, 0.3], abs=0.02)
    first = np.append(True, np.diff(made["id"]) > 0)
    assert (made["year"][first] > 12).mean() < 0.001  # units begin when they did
    assert made["year"][first].mean() == pytest.approx(5.5, abs=0.5)


def test_values_go_on_from_row_to_row(made):
    real = people(5000) | {"id": np.repeat(np.arange(5000), K)}
    for name in ("late", "job"):
        same = [
            float(np.mean(before == after))
            for before, after in (followed(rows, name) for rows in (real, made))
        ]
        assert same[1] == pytest.approx(same[0], abs=0.06), name
    ages = np.corrcoef(*followed(made, "age"))[0, 1]
    assert ages > 0.98
    older = np.subtract(*followed(made, "age")[::-1])
    assert older.mean() == pytest.approx(1.3, abs=0.3)
    assert np.isin(older, (1, 2)).mean() > 0.7


def test_somebody_who_is_late_is_late_again_after_years(made):
    """By the row before alone, whoever is late would be late after three rows with probability 0.45."""
    whole = np.flatnonzero(np.bincount(made["id"]) == K)
    late = made["late"][np.isin(made["id"], whole)].reshape(-1, K)
    assert late[late[:, 0] == 1, 3].mean() > 0.65


def test_single_columns_stay_as_the_model_has_them(made):
    rows = rows_of(20_000, np.random.default_rng(9))
    for name, cells in (("sex", 2), ("late", 2), ("job", 40), ("age", 10)):
        mine, theirs = (
            np.bincount(codes * cells // OMEGA[name].codes, minlength=cells) / len(codes)
            for codes in (made[name], rows[name])
        )
        assert np.abs(mine - theirs).sum() / 2 < 0.06, name


def test_what_is_drawn_is_the_same_again_and_few_rows_can_be():
    model = with_order(exact_ask(people(200)), OMEGA, Model(800, draw), Fraction(1, 4), "id", ())
    for rows in (0, 1, 300):
        first, again = ([*model.draw(rows, np.random.default_rng(1))] for _ in range(2))
        assert sum(len(block["id"]) for block in first) == rows
        for one, other in zip(first, again, strict=True):
            assert all(np.array_equal(one[name], other[name]) for name in one)
    assert model.facts["units"]["order"] == "year"


def test_all_noise_and_no_row_still_make_a_model():
    """Answers of noise alone, and a model without rows."""
    rng = np.random.default_rng(0)

    def noise(questions):
        found = []
        for question in questions:
            asked = question.statistic
            axes = (
                asked.cells.axes
                if isinstance(asked, UnitSizes)
                else (*asked.before, *asked.after, *asked.change)
            )
            cells = int(np.prod([len(axis.edges) - 1 for axis in axes]))
            cells *= len(asked.edges) - 1 if isinstance(asked, UnitSizes) else 1
            found.append(Answer(rng.integers(-500, 500, cells), (cells,), "discrete_laplace", 300.0))
        return found

    for total in (0, 60):
        model = with_order(
            Asking(noise, lambda q: 300.0), OMEGA, Model(total, draw), Fraction(1, 4), "id", ()
        )
        (block,) = [*model.draw(50, np.random.default_rng(0))][:1]
        assert set(block) == {column.name for column in OMEGA} | {"id"}
        for column in OMEGA:
            assert 0 <= block[column.name].min() <= block[column.name].max() < column.codes


def test_shares_add_up_and_pairs_are_priced_for_as_many_as_are_counted():
    asked = []
    ask = exact_ask(people(300))

    def watching(questions):
        asked.extend(questions)
        return ask(questions)

    with_order(Asking(watching, ask.sd), OMEGA, Model(1200, draw), Fraction(1, 4), "id", ())
    assert sum(question.share for question in asked) == Fraction(1, 4)
    pairs = [question.statistic for question in asked if isinstance(question.statistic, UnitPairs)]
    assert all(1 <= one.most <= K - (2 if one.far else 1) for one in pairs)
    assert len(pairs) == 1 + 3 + 1 + 3  # the gap; columns; a number's change; columns and the first row


def test_fewer_pairs_are_counted_where_noise_is_large():
    units = np.array([500.0, 300, 100, 50, 30, 20])
    for scale, most in ((30.0, 1), (0.01, 5)):
        ask = Asking(lambda q: [], lambda q, scale=scale: scale * q.statistic.most)
        assert most_pairs(ask, Fraction(1, 5), units, 5) == most


def test_cells_are_fewer_where_noise_is_large():
    codes = np.arange(100)
    assert len(link_of(AGE, codes, 0.1, 1000).axis.edges) > len(link_of(AGE, codes, 40.0, 1000).axis.edges)
    assert link_of(JOB, codes % 40, 0.1, 1000).axis is None  # too many categories: the same or not
    assert len(gap_axis(YEAR, 0.1, 1000).edges) > len(gap_axis(YEAR, 200.0, 1000).edges)
    zero = change_zero(AGE)
    assert {zero, zero + 1, zero + 2} <= set(change_axis(AGE, codes).edges)


def test_a_table_of_noise_says_nothing():
    rng = np.random.default_rng(2)
    noisy = Answer(rng.integers(-40, 40, 9), (9,), "discrete_laplace", 40.0)
    expected = np.full((3, 3), 1 / 3)
    assert np.abs(told(noisy, (3, 3)).given(expected) - expected).max() < 0.2
    sure = Answer(np.array([900, 0, 0, 0, 900, 0, 0, 0, 900]), (9,), "discrete_laplace", 1.0)
    assert np.abs(told(sure, (3, 3)).given(expected) - np.eye(3)).max() < 0.01


def test_units_begin_where_their_table_says():
    """Half of the units have one row and begin early, half four and begin late."""
    rows = rows_of(4000, np.random.default_rng(5))
    axis = Bins("year", (0, 10, 20))
    table = np.array([[100, 0, 0, 0], [0, 0, 0, 100]])
    answers = [Answer(table.ravel(), (8,), "none", 0.0)]
    heads = heads_of([axis], answers, rows, distribution_of(answers, size_edges(K), None))
    row, size = heads.drawn(heads.places(rows), 1000, np.random.default_rng(1))
    assert np.array_equal(rows["year"][row] < 10, size == 1)
    assert abs(int((size == 1).sum()) - 500) <= 1


def test_units_of_a_size_stay_as_many_whatever_rows_are_likely_to_begin_them():
    """Rows of the late year are weighed up, in which only units of four rows begin."""
    rows = rows_of(4000, np.random.default_rng(5))
    axis, late = Bins("year", (0, 10, 20)), Bins("late", (0, 1, 2))
    answers = [Answer(np.array([300, 0, 0, 0, 0, 0, 0, 100]), (8,), "none", 0.0)]
    heads = heads_of([axis], answers, rows, distribution_of(answers, size_edges(K), None)).by([axis, late])
    heads.weigh(axis, np.array([0.1, 10.0]))
    heads.weigh(late, np.array([0.1, 10.0]))
    _, size = heads.drawn(heads.places(rows), 400, np.random.default_rng(1))
    assert np.bincount(size, minlength=5).tolist() == [0, 300, 0, 0, 100]


def test_units_begin_early_enough_for_all_their_rows():
    axis, can = in_time(YEAR, 3, (0, 1, 4, 8))
    assert axis.edges == (0, 8, 17, 20)  # the last year is 19: four gaps of 3 from 7, one from 16
    assert can.tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0]]
    rows = {"year": np.arange(20), "sex": np.zeros(20, np.int64)}
    answers = [Answer(np.array([10, 10, 10, 0, 0, 0]), (6,), "none", 50.0)]
    sex = Bins("sex", (0, 1, 2))
    units = Distribution((0, 1, 4, 8), np.array([10.0, 10, 10]), np.repeat([1.0, 1 / 3, 1 / 4], [1, 3, 4]))
    heads = heads_of([sex], answers, rows, units, (axis, can))
    row, size = heads.drawn(heads.places(rows), 300, np.random.default_rng(2))
    assert row[size > 4].max() < 8
    assert 8 <= row[(size > 1) & (size <= 4)].max() < 17
    assert row[size == 1].max() >= 17
    assert np.bincount(np.digitize(size, [2, 5])).tolist() == [100, 100, 100]


def test_gaps_leave_time_for_all_rows_and_are_shorter_from_the_first_on():
    """Fifteen rows in twenty years, at gaps of one to three, of which the mean is 1.7: all are there."""
    zero = change_zero(YEAR)
    axis = Bins("year", (0, zero + 1, zero + 2, zero + 3, zero + 4, 2 * zero + 1))
    gaps = Gaps(YEAR, axis, np.array([0, 0.5, 0.3, 0.2, 0]), np.zeros(5))
    rng, time, passed = np.random.default_rng(3), np.zeros(2000, np.int64), []
    for left in range(13, -1, -1):
        least, most, later = gaps.after(time, np.full(2000, left), rng)
        assert (least <= most).all()
        assert ((time < later) & (later < YEAR.size)).all()
        passed.append((later - time).mean())
        time = later
    assert max(passed) < min(passed) + 0.6  # the first do not take it all
    few, most, _ = gaps.after(np.full(500, 18), np.zeros(500, np.int64), rng)
    assert (few <= most).all()
    none, most, _ = gaps.after(np.full(500, 19), np.zeros(500, np.int64), rng)
    assert (most < none).all()


def test_changes_end_at_values_that_the_model_has():
    """A cost goes up to 10,000 by its bounds, and to 300 in the model: no step leads further."""
    cost = Column("cost", "integer", lower=0, upper=10_000)
    rng = np.random.default_rng(4)
    values = np.sort(np.minimum(rng.lognormal(4, 1, 5000).astype(np.int64), 300))
    link, axis = link_of(cost, values, 1.0, 10_000), change_axis(cost, values)
    lack = np.zeros(len(axis.edges) - 1)
    lack[-1] = lack[0] = 1.0  # changes by more than most values lie apart
    steps = Steps(axis, np.ones(len(lack)), lack, values)
    before, after = values[rng.integers(0, 5000, 3000)], values[rng.integers(0, 5000, 3000)]
    made = steps.refined(link, before, after, rng)
    assert made.max() <= 300
    assert (made != after).sum() > 100


def test_candidates_are_of_the_units_cell_and_near_in_time():
    rows = rows_of(20_000, np.random.default_rng(6))
    pool = Pool(rows, [SEX], "year", [], [])
    cell, time = np.repeat([0, 1], 50), np.tile(np.arange(50) % 20, 2)
    found = pool.candidates(cell, time, np.random.default_rng(0))
    assert found.shape == (100, CANDIDATES)
    assert (pool.unit[found] == cell[:, None]).all()
    assert np.abs(pool.codes["year"][found] - time[:, None]).mean() < 1


def test_rows_that_are_looked_up_and_rows_that_are_searched_for_are_the_same(monkeypatch):
    rows = rows_of(20_000, np.random.default_rng(6))
    rows = {name: codes[rows["year"] < 12] for name, codes in rows.items()}
    rng = np.random.default_rng(7)
    cell, time = rng.integers(0, 2, 5000), rng.integers(0, 30, 5000)
    looked_up = Pool(rows, [SEX], "year", [], [])
    monkeypatch.setattr(pool_module, "LOOKED_UP", 0)
    searched = Pool(rows, [SEX], "year", [], [])
    found = [one.candidates(cell, time, np.random.default_rng(0)) for one in (looked_up, searched)]
    assert np.array_equal(*found)
