"""The verdict names what an analyst would find: each case of a ruined release that once looked perfect."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.metrics import Judged, chosen, judge
from dpsynth_cli.evaluate.metrics.names import NAMES, QUICK
from dpsynth_cli.evaluate.tables import Table, halves, independent

ALL = Judged(tuple(name for name in NAMES if name != "classifiers"))


def spec_of(folder: Path, columns: dict, mechanism: str = "marginals", **others: object) -> Path:
    path = folder / "spec.yaml"
    document = {
        "dpsynth": 1, "name": "t", "input": "t.csv", "output": "out/t.csv", "privacy": {"epsilon": "1"},
        "mechanism": {"name": mechanism}, "columns": columns, **others,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(document))
    return path


def broken(verdict: dict, kind: str) -> dict[tuple[str, ...], dict]:
    return {
        tuple(one["columns"]): one
        for one in verdict["findings"]
        if one["state"] == "broken" and one["kind"] == kind
    }


def judged(real: Table, made: Table, domain: Domain, wanted: Judged = ALL) -> dict:
    metrics, _ = chosen(wanted.metrics, domain, None)
    verdict = judge(real, made, domain, replace(wanted, metrics=metrics))["verdict"]
    json.dumps(verdict, allow_nan=False)
    weights = [one["weight"] for one in verdict["findings"]]
    assert weights == sorted(weights, reverse=True)
    return verdict


# --- dead columns -----------------------------------------------------------------------------------------


def test_dead_columns_are_named_first_with_their_cause(dpsynth, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["price,rate,day,city,age"]
    for _ in range(400):
        city = rng.choice(["M\u00fcnchen", "K\u00f6ln"])
        lines.append(
            f'"${rng.integers(1, 99)},{rng.integers(100, 999)}",{rng.random() * 100:.1f}%,'
            f"{rng.integers(13, 29)}/0{rng.integers(1, 9)}/2019,{city},{rng.integers(18, 80)}"
        )
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode("latin-1") + b"\n")
    spec = spec_of(
        tmp_path,
        {
            "price": {"type": "continuous", "bounds": [0, 100_000]},
            "rate": {"type": "continuous", "bounds": [0, 100], "nullable": True},
            "day": {"type": "date", "bounds": ["2019-01-01", "2019-12-31"]},
            "city": {"type": "nominal", "categories": ["K\u00f6ln", "M\u00fcnchen"], "nullable": True},
            "age": {"type": "integer", "bounds": [0, 99]},
        },
    )
    assert dpsynth("release", spec).code == 0
    ran = dpsynth("evaluate", spec, "out/t.csv", "--json")
    assert ran.code == 0, ran.err
    verdict = ran.json["verdict"]
    assert [one["kind"] for one in verdict["findings"][:4]] == ["junk"] * 4
    words = {one["columns"][0]: one["words"] for one in verdict["findings"][:4]}
    assert "currency sign" in words["price"]
    assert "percent sign" in words["rate"]
    assert "day first" in words["day"]
    assert "UTF-8" in words["city"]
    assert verdict["summary"][0].startswith("city, day, price, rate: most cells were not read as they are")
    assert not any(one["kind"] == "junk" and one["columns"] == ["age"] for one in verdict["findings"])
    # The steward's audit says the same, at no extra cost; the public one says nothing.
    audit = json.loads((tmp_path / "out/t.audit.json").read_text())["utility"]["verdict"]
    assert {one["columns"][0] for one in audit["findings"] if one["kind"] == "junk"} == set(words)
    assert "verdict" not in (tmp_path / "out/t.audit.public.json").read_text()
    shown = dpsynth("evaluate", spec, "out/t.csv").out
    assert shown.index("most cells were not read") < shown.index("currency sign") < shown.index("1-way TVD")


def test_a_synthetic_file_of_junk_is_named_too(dpsynth, people, tmp_path):
    spec = people("marginals")
    lines = (tmp_path / "people.csv").read_text().splitlines()
    theirs = [lines[0], *(f"{line.split(',')[0]},n/a,{line.split(',')[2]},x" for line in lines[1:])]
    (tmp_path / "theirs.csv").write_text("\n".join(theirs) + "\n")
    found = dpsynth("evaluate", spec, "theirs.csv", "--json").json["verdict"]["findings"][0]
    assert (found["kind"], found["columns"], found["state"]) == ("junk", ["score"], "broken")
    assert found["words"].startswith("In the synthetic file, column 'score': 100 % of cells")


# --- loose bounds -----------------------------------------------------------------------------------------


def test_a_loose_bound_hides_nothing(dpsynth, tmp_path):
    amount = np.exp(np.random.default_rng(0).normal(-0.3, 4.0, 4000)).clip(0, 1.1e7)
    (tmp_path / "t.csv").write_text("amount\n" + "\n".join(f"{x:.3f}" for x in amount) + "\n")
    spec = spec_of(tmp_path, {"amount": {"type": "continuous", "bounds": [0, 1e9]}})
    made = np.random.default_rng(1).uniform(0, 7.8e6, 4000)  # the median is at 3.9 million instead of 0.74
    (tmp_path / "made.csv").write_text("amount\n" + "\n".join(f"{x:.3f}" for x in made) + "\n")
    report = dpsynth("evaluate", spec, "made.csv", "--json").json
    assert report["metrics"]["w1"]["synthetic"]["range"]["mean"] < 0.005  # what it once said, and no more
    found = broken(report["verdict"], "column")["amount",]
    assert "the median is 3,875,680 instead of 0;" in found["words"]
    assert "Its declared bounds are" in found["words"]
    assert "narrow them by public knowledge, or declare scale: log (asinh for both signs)." in found["words"]
    assert report["verdict"]["findings"][0] == found


# --- relations --------------------------------------------------------------------------------------------

LEVELS = tuple(f"level {k}" for k in range(16))
SCHOOL = Domain(
    (
        Column("education", "nominal", categories=LEVELS),
        Column("education-num", "integer", lower=1, upper=16),
        Column("hours", "integer", lower=0, upper=99),
    )
)


def school(rows: int, seed: int, wrong: float) -> Table:
    rng = np.random.default_rng(seed)
    level = rng.choice(16, rows, p=np.arange(1, 17) / 136)
    other = (level + rng.integers(1, 16, rows)) % 16
    number = np.where(rng.random(rows) < wrong, other, level)
    hours = np.clip(rng.normal(30 + level, 5), 0, 99).astype(np.int64)
    return Table({"education": level, "education-num": number, "hours": hours}, rows)


@pytest.mark.parametrize("wanted", [ALL, Judged(QUICK, references=("real_split",), most=20_000)])
def test_a_column_that_follows_from_another_is_named_with_the_rows_that_break_it(wanted):
    verdict = judged(school(6000, 0, 0.0), school(6000, 1, 0.13), SCHOOL, wanted)
    found = broken(verdict, "follows")
    assert set(map(frozenset, found)) == {frozenset(("education", "education-num"))}
    own = next(iter(found.values()))
    assert own["rows"] == pytest.approx(0.13, abs=0.02)
    assert f"{100 * own['rows']:.0f} % of the synthetic rows break that" in own["words"]
    assert not broken(verdict, "never")  # said once
    assert not broken(verdict, "column")


def test_routes_that_do_not_exist_are_named():
    route = Domain(
        tuple(Column(name, "nominal", categories=tuple("abcdefgh")) for name in ("origin", "dest"))
    )
    rng = np.random.default_rng(0)

    def flights(rows: int, astray: float) -> Table:
        start = rng.integers(8, size=rows)
        step = np.where(rng.random(rows) < astray, rng.integers(4, 8, rows), rng.integers(1, 4, rows))
        return Table({"origin": start, "dest": (start + step) % 8}, rows)

    verdict = judged(flights(5000, 0.0), flights(5000, 0.13), route)
    found = broken(verdict, "never")["origin", "dest"]
    assert found["error"] == pytest.approx(0.13, abs=0.02)
    assert "of the synthetic rows have a combination that no real row has" in found["words"]


def test_values_that_were_missing_together_and_came_apart_are_named():
    times = Domain(tuple(Column(n, "integer", lower=0, upper=999, nullable=True) for n in ("dep", "arr")))
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 1000, (2, 5000))
    lost = rng.random(5000) < 0.15
    real = Table({"dep": np.where(lost, 1000, a), "arr": np.where(lost, 1000, b)}, 5000)
    verdict = judged(real, independent(real), times)
    (found,) = broken(verdict, "together").values()
    assert set(found["columns"]) == {"dep", "arr"}
    assert found["real"] == 1.0
    assert found["synthetic"] == pytest.approx(0.15, abs=0.03)
    assert "in 100 % of the real ones" in found["words"]


PAY = Domain(
    (
        Column("wage", "continuous", lower=0.0, upper=1e6),
        Column("years", "integer", lower=0, upper=10**7),
        Column("sex", "nominal", categories=("f", "m")),
        Column("noise", "continuous", lower=0.0, upper=1.0),
    )
)


def pay(rows: int, seed: int, effect: float, error: float = 3.0) -> Table:
    rng = np.random.default_rng(seed)
    years, sex = rng.integers(0, 40, rows), rng.integers(2, size=rows)
    wage = 30 + effect * (0.8 * (years - 20) + 8 * (sex - 0.5)) + rng.normal(0, error, rows)
    codes = {"wage": wage / 1e6 * 2**30, "years": years, "sex": sex, "noise": rng.random(rows) * 2**30}
    return Table({name: x.astype(np.int64) for name, x in codes.items()}, rows)


def test_a_regression_effect_that_vanished_is_named():
    verdict = judged(pay(4000, 0, 1.0), pay(4000, 1, 0.0, error=10.5), PAY)
    assert ("wage",) in broken(verdict, "regression")
    assert ("wage", "years") in broken(verdict, "correlation")
    found = broken(verdict, "group means")["sex", "wage"]
    assert "the groups hardly differ any more" in found["words"]
    assert not broken(verdict, "column")
    named = {name for one in verdict["findings"] if one["state"] == "broken" for name in one["columns"]}
    assert "noise" not in named


def test_a_law_that_got_weak_is_named():
    """R^2 0.98 to about 0.6, with the right columns."""
    verdict = judged(pay(4000, 0, 1.0, error=1.5), pay(4000, 1, 0.75, error=6.2), PAY)
    found = broken(verdict, "regression")["wage",]
    assert found["real"] > 0.97
    assert 0.5 < found["synthetic"] < 0.8
    assert "really 98 %" in found["words"]


@pytest.mark.parametrize(
    ("real", "domain"),
    [
        (school(3000, 5, 0.0), SCHOOL),
        (school(3000, 5, 0.3), SCHOOL),
        (pay(3000, 5, 1.0), PAY),
        (pay(200, 6, 0.3), PAY),
    ],
)
def test_nothing_is_broken_in_another_sample_of_the_same_rows(real, domain):
    """Halves of a table: what differs is sampling, and the verdict says so."""
    verdict = judged(*halves(real, seed=9), domain)
    assert verdict["counts"]["broken"] == 0
    assert verdict["counts"]["holds"] > 0.8 * sum(verdict["counts"].values())
    same = judged(real, real, domain)
    assert {one["state"] for one in same["findings"]} == {"holds"}


def test_the_terminal_has_the_verdict_before_the_numbers(dpsynth, people):
    spec = people("marginals")
    shown = " ".join(dpsynth("evaluate", spec, "people.csv").out.split())
    assert "things in the real table that an analyst would rely on" in shown
    assert shown.index("analyst would rely on") < shown.index("1-way TVD, mean")
    assert "0 are broken" in shown


def test_the_quick_verdict_of_a_release_is_quick():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=50_000)
    columns = [Column(f"n{i}", "integer", lower=0, upper=10**6, nullable=i < 3) for i in range(8)]
    columns += [
        Column(f"k{i}", "nominal", categories=tuple(f"v{j}" for j in range(5 + 4 * i))) for i in range(7)
    ]
    domain = Domain(tuple(columns))
    real, made = (
        Table(
            {
                c.name: np.clip((hidden + rng.normal(size=50_000) + 3) / 6 * c.size, 0, c.size - 1).astype(
                    np.int64
                )
                for c in domain
            },
            50_000,
        )
        for _ in range(2)
    )
    start = time.process_time()
    judge(real, made, domain, Judged(QUICK, references=("real_split",), most=20_000))
    assert time.process_time() - start < 5  # about 0.6 s alone on a machine


def test_decimals_are_those_of_the_files(dpsynth, tmp_path):
    """Prices on the right places of the grid, but written with all digits: as an analyst sees them."""
    rng = np.random.default_rng(0)
    prices = np.round(rng.random(500) * 100, 1)
    (tmp_path / "t.csv").write_text("price\n" + "\n".join(f"{x:.2f}" for x in prices) + "\nn/a\n\n")
    (tmp_path / "made.csv").write_text("price\n" + "\n".join(f"{x + 1e-9:.10f}" for x in prices) + "\n")
    spec = spec_of(tmp_path, {"price": {"type": "continuous", "bounds": [0, 100], "nullable": True}})
    report = dpsynth("evaluate", spec, "made.csv", "--json").json
    own = report["metrics"]["quantiles"]["synthetic"]["columns"]["price"]
    assert own["decimals"] == {"real": 1, "synthetic": 9}
    found = next(one for one in report["verdict"]["findings"] if one["kind"] == "precision")
    assert found["state"] == "weaker"
    assert "written with 9 decimals, really 1. Declare decimals: 1." in found["words"]
