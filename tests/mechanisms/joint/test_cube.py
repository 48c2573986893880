"""One model of every combination: orders that are quiet, what is no noise, rules, classes, rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import joint
from dpsynth_cli.mechanisms.joint import cube, cube_rows, whole
from dpsynth_cli.mechanisms.joint.enough import FALLBACK
from dpsynth_cli.mechanisms.joint.residuals import Known, association
from dpsynth_cli.numeric import loglinear
from dpsynth_cli.numeric.residual import Basis
from dpsynth_cli.relations.impossible import in_codes
from tests.asking import asking, drawn

BITS = tuple(Column(f"b{i}", "nominal", categories=("no", "yes")) for i in range(6))
KIND = Column("kind", "nominal", categories=("p", "q", "r"), nullable=True)
LEVEL = Column("level", "ordinal", categories=tuple("uvwxy"))
STAGES = dict(joint.MECHANISM.stages)


@pytest.fixture(autouse=True)
def no_whole_table(monkeypatch):
    """At large epsilon, too."""
    monkeypatch.setattr(whole, "MOST_CELLS", 0)


def bits(rows=8000):
    """All follow one hidden number; the last is the product of the signs of two others, with errors."""
    rng = np.random.default_rng(5)
    hidden = rng.random(rows)
    codes = {c.name: (rng.random(rows) < 0.15 + 0.6 * hidden).astype(int) for c in BITS[:5]}
    wrong = rng.random(rows) < 0.1
    return codes | {"b5": codes["b0"] ^ codes["b1"] ^ wrong}


def mixed(rows=8000):
    rng = np.random.default_rng(6)
    level = np.minimum(rng.geometric(0.4, rows) - 1, 4)
    kind = np.where(rng.random(rows) < 0.7, level % 4, rng.integers(0, 4, rows))
    return {"kind": kind, "level": level} | {k: v for k, v in bits(rows).items() if k in ("b0", "b1", "b5")}


MIXED = (KIND, LEVEL, BITS[0], BITS[1], BITS[5])


def release(codes, omega, epsilon, delta=1e-9, rows=None):
    ask, accountant, bill, _ = asking(codes, omega, epsilon, delta)
    model = joint.run(ask, omega, joint.Params(), STAGES)
    assert accountant.spent == accountant.total
    return model, drawn(model, rows or max(1, model.total)), bill


def error(omega, real, made, k):
    found = []
    for some in combinations(omega.columns, k):
        index = [
            np.ravel_multi_index([p[c.name] for c in some], [c.codes for c in some]) for p in (real, made)
        ]
        one, other = (np.bincount(i, minlength=4**6) / len(i) for i in index)
        found.append(np.abs(one - other).sum() / 2)
    return np.mean(found)


@pytest.mark.parametrize("columns", [BITS, MIXED])
def test_errors_of_larger_tables_fall_as_epsilon_grows(columns):
    omega = Domain(columns)
    codes = bits() if columns is BITS else mixed()
    errors = []
    for epsilon in (0.2, 2.0, 20.0):
        model, made, _ = release(codes, omega, epsilon)
        errors.append(error(omega, codes, made, 4))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert model.facts["fours"] == len(list(combinations(columns, 4)))
    assert errors[-1] < 0.01


def test_what_three_columns_show_is_kept():
    _, made, _ = release(bits(), Domain(BITS), 2.0)
    assert (made["b0"] ^ made["b1"] ^ made["b5"]).mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("strata", [None, "kind", "b5"])
def test_the_budget_is_spent_exactly_and_rows_are_as_declared(neighbours, delta, strata):
    omega = Domain(MIXED, neighbours, strata=strata)
    model, made, bill = release(mixed(), omega, 1.0, delta, rows=901)
    assert all(made[c.name].min() >= 0 and made[c.name].max() < c.codes for c in MIXED)
    assert all(len(made[c.name]) == 901 for c in MIXED)
    assert model.total == 8000 if neighbours == "replace_one" else abs(model.total - 8000) < 400
    steps = {charge.question.step for charge in bill}
    assert {"columns", "links"} <= steps <= {"n", "total", "columns", "misfit", "links", "pairs"}
    real, found = (np.bincount(p["kind"], minlength=4) / len(p["kind"]) for p in (mixed(), made))
    assert np.abs(real - found).sum() < 0.08


def test_a_public_hint_of_the_rows_is_not_taken_for_their_number():
    model, *_ = release(mixed(), Domain(MIXED, rows_hint=9000), 3.0)
    assert abs(model.total - 8000) < 100


@pytest.mark.parametrize("strata", [None, "kind"])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 100.0])
def test_what_rules_forbid_never_appears(strata, epsilon):
    columns = {column.name: column for column in MIXED}
    rules = [{"kind": "p", "level": ["u", "v"]}, {"b0": "yes", "b1": "no"}]
    omega = Domain(MIXED, strata=strata, impossible=tuple(in_codes(rule, columns) for rule in rules))
    _, made, _ = release(mixed(3000), omega, epsilon, rows=4000)
    assert not ((made["kind"] == 0) & (made["level"] < 2)).any()
    assert not ((made["b0"] == 1) & (made["b1"] == 0)).any()


def test_few_rows_are_as_near_to_small_tables_as_whole_rows_can_be():
    """Most cells are due less than half a row; even draws along them leave pairs off by more."""
    rng = np.random.default_rng(2)
    sizes = (5, 4, 6, 5, 3)
    columns = [Column(f"c{i}", "ordinal", categories=tuple("abcdef"[:k])) for i, k in enumerate(sizes)]
    p = rng.random(sizes) ** 3 * rng.random(sizes[:2])[..., None, None, None]
    p /= p.sum()
    found = {}
    for few in (0, 400):
        (block,) = cube_rows.drawing(columns, p.ravel(), few)(400, np.random.default_rng(3))
        made = np.zeros(sizes)
        np.add.at(made, tuple(block.values()), 1 / 400)
        assert not made[p == 0].any()
        for k in (1, 2):
            away = [np.abs((made - p).sum(axis=some)).sum() / 2 for some in combinations(range(5), 5 - k)]
            found[few, k] = np.mean(away)
    assert found[400, 1] < 0.004
    assert found[400, 2] < 0.6 * found[0, 2] < 0.03


def test_blocks_of_rows_are_even_together(monkeypatch):
    monkeypatch.setattr(cube_rows, "BLOCK", 500)
    codes, omega = bits(), Domain(BITS)
    _, made, _ = release(codes, omega, 50.0, rows=7777)
    assert len(made["b0"]) == 7777
    assert error(omega, codes, made, 2) < 0.004
    assert abs(made["b0"][:250].mean() - made["b0"].mean()) < 0.15  # in random order


def test_the_same_answers_and_seed_give_the_same_rows():
    ask, *_ = asking(mixed(), Domain(MIXED), 1.0)
    model = joint.run(ask, Domain(MIXED), joint.Params(), STAGES)
    one, other, third = drawn(model, 300, 5), drawn(model, 300, 5), drawn(model, 300, 6)
    assert all((one[name] == other[name]).all() for name in one)
    assert any((one[name] != third[name]).any() for name in one)


def test_where_noise_hides_every_pair_nothing_is_asked_here():
    model, _, bill = release(mixed(60), Domain(MIXED, "replace_one"), 0.01)
    assert [note.startswith(FALLBACK) for note in model.notes] == [True]
    assert {charge.question.step for charge in bill} <= {"n", "columns"}


def decided(rows=6000):
    """`school` decides `years`; `b0` follows them."""
    rng = np.random.default_rng(7)
    school = rng.integers(0, 12, rows)
    years = np.array([4, 0, 2, 5, 1, 3, 0, 4, 2, 5, 3, 1])[school]
    return {"school": school, "years": years, "b0": (rng.random(rows) < 0.2 + 0.1 * years).astype(int)}


SCHOOL = (
    Column("school", "nominal", categories=tuple("abcdefghijkl")),
    Column("years", "ordinal", categories=tuple("123456")),
    BITS[0],
)


@pytest.mark.parametrize("epsilon", [2.0, 300.0])
def test_a_column_that_another_decides_stays_decided(epsilon):
    codes, omega = decided(), Domain(SCHOOL)
    model, made, _ = release(codes, omega, epsilon)
    assert ["school", "years"] in model.facts["decides"]
    assert (np.unique(np.stack([made["school"], made["years"]]), axis=1).shape[1]) == 12
    assert error(omega, codes, made, 3) < 0.05


def test_empty_cells_of_a_mostly_empty_table_stay_empty(monkeypatch):
    """Also where it is not told that one column decides the other."""
    monkeypatch.setattr(cube, "decided", lambda counts, variance: np.zeros(counts.shape, bool))
    rng = np.random.default_rng(9)
    columns = [
        Column(n, "nominal", categories=tuple("abcdefghijklmno"[:k]))
        for n, k in (("a", 13), ("b", 5), ("c", 4))
    ]
    p = 1 / np.arange(1, 14) ** 1.2
    a = rng.choice(13, 20_000, p=p / p.sum())
    b = np.arange(13) * 3 % 5
    codes = {"a": a, "b": b[a], "c": np.where(rng.random(20_000) < 0.6, b[a] % 4, rng.integers(0, 4, 20_000))}
    wrong = []
    for _ in range(3):
        _, made, _ = release(codes, Domain(tuple(columns)), 0.3)
        wrong.append((b[made["a"]] != made["b"]).mean())
    assert np.mean(wrong) < 0.003


def test_no_column_is_decided_where_one_row_in_ten_differs():
    codes, rng = decided(), np.random.default_rng(8)
    other = rng.random(6000) < 0.1
    codes["years"] = np.where(other, rng.integers(0, 6, 6000), codes["years"])
    model, made, _ = release(codes, Domain(SCHOOL), 30.0)
    assert model.facts["decides"] == []
    told = dict(zip(codes["school"].tolist(), decided()["years"].tolist(), strict=True))
    differs = np.mean(
        [told[school] != years for school, years in zip(made["school"], made["years"], strict=True)]
    )
    assert differs == pytest.approx(0.1 * 5 / 6, abs=0.03)


def test_loud_pairs_are_looked_at_and_the_strong_one_is_counted():
    codes, omega = decided(), Domain(SCHOOL)
    model, made, bill = release(codes, omega, 0.1)
    steps = [charge.question.step for charge in bill]
    assert steps.count("misfit") == 1
    assert ["school", "years"] in model.facts["strongest_pairs"]
    assert error(omega, codes, made, 2) < 0.25  # 0.37 if columns were independent


def test_only_tables_of_few_combinations_are_taken():
    assert cube.takes(Domain(BITS))
    assert cube.takes(Domain(tuple(Column(f"c{i}", "nominal", categories=("0", "1")) for i in range(23))))
    assert not cube.takes(Domain(tuple(Column(f"c{i}", "nominal", categories=("0", "1")) for i in range(24))))
    assert not cube.takes(Domain((*BITS, Column("n", "integer", lower=0, upper=99))))
    assert not cube.takes(
        Domain(tuple(Column(f"c{i}", "nominal", categories=tuple("abcdefgh")) for i in range(7)))
    )


def test_answers_are_combined_by_inverse_variance():
    known = Known(Basis((2, 3)))
    known.add((), np.array([100.0]), 1.0)
    known.add((), np.array([130.0]), 2.0)
    assert known.rows == pytest.approx(110)
    known.add((0, 1), np.array([30.0, 0, 20, 10, 30, 20]), 1.0)  # 110 in all, of six cells with noise
    assert known.sums[()][1] == pytest.approx(1 / (1 + 1 / 2 + 1 / 6))
    found, variance = known.means((0,))
    assert found[0] == pytest.approx((50 - 60) / 110)
    assert variance == pytest.approx(6 / 110**2)


def test_sizes_are_drawn_to_what_is_usual_as_far_as_they_may_be_noise():
    quiet = association(np.array([1.0, 4.0]), np.array([1, 1]), np.full(2, 1e-6))
    assert np.allclose(quiet, [1, 4], rtol=0.01)
    loud = association(np.array([1.0, 4.0, -2.0, 3.0]), np.full(4, 9), np.full(4, 3.0))
    assert loud.min() > 0
    assert loud.max() - loud.min() < 1


def test_a_fit_that_comes_to_no_end_is_brought_to_the_tables(monkeypatch):
    """Else its error may rise with epsilon: the more is asked, the longer a fit takes."""
    omega, codes = Domain(MIXED), mixed()
    whole_fit = error(omega, codes, release(codes, omega, 10.0)[1], 2)
    monkeypatch.setattr(loglinear, "STEPS", 1)
    assert error(omega, codes, release(codes, omega, 10.0)[1], 2) < whole_fit + 0.005
