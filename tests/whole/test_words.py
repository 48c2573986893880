"""What a steward is told where the promise or the table is weak: in `check`, `release` and the report."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from dpsynth_cli.trusted.ledger.ledger import Ledger

ODDS = "odds of 1 to 1 about one row become at most 2.72 to 1"


def words(text: str) -> str:
    """Without the breaks of a terminal."""
    return " ".join(text.split())


def test_what_epsilon_allows_an_attacker_is_said_everywhere(dpsynth, people, tmp_path):
    spec = people()
    assert ODDS in words(dpsynth("check", spec).out)
    assert ODDS in dpsynth("release", spec).out
    audit = json.loads((tmp_path / "out/people.audit.public.json").read_text())
    assert ODDS in audit["guarantee"]["allows"]
    assert "at most 2.72 % of the time" in audit["guarantee"]["allows"]  # e times 1 %
    assert dpsynth("report", "out/people.audit.public.json").code == 0
    page = (tmp_path / "out/people.report.public.html").read_text()
    assert "change by a factor of at most 2.72 (e^1" in page
    assert "nobody's row" not in page


def test_a_large_epsilon_is_warned_of_in_check_release_and_report(dpsynth, people, tmp_path):
    spec, says = people(epsilon="1000"), "epsilon = 1000 is large, and protects a row little or not at all"
    assert says in words(dpsynth("check", spec).out)
    assert says in dpsynth("release", spec).out
    assert dpsynth("report", "out/people.audit.public.json").code == 0
    assert says in (tmp_path / "out/people.report.public.html").read_text()
    assert dpsynth("verify", "out/people.audit.json").code == 0
    assert "is large" not in dpsynth("check", people(epsilon="10")).out


def test_a_delta_above_one_over_the_rows_is_warned_of(dpsynth, people):
    spec, says = people(delta="1e-5"), "With about 200,000 rows it is above one over their number."
    assert says in words(dpsynth("check", spec, "--set", "rows_hint=200000").out)
    assert says in dpsynth("release", spec, "--set", "rows_hint=200000").out
    assert "is large" not in dpsynth("check", spec, "--set", "rows_hint=1000").out


def test_a_table_without_rows_is_told_loudly_even_to_whoever_wants_quiet(dpsynth, people, tmp_path):
    """Five rows and a small epsilon: the private total is often below one."""
    spec = people(epsilon="0.01", rows=5)
    for _ in range(40):
        ran = dpsynth("release", spec, "--replace", "--quiet")
        audit = json.loads((tmp_path / "out/people.audit.public.json").read_text())
        few = [note for note in audit["warnings"] if "number of rows, with its noise" in note]
        if audit["output"]["rows"] == 0:
            assert "warning: The synthetic table has no rows" in ran.err
            assert "too small for this epsilon" in few[0]
            assert dpsynth("verify", "out/people.audit.json").code == 0
            return
    pytest.fail("forty times a positive total: less likely than 1e-9")


def test_few_rows_are_told(dpsynth, people):
    ran = dpsynth("release", people(neighbours="replace_one", rows=5))
    assert "The number of rows, with its noise, is 5: so few that noise is most" in ran.out
    assert "so few" not in dpsynth("release", people(rows=300), "--replace").out


def test_check_compares_the_header_and_the_budget(dpsynth, people, tmp_path):
    spec = people()
    out = words(dpsynth("check", spec).out)
    assert "has all declared columns." in out
    assert "ledger: there is no ledger" in out
    dpsynth("budget", "grant", "people", "0.5")
    ran = dpsynth("check", spec, "--json")
    assert (ran.code, ran.json["ledger"]["fits"]) == (3, False)
    assert "people has 0.5 left" in ran.json["ledger"]["says"]
    dpsynth("budget", "grant", "people", "0.5")
    assert "people has enough left for it" in words(dpsynth("check", spec).out)
    text = (tmp_path / "people.csv").read_text()
    (tmp_path / "people.csv").write_text(text.replace("score", "Score", 1))
    ran = dpsynth("check", spec)
    assert "header: a release would be refused:" in words(ran.out)
    assert "score" in words(ran.out)
    assert ran.code == dpsynth("release", spec).code == 5
    (tmp_path / "people.csv").unlink()
    assert "not compared: the input is not there." in words(dpsynth("check", spec).out)
    assert [entry.kind for entry in Ledger(tmp_path / "ledger.sqlite").log()] == ["grant", "grant"]


# --- whose budget ------------------------------------------------------------------------------------


def test_a_renamed_spec_beside_a_grant_is_warned_of(dpsynth, people):
    spec = people()
    assert dpsynth("budget", "grant", "people", "1").code == 0
    spec.write_text(spec.read_text().replace("name: people", "name: people2"))
    ran = dpsynth("release", spec)
    assert ran.code == 0
    assert "warning: people2 has no grant, and is not limited; people has one in this ledger." in ran.err


def test_a_renamed_spec_is_refused_where_the_ledger_wants_a_grant(dpsynth, people):
    spec = people()
    assert dpsynth("budget", "grant", "people", "1").code == 0
    assert dpsynth("budget", "policy", "--require-grant").out == "everybody: a data set needs a grant\n"
    spec.write_text(spec.read_text().replace("name: people", "name: people2"))
    ran = dpsynth("release", spec)
    assert (ran.code, "people2 has no grant" in ran.err) == (3, True)
    assert dpsynth("budget", "verify").code == 0


@pytest.mark.parametrize("where", ["beside", "inside"])
def test_a_renamed_spec_charges_what_the_file_says_it_is(dpsynth, people, tmp_path, where):
    spec = people()
    assert dpsynth("budget", "grant", "census-2026", "1.5").code == 0
    table = "people.csv"
    if where == "beside":
        (tmp_path / "people.csv.dataset").write_text("census-2026\n")
    else:
        made, table = pa.csv.read_csv(tmp_path / "people.csv"), "people.parquet"
        pyarrow.parquet.write_table(
            made.replace_schema_metadata({"dpsynth.dataset": "census-2026"}), tmp_path / table
        )
    ran = dpsynth("release", spec, "-i", table)
    assert ran.code == 0, ran.err
    assert "of census-2026, add_remove; epsilon = 0.5 left" in ran.out
    assert dpsynth("verify", "out/people.audit.json").code == 0
    spec.write_text(spec.read_text().replace("name: people", "name: other"))
    ran = dpsynth("release", spec, "-i", table, "-o", "out/other.csv")
    assert (ran.code, "census-2026 has 0.5 left" in ran.err) == (3, True)
    ran = dpsynth("release", spec, "-i", table, "--set", "privacy.dataset=mine", "-o", "out/mine.csv")
    assert (ran.code, "says that it is the data set census-2026" in ran.err) == (3, True)
    assert Ledger(tmp_path / "ledger.sqlite").datasets() == ["census-2026"]


def test_the_readme_s_grant_and_a_delta_no_longer_collide_for_ever(dpsynth, people):
    spec = people(delta="1e-9")
    assert dpsynth("budget", "grant", "people", "2.0").code == 0
    ran = dpsynth("release", spec)
    assert ran.code == 3
    command = ran.err.rsplit("what was spent included: ")[1].split()
    assert command[0] == "dpsynth"
    assert dpsynth(*command[1:]).code == 0
    assert dpsynth("release", spec).code == 0
    show = dpsynth("budget", "show").out
    assert "(epsilon 2)" in show
