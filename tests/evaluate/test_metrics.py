"""Every metric against a slow definition, and 0 (or its floor) for a copy of the real table."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.metrics import classifiers
from dpsynth_cli.evaluate.metrics.classifiers import scores
from dpsynth_cli.evaluate.metrics.cuts import PARTS, CutTables, cut, is_category
from dpsynth_cli.evaluate.metrics.joint import grid_w1, sample_w1
from dpsynth_cli.evaluate.metrics.marginals import sets, table_errors
from dpsynth_cli.evaluate.metrics.matches import exact_matches
from dpsynth_cli.evaluate.metrics.metrics import METRICS, NAMES, Judged, check_target, chosen, judge
from dpsynth_cli.evaluate.metrics.moments import moment_errors
from dpsynth_cli.evaluate.metrics.propensity import fitted, propensity
from dpsynth_cli.evaluate.metrics.wasserstein import columns_w1, plane_w1, sliced_w1, w1_line, w1_plane
from dpsynth_cli.evaluate.tables import Sample, Table, halves, independent, scanned
from dpsynth_cli.questions import Bins, CellCounts, Cells, Question, no_progress
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.rows.read import open_scan

MIXED = Domain(
    (
        Column("age", "integer", lower=0, upper=99, nullable=True),
        Column("score", "continuous", lower=-1.0, upper=1.0),
        Column("stage", "ordinal", categories=("low", "mid", "high")),
        Column("city", "nominal", categories=("a", "b", "c", "d"), nullable=True),
        Column("smoker", "boolean", categories=("false", "true")),
    )
)


def table(rows: int, seed: int, domain: Domain = MIXED, tilt: float = 1.0) -> Table:
    """Rows that are not uniform: more of the low codes, the more so the larger the tilt."""
    rng = np.random.default_rng(seed)
    common = rng.random(rows) ** tilt
    codes = {}
    for column in domain:
        u = 0.6 * common + 0.4 * rng.random(rows)
        codes[column.name] = np.minimum((u * column.codes).astype(np.int64), column.codes - 1)
    return Table(codes, rows)


@pytest.mark.parametrize(("n", "m"), [(50, 50), (40, 77), (1, 9)])
def test_w1_on_a_line_is_scipys(n, m):
    rng = np.random.default_rng(n)
    x, y = rng.integers(0, 30, n), rng.normal(10, 5, m)
    assert w1_line(x, y) == pytest.approx(wasserstein_distance(x, y), rel=1e-12)


def test_w1_of_columns_by_its_definition():
    real, made = table(60, 0), table(45, 1, tilt=2.0)
    found = columns_w1(real, made, MIXED)
    age = [t.codes["age"][t.codes["age"] < 100] / 99 for t in (real, made)]
    far = wasserstein_distance(*age)
    assert found["range"]["columns"]["age"] == pytest.approx(far)
    assert found["units"]["age"] == pytest.approx(99 * far)
    low, high = np.quantile(age[0] * 99, (0.25, 0.75))
    assert found["columns"]["age"] == pytest.approx(99 * far / (high - low))
    lost = [np.mean(t.codes["age"] == 100) for t in (real, made)]
    assert found["missing"]["age"] == pytest.approx(abs(lost[0] - lost[1]))
    city = [Counter(t.codes["city"][t.codes["city"] < 4].tolist()) for t in (real, made)]
    shares = [{k: c[k] / sum(c.values()) for k in range(4)} for c in city]
    assert found["columns"]["city"] == pytest.approx(
        sum(abs(shares[0][k] - shares[1][k]) for k in range(4)) / 2
    )
    assert found["worst"] == max(found["columns"].values())
    assert found["mean"] == pytest.approx(sum(found["columns"].values()) / 5)


def test_a_column_that_lost_all_its_values_is_as_far_as_can_be():
    domain = Domain((Column("x", "integer", lower=0, upper=9, nullable=True),))
    here, gone = Table({"x": np.array([3, 4])}, 2), Table({"x": np.array([10, 10])}, 2)
    assert columns_w1(here, gone, domain)["range"]["worst"] == 1.0
    assert columns_w1(gone, gone, domain)["worst"] == 0.0


def by_linear_program(p: np.ndarray, q: np.ndarray, distance: np.ndarray) -> float:
    """The transport problem as it is defined: a plan with these margins of least cost."""
    k = len(p)
    rows = np.kron(np.eye(k), np.ones(k))
    columns = np.kron(np.ones(k), np.eye(k))
    plan = linprog(distance.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]))
    return float(plan.fun)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("metric", ["linf", "l1", "l2"])
@pytest.mark.parametrize(("n", "m"), [(30, 30), (17, 41)])
def test_w1_in_the_plane_is_that_of_an_independent_solver(n, m, metric, nullable):
    a = Column("a", "integer", lower=0, upper=5)
    b = Column("b", "integer", lower=0, upper=4, nullable=nullable)
    rng = np.random.default_rng(n + nullable)
    tables = [Table({c.name: rng.integers(c.codes, size=rows) for c in (a, b)}, rows) for rows in (n, m)]
    cells = [(i, j) for i in range(6) for j in range(b.codes)]
    counts = [Counter(zip(t.codes["a"].tolist(), t.codes["b"].tolist(), strict=True)) for t in tables]
    p, q = (np.array([c[cell] for cell in cells]) / sum(c.values()) for c in counts)

    def apart(one, other):  # in steps of the finer column: 6 of them are the unit
        (i, j), (k, m) = one, other
        steps = abs(i - k), 6 if (j == 5) != (m == 5) else abs(j - m)
        return {"linf": max(steps), "l1": sum(steps), "l2": math.hypot(*steps)}[metric]

    distance = np.array([[apart(x, y) for y in cells] for x in cells]) / 6
    found, exact = w1_plane(*tables, a, b, 6, metric), by_linear_program(p, q, distance)
    if metric == "l2":  # paths are a little longer, and with a category apart up to the root of 2 times
        assert exact - 1e-9 <= found <= exact * (1.42 if nullable else 1.04)
    else:
        assert found == pytest.approx(exact, abs=1e-9)


def test_the_plane_is_judged_by_the_distance_that_was_asked_for():
    real, made = table(300, 0), table(300, 1)
    found = {}
    for metric in ("linf", "l2", "l1"):
        wanted = Judged(("w1_2d",), references=(), distance=metric)
        line = judge(real, made, MIXED, wanted)["metrics"]["w1_2d"]
        found[metric] = line["synthetic"]
        assert line["metric"] == metric
        assert found[metric] == plane_w1(real, made, MIXED, metric)
    assert found["linf"]["worst"] < found["l2"]["worst"] < found["l1"]["worst"]


def test_sliced_w1_sees_what_columns_alone_do_not():
    real = table(400, 0)
    mixed = independent(real)
    assert columns_w1(real, mixed, MIXED)["worst"] == 0
    assert sliced_w1(real, mixed, MIXED)["mean"] > 3 * sliced_w1(*halves(table(800, 0)), MIXED)["mean"] / 2


def test_bounds_hide_nothing_from_sliced_w1():
    """Of the same values under bounds a million times as wide, the same is said."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 100, 500), rng.integers(50, 150, 500)
    found = [
        sliced_w1(Table({"x": x}, 500), Table({"x": y}, 500), Domain((Column("x", "integer", upper=upper),)))
        for upper in (200, 2 * 10**8)
    ]
    assert found[0] == pytest.approx(found[1])
    assert found[0]["mean"] > 0.2


