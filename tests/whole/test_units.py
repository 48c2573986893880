"""Releases that protect units: whole units come, go and change, and no more moves than was paid for."""

from __future__ import annotations

import io
import json
import os
import secrets
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from pyarrow import csv, parquet

import dpsynth_cli.release.table as releases
from dpsynth_cli.release.record.journal import Journal
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.trusted.core.sensitivity import sensitivity
from dpsynth_cli.trusted.ledger.grants import Unit, converted
from dpsynth_cli.trusted.rows import unit_rows
from dpsynth_cli.trusted.rows.unit_marks import Units
from tests.whole.test_record_and_replay import watched

SPEC = """
dpsynth: 1
name: visits
input: visits.csv
output: out/visits.csv
privacy: {{epsilon: 2.0, neighbours: {neighbours}{delta}, unit: {{column: pid, rows: {rows}}}}}
mechanism: {{name: {mechanism}{strata}}}
evaluate: {{metrics: none}}
columns:
{key}  age: {{type: integer, bounds: [0, 99]{of}}}
  sex: {{type: nominal, categories: [F, M]{of}}}
  visit: {{type: ordinal, categories: [a, b, c]}}
"""
MANY = 9  # rows of the unit that comes, goes or changes


@pytest.fixture
def visits(tmp_path):
    """Writes visits.csv, 40 people of 1 to 6 rows each, and a spec."""

    def write(mechanism="marginals", neighbours="add_remove", rows=3, delta="", strata="", again=False):
        rng = np.random.default_rng(5)
        lines = []
        for person in range(40):
            sex, age = "FM"[rng.integers(2)], rng.integers(100)
            lines += [
                f"person-{person:05d},{age},{sex},{'abc'[rng.integers(3)]}" for _ in range(rng.integers(1, 7))
            ]
        (tmp_path / "visits.csv").write_text("\n".join(["pid,age,sex,visit", *lines, ""]))
        (tmp_path / "spec.yaml").write_text(
            SPEC.format(
                mechanism=mechanism,
                neighbours=neighbours,
                rows=rows,
                delta=f", delta: {delta}" if delta else "",
                strata=f", strata: {strata}" if strata else "",
                key="  pid: {key: true}\n" if again else "",
                of=", of: unit" if again else "",
            )
        )
        return tmp_path / "visits.csv"

    return write


def unit_of(cells: str, many: int = MANY) -> bytes:
    return f"person-new,{cells}\n".encode() * many


def released(dpsynth, monkeypatch, folder, given=None):
    """Release visits.csv under a key that is always the same; what crossed the border, and the table."""
    (folder / "ledger.sqlite").unlink(missing_ok=True)
    with monkeypatch.context() as patched:
        kept = watched(patched, given)
        patched.setattr(secrets, "token_hex", lambda size: "ab" * size)
        ran = dpsynth("release", "spec.yaml", "--set", "sampling.seed=7", "--replace")
    assert ran.code == 0, ran.err
    transcript, _ = load(folder / "out/visits.transcript.arrow")
    kept.answers = [answer.values for _, answer in transcript.answers]
    return kept, (folder / "out/visits.csv").read_bytes()


def moved_too_far(first, again) -> list[str]:
    """The steps whose sums differ by more than was paid for."""
    found = []
    for question, one, other in zip(first.asked, first.sums, again.sums, strict=True):
        step, limit = np.abs(one - other).astype(object), sensitivity(question, first.omega)
        if step.sum() > limit.l1 or (not limit.half_above and (step**2).sum() > limit.l2_squared):
            found.append(question.step)
    return found


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("mechanism", "delta", "strata"),
    [
        ("marginals", "", ""),
        ("joint", "1e-6", ""),
        ("pmm", "", "sex"),
        ("lowdim", "", ""),
        ("factor", "1e-6", "sex"),
    ],
)
def test_neighbours_by_a_whole_unit_with_the_same_answers_release_the_same(
    dpsynth, visits, tmp_path, monkeypatch, mechanism, delta, strata, neighbours
):
    path = visits(mechanism, neighbours, 3, delta, strata)
    data = path.read_bytes()
    here = data + unit_of("99,M,c")
    path.write_bytes(here)
    first, table = released(dpsynth, monkeypatch, tmp_path)
    others = [data, data.replace(b"\n", b"\n" + unit_of("99,M,c", 20), 1)]  # not there; more rows, and first
    if neighbours == "replace_one":
        others += [data + unit_of("0,F,a", 1), data + unit_of("junk,,", 5)]
    moved = 0
    for other in others:
        path.write_bytes(other)
        again, seen = released(dpsynth, monkeypatch, tmp_path, first.answers)
        assert seen == table
        assert again.asked == first.asked
        assert not moved_too_far(first, again)
        moved += sum(int(np.abs(one - two).sum()) for one, two in zip(first.sums, again.sums, strict=True))
    assert moved > 0, "neighbours that move nothing show nothing"


