"""What numbers are rounded to, from the spec to a verified release."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest

from tests.conftest import ROOT

SPEC = """\
dpsynth: 1
name: prices
input: prices.{ending}
output: out/prices.{ending}
privacy: {{epsilon: {epsilon}, delta: 1e-6}}
mechanism: {{name: {mechanism}}}
{rules}
columns:
  price: {{type: continuous, bounds: [0, 400], nullable: true{price}}}
  tax: {{type: continuous, bounds: [0, 40]}}
  wind: {{type: integer, bounds: [0, 360]}}
  exact: {{type: continuous, bounds: [-9, 9]}}
  kind: {{type: nominal, categories: [a, b]}}
"""
ROWS = 4000


@pytest.fixture
def prices(tmp_path):
    def write(mechanism="joint", price="", rules="", ending="csv", epsilon=100):
        rng = np.random.default_rng(3)
        price_of = np.round(rng.gamma(2, 20, ROWS), 1)
        table = pd.DataFrame(
            {
                "price": np.where(rng.random(ROWS) < 0.1, np.nan, price_of),
                "tax": np.round(price_of / 10, 2),
                "wind": 10 * rng.integers(0, 37, ROWS),
                "exact": rng.normal(0, 1, ROWS),
                "kind": rng.choice(["a", "b"], ROWS),
            }
        )
        path = tmp_path / f"prices.{ending}"
        _ = table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path, index=False)
        spec = tmp_path / "spec.yaml"
        text = SPEC.format(mechanism=mechanism, price=price, rules=rules, ending=ending, epsilon=epsilon)
        spec.write_text(text)
        return spec

    return write


def multiples(x: pd.Series, step: float) -> float:
    steps = x.dropna() / step
    return float((np.abs(steps - steps.round()) < 1e-6).mean())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_joint_releases_numbers_as_round_as_they_are(dpsynth, prices, tmp_path, ending):
    ran = dpsynth("release", prices(ending=ending))
    assert ran.code == 0, ran.err
    rounded = "price to multiples of 0.1, tax to multiples of 0.01, wind to multiples of 10"
    none = "no rounding was found of exact: values are anywhere between bounds"
    assert f"  note: numbers are rounded, as was found: {rounded}\n" in ran.out
    assert f"  note: {none}. If you know a step, state step or decimals; step: any does not look\n" in ran.out
    assert dpsynth("report", "out/prices.audit.public.json").code == 0
    page = (tmp_path / "out/prices.report.public.html").read_text()
    assert f"Numbers are rounded, as was found: {rounded}. N{none[1:]}. " in page
    made = (pd.read_csv if ending == "csv" else pd.read_parquet)(tmp_path / f"out/prices.{ending}")
    assert multiples(made.price, 0.1) == multiples(made.tax, 0.01) == multiples(made.wind, 10) == 1
    assert multiples(made.exact, 0.001) < 0.1
    assert 0.05 < made.price.isna().mean() < 0.15
    public = json.loads((tmp_path / "out/prices.audit.public.json").read_text())
    jsonschema.validate(public, json.loads((ROOT / "configs/audit.schema.json").read_text()))
    assert public["found"]["steps"] == {"price": 0.1, "tax": 0.01, "wind": 10.0, "exact": None}
    assert public["found"]["share"] == "1/50"
    assert public["found"]["columns"]["wind"]["step"] == 10
    assert "step" not in public["found"]["columns"]["exact"]
    assert dpsynth("verify", "out/prices.audit.public.json").code == 0
    assert dpsynth("sample", "out/prices.transcript.arrow", "-n", 300, "-o", "more.csv").code == 0
    assert multiples(pd.read_csv(tmp_path / "more.csv").tax, 0.01) == 1
    assert dpsynth("evaluate", tmp_path / "spec.yaml", f"out/prices.{ending}").code == 0


def test_other_mechanisms_find_it_where_it_is_asked_for(dpsynth, prices, tmp_path):
    assert dpsynth("release", prices("marginals", ", step: private")).code == 0
    public = json.loads((tmp_path / "out/prices.audit.public.json").read_text())
    assert public["found"]["steps"] == {"price": 0.1}
    made = pd.read_csv(tmp_path / "out/prices.csv")
    assert multiples(made.price, 0.1) == 1
    assert multiples(made.tax, 0.01) < 0.5


def test_nothing_is_looked_for_that_is_known_ruled_or_not_wanted(dpsynth, prices, tmp_path):
    assert dpsynth("release", prices(price=", step: any", rules="rules: {always: [tax <= 39]}")).code == 0
    public = json.loads((tmp_path / "out/prices.audit.public.json").read_text())
    assert set(public["found"]["steps"]) == {"wind", "exact"}
    declared = {column["name"]: column for column in public["spec"]["columns"]}
    assert declared["price"]["step"] == "any"
    assert dpsynth("verify", "out/prices.audit.public.json").code == 0


@pytest.mark.parametrize(
    ("mechanism", "price", "rules", "said"),
    [
        ("joint", ", step: private", "rules: {always: [price <= 399]}", "a rule or a derived column depends"),
        ("online", ", step: private", "", "the cells of a stream are fixed"),
        ("joint", ", step: private, decimals: 1", "", "is stated beside step"),
        ("joint", ", step: private, scale: asinh", "", "the scale is not linear"),
        ("joint", ", step: some", "", "positive number"),
    ],
)
def test_where_it_cannot_be_found_the_spec_is_refused(dpsynth, prices, mechanism, price, rules, said):
    ran = dpsynth("check", prices(mechanism, price, rules))
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