def slow_cells(real: np.ndarray, codes: np.ndarray, column: Column, parts: int) -> list:
    """The cell of each code, written down in words: a value of a category; a cut point, or between two."""
    there = sorted(real[real < column.size].tolist())
    if column.categorical or (len(set(there)) <= 30 and column.type == "integer"):
        return ["missing" if c == column.size else c if c in set(there) else "new" for c in codes.tolist()]
    cuts = {there[k * len(there) // parts] for k in range(1, parts)}
    return [
        "missing" if c == column.size else ("at", c) if c in cuts else ("above", sum(x < c for x in cuts))
        for c in codes.tolist()
    ]


def slow_marginals(real: Table, made: Table, ways: int) -> dict:
    distances = {}
    for names in combinations([column.name for column in MIXED], ways):
        counts = []
        for t in (real, made):
            cells = [slow_cells(real.codes[n], t.codes[n], MIXED[n], PARTS[ways]) for n in names]
            counts.append(Counter(zip(*cells, strict=True)))
        n, m = len(real), len(made)
        gaps = [counts[0][key] / n - counts[1][key] / m for key in set(counts[0]) | set(counts[1])]
        distances[names] = sum(map(abs, gaps)) / 2
    return distances


@pytest.mark.parametrize("ways", [1, 2, 3, 4, 5])
def test_marginals_by_their_definition(ways):
    real, made = table(90, 0), table(70, 1, tilt=3.0)
    distances = slow_marginals(real, made, ways)
    found = table_errors(real, made, MIXED, [ways])[f"tvd{ways}"]
    assert found["mean"] == pytest.approx(np.mean(list(distances.values())))
    assert found["worst"] == pytest.approx(max(distances.values()))
    assert distances[tuple(found["worst_columns"])] == pytest.approx(found["worst"])
    assert found["tables"] == len(distances)


def test_a_spike_is_a_cell_of_its_own_and_a_loose_bound_changes_nothing():
    x = np.concatenate([np.full(500, 7), np.random.default_rng(0).integers(1000, 2000, 500)])
    for upper in (5000, 10**9):
        column = Column("x", "integer", upper=upper, nullable=True)
        found = cut(column, x, 16, is_category(column, x))
        assert found.at[0] == 7
        cells = found.cells(np.array([6, 7, 8, column.size]))
        assert cells.tolist() == [0, 1, 2, found.size - 1]
        assert np.bincount(found.cells(x)).max() == 500


def test_a_column_of_few_whole_numbers_is_one_of_categories():
    few, many = np.arange(100) % 30, np.arange(100) % 31
    rooms, year = Column("rooms", "integer", upper=40), Column("day", "date", lower=0, upper=40)
    assert is_category(rooms, few)
    assert not is_category(rooms, many)
    assert not is_category(year, few)
    grade = Column("grade", "continuous", lower=0.0, upper=10.0)
    whole = (np.array([1.0, 2.0, 3.0]) / 10 * 2**30).astype(np.int64)
    assert is_category(grade, whole)
    assert not is_category(grade, (np.array([1.5, 2.0]) / 10 * 2**30).astype(np.int64))


def test_tables_with_more_cells_than_fit_are_counted_by_those_that_occur(monkeypatch):
    real, made = table(90, 0), table(70, 1, tilt=3.0)
    cells = CutTables(real, (real, made), MIXED, 32)
    names = tuple(column.name for column in MIXED)
    dense = [cells.tvd(columns) for columns in combinations(names, 2)]
    monkeypatch.setattr("dpsynth_cli.evaluate.metrics.cuts.DENSE", 1)
    assert [cells.tvd(columns) for columns in combinations(names, 2)] == pytest.approx(dense)


def test_of_many_columns_a_fixed_choice_of_tables_is_looked_at():
    wide = Domain(tuple(Column(f"c{i}", "boolean", categories=("false", "true")) for i in range(60)))
    for ways in (3, 4, 5):
        few = sets(wide, ways)
        assert len(set(few)) == {3: 300, 4: 100, 5: 100}[ways]
        assert few == sets(wide, ways)


def test_of_very_many_columns_a_fixed_choice_is_paired_and_each_is_counted():
    wide = Domain(tuple(Column(f"c{i}", "boolean", categories=("false", "true")) for i in range(70)))
    real, made = table(30, 0, wide), table(30, 1, wide, tilt=3.0)
    found = table_errors(real, made, wide, (1, 2))
    assert found["tvd1"]["tables"] == 70 == len(found["tvd1"]["columns"])
    assert found["tvd2"]["tables"] == 64 * 63 // 2
    gaps = {c: abs(real.codes[c].mean() - made.codes[c].mean()) for c in real.codes}
    assert found["tvd1"]["columns"] == pytest.approx(gaps)


def test_joint_w1_on_a_grid_is_that_of_an_independent_solver():
    """Three columns whose places are whole parts: ranks in twelve parts, a category, and one with missing."""
    domain = Domain(
        (
            Column("a", "integer", upper=5, nullable=True),
            Column("b", "nominal", categories=("x", "y", "z")),
            Column("c", "integer", upper=3),
        )
    )
    rng = np.random.default_rng(3)
    real, made = (Table({c.name: rng.integers(c.codes, size=40) for c in domain}, 40) for _ in range(2))

    def places(t: Table) -> list[tuple]:
        rows = []
        for a, b, c in zip(*(t.codes[name].tolist() for name in "abc"), strict=True):
            at = []
            for value, name, top in ((a, "a", 6), (c, "c", 4)):
                own = [x for x in real.codes[name].tolist() if x < top]
                middle = (sum(x < value for x in own) + sum(x <= value for x in own)) / 2 / len(own)
                at.append("missing" if value == top else min(11, int(12 * middle)))
            rows.append((at[0], "xyz"[b], at[1]))
        return rows

    def apart(one: tuple, other: tuple) -> float:
        gaps = [1.0 if one[1] != other[1] else 0.0]
        for k in (0, 2):
            mixed = "missing" in (one[k], other[k])
            gaps.append(float(one[k] != other[k]) if mixed else abs(one[k] - other[k]) / 12)
        return max(gaps)

    x, y = places(real), places(made)
    distance = np.array([[apart(one, other) for other in y] for one in x])
    expected = by_linear_program(np.full(40, 1 / 40), np.full(40, 1 / 40), distance)
    assert grid_w1(real, real, made, domain, ("a", "b", "c")) == pytest.approx(expected, abs=1e-9)


def test_joint_w1_of_all_columns_sees_what_pairs_do_not():
    """Three coins, the third the parity of the others: every pair of columns is as if independent."""
    coins = Domain(tuple(Column(f"c{i}", "boolean", categories=("false", "true")) for i in range(3)))
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 2000))
    real = Table({"c0": a, "c1": b, "c2": a ^ b}, 2000)
    one, two = halves(real)
    same, mixed = sample_w1(real, one, two, coins), sample_w1(real, real, independent(real), coins)
    assert same < 0.03 < 0.12 < mixed  # half of the rows have to change one coin of three
    assert grid_w1(real, real, independent(real), coins, ("c0", "c1", "c2")) == pytest.approx(0.5, abs=0.05)


