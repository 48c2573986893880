"""Errors that may be published: paid for exactly, cut at quantiles of the synthetic table, with noise."""

from __future__ import annotations

import json
from fractions import Fraction

import jsonschema
import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.files import read_table
from dpsynth_cli.evaluate.paid import (
    paid_errors,
    paid_questions,
    priced_questions,
    quantile_cells,
    table_counts,
)
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Misfit
from dpsynth_cli.release.paid import advice, worth
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.spec.spec import from_document, load_spec
from tests.asking import asking
from tests.conftest import ROOT
from tests.evaluate.test_releases import audits, with_evaluate
from tests.whole.test_release import EVERY

PLAIN = Domain(
    (Column("x", "integer", lower=0, upper=10**9), Column("k", "nominal", categories=("a", "b", "c")))
)


def asked_of(domain: Domain, made: dict, real: dict, epsilon: float, delta: float | None = None):
    """A paid evaluation of the synthetic rows on the real ones, with the real noise."""
    rows, total = (len(next(iter(codes.values()))) for codes in (made, real))
    paid = paid_questions(domain, Fraction(1), lambda: [made], rows, total)
    ask, accountant, *_ = asking(real, domain, epsilon, delta)
    answers = ask(paid.questions)
    return paid_errors(domain, paid, answers, rows, total), accountant, paid, answers


@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("mechanism", EVERY)
def test_a_paid_evaluation_is_part_of_the_budget_public_and_verified(
    dpsynth, people, tmp_path, mechanism, delta
):
    more = "strata: group" if mechanism == "lowdim" else ""
    ran = dpsynth("release", with_evaluate(people(mechanism, "1", delta=delta, more=more), "{epsilon: 25%}"))
    if ran.code == 2 and "takes" in ran.err:
        pytest.skip(f"{mechanism} does not take such a table")
    assert ran.code == 0, ran.err
    _, public = audits(tmp_path / "out")
    jsonschema.validate(public, json.loads((ROOT / "configs/audit.schema.json").read_text()))
    lines = [line for line in public["budget"]["charges"] if line["step"] == "evaluate"]
    assert [line["question"] for line in lines] == ["Misfit", "Misfit", "Misfit", "Moments"]
    costs, total = [Fraction(line["cost"]) for line in lines], Fraction(public["budget"]["total"])
    assert Fraction(public["budget"]["spent"]) == total
    assert (sum(costs) == total / 4) == (delta is None)
    assert 0 < sum(costs) <= total / 4
    found = public["evaluation"]
    assert found["epsilon"] == "0.25"
    assert set(found["columns"]) == {"age", "score", "group"}
    assert [pair["columns"] for pair in found["triples"]] == [["age", "score", "group"]]
    assert len(found["pairs"]) == 3
    assert dpsynth("verify", "out/people.audit.public.json").code == 0
    assert dpsynth("sample", "out/people.transcript.arrow", "-n", 3).code == 0
    path = tmp_path / "out/people.audit.public.json"
    path.write_text(path.read_text().replace('"noise": 0.', '"noise": 1.', 1))
    assert dpsynth("verify", path).code == 4


def test_a_release_that_was_cut_off_asks_about_the_same_synthetic_rows(
    dpsynth, people, tmp_path, monkeypatch
):
    spec = with_evaluate(people("marginals"), "{epsilon: 5%}")

    def full(*words, **more):
        raise OSError(28, "No space left on device", "people.csv")

    with monkeypatch.context() as patched:
        patched.setattr("dpsynth_cli.release.files.write.write_table", full)
        assert dpsynth("release", spec).code == 5
    assert dpsynth("release", spec, "--resume").code == 0
    assert dpsynth("verify", "out/people.audit.public.json").code == 0


@pytest.mark.parametrize("mechanism", ["joint", "marginals"])
def test_what_was_expected_are_tables_of_the_very_rows_that_are_published(
    dpsynth, people, tmp_path, mechanism
):
    """As many synthetic rows as the private total says: then an expected cell is a count of the file."""
    ran = dpsynth("release", with_evaluate(people(mechanism, "5"), "{epsilon: 20%}"))
    assert ran.code == 0, ran.err
    transcript, _ = load(tmp_path / "out/people.transcript.arrow")
    spec = from_document(transcript.header["spec"])
    made = read_table(str(tmp_path / "out/people.csv"), spec.domain, spec.csv, None)
    asked = next(question for question, _ in transcript.answers if question["step"] == "evaluate")
    columns = [cells["axes"][0] for cells in asked["statistic"]["tables"]]
    assert [own["column"] for own in columns] == ["age", "score", "group"]
    for own, expected in zip(columns, asked["statistic"]["expected"][0], strict=True):
        counted = np.histogram(made.codes[own["column"]], own["edges"])[0]
        counted[-1] -= np.sum(made.codes[own["column"]] == own["edges"][-1])  # numpy's last cell is closed
        assert counted.tolist() == expected