def test_a_release_that_does_not_truncate_is_seen(dpsynth, visits, tmp_path, monkeypatch):
    path = visits()
    data = path.read_bytes()
    monkeypatch.setattr(unit_rows, "least", lambda records, k: np.arange(len(records)))
    path.write_bytes(data + unit_of("99,M,c"))
    first, _ = released(dpsynth, monkeypatch, tmp_path)
    path.write_bytes(data)
    again, _ = released(dpsynth, monkeypatch, tmp_path, first.answers)
    assert moved_too_far(first, again)


def test_a_release_that_truncates_by_the_order_of_the_file_is_seen(dpsynth, visits, tmp_path, monkeypatch):
    """Another unit at the top of the file moves all rows down, and with them which of each unit are kept."""
    path = visits()
    places = iter(range(0, 10**9, 10**6))

    def by_place(self, units, codes):
        first = next(places)
        rank = np.arange(first, first + len(codes)) * 7919 % 10007
        return np.column_stack([rank, np.zeros(len(codes))]).astype(np.uint64)

    def release():
        nonlocal places
        places = iter(range(0, 10**9, 10**6))
        return released(dpsynth, monkeypatch, tmp_path, first.answers if first else None)[0]

    monkeypatch.setattr(Units, "of_rows", by_place)
    monkeypatch.setattr(Units, "order", lambda self, marks, number: marks)
    data, first = path.read_bytes(), None
    first = release()
    path.write_bytes(data.replace(b"\n", b"\n" + unit_of("50,F,b", 3), 1))
    assert moved_too_far(first, release())


def test_no_id_and_no_key_is_in_any_file_that_is_left(dpsynth, visits, tmp_path):
    visits()
    seen = []
    honest = Units.of_cells

    def watching(self, cells, ruined=0):
        seen.append(self.key)
        return honest(self, cells, ruined)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Units, "of_cells", watching)
        assert dpsynth("release", "spec.yaml").code == 0
    assert len(set(seen)) == 1
    for path in [*(tmp_path / "out").iterdir(), tmp_path / "ledger.sqlite"]:
        data = path.read_bytes()
        assert b"person-0" not in data, path
        assert seen[0].encode() not in data, path
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.endswith("partial")]


def test_every_release_has_a_key_of_its_own_and_a_resumed_one_keeps_it(
    dpsynth, visits, tmp_path, monkeypatch
):
    visits("joint")
    keys = []
    honest, record = Units.of_cells, Journal.record

    def watching(self, cells, ruined=0):
        keys.append(self.key)
        return honest(self, cells, ruined)

    def dies(self, charges, answers):
        record(self, charges, answers)
        raise KeyboardInterrupt

    monkeypatch.setattr(Units, "of_cells", watching)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "record", dies)
        assert dpsynth("release", "spec.yaml").code == 130
    (partial,) = (tmp_path / "out").glob(".*.partial")
    assert os.stat(partial).st_mode & 0o777 == 0o600
    assert dpsynth("release", "spec.yaml").code == 0
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    assert len(keys) >= 2
    assert len(set(keys)) == 1
    assert dpsynth("release", "spec.yaml", "--replace").code == 0
    assert len(set(keys)) == 2


