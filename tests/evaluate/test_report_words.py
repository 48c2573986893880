"""What the page says of errors that were paid for, and what it leaves out because it is noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.report.budget import budget
from dpsynth_cli.evaluate.report.pairs import chosen_pairs, pairs
from dpsynth_cli.evaluate.report.verdict import holds, verdict
from dpsynth_cli.evaluate.tables import Table
from tests.evaluate.test_report import Strict

DOMAIN = Domain((Column("age", "integer", lower=0, upper=100), Column("day", "date", lower=0, upper=365)))


def paid(tvd: float, noise: float, mean_error: float = 0.0) -> dict:
    figure = {"tvd": tvd, "noise": noise}
    return {
        "publishable": True,
        "evaluation": {
            "epsilon": "0.05",
            "tvd1": {"mean": tvd, "worst": tvd, "noise": noise},
            "tvd2": {"mean": tvd, "worst": tvd, "noise": noise},
            "columns": {"age": figure, "day": {"tvd": tvd / 2, "noise": noise}},
            "pairs": [{"columns": ["age", "day"]} | figure],
            "means": {
                "age": {"error": mean_error, "standard_deviation": 0.01},
                "day": {"error": 0.0, "standard_deviation": 0.01},
            },
        },
    }


@pytest.mark.parametrize(
    ("tvd", "noise", "words"),
    [
        (0.03, 0.002, "are close to the real ones"),
        (0.08, 0.002, "differ from the real ones"),
        (0.4, 0.002, "are far from the real ones"),
        (0.03, 0.2, "the noise is too large to tell"),
    ],
)
def test_paid_errors_are_called_what_they_are(tvd, noise, words):
    said = Strict(verdict(paid(tvd, noise), DOMAIN)).text
    every = ("are close to", "differ from", "are far from", "too large to tell")
    assert words in said
    assert [part for part in every if part in said] == [part for part in every if part in words]
    assert ("no single one is above its noise" in said) is (tvd <= 2 * noise)


def test_the_mean_that_is_farthest_off_is_told_in_its_unit_if_it_is_off_at_all():
    assert "The mean of “age” is too high by 5 ± 2." in Strict(verdict(paid(0.1, 0.01, 0.05), DOMAIN)).text
    assert "is too low by 5 ± 2." in Strict(verdict(paid(0.1, 0.01, -0.05), DOMAIN)).text
    assert (
        "No mean of a column of numbers is clearly off."
        in Strict(verdict(paid(0.1, 0.01, 0.03), DOMAIN)).text
    )


def test_errors_within_their_noise_are_not_listed_as_errors():
    said = Strict(holds(paid(0.08, 0.03))).text
    listed, unclear = said.split("Errors that are not above their noise")
    assert "age 8 % ± 6 % differs" in listed
    assert "age × day 8 % ± 6 %" in listed
    assert "day 4 %" not in listed
    assert unclear.strip() == "day"


def test_without_anything_measured_there_is_nothing_to_list():
    assert holds({"publishable": True}) == ""
    assert "No error was measured publicly." in verdict({"publishable": True}, DOMAIN)


@pytest.mark.parametrize(
    ("utility", "words"),
    [
        (None, "was not judged"),
        ({"failed": "the file is gone", "metrics": {}}, "could not be judged: the file is gone"),
        ({"metrics": {}}, "has figures but no verdict"),
    ],
)
def test_a_release_that_was_not_judged_is_not_called_good(utility, words):
    said = verdict({"publishable": False, "utility": utility}, DOMAIN)
    assert words in said
    assert "box holds" not in said


def test_noise_of_sums_is_not_told_as_rows():
    line = {"cells": 4, "standard_deviation": 5.0, "cost": "1/2", "step": "all"}
    charges = [line | {"question": "CellCounts"}, line | {"question": "Moments", "standard_deviation": 1e7}]
    page = budget(
        {
            "budget": {
                "currency": "epsilon",
                "charges": charges,
                "spent_float": 1.0,
                "total_float": 1.0,
                "ledger": {"dataset": "d"},
            }
        }
    )
    assert "1 all CellCounts, Moments 8 5 1 100 %" in Strict(page).text


def table(rows: int, names: str) -> tuple[Domain, Table]:
    rng = np.random.default_rng(0)
    columns = tuple(Column(name, "nominal", categories=("x" * 80, "y")) for name in names)
    return Domain(columns), Table({name: rng.integers(2, size=rows) for name in names}, rows)


def test_no_column_takes_all_the_places_of_pairs():
    domain, own = table(100, "abcdef")
    lines = [{"columns": ["a", other], "tvd": 0.5, "noise": 0.01} for other in "bcdef"]
    lines.append({"columns": ["b", "c"], "tvd": 0.1, "noise": 0.01})
    audit = {"publishable": True, "evaluation": {"pairs": lines}}
    chosen, why, words = chosen_pairs(domain, audit, own)
    assert chosen == [("a", "b"), ("a", "c"), ("b", "c")]
    assert "paid for" in why
    assert words["a", "b"] == "50\xa0% ± 2\xa0% of the rows would have to change (paid for)."


def test_a_cross_table_has_the_shares_of_each_line_and_short_labels():
    domain = Domain(tuple(Column(name, "nominal", categories=("x" * 80, "y")) for name in "ab"))
    own = Table({"a": np.repeat([0, 1], [40, 60]), "b": np.repeat([0, 1, 0, 1], [10, 30, 60, 0])}, 100)
    page = pairs(domain, {"publishable": True}, own, None)
    text = Strict(page).text
    assert f"{'x' * 47}… 40 % of all 25 % 75 %" in text
    assert "y 60 % of all 100 % 0 %" in text
    assert "x" * 48 not in text
    assert "the real one was not asked about them" in text
    real = Table({"a": np.repeat([0, 1], [40, 60]), "b": np.repeat([0, 1, 0, 1], [20, 20, 60, 0])}, 100)
    beside = pairs(domain, {"publishable": False}, own, real)
    assert "25 % 50 % 75 % 50 %" in Strict(beside).text  # synthetic, real; synthetic, real
    assert "rgba(var(--less), 0.350)" in beside
    assert "rgba(var(--more), 0.350)" in beside


def test_rules_and_computed_columns_are_on_the_tin(dpsynth, tmp_path):
    (tmp_path / "d.csv").write_text(
        "at,until,hour\n" + "".join(f"{i},{i + 5},{i // 10}\n" for i in range(90))
    )
    (tmp_path / "s.yaml").write_text(
        "dpsynth: 1\nname: d\ninput: d.csv\noutput: out/d.csv\nprivacy: {epsilon: 5}\n"
        "mechanism: {name: marginals}\n"
        "columns: {at: {type: integer, bounds: [0, 99]}, until: {type: integer, bounds: [0, 99]}}\n"
        "derive: {hour: at // 10, long: until - at > 30}\nrules: {always: [at <= until]}\n"
    )
    ran = dpsynth("release", "s.yaml")
    assert ran.code == 0, ran.err
    for words in ([], ["--public"]):
        ran = dpsynth("report", "out/d.audit.json", *words)
        assert ran.code == 0, ran.err
    steward, public = (Strict((tmp_path / f"out/d.report{k}.html").read_text()) for k in ("", ".public"))
    for page in (steward, public):
        assert "Every row keeps these rules:" in page.text
        assert "at <= until" in page.text
        assert "These columns are computed from others of the same row: hour; long." in page.text
        assert "long yes or no" in page.text
    drawn = [a["class"] for tag, a in steward.tags if tag == "polyline"]
    assert drawn == ["real"] * 3  # at, until, hour: the input has no column long


def test_a_release_by_groups_promises_no_epsilon(dpsynth, tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(100)))
    (tmp_path / "s.yaml").write_text(
        "dpsynth: 1\nname: g\ninput: d.csv\noutput: out/g.csv\n"
        "mechanism: {name: microaggregation, guarantee: groups, group_size: 5}\n"
        "columns: {a: {type: integer, bounds: [0, 9]}, b: {type: integer, bounds: [0, 9]}}\n"
    )
    ran = dpsynth("release", "s.yaml")
    assert ran.code == 0, ran.err
    for words in ([], ["--public"]):
        ran = dpsynth("report", "out/g.audit.json", *words)
        assert ran.code == 0, ran.err
    text = Strict((tmp_path / "out/g.report.public.html").read_text()).text
    assert "not differentially private" in text
    assert "odds" not in text
    assert "Where the budget went" not in text