def test_moments_by_their_definition():
    real, made = table(200, 0), table(150, 1, tilt=2.0)
    real.codes["age"][:50] = made.codes["age"][:10] = 100  # missing
    found = moment_errors(real, made, MIXED)
    stats, scales = [], {}
    for name, top in (("age", 100), ("score", 2**30), ("stage", 3)):
        own = real.codes[name][real.codes[name] < top]
        scales[name] = (own.mean(), own.std(), top)
    for t in (real, made):
        x = np.stack(
            [
                np.where(t.codes[name] == top, 0.0, (t.codes[name] - mean) / wide)
                for name, (mean, wide, top) in scales.items()
            ]
        )
        stats.append((x.mean(axis=1), np.cov(x, bias=True)))
    gap = stats[0][1] - stats[1][1]
    assert found["mean"] == pytest.approx(np.linalg.norm(stats[0][0] - stats[1][0]))
    assert found["covariance_frobenius"] == pytest.approx(np.linalg.norm(gap))
    assert found["covariance_spectral"] == pytest.approx(np.linalg.norm(gap, 2))


def test_the_logistic_regression_is_at_the_top_of_its_likelihood():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(300), rng.normal(size=(300, 2))])
    label = (rng.random(300) < 1 / (1 + np.exp(-x @ [0.2, 1.0, -0.5]))).astype(float)
    p = fitted(x, label)
    # At the top the slope is that of the ridge: tiny here, and not that of p = mean.
    assert np.abs(x.T @ (label - p)).max() < 1.0 < np.abs(x.T @ (label - label.mean())).max()


