"""Columns with a step: at a large epsilon their values are as frequent as in another sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

SPEC = """\
dpsynth: 1
name: shop
input: shop.csv
output: out/shop.csv
privacy: {{epsilon: 1000}}
mechanism: {{name: {mechanism}}}
evaluate: {{metrics: none}}
columns:
  price: {{type: continuous, bounds: [0, 100], decimals: 2}}
  pay: {{type: integer, bounds: [0, 10000], step: 50}}
  weight: {{type: continuous, bounds: [0, 50], step: 0.25}}
  seen: {{type: datetime, bounds: ["2026-01-01T00:00:00", "2026-01-07T23:00:00"], step: 1h}}
"""


def shop(rows: int) -> pd.DataFrame:
    """Prices that end in 99, pay in fifties with a spike, weights in quarters, whole hours."""
    rng = np.random.default_rng(rows)
    hours = np.minimum(rng.geometric(0.03, rows), 167)
    return pd.DataFrame(
        {
            "price": np.minimum(rng.geometric(0.1, rows), 99) + np.where(rng.random(rows) < 0.7, 0.99, 0.5),
            "pay": np.where(rng.random(rows) < 0.3, 4000, 50 * rng.binomial(160, 0.4, rows)),
            "weight": rng.binomial(120, 0.3, rows) / 4,
            "seen": pd.Timestamp("2026-01-01") + pd.to_timedelta(hours, unit="h"),
        }
    )


def distances(one: pd.DataFrame, other: pd.DataFrame) -> pd.Series:
    """The total variation distance of each column's values."""
    found = {}
    for name in one:
        sides = [table[name].value_counts(normalize=True) for table in (one, other)]
        found[name] = sides[0].sub(sides[1], fill_value=0).abs().sum() / 2
    return pd.Series(found)


@pytest.mark.parametrize("mechanism", ["marginals", "joint", "factor", "microaggregation"])
def test_at_a_large_epsilon_gridded_columns_are_at_the_sampling_floor(dpsynth, tmp_path, mechanism):
    rows = 4000
    real, again = shop(rows), shop(rows + 1)[:rows]
    real.to_csv(tmp_path / "shop.csv", index=False)
    (tmp_path / "spec.yaml").write_text(SPEC.format(mechanism=mechanism))
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0, ran.err
    made = pd.read_csv(tmp_path / "out/shop.csv", parse_dates=["seen"], date_format="ISO8601")
    made["price"], real["price"], again["price"] = (t["price"].round(2) for t in (made, real, again))
    assert (distances(real, made) <= distances(real, again)).all()