def test_a_loose_bound_hides_no_error():
    """The declared range is 10^9 wide and the rows are below 10^6: cut evenly, both tables are one cell."""
    rng = np.random.default_rng(0)
    real = {"x": rng.integers(0, 10**5, 20_000), "k": rng.integers(0, 2, 20_000)}
    made = {"x": rng.integers(0, 10**6, 5_000), "k": rng.integers(0, 3, 5_000)}
    found, accountant, *_ = asked_of(PLAIN, made, real, 5.0)
    assert accountant.spent == accountant.total
    assert found["columns"]["x"]["tvd"] == pytest.approx(0.9, abs=0.05)
    assert found["columns"]["k"]["tvd"] == pytest.approx(1 / 3, abs=0.03)
    assert found["tvd2"]["mean"] == pytest.approx(1 - 0.1 * 2 / 3, abs=0.05)
    assert found["means"]["x"]["error"] == pytest.approx((5e5 - 5e4) / 1e9, abs=0.02)
    assert 0 < found["tvd1"]["noise"] < 0.01


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_stated_noise_is_the_spread_of_the_figures(delta):
    """Twice as much or half of it would be seen: 60 releases of the same tables, far from 0 and 1."""
    real = {"x": np.full(4_000, 5), "k": np.repeat([0, 1], 2_000)}
    made = {"x": np.repeat([5, 10**8], 2_000), "k": np.repeat([0, 2], [2_000, 2_000])}
    found = [asked_of(PLAIN, made, real, 0.5, delta)[0] for _ in range(60)]
    for figures, sd in (
        ([one["columns"]["x"]["tvd"] for one in found], found[0]["columns"]["x"]["noise"]),
        ([one["tvd1"]["mean"] for one in found], found[0]["tvd1"]["noise"]),
        ([one["pairs"][0]["tvd"] for one in found], found[0]["pairs"][0]["noise"]),
    ):
        assert np.mean(figures) == pytest.approx(0.5, abs=5 * sd / np.sqrt(60) + 0.01)
        assert 0.55 < np.std(figures) / sd < 1.7
    means = [one["means"]["x"] for one in found]
    sd = means[0]["standard_deviation"]
    assert np.mean([one["error"] for one in means]) == pytest.approx(0.05, abs=5 * sd / np.sqrt(60))
    assert 0.55 < np.std([one["error"] for one in means]) / sd < 1.7


@pytest.mark.parametrize(("rows", "total"), [(3, 5), (1_000, 7), (5, 0)])
def test_what_a_cell_should_hold_is_its_part_of_the_real_rows_to_the_nearest_whole(rows, total):
    made = {"x": np.zeros(rows, int), "k": np.arange(rows) % 3}
    paid = paid_questions(PLAIN, Fraction(1), lambda: [made], rows, total)
    table = paid.questions[0].statistic.expected[0][paid.tables.index(("k",))]
    wanted = np.bincount(made["k"], minlength=3) * total / rows
    assert np.abs(np.array(table) - wanted).max() <= 0.5


def test_spikes_and_missing_cells_are_alone_and_other_cells_have_equal_parts():
    column = Column("n", "integer", lower=0, upper=10**6, nullable=True)
    codes = np.concatenate([np.zeros(500, int), np.arange(1, 501), np.full(100, column.size)])
    cells = quantile_cells(column, Table({"n": codes}, len(codes)), 1)
    assert cells.edges[:3] == (0, 1, 63)
    assert cells.edges[-2:] == (column.size, column.codes)
    counted = np.histogram(codes, cells.edges)[0]
    assert counted[0] == 500
    assert set(counted[1:-2]) <= {62, 63}
    assert quantile_cells(column, Table({"n": codes[:0]}, 0), 2).edges == (0, column.size, column.codes)


