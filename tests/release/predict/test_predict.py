"""What `check` and `plan` say before any data is read."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.lines import TARGETS
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.release.predict import plan as module
from dpsynth_cli.release.predict.family import FAMILY
from dpsynth_cli.release.predict.plan import plan
from dpsynth_cli.release.predict.predict import MARGIN, Range, errors_of, predict, ranges
from dpsynth_cli.spec.spec import from_document
from tests.asking import asking, drawn


def spec_of(mechanism: str, columns: dict, epsilon: str = "1", **more):
    return from_document(
        {"dpsynth": 1, "name": "t", "output": "-", "privacy": {"epsilon": epsilon},
         "mechanism": {"name": mechanism}, "columns": columns} | more
    )  # fmt: skip


LINE = {"x": {"type": "continuous", "bounds": [0, 1]}}


def released(spec, real: Table, seed: int) -> dict[str, float]:
    """The errors of one release of real rows."""
    ask, *_ = asking(real.codes, spec.domain, float(spec.privacy.budget))
    model = spec.mechanism.run(ask, spec.domain, spec.params, spec.split)
    return errors_of(real, Table(drawn(model, model.total, seed), model.total), spec)


@pytest.mark.parametrize("mechanism", ["pmm", "marginals"])
def test_the_predicted_range_holds_the_errors_of_20_releases_of_a_skewed_column(mechanism):
    rows = 3000
    spec = spec_of(mechanism, LINE)
    prediction, _ = predict(spec, rows, runs=3)
    real = Table({"x": (np.random.default_rng(0).beta(2, 5, rows) * 2**30).astype(np.int64)}, rows)
    measured = np.array([released(spec, real, seed)["tvd1"] for seed in range(20)])
    found = prediction.errors["tvd1"]
    assert np.mean((found.low <= measured) & (measured <= found.high)) >= 0.75  # of noise that is drawn anew
    assert found.high < 400 * found.low  # and says something
    if mechanism == "pmm":
        printed, own = prediction.bounds
        assert 0 < own.w1 < printed.w1 < 1


TEN = {
    **{f"n{i}": {"type": "continuous", "bounds": [0, 100]} for i in range(5)},
    **{f"k{i}": {"type": "nominal", "categories": list("abcdef")} for i in range(5)},
}


def ten_columns(rows: int) -> Table:
    """Skewed and linked, as no uniform table is."""
    rng = np.random.default_rng(3)
    hidden = rng.gamma(1.5, size=rows)
    numbers = [hidden * rng.lognormal(0, 0.2, rows) / 20 for _ in range(5)]
    labels = [np.minimum(5, hidden + rng.exponential(0.5, rows)).astype(np.int64) for _ in range(5)]
    codes = {f"n{i}": (np.minimum(x, 1 - 1e-9) * 2**30).astype(np.int64) for i, x in enumerate(numbers)}
    return Table(codes | {f"k{i}": x for i, x in enumerate(labels)}, rows)


def test_psmm_on_ten_columns_is_no_longer_predicted_to_be_good():
    spec = spec_of("psmm", TEN, rows_hint=5000)
    found = predict(spec, 5000)[0].errors["tvd2"]
    measured = released(spec, ten_columns(5000), 0)["tvd2"]
    assert measured > 0.3
    assert found.low <= measured <= found.high
    assert found.typical > 0.1


def test_the_range_is_that_of_the_tables_with_a_margin_and_names_the_worst():
    spec = spec_of("marginals", TEN, rows_hint=5000)
    prediction, _ = predict(spec, 5000, runs=2)
    assert list(prediction.by_table) == list(FAMILY)
    for name, found in prediction.errors.items():
        means = {table: errors[name] for table, errors in prediction.by_table.items()}
        assert found.low < min(means.values()) <= found.typical <= max(means.values()) < found.high
    means = {table: errors["tvd2"] for table, errors in prediction.by_table.items()}
    assert max(means, key=means.__getitem__) == "spiky"
    assert prediction.errors["tvd2"].worst in ("spiky", "sparse")  # that of single runs, which can be sparse


def test_a_quick_look_takes_few_tables_and_moves_its_ranges_further_out(monkeypatch):
    spec = spec_of("marginals", TEN, rows_hint=5000)
    quick, _ = predict(spec, 5000, quick=True)
    assert list(quick.by_table) == ["correlated", "spiky", "zipf", "clustered"]
    for name, found in quick.errors.items():
        means = [errors[name] for errors in quick.by_table.values()]
        assert (found.low, found.high) == (min(means) / 1.5, max(means) * 1.5)
    assert quick.as_json()["margin"] == 1.5
    monkeypatch.setattr("dpsynth_cli.release.predict.predict.QUICK", 0.0)
    one, _ = predict(spec, 5000, quick=True)  # its time is over: the table whose questions are shown
    assert list(one.by_table) == ["correlated"]
    assert one.errors["tvd2"].high / one.errors["tvd2"].low == pytest.approx(16)
    like, _ = predict(spec, 5000, ten_columns(5000), quick=True)  # one table that is like the data
    assert like.margin == MARGIN


def test_an_error_that_some_tables_lack_is_the_range_of_those_that_have_it():
    found = ranges({"a": [{"w1": 0.2, "tvd1": 0.1}], "b": [{"tvd1": 0.3}]})
    assert found["w1"] == Range(0.2 / MARGIN, 0.2, 0.2 * MARGIN, "a")
    assert found["tvd1"] == Range(0.1 / MARGIN, 0.2, 0.3 * MARGIN, "b")


def test_no_range_of_a_distance_between_tables_ends_above_one():
    found = ranges({"a": [{"w1": 0.9, "tvd1": 0.9}]})
    assert found["w1"].high == 0.9 * MARGIN
    assert found["tvd1"].high == 1.0


def test_more_rows_or_more_epsilon_predict_less_error():
    columns = {"k": {"type": "nominal", "categories": ["a", "b", "c"]}}
    best, fewer_rows, less_epsilon = (
        predict(spec_of("marginals", columns, epsilon), rows, runs=3)[0].errors
        for epsilon, rows in (("1", 30_000), ("1", 600), ("0.02", 30_000))
    )
    for name in ("w1", "tvd1"):  # 50 times less of either is about 50 times the error
        assert 5 * best[name].typical < min(fewer_rows[name].typical, less_epsilon[name].typical)


def test_a_public_table_like_the_data_narrows_the_range():
    columns = {c: {"type": "integer", "bounds": [0, 15]} for c in "ab"}
    spec = spec_of("marginals", columns, rows_hint=5000)
    same = np.random.default_rng(0).integers(0, 16, 5000)
    alike = Table({"a": same, "b": same}, 5000)
    any_table, like = (predict(spec, 5000, table, runs=2)[0].errors["tvd2"] for table in (None, alike))
    assert like.low > 0.7  # independent columns of equal ones are all wrong
    assert like.worst == "like"
    assert any_table.low < 0.1  # and may be right of others


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
    assert found.error.high <= 0.01
    # The largest of 20 runs on each of the tables, with a margin: about the quantile 1 - 1/140 of it, but
    # above twice that once in 140 times (a Gumbel tail), above three times once in 20,000.
    gaps = np.abs(np.diff(np.random.default_rng(0).laplace(size=(2, 100_000)), axis=0)) / 2 / 10_000
    exact = np.quantile(gaps, 1 - 1 / (20 * len(FAMILY))) * MARGIN / 0.01
    assert exact / 2 < found.epsilon < 3 * exact
    assert all(error.high > 0 for _, error in found.tried)


@pytest.mark.parametrize("power", [0.4, 0.7, 1.0])
@pytest.mark.parametrize("value", [0.3, 0.03, 0.004])
def test_plan_needs_few_releases_where_errors_follow_a_law(monkeypatch, power, value):
    """The error of table i is (i + 1)/500 by epsilon to a power."""
    spec = spec_of("marginals", {"k": {"type": "nominal", "categories": ["a", "b"]}}, rows_hint=10_000)
    looked_at = []

    def imagined(wanted, rows, table):
        looked_at.append(float(wanted.privacy.budget))
        return None, next(name for name, one in tables.items() if one is table)

    tables = module.references(spec, 10_000, None)
    monkeypatch.setattr(module, "references", lambda *asked: tables)
    monkeypatch.setattr(module, "_check", lambda *asked: None)
    monkeypatch.setattr(module, "imagine", imagined)
    law = {name: (number + 1) / 500 for number, name in enumerate(tables)}
    monkeypatch.setattr(
        module, "errors_of", lambda table, name, wanted, only: {"tvd1": law[name] / looked_at[-1] ** power}
    )
    found = plan(spec, "tvd1", value, 10_000)
    exact = (MARGIN * max(law.values()) / value) ** (1 / power)
    assert found.error.high <= value
    assert exact <= found.epsilon < 1.2 * exact + 0.001
    assert found.error.worst == max(law, key=law.get)
    assert len(looked_at) <= 40
    assert looked_at.count(found.epsilon) >= len(FAMILY)


def test_plan_solves_for_the_worst_table():
    # Two columns of two values by themselves: what they have in common is lost at every epsilon.
    columns = {c: {"type": "nominal", "categories": ["a", "b"]} for c in "xy"}
    with pytest.raises(UsageError, match=r"no epsilon up to 100 reaches tvd2 = 0.02 .* on the worst table"):
        plan(spec_of("marginals", columns), "tvd2", 0.02, 10_000)
    found = plan(spec_of("joint", columns), "tvd2", 0.02, 10_000)
    assert found.error.high <= 0.02


def test_plan_says_what_cannot_be_reached(dpsynth, people, tmp_path):
    spec = people("marginals")
    (tmp_path / "like.csv").write_text(
        "age,score,group\n" + "".join(f"{i},{i / 100},{'a' if i < 50 else 'b'}\n" for i in range(100))
    )
    ran = dpsynth("plan", spec, "-t", "tvd2=0.05", "--like", "like.csv", "--runs", 1, "-q")
    assert ran.code == 2
    assert "no epsilon up to 100 reaches tvd2 = 0.05 with 100 rows: at 100 it is up to 0." in ran.err
    assert "take another mechanism (dpsynth check --compare), ask for less." in ran.err


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


def test_check_says_how_many_rows_links_take_and_a_release_of_fewer_says_the_same(dpsynth, people):
    spec = people("joint", epsilon=2, neighbours="replace_one", rows=60)
    few = dpsynth("check", spec, "--runs", 0, "--n", 60, "--json").json
    enough = few["chosen"]["links_from_rows"]
    note = f"Links are looked for from about {enough:,} rows on."
    assert [note in one for one in few["notes"]].count(True) == 1
    assert note in " ".join(dpsynth("release", spec).out.split())
    many = dpsynth("check", spec, "--runs", 0, "--n", 2 * enough, "--json").json["notes"]
    assert [f"looked for from about {enough:,} rows on; with fewer" in one for one in many].count(True) == 1
    assert not any(note in one for one in many)
    most = dpsynth("check", spec, "--runs", 0, "--n", 20 * enough, "--json").json["notes"]
    assert not any("links between columns" in one for one in most)


def test_plan_and_check_read_no_data(dpsynth, people, tmp_path):
    spec = people("pmm")
    (tmp_path / "people.csv").unlink()
    checked = dpsynth("check", spec, "--json", "--n", 2000)
    assert checked.code == 0, checked.err
    prediction = checked.json["prediction"]
    assert prediction["rows"] == 2000
    assert {"w1", "tvd1", "tvd2", "mean"} <= set(prediction["errors"])
    assert all(bound["w1"] > 0 for bound in prediction["bounds"])
    assert prediction["cpu_seconds"] > 0 < prediction["memory_bytes"]
    brief = " ".join(dpsynth("check", spec).out.split())
    assert "ranges over 4 of 7 generated tables with these columns" in brief
    assert "sparse" not in brief
    assert "moved out by 1.5; --runs 1: all generated tables." in brief
    shown = dpsynth("check", spec, "--runs", 1)
    for words in (
        "Predicted errors, 10,000 rows: ranges over 7 generated tables with these columns, 1 simulated",
        "sparse: one value for most rows, much missing.",
        "note: 10,000 rows are imagined, and errors depend on that: say how many, --n or rows_hint.",
        "Of any data, the mean W1",
        "MB of memory",
    ):
        assert words in " ".join(shown.out.split()), shown.out
    none = dpsynth("check", spec, "--runs", 0, "--n", 500).out
    assert "Predicted errors" not in none
    assert "rows are imagined" not in none
    planned = dpsynth("plan", spec, "-t", "tvd1=0.6", "--n", 2000, "--json", "--runs", 1)
    assert planned.code == 0, planned.err
    assert planned.json["predicted_error"]["high"] <= 0.6
    assert planned.json["reference"] == "family"
    assert planned.json["epsilon"] == planned.json["tried"][-1]["epsilon"]


def test_memory_has_what_a_model_of_every_combination_holds():
    bits = {f"b{i}": {"type": "boolean"} for i in range(18)}
    joint, plain = (predict(spec_of(name, bits), 3000, runs=0)[0] for name in ("joint", "marginals"))
    assert joint.bytes - plain.bytes > 8 * 8 * 2**18
