"""What `check` and `plan` say before any data is read."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.evaluate.lines import TARGETS
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.evaluate.wasserstein import columns_w1
from dpsynth_cli.release.predict import errors_of, plan, predict
from dpsynth_cli.spec.spec import from_document
from tests.asking import asking, drawn


def spec_of(mechanism: str, columns: dict, epsilon: str = "1", **more):
    return from_document(
        {"dpsynth": 1, "name": "t", "output": "-", "privacy": {"epsilon": epsilon},
         "mechanism": {"name": mechanism}, "columns": columns} | more
    )  # fmt: skip


LINE = {"x": {"type": "continuous", "bounds": [0, 1]}}


@pytest.mark.parametrize("mechanism", ["pmm", "marginals"])
def test_the_predicted_w1_is_within_a_factor_2_of_that_of_20_releases(mechanism):
    rows = 3000
    spec = spec_of(mechanism, LINE)
    prediction, _ = predict(spec, rows, runs=40)
    real = Table({"x": (np.random.default_rng(0).beta(2, 5, rows) * 2**30).astype(np.int64)}, rows)
    measured = []
    for seed in range(20):
        ask, *_ = asking(real.codes, spec.domain, 1.0)
        model = spec.mechanism.run(ask, spec.domain, spec.params, spec.split)
        made = Table(drawn(model, model.total, seed), model.total)
        measured.append(columns_w1(real, made, spec.domain)["mean"])
    assert 0.5 < prediction.errors["w1"] / np.mean(measured) < 2
    if mechanism == "pmm":
        assert np.mean(measured) < prediction.bound < 1


def test_more_rows_or_more_epsilon_predict_less_error():
    columns = LINE | {"k": {"type": "nominal", "categories": ["a", "b", "c"]}}
    best, fewer_rows, less_epsilon = (
        predict(spec_of("marginals", columns, epsilon), rows, runs=10)[0].errors
        for epsilon, rows in (("1", 30_000), ("1", 600), ("0.02", 30_000))
    )
    for name in ("w1", "tvd1"):  # 50 times less of either is about 50 times the error
        assert 5 * best[name] < min(fewer_rows[name], less_epsilon[name])


def test_a_reference_like_the_data_predicts_what_a_uniform_one_cannot():
    columns = {c: {"type": "integer", "bounds": [0, 15]} for c in "ab"}
    spec = spec_of("marginals", columns, rows_hint=5000)
    same = np.random.default_rng(0).integers(0, 16, 5000)
    alike = Table({"a": same, "b": same}, 5000)
    uniform, like = (predict(spec, 5000, table)[0].errors["tvd2"] for table in (None, alike))
    assert uniform < 0.15  # independent columns of an independent table are right,
    assert like > 0.8  # and of equal ones all wrong


def test_time_and_memory_grow_with_the_rows():
    small, large = (predict(spec_of("pmm", LINE), rows, runs=1)[0] for rows in (1000, 100_000_000))
    assert large.seconds > 10 * small.seconds > 0
    assert large.bytes > 2 * small.bytes


def test_errors_that_a_table_does_not_have_are_left_out():
    spec = spec_of("marginals", {"k": {"type": "nominal", "categories": ["a", "b"]}})
    table = Table({"k": np.array([0, 1, 1])}, 3)
    assert set(errors_of(table, table, spec)) == {"w1", "tvd1"}
    plane = spec_of("pmm", LINE | {"y": {"type": "integer", "bounds": [0, 9]}})
    both = Table({"x": np.array([1, 2]), "y": np.array([1, 2])}, 2)
    assert set(errors_of(both, both, plane)) == set(TARGETS) - {"tvd3"}


def test_plan_finds_the_least_epsilon():
    # One histogram of two cells with sd sqrt(2)/epsilon: the error is what arithmetic says.
    spec = spec_of("marginals", {"k": {"type": "nominal", "categories": ["a", "b"]}}, rows_hint=10_000)
    found = plan(spec, "tvd1", 0.01, 10_000, runs=20)
    assert found.error <= 0.01
    exact = (
        np.mean(np.abs(np.diff(np.random.default_rng(0).laplace(size=(2, 100_000)), axis=0)))
        / 2
        / 10_000
        / 0.01
    )
    assert exact / 1.6 < found.epsilon < 1.6 * exact
    assert all(error > 0 for _, error in found.tried)


def test_plan_says_what_cannot_be_reached(dpsynth, people, tmp_path):
    spec = people("marginals")
    (tmp_path / "like.csv").write_text(
        "age,score,group\n" + "".join(f"{i},{i / 100},{'a' if i < 50 else 'b'}\n" for i in range(100))
    )
    ran = dpsynth("plan", spec, "-t", "tvd2=0.05", "--like", "like.csv", "--runs", 1, "-q")
    assert ran.code == 2
    assert "no epsilon up to 100 reaches tvd2 = 0.05 with 100 rows: at 100 it is 0." in ran.err
    assert "Release fewer columns, take another mechanism, or ask for less." in ran.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-t", "w1"], 2, "--target is w1; it must be NAME=NUMBER"),
        (["-t", "w1=-1"], 2, "--target is w1=-1; it must be NAME=NUMBER"),
        (["-t", "tdv2=0.1"], 2, "tdv2 is not an error of this table (did you mean tvd2?)."),
        (["-t", "w1=0.1", "--like", "gone.csv"], 5, "there is no file gone.csv."),
        (["-t", "w1=0.1", "--like", "empty.csv"], 2, "the reference table has no rows."),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(dpsynth, people, tmp_path, words, code, said):
    spec = people("marginals")
    (tmp_path / "empty.csv").write_text("age,score,group\n")
    ran = dpsynth("plan", spec, *words)
    assert (ran.code, said in ran.err) == (code, True), ran.err


def test_plan_and_check_read_no_data(dpsynth, people, tmp_path):
    spec = people("pmm")
    (tmp_path / "people.csv").unlink()
    checked = dpsynth("check", spec, "--json", "--n", 2000, "--runs", 2)
    assert checked.code == 0, checked.err
    prediction = checked.json["prediction"]
    assert prediction["rows"] == 2000
    assert {"w1", "tvd1", "tvd2", "mean"} <= set(prediction["errors"])
    assert prediction["paper_bound_w1"] > 0
    assert prediction["cpu_seconds"] > 0 < prediction["memory_bytes"]
    shown = dpsynth("check", spec, "--runs", 1)
    for words in ("Predicted error on a uniform table (mean of 1 run)", "The paper's bound", "MB of memory"):
        assert words in shown.out, shown.out
    assert "Predicted error" not in dpsynth("check", spec, "--runs", 0).out
    planned = dpsynth("plan", spec, "-t", "w1=0.05", "--n", 2000, "--json", "--runs", 1)
    assert planned.code == 0, planned.err
    assert planned.json["predicted_error"] <= 0.05
    assert planned.json["epsilon"] == planned.json["tried"][-1]["epsilon"]