def test_propensity_is_nothing_for_one_distribution_and_much_for_two():
    same = propensity(*halves(table(3000, 0)), MIXED)
    other = propensity(table(1500, 0), table(1500, 1, tilt=3.0), MIXED)
    assert 0.5 < same["ratio"] < 1.5
    assert other["ratio"] > 20 * same["ratio"]


def test_matches_by_their_definition():
    small = Domain(MIXED.columns[2:])
    real, made = table(25, 0, small), table(40, 1, small)
    rows = [list(zip(*(t.codes[c.name].tolist() for c in small), strict=True)) for t in (real, made)]
    times = Counter(rows[0])
    found = exact_matches(real, made, small)
    assert found["matches"] == sum(row in times for row in rows[1]) > 0
    assert found["unique_matches"] == sum(times[row] == 1 for row in rows[1]) < found["matches"]
    assert found["share"] == found["matches"] / 40


NOTHING = {  # which metric has a figure that is no error, under which key
    "real", "synthetic", "real_split", "independent", "spread", "levels", "share", "explained", "means",
}  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_a_copy_of_the_real_table_has_no_error(name):
    real = table(500, 0)
    mixed = np.random.default_rng(5).permutation(500)
    found = METRICS[name].compare(real, real.take(mixed), MIXED)
    if name == "matches":
        assert found["share"] == 1.0
        return
    if name == "w1_joint":  # of which all columns are compared by samples
        assert max(line["w1"] for line in found["synthetic"]["tables"]) == 0
        assert found["independent"]["worst"] > 0.1
        return
    errors = flat(found)
    assert errors
    assert max(errors) < 1e-9
    linked = Table(real.codes | {"smoker": (real.codes["stage"] > 0).astype(np.int64)}, 500)
    mixed_up = Table(linked.codes | {"smoker": 1 - linked.codes["smoker"]}, 500)
    other = METRICS[name].compare(linked, independent(table(500, 1, tilt=3.0)), MIXED)
    assert max(flat(other)) > 0.01
    assert name != "relations" or METRICS[name].compare(linked, mixed_up, MIXED)["impossible"] > 0.01


