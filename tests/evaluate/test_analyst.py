"""The figures of an analyst against formulas written down a second time: with pandas, on values."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.groups import group_errors
from dpsynth_cli.evaluate.metrics.quantiles import quantile_errors
from dpsynth_cli.evaluate.metrics.regressions import regression_errors
from dpsynth_cli.evaluate.metrics.relations import relation_errors
from dpsynth_cli.evaluate.metrics.search import what_differs_most
from dpsynth_cli.evaluate.tables import Table, halves, independent

DOMAIN = Domain(
    (
        Column("delay", "integer", lower=-60, upper=10_000, nullable=True),
        Column("air", "integer", lower=0, upper=10_000, nullable=True),
        Column("far", "integer", lower=0, upper=10**8),
        Column("day", "date", lower=0, upper=4000),
        Column("from", "nominal", categories=("a", "b", "c", "unused")),
        Column("to", "nominal", categories=tuple("pqrstu"), nullable=True),
        Column("stops", "integer", lower=0, upper=50),
    )
)
NUMBERS, CATEGORIES = ["delay", "air", "far", "day"], ["from", "to", "stops"]


def frame(rows: int, seed: int, blur: float = 0.0) -> pd.DataFrame:
    """Flights: `air` by `far`, some destinations by origin, delay and air time missing together."""
    rng = np.random.default_rng(seed)
    start = rng.integers(3, size=rows)
    to = (2 * start + rng.integers(2, size=rows) + (rng.random(rows) < blur) * 3) % 6
    far = np.round(300 + 500 * to + 80 * start + rng.exponential(40, rows)).astype(int)
    air = np.round(20 + far / 8 + rng.normal(0, 5 + 200 * blur, rows)).clip(0).astype(int)
    delay = np.round(rng.exponential(30, rows) + 10 * start - 20).astype(int)
    lost = rng.random(rows) < 0.1
    apart = lost if not blur else rng.random(rows) < 0.1
    return pd.DataFrame(
        {
            "delay": pd.Series(delay).astype(float).mask(lost),
            "air": pd.Series(air).astype(float).mask(apart),
            "far": far,
            "day": rng.integers(0, 700, rows),
            "from": np.array(["a", "b", "c"])[start],
            "to": pd.Series(np.array(list("pqrstu"))[to]).mask(rng.random(rows) < 0.02),
            "stops": rng.poisson(1 + start / 2),
        }
    )


def table(values: pd.DataFrame) -> Table:
    codes = {}
    for column in DOMAIN:
        own = values[column.name]
        if column.categorical:
            codes[column.name] = (
                own.map({c: i for i, c in enumerate(column.categories)}).fillna(column.size).astype(int)
            )
        else:
            codes[column.name] = (own - column.lower).fillna(column.size).astype(int)
    return Table({name: own.to_numpy() for name, own in codes.items()}, len(values))


REAL, MADE = frame(1500, 0), frame(1200, 1, blur=0.3)
TABLES = table(REAL), table(MADE)


def test_quantiles_and_means_in_units_and_spreads():
    found = quantile_errors(*TABLES, DOMAIN)
    assert list(found["columns"]) == NUMBERS
    levels = np.arange(0.05, 0.951, 0.05)
    errors = {}
    for name in NUMBERS:
        x, y = (t[name].dropna() for t in (REAL, MADE))
        wide = x.quantile(0.75) - x.quantile(0.25)
        errors[name] = np.abs(x.quantile(levels).to_numpy() - y.quantile(levels).to_numpy()).mean() / wide
        own = found["columns"][name]
        assert own["error"] == pytest.approx(errors[name])
        assert own["spread"] == wide
        assert own["means"]["error"] == pytest.approx(abs(x.mean() - y.mean()) / wide)
        assert own["decimals"]["real"] == (0 if name != "day" else None)
        if name != "day":
            assert own["real"] == pytest.approx(x.quantile(levels).tolist(), rel=1e-5)
            assert own["means"]["synthetic"] == pytest.approx(y.mean(), rel=1e-5)
    assert found["columns"]["day"]["real"][9].startswith("197")
    assert found["columns"]["day"]["unit"] == "days"
    assert found["mean"] == pytest.approx(np.mean(list(errors.values())))
    assert errors[found["worst_column"]] == pytest.approx(found["worst"])


def test_distinct_values_and_decimals_show_false_precision():
    price = Column("price", "continuous", lower=0.0, upper=1000.0)
    rng = np.random.default_rng(0)
    round_, exact = np.round(rng.random(3000) * 100, 1), rng.random(3000) * 100
    real, made = (Table({"price": (x / 1000 * 2**30).astype(np.int64)}, 3000) for x in (round_, exact))
    own = quantile_errors(real, made, Domain((price,)))["columns"]["price"]
    assert own["decimals"] == {"real": 1, "synthetic": None}
    assert own["distinct"]["real"] == len(np.unique(round_)) < 1100
    assert own["distinct"]["synthetic"] > 2900
    assert own["distinct"]["log10_ratio"] == pytest.approx(np.log10(3000 / len(np.unique(round_))), abs=0.02)


def test_rank_correlations_are_those_of_pandas():
    found = regression_errors(*TABLES, DOMAIN)["ranks"]
    both = [t[NUMBERS].corr("spearman") for t in (REAL, MADE)]
    expected = {(a, b): (both[0].loc[a, b], both[1].loc[a, b]) for a, b in combinations(NUMBERS, 2)}
    for a, b, real, made in found["pairs"]:
        assert (real, made) == pytest.approx(expected.pop((a, b)))
    assert not expected
    gaps = np.abs(both[0] - both[1]).to_numpy()[np.triu_indices(4, 1)]
    assert (found["mean"], found["worst"]) == pytest.approx((gaps.mean(), gaps.max()))


def by_hand(values: pd.DataFrame, target: str) -> float:
    """R^2 of a number on all other columns, as one would type it."""
    y = values[target]
    parts = [pd.Series(1.0, index=values.index)]
    for name in values.columns.drop(target):
        if name in CATEGORIES:
            dummies = pd.get_dummies(values[name].astype(object), dtype=float)
            kept = values[name].value_counts().index[:20]
            parts += [dummies[c] for c in kept[1:]]
        else:
            parts += [values[name].fillna(values[name].mean()), values[name].isna().astype(float)]
    x = np.column_stack(parts)[y.notna()]
    x, y = x / np.maximum(np.abs(x).max(axis=0), 1e-12), y[y.notna()].to_numpy(float)
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return 1 - left.var() / y.var()


def test_r2_is_that_of_least_squares():
    found = regression_errors(*TABLES, DOMAIN)["r2"]
    for name, own in found["columns"].items():
        assert own["real"] == pytest.approx(by_hand(REAL, name), abs=1e-6)
        assert own["synthetic"] == pytest.approx(by_hand(MADE, name), abs=1e-6)
    assert found["columns"]["air"]["real"] > 0.95 > 0.8 > found["columns"]["air"]["synthetic"]
    assert found["worst_column"] == "air"


def test_group_means_are_those_of_a_group_by():
    found = group_errors(*TABLES, DOMAIN)
    expected = {}
    for category in CATEGORIES:
        for number in NUMBERS:
            sd = REAL[number].std(ddof=0)
            means = [t.groupby(category)[number].mean().dropna() for t in (REAL, MADE)]
            share = REAL[category].value_counts(normalize=True)
            gap = (means[0] - means[1].reindex(means[0].index)).abs().fillna(sd).clip(upper=3 * sd)
            expected[category, number] = float((gap * share.reindex(gap.index)).sum() / sd)
    assert {tuple(own["columns"]): own["error"] for own in found["pairs"]} == pytest.approx(expected)
    worst = found["pairs"][0]
    category, number = worst["columns"]
    for one in worst["means"]:
        if number != "day":
            group = int(one["group"]) if category == "stops" else one["group"]
            assert one["real"] == pytest.approx(REAL[REAL[category] == group][number].mean(), rel=1e-5)


def entropy(codes: pd.Series) -> float:
    p = codes.value_counts(normalize=True)
    return float(-(p * np.log(p)).sum())


def parts(name: str, values: pd.Series) -> pd.Series:
    """The cell of each value in 16 parts of the real column."""
    if name in CATEGORIES:
        return values.astype(object).where(values.notna(), "missing").astype(str)
    own = np.sort(REAL[name].dropna())
    cuts = np.unique(own[np.arange(1, 16) * len(own) // 16])
    named = [f"at {v}" if v in cuts else f"above {(cuts < v).sum()}" for v in values]
    return pd.Series(named, index=values.index).where(values.notna(), "missing")


def test_what_follows_what_never_occurs_and_what_is_missing_together():
    found = relation_errors(*TABLES, DOMAIN)
    cut = [{name: parts(name, t[name]) for name in t} for t in (REAL, MADE)]
    expected = {}
    for a, b in permutations(REAL.columns, 2):
        left = [(entropy(c[a] + "|" + c[b]) - entropy(c[a])) / entropy(c[b]) for c in cut]
        if left[0] < 0.2:
            expected[a, b] = tuple(left)
    assert expected
    assert {tuple(o["columns"]): (o["real"], o["synthetic"]) for o in found["follows"]} == {
        key: pytest.approx(value, abs=1e-9) for key, value in expected.items()
    }
    assert found["determined"] == pytest.approx(np.mean([made - real for real, made in expected.values()]))
    impossible = {}
    for a, b in combinations(CATEGORIES, 2):
        seen = set(zip(cut[0][a], cut[0][b], strict=True))
        pairs = list(zip(cut[1][a], cut[1][b], strict=True))
        impossible[a, b] = np.mean([pair not in seen for pair in pairs])
    assert {tuple(o["columns"]): o["share"] for o in found["never"]} == pytest.approx(impossible)
    assert found["impossible"] == pytest.approx(np.mean(list(impossible.values())))
    assert found["impossible"] > 0.02
    gone = {tuple(o["columns"]): o for o in found["missing_together"]}
    assert gone["delay", "air"]["real"] == 1.0
    p = MADE["air"].isna()[MADE["delay"].isna()].mean()
    assert gone["delay", "air"]["synthetic"] == pytest.approx(p)
    assert p < 0.3
    assert found["together"] == pytest.approx(max(abs(o["real"] - o["synthetic"]) for o in gone.values()))


def test_rows_that_break_what_follows():
    """A label that follows from a code exactly, and not in 13 of 100 synthetic rows."""
    code, label = (Column(name, "nominal", categories=tuple("abcdefgh")) for name in ("code", "label"))
    x = np.arange(800) % 8
    broken = np.where(np.arange(800) % 100 < 13, (x + 1) % 8, x)
    real, made = (Table({"code": x, "label": y}, 800) for y in (x, broken))
    own = relation_errors(real, made, Domain((code, label)))["follows"][0]
    assert own["columns"] == ["code", "label"]
    assert (own["real"], own["real_rows"], own["rows"]) == pytest.approx((0, 0, 0.13))
    nearly = Table({"code": x, "label": np.where(np.arange(800) % 100 < 2, (x + 3) % 8, x)}, 800)
    own = relation_errors(nearly, made, Domain((code, label)))["follows"][0]
    assert (own["real_rows"], own["rows"]) == pytest.approx((0.02, 0.13))  # the usual label is the usual one


def test_the_pairs_and_triples_that_differ_most_are_found():
    """Of ten coins c3 is the parity of c1 and c2, and c5 the copy of c4; nothing else holds."""
    names = [f"c{i}" for i in range(10)]
    coins = Domain(tuple(Column(n, "boolean", categories=("false", "true")) for n in names))
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(2, size=3000) for name in names}
    codes["c3"], codes["c5"] = codes["c1"] ^ codes["c2"], codes["c4"]
    real = Table(codes, 3000)
    most = what_differs_most(real, independent(real), coins)["most"]
    assert most["pairs"][0]["columns"] == most["links"][0]["columns"] == ["c4", "c5"]
    assert most["pairs"][0]["tvd"] == pytest.approx(0.5, abs=0.05)
    assert most["pairs"][0]["independent"] == pytest.approx(0.5, abs=0.05)
    assert most["pairs"][0]["real_split"] < 0.05
    found = {tuple(own["columns"]): own for own in most["triples"]}
    assert found["c1", "c2", "c3"]["beyond"] > 0.4
    assert found["c1", "c2", "c3"]["independent"] == pytest.approx(0.5, abs=0.05)
    one, two = halves(real)
    same = what_differs_most(one, two, coins)["most"]
    assert max(own["tvd"] for own in same["pairs"]) < 0.06
