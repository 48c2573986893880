"""joint: finds the links, keeps spikes, relations and rules, spends its budget exactly, never falls below."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms import joint, marginals
from dpsynth_cli.mechanisms.joint import rows
from dpsynth_cli.mechanisms.joint.enough import FALLBACK
from dpsynth_cli.relations.impossible import in_codes
from tests.asking import asking, drawn
from tests.mechanisms.plain_ask import PlainAsk

KINDS = tuple("abcdef")
A, B, C = (Column(name, "nominal", categories=KINDS) for name in "ABC")
GAIN = Column("gain", "integer", lower=0, upper=9999, nullable=True)
SCORE = Column("score", "continuous", lower=-1.0, upper=1.0)
NUMBER = Column("n", "integer", lower=0, upper=99)  # too many values for one model of every cell
LABEL = Column("label", "boolean", categories=("false", "true"), nullable=True)
ALL = (A, B, C, GAIN, SCORE, LABEL)
STAGES = dict(joint.MECHANISM.stages)


def table(rows: int) -> dict[str, np.ndarray]:
    """B follows A, C is its copy, score and gain follow A too; most gains are 0, some are missing."""
    rng = np.random.default_rng(1)
    a = np.minimum(rng.geometric(0.35, rows) - 1, 5)
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 6, rows))
    gain = np.where(rng.random(rows) < 0.7, 0, 1 + (1500 * a + rng.integers(0, 1500, rows)))
    return {
        "A": a,
        "B": b,
        "C": (b + 1) % 6,
        "gain": np.where(rng.random(rows) < 0.1, GAIN.size, gain),
        "score": (np.clip(0.1 + 0.12 * a + 0.05 * rng.normal(size=rows), 0, 0.999) * GRID).astype(int),
        "label": (rng.random(rows) < 0.1 + 0.15 * a).astype(int),
    }


def release(codes, omega, epsilon, delta=None, params=None, rows=None, seed=0):
    ask, accountant, bill, _ = asking(codes, omega, epsilon, delta)
    model = joint.run(ask, omega, params or joint.Params(), STAGES)
    assert accountant.spent == accountant.total
    return model, drawn(model, rows or max(1, model.total), seed), bill


def two_way(omega, real, made):
    """The mean distance of all two-way marginals, numbers in 16 parts."""

    def cells(part, column):
        return part[column.name] if column.categorical else part[column.name] * 16 // column.codes

    found = []
    for one, other in combinations(omega.columns, 2):
        size = max(17, other.codes) if other.categorical else 17
        counts = [
            np.bincount(cells(p, one) * size + cells(p, other), minlength=size * 20) / len(p[one.name])
            for p in (real, made)
        ]
        found.append(np.abs(counts[0] - counts[1]).sum() / 2)
    return np.mean(found)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("strata", [None, "label", "C"])
def test_the_budget_is_spent_exactly_and_rows_are_as_declared(neighbours, delta, strata):
    omega = Domain(ALL, neighbours, strata=strata)
    model, made, bill = release(table(4000), omega, 2.0, delta, rows=1001)
    assert {charge.question.step for charge in bill} >= {"columns", "pairs", "links"}
    assert all(len(made[c.name]) == 1001 for c in ALL)
    assert all(made[c.name].min() >= 0 and made[c.name].max() < c.codes for c in ALL)
    assert abs(model.total - 4000) < 600
    if neighbours == "replace_one":
        assert model.total == 4000


@pytest.mark.parametrize("strata", [None, "label"])
def test_pairs_are_far_nearer_than_independent_columns(strata):
    codes, omega = table(12_000), Domain(ALL, strata=strata)
    model, made, _ = release(codes, omega, 1.0, 1e-9)
    ask, *_ = asking(codes, omega, 1.0, 1e-9)
    plain = marginals.run(ask, omega, marginals.Params(), dict(marginals.MECHANISM.stages))
    assert two_way(omega, codes, made) < 0.4 * two_way(omega, codes, drawn(plain, plain.total))
    assert ["B", "C"] in model.facts["links"]
    assert ((made["B"] + 1) % 6 == made["C"]).mean() > 0.9


def test_pairs_without_a_link_are_kept_too():
    rng = np.random.default_rng(0)
    columns = tuple(Column(f"x{i}", "nominal", categories=("0", "1")) for i in range(3))
    x = rng.integers(0, 2, (20_000, 2))
    codes = {"x0": x[:, 0], "x1": x[:, 1], "x2": np.where(rng.random(20_000) < 0.5, x[:, 0], x[:, 1])}
    codes["x1"] = np.where(rng.random(20_000) < 0.3, codes["x0"], codes["x1"])
    codes["n"] = rng.integers(0, 100, 20_000)
    model, made, _ = release(codes, Domain((*columns, NUMBER)), 2.0)
    assert len(model.facts["links"]) >= 2
    for one, other in combinations(["x0", "x1", "x2"], 2):
        real, ours = (np.mean(part[one] == part[other]) for part in (codes, made))
        assert abs(real - ours) < 0.01


def test_spikes_and_missing_values_stay_and_numbers_are_fine():
    codes = table(20_000)
    _, made, _ = release(codes, Domain(ALL, strata="label"), 2.0, 1e-9)
    assert abs((made["gain"] == 0).mean() - (codes["gain"] == 0).mean()) < 0.02
    assert abs((made["gain"] == GAIN.size).mean() - 0.1) < 0.02
    assert len(np.unique(made["gain"])) > 200
    assert len(np.unique(made["score"])) > 5000
    assert np.corrcoef(made["A"], made["score"])[0, 1] > 0.9


RULES = [
    {"A": "a", "B": ["e", "f"]},
    {"B": "a", "C": ["a", "c"]},
    {"A": ["e", "f"], "gain": {"to": "2500"}},
    {"label": "true", "A": "a"},
]


def broken(made):
    return (
        (made["A"] == 0) & (made["B"] >= 4)
        | (made["B"] == 0) & np.isin(made["C"], (0, 2))
        | (made["A"] >= 4) & (made["gain"] <= 2500)
        | (made["label"] == 1) & (made["A"] == 0)
    )


@pytest.mark.parametrize("strata", [None, "label", "A"])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 50.0])
def test_what_rules_forbid_never_appears(strata, epsilon):
    codes = table(4000)
    assert broken(codes).mean() > 0.1  # rows that contradict the rules: they are the steward's, not ours
    columns = {column.name: column for column in ALL}
    omega = Domain(ALL, strata=strata, impossible=tuple(in_codes(rule, columns) for rule in RULES))
    _, made, _ = release(codes, omega, epsilon, rows=5000)
    assert not broken(made).any()
    _, made, _ = release({n: c[:0] for n, c in codes.items()}, omega, 1.0, rows=50)
    assert not broken(made).any()


def test_too_little_for_pairs_is_a_release_by_marginals_and_says_so():
    omega = Domain(ALL, strata="label", neighbours="replace_one")  # the number of rows has no noise
    model, _, bill = release(table(500), omega, 0.1)
    assert [note.startswith(FALLBACK) for note in model.notes] == [True]
    assert {charge.question.step for charge in bill} == {"n", "total", "columns"}
    model, _, _ = release(table(12_000), omega, 1.0)
    assert model.notes == ()


def test_the_fallback_asks_exactly_what_marginals_asks():
    codes, omega = table(500), Domain(ALL, strata="label")
    one, other = (PlainAsk(omega, codes, 0.001, seed=3) for _ in range(2))
    rows = drawn(joint.run(one, omega, joint.Params(), STAGES), 200)
    same = drawn(marginals.run(other, omega, marginals.Params(), dict(marginals.MECHANISM.stages)), 200)
    assert one.asked == other.asked
    assert all((rows[name] == same[name]).all() for name in rows)


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 500.0])
def test_few_rows_release_at_any_epsilon(rows, neighbours, epsilon):
    one = Column("one", "integer", lower=3, upper=3)
    omega = Domain((*ALL, one), neighbours, strata="label")
    codes = {c.name: np.full(rows, c.codes - 1) for c in omega}
    model, made, _ = release(codes, omega, epsilon, rows=4)
    assert model.total >= 0
    assert set(made["one"]) == {0}


@pytest.mark.parametrize("columns", [(A,), (A, LABEL)])
def test_one_column_is_released_too(columns):
    omega = Domain(columns, strata="label" if len(columns) > 1 else None)
    codes = {c.name: table(2000)[c.name] for c in columns}
    _, made, _ = release(codes, omega, 5.0)
    real, ours = (np.bincount(part["A"], minlength=6) / len(part["A"]) for part in (codes, made))
    assert np.abs(real - ours).sum() < 0.05


def test_more_rows_than_a_block_are_drawn_alike_and_do_not_repeat(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK", 2000)
    omega = Domain(ALL, strata="label")
    codes = table(12_000)
    _, made, _ = release(codes, omega, 3.0, rows=7001)
    assert all(len(column) == 7001 for column in made.values())
    assert two_way(omega, codes, made) < 0.04
    cells = np.stack([made["A"], made["B"], made["C"], made["gain"] // 500, made["score"] // 2**25], axis=1)
    blocks = [set(map(tuple, cells[at : at + 1700])) for at in (0, 5000)]
    assert len(blocks[0] & blocks[1]) < 0.7 * len(blocks[0])


def test_the_same_answers_and_seed_give_the_same_rows():
    omega = Domain(ALL, strata="label")
    ask, *_ = asking(table(4000), omega, 1.0)
    model = joint.run(ask, omega, joint.Params(), STAGES)
    one, other, third = drawn(model, 300, 5), drawn(model, 300, 5), drawn(model, 300, 6)
    assert all((one[name] == other[name]).all() for name in one)
    assert any((one[name] != third[name]).any() for name in one)


@pytest.mark.parametrize("many", [30, pytest.param(100, marks=pytest.mark.slow)])
def test_many_columns_work(many):
    rng = np.random.default_rng(0)
    hidden = rng.random(3000)
    columns = tuple(Column(f"c{i}", "nominal", categories=("x", "y", "z")) for i in range(many))
    codes = {c.name: ((hidden + rng.random(3000)) * 1.5).astype(int) for c in columns}
    model, made, _ = release(codes, Domain(columns), 30.0, 1e-6, rows=500)
    assert len(model.facts["links"]) == many - 1
    assert np.corrcoef(made["c0"], made[f"c{many - 1}"])[0, 1] > 0.3


def test_what_does_not_fit_in_memory_is_refused_in_words():
    town = Column("town", "nominal", categories=tuple(map(str, range(9000))))
    assert joint.fits(Domain((town, A)), joint.Params()) == []
    assert joint.fits(Domain((town, A, B), strata="B"), joint.Params()) == [
        "joint takes at most 16,384 categories of a column (times the classes of the strata), and town has "
        "54,000; join rare ones under `other`, leave the strata out, or use marginals"
    ]
    many = tuple(Column(f"c{i}", "nominal", categories=KINDS) for i in range(1000))
    assert joint.fits(Domain(many), joint.Params()) == [
        "joint would look at 40,459,500 cells of pair tables, and takes at most 33,554,432; release fewer "
        "columns, leave the strata out, or use marginals"
    ]
    assert joint.fits(Domain((LABEL,), strata="label"), joint.Params()) == [
        "joint needs a column besides the strata"
    ]


def test_a_determined_column_and_values_missing_together_stay_so():
    rng = np.random.default_rng(2)
    rows = 20_000
    place = np.minimum(rng.geometric(0.15, rows) - 1, 15)
    number = (place * 7 + 3) % 16
    gone = rng.random(rows) < 0.03
    start = rng.integers(0, 1000, rows)
    columns = (
        Column("place", "nominal", categories=tuple(map(str, range(16)))),
        Column("number", "integer", lower=0, upper=15),
        Column("start", "integer", lower=0, upper=999, nullable=True),
        Column("end", "integer", lower=0, upper=1199, nullable=True),
    )
    end = start + 100 + rng.integers(0, 20, rows)
    codes = {
        "place": place,
        "number": number,
        "start": np.where(gone, 1000, start),
        "end": np.where(gone, 1200, end),
    }
    _, made, _ = release(codes, Domain(columns), 2.0, 1e-9)
    assert ((made["place"] * 7 + 3) % 16 == made["number"]).mean() > 0.995
    assert (made["end"] == 1200)[made["start"] == 1000].mean() > 0.97
    there = (made["start"] < 1000) & (made["end"] < 1200)
    assert np.corrcoef(made["start"][there], made["end"][there])[0, 1] > 0.98


def test_errors_fall_as_epsilon_grows():
    codes, omega = table(12_000), Domain(ALL)
    errors = []
    for epsilon in (0.1, 1.0, 10.0, 1000.0):
        _, made, _ = release(codes, omega, epsilon, 1e-9)
        errors.append(two_way(omega, codes, made))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.012


def test_bounds_far_too_wide_do_not_spoil_other_columns():
    """Rows are in few of the first cells then, and not even inside: links must not move the categories."""
    rng = np.random.default_rng(4)
    skew = rng.exponential(1.0, 30_000)
    a = np.minimum(skew, 4.99).astype(int)
    numbers = [np.clip(900 * skew + 80 * rng.normal(size=len(a)), 0, 9_000).astype(int) for _ in range(3)]
    columns = [Column(name, "integer", lower=-500_000, upper=500_000) for name in "xyz"]
    codes = {"A": a} | {own.name: v + 500_000 for own, v in zip(columns, numbers, strict=True)}
    omega = Domain((A, *columns))
    _, made, _ = release(codes, omega, 1, 1e-9)
    real, found = (np.bincount(v, minlength=6) / len(v) for v in (codes["A"], made["A"]))
    assert np.abs(real - found).sum() / 2 < 0.01
    middle = [np.quantile(v["x"] - 500_000.0, [0.25, 0.5, 0.75]) for v in (codes, made)]
    assert np.abs(middle[0] - middle[1]).max() < 200


def test_what_only_three_columns_show_is_found_where_the_budget_allows():
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 2, (2, 20_000))
    z = np.where(rng.random(20_000) < 0.9, x ^ y, 1 - (x ^ y))
    bits = tuple(Column(name, "nominal", categories=("0", "1")) for name in "xyz")
    codes = {"x": x, "y": y, "z": z, "n": rng.integers(0, 100, 20_000)}
    model, made, _ = release(codes, Domain((*bits, NUMBER)), 3.0, 1e-9)
    assert model.facts["interactions"] == 1
    assert abs((made["x"] ^ made["y"] ^ made["z"]).mean() - 0.1) < 0.02
    kinds = tuple(Column(name, "nominal", categories=("0", "1", "2")) for name in "xyz")
    z = np.where(rng.random(20_000) < 0.9, (x + y) % 2, 2)
    model, made, _ = release(codes | {"z": z}, Domain((*kinds, NUMBER)), 20.0, 1e-9)
    assert ["x", "y", "z"] in model.facts["triples"]
    there = made["z"] < 2
    assert ((made["x"] + made["y"]) % 2 == made["z"])[there].mean() > 0.97


@pytest.mark.parametrize(("epsilon", "delta"), [(0.02, None), (0.2, None), (0.05, 1e-9), (0.3, 1e-9)])
def test_at_small_epsilon_it_is_hardly_worse_than_marginals(epsilon, delta):
    codes, omega = table(4000), Domain(ALL, strata="label")
    errors: dict[str, list[float]] = {"joint": [], "marginals": []}
    for _ in range(6):
        ask, *_ = asking(codes, omega, epsilon, delta)
        plain = marginals.run(ask, omega, marginals.Params(), dict(marginals.MECHANISM.stages))
        errors["marginals"].append(two_way(omega, codes, drawn(plain, 4000)))
        errors["joint"].append(two_way(omega, codes, release(codes, omega, epsilon, delta, rows=4000)[1]))
    assert np.mean(errors["joint"]) < 1.15 * np.mean(errors["marginals"])


def test_the_facts_say_what_was_counted():
    model, _, bill = release(table(12_000), Domain(ALL), 3.0, 1e-9)
    counted = [kind for kind in ("links", "finer_links", "pairs", "triples") for _ in model.facts[kind]]
    tables = [c for c in bill if c.question.step in ("links", "pairs", "triples")]
    assert len(counted) + model.facts["interactions"] == len(tables)
    assert sorted(model.facts["order"]) == sorted(c.name for c in ALL)


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_how_many_rows_links_take_is_told_and_is_so(epsilon):
    omega = Domain(ALL, "replace_one")
    model, _, _ = release(table(40), omega, epsilon)
    enough = model.facts["links_from_rows"]
    assert f"from about {enough:,} rows on" in model.notes[0]
    few, _, _ = release(table(int(enough * 0.93)), omega, epsilon)
    many, _, _ = release(table(int(enough * 1.03)), omega, epsilon)
    assert (len(few.notes), len(many.notes)) == (1, 0)
    assert few.facts["links_from_rows"] == many.facts["links_from_rows"] == enough