def flat(found: dict) -> list[float]:
    values = []
    for key, value in found.items():
        if key in NOTHING:
            continue
        if isinstance(value, dict):
            values += flat(value)
        elif isinstance(value, float):
            values.append(abs(value))
    return values


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("rows", [(0, 0), (0, 5), (5, 0), (1, 1)])
def test_empty_tables_do_no_harm(name, rows):
    tables = table(rows[0], 0), table(rows[1], 1)
    metric = METRICS[name]
    found = metric.compare(*tables, MIXED) | (metric.more(*tables, MIXED) if metric.more else {})
    json.dumps(found, allow_nan=False)
    assert found


def test_a_sample_is_even_and_does_not_depend_on_blocks():
    domain = Domain((Column("x", "integer", lower=0, upper=9999),))
    kept = []
    for cuts in ([], [10, 4000], list(range(100, 10000, 100))):
        sample = Sample(500)
        for part in np.split(np.arange(10000), cuts):
            sample.add({"x": part})
        kept.append(sample.table(domain))
    assert all(len(t) == 500 and t.rows == 10000 for t in kept)
    assert all((t.codes["x"] == kept[0].codes["x"]).all() for t in kept)
    assert (np.diff(kept[0].codes["x"]) > 0).all()
    tenths = np.bincount(kept[0].codes["x"] // 1000)
    assert tenths.max() < 85 > 15 < tenths.min()  # 50 expected, sd 6.7: beyond 5 sd


def test_a_sample_of_a_file_is_one_of_its_codes(tmp_path):
    """Only kept cells are encoded, ruined records among them: the same as all encoded and some kept."""
    lines = [f"{i},{'ab'[i % 2]}" if i % 7 else "1,2,3,4" for i in range(1000)]
    (tmp_path / "t.csv").write_text("x,s\n" + "\n".join(lines) + "\n")
    columns = (
        Column("x", "integer", lower=0, upper=999, nullable=True),
        Column("s", "nominal", categories=("a", "b"), nullable=True),
    )
    scan = open_scan(str(tmp_path / "t.csv"), columns)
    whole = Sample(300)
    for number, piece in enumerate(scan.pieces()):
        whole.add(scan.encode(piece), number)
    expected = whole.table(Domain(columns))
    assert 20 < np.count_nonzero(expected.codes["x"] == 1000) < 70  # 143 of 1000 are ruined
    for most, codes in ((300, expected.codes), (None, scan.encode(next(iter(scan.pieces()))))):
        found = scanned(scan, Domain(columns), most, no_progress)
        assert found.rows == 1000
        for name in ("x", "s"):
            assert (found.codes[name] == codes[name]).all()


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_keep_the_rows_that_a_pass_of_its_own_keeps(tmp_path, monkeypatch, workers):
    monkeypatch.setattr("dpsynth_cli.trusted.rows.parquet.BATCH", 500)
    column = Column("x", "integer", lower=0, upper=9999)
    pq.write_table(pa.table({"x": np.arange(10_000)}), tmp_path / "t.parquet")
    scan, domain, sample = open_scan(str(tmp_path / "t.parquet"), (column,)), Domain((column,)), Sample(700)
    asked = Question("n", CellCounts(Cells((Bins("x", (0, 10_000)),))), Fraction(1))
    _, rows = sum_over(scan, domain, [asked], watches=[sample.add], workers=workers)
    kept, alone = sample.table(domain), scanned(scan, domain, 700, no_progress)
    assert (rows, kept.rows, alone.rows, len(kept)) == (10_000, 10_000, 10_000, 700)
    assert (kept.codes["x"] == alone.codes["x"]).all()
    assert (np.diff(kept.codes["x"]) > 0).all()
    assert np.bincount(kept.codes["x"] // 1000).min() > 28  # 70 expected, sd 7.9: beyond 5 sd


def test_references_are_what_they_say():
    real = table(300, 0)
    one, two = halves(real)
    assert len(one) + len(two) == 300
    both = np.sort(np.concatenate([one.codes["score"], two.codes["score"]]))
    assert (both == np.sort(real.codes["score"])).all()
    judged = judge(real, table(300, 1), MIXED, Judged(("w1", "marginals")))
    w1, tvd = judged["metrics"]["w1"], judged["metrics"]["marginals"]
    assert w1["independent"]["worst"] == 0 < w1["real_split"]["mean"]
    assert tvd["independent"]["tvd1"]["worst"] == 0 < tvd["independent"]["tvd2"]["mean"]


def test_samples_are_stated():
    real = table(300, 0)
    names, _ = chosen(NAMES, MIXED, None)
    assert "classifiers" not in names
    big = Table({k: np.resize(v, 10_001) for k, v in real.codes.items()}, 50_000)
    judged = judge(big, big, MIXED, Judged(("propensity", "w1"), references=()))
    assert judged["metrics"]["propensity"]["sample_rows"] == 10_000
    assert "sample_rows" not in judged["metrics"]["w1"]
    assert judged["rows"] == {"real": 50_000, "synthetic": 50_000}
    assert judged["compared_rows"] == {"real": 10_001, "synthetic": 10_001}


def test_columns_of_the_same_kind_have_no_plane_or_moments():
    named = Domain(MIXED.columns[3:])
    assert chosen(("w1_2d", "moments", "w1"), named, None)[0] == ("w1",)
    assert "w1_2d" in chosen(NAMES, MIXED, None)[0]
    assert set(plane_w1(table(9, 0), table(9, 1), MIXED)["pairs"]) == {
        "age, score",
        "age, stage",
        "score, stage",
    }


# --- classifiers --------------------------------------------------------------------------------------


def test_classifiers_learn_what_there_is_to_learn():
    pytest.importorskip("sklearn", reason="scikit-learn (the extra ml) is not installed")
    real, test = table(600, 0), table(300, 1)
    found = scores(real, test, MIXED, "smoker")
    assert {"logistic regression", "random forest", "nearest neighbours", "SVM"} < set(found)
    assert found["mean_auc"] > 0.75
    assert abs(scores(independent(real), test, MIXED, "smoker")["mean_auc"] - 0.5) < 0.15
    several = scores(real, test, MIXED, "stage")
    assert 0.6 < several["mean_auc"] <= 1
    constant = Table(real.codes | {"smoker": np.zeros(600, np.int64)}, 600)
    assert scores(constant, test, MIXED, "smoker")["mean_auc"] == 0.5


def test_without_scikit_learn_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(classifiers, "find_spec", lambda name: None)
    assert chosen(("w1", "classifiers"), MIXED, "smoker") == (
        ("w1",),
        ["classifiers left out: scikit-learn is not installed: pip install 'dpsynth-cli[ml]'"],
    )
    with pytest.raises(UsageError) as refused:
        classifiers.require()
    assert refused.value.happened == (
        "classifiers need scikit-learn, which is not installed: pip install 'dpsynth-cli[ml]'"
    )


@pytest.mark.parametrize("target", ["age", "nobody"])
def test_only_classes_are_predicted(target):
    with pytest.raises(UsageError, match="it must be a declared ordinal, nominal or boolean column"):
        check_target(MIXED, target)