def test_the_guarantee_speaks_of_units_everywhere(dpsynth, visits, tmp_path):
    visits(neighbours="replace_one")
    assert dpsynth("release", "spec.yaml").code == 0
    audit = json.loads((tmp_path / "out/visits.audit.public.json").read_text())
    promised = audit["guarantee"]
    said, explained = promised["statement"].split("; the guarantee assumes that AES-256")
    assert said == (
        "This release is 2-differentially private: replacing all rows of any one pid by any others, of any "
        "number, changes the probability of any outcome by a factor of at most e^2. The unit of protection "
        "is one unit, all rows of one pid"
    )
    assert explained.endswith(
        "A unit is all rows with the same pid; rows without one are one unit together. At most 3 rows of a "
        "unit were used, chosen by a secret key and the unit's own rows."
    )
    assert (promised["unit_column"], promised["unit_rows"]) == ("pid", 3)
    assert "about one unit" in promised["allows"]
    total = next(line for line in audit["budget"]["charges"] if line["question"] == "Total")
    assert (total["noise"], total["sensitivity"]["value"]) == ("discrete_laplace", "3")  # n is not public
    assert dpsynth("report", "out/visits.audit.json", "--output", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "one pid, with all its rows," in page
    assert "Somebody with several rows has less" not in page
    assert dpsynth("record", "out/visits.audit.json").code == 0
    record = (tmp_path / "out/visits.registry.yaml").read_text()
    assert "All rows of one pid" in record
    assert "protected row by row" not in record


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ["mechanism.name=factor", "mechanism.release=rows", "privacy.neighbours=replace_one"],
            "no privacy.unit",
        ),
        (["privacy.unit.column=sex"], "names sex, which is declared in columns"),
        (["privacy.unit.rows=0"], "where rows is a whole number from 1 to 10000"),
        (
            ["mechanism.name=microaggregation", "mechanism.guarantee=groups", "mechanism.group_size=3"],
            "unit is stated, but a release by groups is not differentially private",
        ),
        (
            [
                "mechanism.name=microaggregation",
                "mechanism.parameters=paper",
                "privacy.neighbours=replace_one",
            ],
            "and no unit",
        ),
    ],
)
def test_what_units_do_not_go_with_is_refused_before_a_row_is_read(dpsynth, visits, change, said):
    visits()
    ran = dpsynth("check", "spec.yaml", *(word for one in change for word in ("--set", one)))
    assert ran.code == 2
    assert said in ran.err.replace("\n", " ")


def test_a_table_without_the_column_of_units_is_refused(dpsynth, visits):
    visits()
    ran = dpsynth("release", "spec.yaml", "--set", "privacy.unit.column=patient")
    assert ran.code == 5
    assert "visits.csv has no column 'patient'" in ran.err
    assert "Nothing was read and nothing was spent." in ran.err


def test_an_engine_that_cannot_gather_units_is_refused(visits, tmp_path, monkeypatch):
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.spec.spec import load_spec
    from dpsynth_cli.trusted.engines import Engine
    from dpsynth_cli.trusted.ledger.ledger import Ledger

    visits()
    with pytest.raises(UsageError, match="this engine cannot keep so many rows of each unit"):
        releases.release(
            load_spec(str(tmp_path / "spec.yaml")), Ledger(str(tmp_path / "l")), engine=Engine(None)
        )


def test_check_shows_what_fewer_or_more_rows_would_do_and_what_they_would_cut(dpsynth, visits):
    visits()
    ran = dpsynth("check", "spec.yaml", "--data", "--json", "--n", "2000")
    assert ran.code == 0
    found = ran.json
    assert [line["rows"] for line in found["unit"]["limits"]] == [1, 2, 3, 5, 10]
    assert all(line["errors"]["tvd1"] > 0 for line in found["unit"]["limits"])
    units = found["data"]["units"]
    assert units["confidential"]
    assert (units["units"], units["most_rows"]) == (40, 6)
    assert units["limits"][0]["rows_cut"] == units["rows"] - 40
    assert units["limits"][-1] == {"rows_kept": 10, "rows_cut": 0, "units_cut": 0}
    plain = dpsynth("check", "spec.yaml", "--data", "--n", "2000")
    assert "Rows left out by pid (confidential: for the steward only)" in plain.out
    assert "3 (this spec)" in plain.out