def test_strong_links_of_the_synthetic_table_are_among_the_pairs():
    rng = np.random.default_rng(1)
    columns = tuple(Column(f"c{i}", "nominal", categories=("a", "b")) for i in range(40))
    domain = Domain(columns)
    codes = {f"c{i}": rng.integers(0, 2, 4_000) for i in range(40)}
    codes["c31"] = codes["c7"]
    paid = paid_questions(domain, Fraction(1), lambda: [codes], 4_000, 4_000)
    assert table_counts(domain) == {1: 40, 2: 40, 3: 10}
    pairs = [names for names in paid.tables if len(names) == 2]
    assert pairs[0] == ("c7", "c31")
    assert len(set(pairs)) == 40
    triples = [names for names in paid.tables if len(names) == 3]
    assert {"c7", "c31"} < set(triples[0])
    assert len(set(triples)) == 10
    again = paid_questions(domain, Fraction(1), lambda: [codes], 4_000, 4_000)
    assert again.questions == paid.questions


@pytest.mark.parametrize("columns", [1, 2, 3, 30])
def test_what_is_asked_costs_what_was_priced_before_there_was_a_table(columns):
    domain = Domain(tuple(Column(f"c{i}", "integer", lower=0, upper=9) for i in range(columns)))
    codes = {f"c{i}": np.arange(50) % 10 for i in range(columns)}
    paid = paid_questions(domain, Fraction(1, 7), lambda: [codes], 50, 90)
    ask, *_ = asking(codes, domain, 1.0)
    priced = priced_questions(domain, Fraction(1, 7))
    assert [ask.sd(one) for one in paid.questions] == [ask.sd(one) for one in priced]
    assert sum(one.share for one in paid.questions) == Fraction(1, 7)
    expected = [
        sum(table)
        for q in paid.questions
        if isinstance(q.statistic, Misfit)
        for table in q.statistic.expected[0]
    ]
    assert expected == pytest.approx([90] * len(paid.tables), abs=5)


# --- the line in the spec -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "whole", "worth_it"),
    [("5%", "1.0", "0.05"), ("0.1%", "0.3", "0.0003"), ("33.3%", "1e-3", "0.000333"), ("50%", "3", "1.5")],
)
def test_a_percentage_is_an_exact_part_of_epsilon(people, written, whole, worth_it):
    spec = load_spec(str(with_evaluate(people("marginals", whole), f"{{epsilon: {written}}}")))
    assert spec.evaluation.epsilon == Fraction(worth_it)
    assert Fraction(spec.effective["evaluate"]["epsilon"]) == Fraction(worth_it)
    assert from_document(spec.effective).evaluation == spec.evaluation


@pytest.mark.parametrize("written", ["51%", "0%", "-5%", "%", "5 %%", "five%"])
def test_other_percentages_are_refused(people, written):
    with pytest.raises(UsageError) as refused:
        load_spec(str(with_evaluate(people("marginals"), f'{{epsilon: "{written}"}}')))
    more = "is more than half of privacy.epsilon" if written == "51%" else "or a percentage such as 5%"
    assert more in str(refused.value)


def test_check_says_whether_rows_are_enough_and_what_the_share_costs(dpsynth, people):
    spec = with_evaluate(people("marginals"), "{epsilon: 5%}")
    few, many = (dpsynth("check", spec, "--runs", 0, "--n", n, "--json").json for n in (1_000, 1_000_000))
    assert few["evaluation"]["share"] == "1/20"
    assert few["evaluation"]["more_noise"] == pytest.approx(1 / 0.95 - 1)
    needed = few["evaluation"]["tvd2"]["rows_needed"]
    assert 2 * few["evaluation"]["tvd2"]["noise"] * 1_000 / needed == pytest.approx(0.05, rel=0.01)
    (poor,), (rich,) = ([note for note in said["notes"] if "paid" in note] for said in (few, many))
    assert f"too few for an error of 0.05 to stand above twice its noise: that takes about {needed:,}" in poor
    assert "5 % of the budget, so that the release's own answers have 5.3 % more noise." in rich
    assert "enough for an error of 0.05 to stand above twice its noise." in rich
    assert "evaluation" not in dpsynth("check", people("marginals"), "--runs", 0, "--json").json


def test_under_a_delta_the_share_is_what_its_epsilon_would_cost_alone(people):
    spec = load_spec(str(with_evaluate(people("marginals", delta="1e-6"), "{epsilon: 5%}")))
    found = worth(spec, 10_000)
    assert Fraction(found["share"]) < Fraction(1, 20)
    assert found["more_noise"] == pytest.approx((1 - float(Fraction(found["share"]))) ** -0.5 - 1)
    assert advice(found).startswith("paid errors: epsilon 0.05, ")
