"""lowdim keeps its private means and variances through the projection on the box, and can say them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms.lowdim.inside import counted
from dpsynth_cli.mechanisms.lowdim.lowdim import MECHANISM, Params
from tests.asking import asking, drawn

NOTHING = 2000  # an epsilon at which noise is nearly gone
ROWS, COLUMNS = 40_000, 16


def near_the_bounds(seed: int = 0) -> tuple[Domain, dict[str, np.ndarray]]:
    """Numbers of ten causes, most of them cut off at a bound; the last is always 0."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(ROWS, 10)) @ rng.normal(0, 0.1, (10, COLUMNS))
    x = np.clip(np.linspace(-0.05, 0.6, COLUMNS) + causes, 0, 1)
    x[:, -1] = 0
    omega = Domain(tuple(Column(f"x{j}", "continuous", lower=0.0, upper=1.0) for j in range(COLUMNS)))
    return omega, {f"x{j}": np.rint(x[:, j] * (GRID - 1)).astype(np.int64) for j in range(COLUMNS)}


def values(rows: dict[str, np.ndarray]) -> np.ndarray:
    return np.column_stack([rows[f"x{j}"] for j in range(COLUMNS)]) / (GRID - 1)


def released(omega, codes, **params):
    ask, *_ = asking(codes, omega, NOTHING)
    return MECHANISM.run(ask, omega, Params(**params), MECHANISM.stages)


# A mean of 40,000 rows of sd at most 0.5 is off by 0.0025 for one sd; 0.015 is six of them, and at epsilon
# 2000 the noise of the sums is far less. Drawn about the private mean, columns are off by up to 0.035.
@pytest.mark.parametrize("inside", ["gaussian", "pmm", "psmm"])
def test_the_projection_on_the_box_moves_no_mean(inside):
    omega, codes = near_the_bounds()
    made = values(drawn(released(omega, codes, inside=inside), ROWS))
    assert made.mean(axis=0) == pytest.approx(values(codes).mean(axis=0), abs=0.015)
    assert made[:, -1].mean() < 0.002  # always 0 stays 0


def test_the_normal_model_keeps_variances_and_nearly_all_of_the_covariance():
    omega, codes = near_the_bounds()
    real, made = values(codes), values(drawn(released(omega, codes), ROWS))
    assert made.std(axis=0) == pytest.approx(real.std(axis=0), abs=0.02)  # one is off by 0.056 without
    apart = np.linalg.norm(np.cov(real.T) - np.cov(made.T)) / np.linalg.norm(np.cov(real.T))
    assert apart < 0.1  # 0.074 was seen, and 0.115 of points about the mean


def test_more_axes_are_counted_where_rows_and_budget_allow():
    even = np.ones(8)
    found = [counted(even, 8 * even, strength) for strength in (1, 1e2, 1e4, 1e6, 1e9)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (1, 6)
    steep = np.array([1.0, 0.01, 0.001])  # what hardly varies is not worth cells
    assert counted(steep, 8 * np.sqrt(steep), 100.0) == 1
    assert counted(np.zeros(0), np.zeros(0), 100.0) == 0


SPEC = """
dpsynth: 1
name: sums
input: rows.csv
output: out/rows.csv
privacy: {epsilon: 500, dataset: sums}
mechanism: {name: MECHANISM, strata: kind}
columns:
  a: {type: continuous, bounds: [0, 10]}
  b: {type: integer, bounds: [0, 100]}
  place: {type: nominal, categories: [north, south]}
  kind: {type: nominal, categories: [p, q]}
"""


@pytest.fixture
def rows(tmp_path):
    """What means and covariances come out as, of 4,000 rows in two classes."""
    rng = np.random.default_rng(3)
    kind = rng.random(4000) < 0.25
    a = np.clip(rng.normal(4 + 2 * kind, 1), 0, 10).round(3)
    b = np.clip(np.rint(8 * a + rng.normal(0, 5, 4000)), 0, 100).astype(int)
    place = rng.random(4000) < 0.3
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        write = csv.writer(file)
        write.writerow(["a", "b", "place", "kind"])
        write.writerows(zip(a, b, np.where(place, "north", "south"), np.where(kind, "q", "p"), strict=True))
    return np.column_stack([a, b, place, ~place])[~kind], np.column_stack([a, b, place, ~place])[kind]


def test_private_means_and_covariances_can_be_had_by_themselves(dpsynth, rows, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC.replace("MECHANISM", "lowdim"))
    assert dpsynth("release", "spec.yaml", "-q").code == 0
    ran = dpsynth("export", "out/rows.transcript.arrow", "--moments")
    assert ran.code == 0, ran.err
    assert [one["column"] for one in ran.json["coordinates"]] == ["a", "b", "place", "place"]
    assert [one.get("category") for one in ran.json["coordinates"]] == [None, None, "north", "south"]
    for one, real, label in zip(ran.json["classes"], rows, "pq", strict=True):
        assert one["class"] == label
        # At epsilon 500 noise is below 0.2 % of a range; covariances of a class are drawn to those of all.
        assert abs(one["rows"] - len(real)) <= 2
        assert one["mean"] == pytest.approx(real.mean(axis=0), abs=0.2)
        assert np.array(one["covariance"])[:2, :2] == pytest.approx(np.cov(real.T)[:2, :2], rel=0.25, abs=0.5)
    before = (tmp_path / "ledger.sqlite").read_bytes()
    ran = dpsynth("export", "out/rows.transcript.arrow", "--moments", "-o", "moments.json")
    assert (ran.code, ran.out) == (0, "The private moments are in moments.json (nothing was spent)\n")
    assert json.loads((tmp_path / "moments.json").read_text())["classes"]
    assert (tmp_path / "ledger.sqlite").read_bytes() == before
    ran = dpsynth("export", "out/rows.transcript.arrow", "--moments", "-o", "moments.json")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "Error: moments.json exists.")


def test_what_has_no_moments_says_so(dpsynth, rows, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC.replace("MECHANISM", "marginals"))
    assert dpsynth("release", "spec.yaml", "-q").code == 0
    ran = dpsynth("export", "out/rows.transcript.arrow", "--moments")
    assert ran.code == 2
    assert ran.err == (
        "Error: a release by marginals has no moments of its own.\nNothing was read and nothing was spent. "
        "lowdim has private means and covariances; of others, take them from the rows.\n"
    )
    ran = dpsynth("export", "out/rows.transcript.arrow")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "Error: nothing was asked for.")