@pytest.mark.parametrize("again", [False, True], ids=["rows", "units again"])
def test_private_bounds_paid_errors_and_a_pipe_go_with_units(dpsynth, visits, tmp_path, monkeypatch, again):
    path = visits("joint", "replace_one", again=again)
    of = ", of: unit" if again else ""
    words = [
        f"columns.age={{type: integer, bounds: private{of}}}",
        "evaluate.epsilon=10%",
        "evaluate.metrics=quick",
    ]
    piped = SimpleNamespace(buffer=io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", piped)
    ran = dpsynth("release", "spec.yaml", "-i", "-", *(word for one in words for word in ("--set", one)))
    assert ran.code == 0, ran.err
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    audit = json.loads((tmp_path / "out/visits.audit.json").read_text())
    assert (
        audit["utility"]["rows"]["real"] == path.read_text().count("\n") - 1
    )  # all rows, not only those kept
    moved = {line["step"]: line["sensitivity"]["value"] for line in audit["budget"]["charges"]}
    assert moved["domain"] == "6"  # two cells for each of three rows
    assert {"evaluate", "domain"} <= set(moved)
    assert ("units" in moved) == again


# --- units again in the synthetic table ----------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_questions_about_units_move_by_one_unit_and_no_more(
    dpsynth, visits, tmp_path, monkeypatch, neighbours
):
    path = visits("joint", neighbours, 3, again=True)
    data = path.read_bytes()
    path.write_bytes(data + unit_of("99,M,c"))
    first, table = released(dpsynth, monkeypatch, tmp_path)
    others = [data, data.replace(b"\n", b"\n" + unit_of("99,M,c", 20), 1)]
    others += [data + unit_of("1,F,c", 1)] * (neighbours == "replace_one")
    for other in others:
        path.write_bytes(other)
        again, seen = released(dpsynth, monkeypatch, tmp_path, first.answers)
        assert seen == table
        assert not moved_too_far(first, again)
    steps = [question.step for question in first.asked]
    assert steps.count("units") == 2  # one for each column of a unit
    sizes = [sums for question, sums in zip(first.asked, first.sums, strict=True) if question.step == "units"]
    assert all(int(sums.sum()) == 41 for sums in sizes)  # every unit once


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_with_units_has_rows_that_belong_together(dpsynth, visits, tmp_path, ending):
    visits("joint", again=True)
    ran = dpsynth(
        "release", "spec.yaml", "--set", f"output=out/visits.{ending}", "--set", "privacy.epsilon=500"
    )
    assert ran.code == 0, ran.err
    assert dpsynth("verify", "out/visits.audit.json").code == 0
    path = tmp_path / f"out/visits.{ending}"
    table = csv.read_csv(path) if ending == "csv" else parquet.read_table(path)
    assert table.column_names == ["pid", "age", "sex", "visit"]
    assert str(table.schema.field("pid").type) == "int64"
    rows = table.to_pylist()
    by_unit: dict[int, list[dict]] = {}
    for row in rows:
        by_unit.setdefault(row["pid"], []).append(row)
    assert sorted(by_unit) == list(range(1, len(by_unit) + 1))
    assert all(len({(row["age"], row["sex"]) for row in own}) == 1 for own in by_unit.values())
    assert max(map(len, by_unit.values())) <= 3
    # At epsilon 500 there is next to no noise. About 105 rows draw the sizes of their units, so that the
    # number of units has a standard deviation below 3: seven of them.
    assert abs(len(by_unit) - 40) <= 20
    audit = json.loads((tmp_path / "out/visits.audit.public.json").read_text())
    assert len(audit["mechanism"]["chosen"]["units"]["rows_of_a_unit"]) == 3
    more = dpsynth(
        "sample", "out/visits.transcript.arrow", "--output", "more.csv", "--rows", "20", "--seed", "1"
    )
    assert more.code == 0
    assert (tmp_path / "more.csv").read_text().startswith("pid,age,sex,visit\n1,")


def test_a_query_says_that_it_is_about_the_rows_that_were_kept(dpsynth, visits):
    visits(again=True)
    assert dpsynth("release", "spec.yaml").code == 0
    ran = dpsynth("query", "out/visits.transcript.arrow", "count() by sex", "--json")
    assert ran.code == 0, ran.err
    assert ran.out.count("of at most 3 rows of each pid") == 2
    refused = dpsynth("replicates", "out/visits.transcript.arrow", "-m", 2, "-o", "r.csv")
    assert (refused.code, "rows of each pid together" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("privacy.unit=null", "age is of: unit, which needs privacy.unit, and its column in columns"),
        ("columns.pid={key: uuid}", "make it a fresh key: {key: true}"),
        (
            "rules.impossible=[{sex: F, visit: c}]",
            "sex is of: unit, which is in a rule with columns that are",
        ),
        ("columns.visit.of=person", "it must be one of unit"),
        (
            "derive.sex=if visit == 'a' then 'F' else 'M'",
            "sex is of: unit, which is computed from columns that are not",
        ),
    ],
)
def test_columns_of_a_unit_that_cannot_be_kept_are_refused(dpsynth, visits, change, said):
    visits(again=True)
    ran = dpsynth("check", "spec.yaml", "--set", change)
    assert ran.code == 2
    assert said in ran.err.replace("\n", " ")


