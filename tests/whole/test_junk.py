"""Junk never passes quietly, and never into a public file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.trusted.ledger.ledger import Ledger
from tests.conftest import ROOT
from tests.whole.test_record_and_replay import released
from tests.whole.test_release import EVERY
from tests.whole.test_stream import pushed, state_of, visits  # noqa: F401 (a fixture)

ROWS = 200
SPEC = """\
dpsynth: 1
name: pay
input: pay.{ending}
output: out/pay.csv
privacy: {{epsilon: 1.0}}
mechanism: {{name: marginals}}
columns:
  amount: {{type: integer, bounds: [0, 100000]}}
  rate:   {{type: continuous, bounds: [0, 100], nullable: true}}
  day:    {{type: date, bounds: [2019-01-01, 2019-12-31]}}
  city:   {{type: nominal, categories: [Málaga, Köln, Paris]}}
  hours:  {{type: integer, bounds: [0, 40]}}
"""
DAYS = "{type: date, bounds: [2019-01-01, 2019-12-31]"
WARNINGS = {
    "amount": "column 'amount': 100 % of cells (200 of 200) are no numbers and count as its lower bound; "
    'they look like amounts with a currency sign: declare currency: "$" (the sign they have), and '
    'thousands: "," where thousands are parted.',
    "rate": "column 'rate': 100 % of cells (200 of 200) are no numbers and count as missing; they look like "
    "numbers with a percent sign: declare percent: true.",
    "day": "column 'day': 100 % of cells (200 of 200) are no dates and count as its lower bound; they look "
    'like dates with the day first (DD/MM/YYYY): declare date: "%d/%m/%Y" (with the signs they have).',
    "city": "column 'city': 67 % of cells (134 of 200) are no listed label and count as its first category; "
    "they look like labels in another encoding than UTF-8: set csv: {encoding: cp1252} (of Parquet, "
    "write the text in UTF-8).",
    "hours": "column 'hours': 10 % of cells (20 of 200) are out of bounds and were moved to a bound; widen "
    'the bounds by public knowledge, check the unit, or declare missing: ["-9"] where such a number means a '
    "missing cell.",
}


def write_pay(folder: Path, ending: str = "csv") -> Path:
    """The table that nobody notices: every column but the last is dead."""
    cities = ["Málaga".encode("latin-1"), "Köln".encode("latin-1"), b"Paris"]
    columns = {
        "amount": [b"$%d,%03d" % (1 + i % 90, i) for i in range(ROWS)],
        "rate": [b"%d.3%%" % (i % 100) for i in range(ROWS)],
        "day": [b"%02d/%02d/2019" % (1 + i % 28, 1 + i % 12) for i in range(ROWS)],
        "city": [cities[i % 3] for i in range(ROWS)],
        "hours": [b"50" if i % 10 == 0 else b"%d" % (i % 30 + 1) for i in range(ROWS)],
    }
    if ending == "csv":
        lines = [b",".join(b'"%s"' % cell for cell in row) for row in zip(*columns.values(), strict=True)]
        (folder / "pay.csv").write_bytes(b"\n".join([",".join(columns).encode(), *lines, b""]))
    else:
        table = pa.table({name: pa.array(cells, pa.binary()) for name, cells in columns.items()})
        pq.write_table(table, folder / "pay.parquet", row_group_size=70)
    (folder / "spec.yaml").write_text(SPEC.format(ending=ending))
    return folder / "spec.yaml"


def steward(folder: Path, name: str = "pay") -> dict:
    audit = json.loads((folder / f"out/{name}.audit.json").read_text())
    jsonschema.validate(audit, json.loads((ROOT / "configs/audit.schema.json").read_text()))
    return audit


def test_what_a_warning_advises_cures_it(dpsynth, tmp_path):
    spec = write_pay(tmp_path)
    told = spec.read_text()
    for old, new in {
        "[0, 100000]}": '[0, 100000], currency: "$", thousands: ","}',
        "[0, 100], nullable: true}": "[0, 100], percent: true, nullable: true}",
        "2019-12-31]}": '2019-12-31], date: "%d/%m/%Y"}',
        "[0, 40]}": '[0, 40], missing: ["50"], nullable: true}\ncsv: {encoding: cp1252}',
    }.items():
        assert old in told
        told = told.replace(old, new)
    spec.write_text(told)
    ran = dpsynth("release", "spec.yaml", "--strict")
    assert (ran.code, ran.err) == (0, "")
    for counts in steward(tmp_path)["problems"]["columns"].values():
        assert (counts["unparseable"], counts["unlisted"], counts["out of bounds"]) == (0, 0, 0)


FORMS = {  # a cell of each form that advice is given for, under which declaration, and what cures it
    "1,5": ("{type: continuous, bounds: [0, 9]", 'decimal: ","'),
    "1.234.567": ("{type: integer, bounds: [0, 9999999]", 'thousands: "."'),
    "1,234,567.5": ("{type: continuous, bounds: [0, 9999999]", 'thousands: ","'),
    "7/23/2019": (DAYS, 'date: "%m/%d/%Y"'),
    "2019/07/23": (DAYS, 'date: "%Y/%m/%d"'),
    "20190723": (DAYS, 'date: "%Y%m%d"'),
    "23 Jul 2019": (DAYS, 'date: "%d %b %Y"'),
    "Ja": ("{type: boolean", "true: [Ja], false: [Nein]"),
}


@pytest.mark.parametrize("cell", FORMS)
def test_the_advice_for_a_form_is_a_key_that_reads_it(dpsynth, tmp_path, cell):
    declared, cure = FORMS[cell]
    (tmp_path / "t.csv").write_text("x\n" + f'"{cell}"\n' * 50)
    start = "dpsynth: 1\nname: t\ninput: t.csv\noutput: out/t.csv\nprivacy: {epsilon: 1}\n"
    start += "mechanism: {name: marginals}\ncolumns:\n  x: "
    (tmp_path / "spec.yaml").write_text(f"{start}{declared}}}\n")
    ran = dpsynth("check", "spec.yaml", "--data", "--runs", 0, "--json")
    (told,) = ran.json["data"]["warnings"]
    assert re.sub(r"\[.*?\]", "", cure).split(",")[0].strip() in re.sub(r"\[.*?\]", "", told)
    (tmp_path / "spec.yaml").write_text(f"{start}{declared}, {cure}}}\n")
    ran = dpsynth("check", "spec.yaml", "--data", "--runs", 0, "--json")
    assert [one for one in ran.json["data"]["warnings"] if "every cell is at" not in one] == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dead_columns_are_told_with_cause_and_remedy(dpsynth, tmp_path, ending):
    write_pay(tmp_path, ending)
    ran = dpsynth("release", "spec.yaml")
    assert ran.code == 0
    told = ["confidential, for the steward only: much of the data is not as declared."]
    told += [f"  {line}" for line in WARNINGS.values()] + ["  all counts: `problems` in out/pay.audit.json"]
    assert ran.err.splitlines() == told
    problems = steward(tmp_path)["problems"]
    assert problems["confidential"] is True
    assert problems["warnings"] == list(WARNINGS.values())
    assert (problems["rows"], problems["ruined"], problems["not_counted"]) == (ROWS, 0, [])
    assert problems["columns"]["city"]["forms"] == {"encoding": 134}
    assert problems["columns"]["amount"]["unparseable"] == ROWS
    assert dpsynth("check", "spec.yaml", "--data", "--runs", 0, "--json").json["data"] == problems


def test_what_is_much_is_red(dpsynth, tmp_path, monkeypatch):
    import rich.console

    whole = rich.console.Console
    monkeypatch.setattr(rich.console, "Console", lambda **more: whole(**more | {"force_terminal": True}))
    monkeypatch.setenv("TERM", "xterm")
    ran = dpsynth("release", write_pay(tmp_path))
    assert all(f"\x1b[31m  {line}" in ran.err for line in WARNINGS.values())
    lines = (tmp_path / "pay.csv").read_bytes().splitlines()
    few = [lines[0], *[b"1,5,2019-03-01,Paris,3"] * 99, b"x,,2019-03-01,Paris,3", b""]
    (tmp_path / "pay.csv").write_bytes(b"\n".join(few))
    ran = dpsynth("release", "spec.yaml", "--replace")
    assert "1 cell and 0 whole records are not as declared, no more than 5 % of any column" in ran.err
    assert "\x1b[31m" not in ran.err


def test_quiet_says_nothing_and_json_on_standard_output_has_none_of_it(dpsynth, tmp_path):
    spec = write_pay(tmp_path)
    ran = dpsynth("release", spec, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    ran = dpsynth("release", spec, "--json", "--replace")
    assert "problems" not in ran.json
    assert WARNINGS["day"] in ran.err
    ran = dpsynth("release", spec, "-o", "-")
    assert ran.out.startswith("amount,rate,day,city,hours\n")
    assert WARNINGS["day"] in ran.err


JUNK = (b'"$1,234",1.5,zebra,x', b"89%,9e9,a,x", b"too,many,fields,in,this,record", b"NA,,,")


def test_no_public_byte_depends_on_junk_given_the_same_answers(dpsynth, people, tmp_path, monkeypatch):
    """Two tables that differ in junk alone, with the same answers: other counts for the steward, and not a
    byte that is published differs; nor is there a word about junk in what is."""
    people("marginals", rows=60, more="")
    first, shown = released(dpsynth, monkeypatch, tmp_path, None)
    clean = steward(tmp_path, "people")["problems"]
    lines = (tmp_path / "people.csv").read_bytes().splitlines()
    lines[1:21] = JUNK * 5
    (tmp_path / "people.csv").write_bytes(b"\n".join([*lines, b""]))
    _, seen = released(dpsynth, monkeypatch, tmp_path, first.answers)
    assert seen == shown
    junk = steward(tmp_path, "people")["problems"]
    assert (clean["warnings"], clean["ruined"]) == ([], 0)
    assert junk["ruined"] == 5
    assert len(junk["warnings"]) == 4
    assert dpsynth("report", "out/people.audit.json", "--public", "-o", "page.html").code == 0
    assert dpsynth("record", "out/people.audit.json", "--curator", "us").code == 0
    published = [path for path in (tmp_path / "out").iterdir() if path.name != "people.audit.json"]
    words = ("problems", "unparseable", "unlisted", "ruined", "not_counted", "currency sign", "strict")
    for path in (*published, tmp_path / "page.html"):
        text = path.read_bytes().decode("utf-8", "replace").lower()
        assert not [word for word in words if word in text], path.name
    assert dpsynth("verify", "out/people.audit.json").code == 0


@pytest.mark.parametrize("how", ["--strict", "strict: true"])
def test_strict_refuses_before_the_charge(dpsynth, tmp_path, how):
    spec = write_pay(tmp_path)
    assert dpsynth("budget", "grant", "pay", "5").code == 0
    before = Ledger(tmp_path / "ledger.sqlite").log()
    if how != "--strict":
        spec.write_text(spec.read_text() + how + "\n")
    ran = dpsynth("release", spec, *([how] if how == "--strict" else []))
    assert ran.code == 5
    assert ran.out == ""
    dead = [WARNINGS[name] for name in ("amount", "rate", "day", "city")]
    assert ran.err == (
        "Error: strict: more than half of 'amount', 'rate', 'day', 'city' is not as declared.\n"
        + "".join(f"  {line}\n" for line in dead)
        + "Rows were looked at; nothing was charged and nothing was spent. Correct the file or the spec, or "
        "release without --strict and strict: true. This was counted in the real rows: it is confidential, "
        "for the steward only. Do not publish it, nor that it was looked at.\n"
    )
    told = dpsynth("release", spec, "--json", *([how] if how == "--strict" else [])).json
    assert told["confidential"] is True
    assert Ledger(tmp_path / "ledger.sqlite").log() == before
    assert list((tmp_path / "out").iterdir()) == []


def test_strict_lets_others_pass_and_no_public_copy_says_that_it_looked(dpsynth, people, tmp_path):
    spec = people("marginals")
    assert dpsynth("release", spec, "--strict").code == 0
    audit = steward(tmp_path, "people")
    assert "strict" not in audit["spec"]
    assert dpsynth("verify", "out/people.audit.public.json").code == 0
    spec.write_text(spec.read_text() + "strict: sometimes\n")
    ran = dpsynth("release", spec)
    assert ran.code == 2
    assert "strict is sometimes; it must be true or false" in ran.err


def test_a_strict_release_by_groups_and_a_strict_push_are_refused_too(dpsynth, people, visits, tmp_path):  # noqa: F811
    spec = write_pay(tmp_path)
    text = spec.read_text().replace("privacy: {epsilon: 1.0}\n", "")
    groups = text.replace("{name: marginals}", "{name: microaggregation, guarantee: groups, group_size: 5}")
    spec.write_text(groups)
    ran = dpsynth("release", spec, "--strict")
    assert (ran.code, "nothing was charged" in ran.err) == (5, True)
    assert not (tmp_path / "ledger.sqlite").exists() or not Ledger(tmp_path / "ledger.sqlite").log()
    ran = dpsynth("release", spec)
    assert (ran.code, WARNINGS["rate"] in ran.err) == (0, True)
    assert steward(tmp_path)["problems"]["warnings"] == list(WARNINGS.values())

    visits()
    (tmp_path / "day_1.csv").write_text("hour,ward\n" + '"9,5",a\n' * 9)
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    ran = dpsynth("stream", "push", "spec.yaml", "day_1.csv", "--batch-id", "1", "--strict")
    assert ran.code == 5
    assert "numbers with a decimal comma" in ran.err
    assert "The batch was not counted, and nothing more was spent." in ran.err
    assert state_of(tmp_path).pushes == 0


def test_a_push_tells_of_its_batch_and_the_state_and_the_steward_of_all(dpsynth, visits, tmp_path):  # noqa: F811
    visits()
    assert dpsynth("stream", "init", "spec.yaml").code == 0
    assert pushed(dpsynth, 1)["counted"]
    (tmp_path / "day_2.csv").write_text("hour,ward\n" + '"9,5",a\n' * 30 + "9.5,zebra\n" * 10)
    ran = dpsynth("stream", "push", "spec.yaml", "day_2.csv", "--batch-id", "2", "--publish", "--json")
    assert "column 'hour': 75 % of cells (30 of 40) are no numbers" in ran.err
    assert "column 'ward': 25 % of cells (10 of 40) are no listed label and count as missing." in ran.err
    assert "problems" not in ran.json
    assert state_of(tmp_path).problems["columns"]["hour"]["unparseable"] == 30
    assert steward(tmp_path, "visits")["problems"]["rows"] == 80
    public = (tmp_path / "out/visits.audit.public.json").read_text()
    assert "problems" not in public
    ran = dpsynth("stream", "push", "spec.yaml", "day_2.csv", "--batch-id", "2")
    assert ran.err == ""  # counted before: nothing was read


@pytest.mark.parametrize("mechanism", EVERY)
def test_every_mechanism_counts_every_column(dpsynth, people, tmp_path, mechanism):
    more = "strata: group" if mechanism == "lowdim" else ""
    ran = dpsynth("release", people(mechanism, "2", more=more))
    if ran.code == 2 and "takes" in ran.err:
        pytest.skip(f"{mechanism} does not take such a table")
    assert ran.code == 0, ran.err
    problems = steward(tmp_path, "people")["problems"]
    assert problems["not_counted"] == []
    assert (problems["rows"], problems["columns"]["age"]["missing"]) == (300, 32)


@pytest.mark.parametrize(("metrics", "missed"), [("quick", []), ("none", ["age", "score", "group"])])
def test_a_resumed_release_counts_in_its_sample_or_says_that_it_did_not(
    dpsynth, people, tmp_path, monkeypatch, metrics, missed
):
    spec = people("marginals")
    spec.write_text(spec.read_text() + f"evaluate: {{metrics: {metrics}}}\n")

    def full(*words, **more):
        raise OSError(28, "No space left on device", "people.csv")

    with monkeypatch.context() as patched:
        patched.setattr("dpsynth_cli.release.files.write.write_table", full)
        assert dpsynth("release", spec).code == 5
    ran = dpsynth("release", spec, "--resume")
    assert ran.code == 0
    problems = steward(tmp_path, "people")["problems"]
    assert problems["not_counted"] == missed
    assert ("not counted in this run: age, score, group." in ran.err) == bool(missed)
    if not missed:
        assert (problems["rows"], problems["columns"]["age"]["missing"]) == (300, 32)


def test_a_whole_column_at_a_bound_is_told(dpsynth, people, tmp_path):
    spec = people("marginals")
    text = spec.read_text().replace("bounds: [0.0, 1.0]", "bounds: [5.0, 9.0]")
    spec.write_text(text.replace("bounds: [0, 99]", "bounds: [18, 79]"))
    lines = (tmp_path / "people.csv").read_text().splitlines()
    ages = [f"79,{line.split(',', 1)[1]}" for line in lines[1:]]
    (tmp_path / "people.csv").write_text("\n".join([lines[0], *ages]) + "\n")
    ran = dpsynth("release", spec)
    assert "column 'age': every cell is at its upper bound; check the bounds and the unit." in ran.err
    assert "column 'score': 100 % of cells (300 of 300) are out of bounds" in ran.err


def test_an_incomplete_list_of_labels_is_a_note_of_check(dpsynth, people):
    spec = people("marginals")
    said = (
        "group: neither other nor nullable is declared, so a label that is not listed, or a missing one, "
        "counts as the first category. Declare other: LABEL or nullable: true, unless the list is complete."
    )
    check = ("check", spec, "--runs", 0, "--n", 300, "--json")
    assert dpsynth(*check).json["notes"] == [said]
    spec.write_text(spec.read_text().replace('"c,d"]', '"c,d"], nullable: true'))
    assert dpsynth(*check).json["notes"] == []