@pytest.mark.parametrize(
    "wrong",
    [
        "{column: pid, rows: 0}",
        "{column: pid}",
        "7",
        "{column: pid, rows: 3, of: x}",
        "{column: age, rows: 3}",
    ],
)
def test_a_wrong_unit_is_one_mistake(dpsynth, visits, wrong):
    visits(again=True)
    ran = dpsynth("check", "spec.yaml", "--set", f"privacy.unit={wrong}")
    assert ran.code == 2
    assert "privacy.unit" in ran.err
    assert "of: unit, which needs" not in ran.err


@pytest.mark.parametrize(
    "wrong", ["columns.pid={key: 7}", "columns.pid={kee: true}", "columns.pid=", "privacy=7"]
)
def test_what_cannot_be_read_is_told_alone(dpsynth, visits, wrong):
    visits(again=True)
    ran = dpsynth("check", "spec.yaml", "--set", wrong)
    assert ran.code == 2
    assert wrong.split("=")[0] in ran.err
    assert "of: unit, which needs" not in ran.err
    assert "is declared in columns" not in ran.err


def test_check_simulates_a_release_with_units(dpsynth, visits):
    visits("joint", again=True)
    ran = dpsynth("check", "spec.yaml", "--json", "--n", "3000")
    assert ran.code == 0
    units = [line for line in ran.json["charges"] if line["question"] == "UnitSizes"]
    assert [(line["cells"] % 3, line["sensitivity"]["value"]) for line in units] == [(0, "1"), (0, "1")]
    assert ran.json["spent"] == ran.json["total"]


# --- the ledger counts units apart ---------------------------------------------------------------------


def test_a_budget_by_rows_counts_a_release_by_units_and_never_the_reverse(dpsynth, visits):
    visits()
    assert dpsynth("budget", "grant", "visits", "4").code == 0
    assert dpsynth("release", "spec.yaml").code == 0
    assert dpsynth("budget", "show", "--json").json["datasets"][0]["charged"] == "4"  # twice 2.0
    assert dpsynth("budget", "grant", "visits", "9", "--unit", "pid", "--replace").code == 0
    ran = dpsynth("release", "spec.yaml", "--replace", "--set", "privacy.unit=null")
    assert ran.code == 3
    said = ran.err.replace("\n", " ")
    assert "counted in pure epsilon under add_remove, but the budget of visits is" in said
    assert "pure epsilon under add_remove by pid: the one does not imply the other" in said
    assert "set privacy.unit to {column: pid, rows: K}" in ran.err.replace("\n", " ")
    assert dpsynth("release", "spec.yaml", "--replace", "--set", "privacy.unit.rows=7").code == 0


def test_what_a_units_epsilon_is_worth_by_rows():
    """A row that comes or goes replaces its unit, which is twice add_remove; a row that is replaced by one of
    another unit changes two."""
    one = Fraction(1)
    worth = {
        (own, other): converted(one, Unit("epsilon", own, "pid"), Unit("epsilon", other))[0]
        for own in ("add_remove", "replace_one")
        for other in ("add_remove", "replace_one")
    }
    assert worth == {
        ("add_remove", "add_remove"): 2,
        ("add_remove", "replace_one"): 4,
        ("replace_one", "add_remove"): 1,
        ("replace_one", "replace_one"): 2,
    }
    assert converted(one, Unit("rho", "add_remove", "pid"), Unit("rho", "replace_one"))[0] == 16
    assert converted(one, Unit("epsilon", "add_remove"), Unit("epsilon", "add_remove", "pid")) is None
    assert (
        converted(one, Unit("epsilon", "add_remove", "household"), Unit("epsilon", "add_remove", "pid"))
        is None
    )
