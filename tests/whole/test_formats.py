"""Files as people have them: German, American and Excel-made ones are read right, and come out alike."""

from __future__ import annotations

import csv
import io
import json
import uuid
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 600
HEAD = """\
dpsynth: 1
name: people
input: people.{ending}
output: out/people.csv
rows: {rows}
privacy: {{epsilon: 1000000, neighbours: replace_one}}
mechanism: {{name: marginals}}
evaluate: {{metrics: none}}
"""
GERMAN = """\
csv: {delimiter: ";", encoding: cp1252}
columns:
  Gehalt: {type: continuous, bounds: [0, 9999.99], decimals: 2, decimal: ",", thousands: "."}
  Betrag: {type: integer, bounds: [-9000, 9000], thousands: ".", currency: "1 €"}
  Geboren: {type: date, bounds: [1950-01-01, 2010-12-31], date: "%d.%m.%Y"}
  "Größe": {type: ordinal, categories: [klein, groß]}
  Aktiv: {type: boolean, true: [Ja], false: [Nein], missing: [k.A.], nullable: true}
"""
AMERICAN = """\
columns:
  pay: {type: integer, bounds: [0, 99999], currency: "$", thousands: ","}
  debt: {type: continuous, bounds: [-999.99, 0], decimals: 2, currency: "$", thousands: ","}
  rate: {type: continuous, bounds: [0, 100], decimals: 1, percent: true}
  seen: {type: datetime, bounds: ["2019-01-01 00:00:00", "2019-12-31 23:59:59"], date: "%m/%d/%Y %I:%M %p"}
  score: {type: integer, bounds: [0, 50], missing: ["-9"], nullable: true}
"""


def grouped(number: int, sign: str) -> str:
    return f"{number:,}".replace(",", sign)


def german() -> list[list[str]]:
    rows = []
    for i in range(ROWS):
        pay = 1000 + 37 * (i % 11)
        rows.append(
            [
                f"{grouped(pay, '.')},{(i % 4) * 25:02}",
                f"{grouped(-1234 * (i % 7), '.')} €",
                f"{1 + i % 28:02}.{1 + i % 12:02}.{1960 + i % 40}",
                "groß" if i % 3 else "klein",
                "k.A." if i % 10 == 0 else "Ja" if i % 2 else "Nein",
            ]
        )
    return rows


def american() -> list[list[str]]:
    return [
        [
            f"${13_520 + i % 9:,}",
            f"-${(i % 5) * 1.25:.2f}" if i % 5 else "$0.00",
            f"{(i % 90) + 0.3:.1f}%",
            f"{1 + i % 12:02}/{1 + i % 28:02}/2019 {1 + i % 12:02}:{i % 60:02} {'PM' if i % 2 else 'AM'}",
            "-9" if i % 6 == 0 else str(i % 51),
        ]
        for i in range(ROWS)
    ]


def write(
    path: Path, names: list[str], rows: list[list[str]], delimiter: str, encoding: str, first=""
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows([names, *rows])
    path.write_bytes((first + text.getvalue()).encode(encoding))


def made(path: Path, delimiter: str, encoding: str) -> list[list[str]]:
    with open(path, encoding=encoding, newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def one_way(rows: list[list[str]]) -> list[Counter]:
    return [Counter(column) for column in zip(*rows, strict=True)]


def released(dpsynth, tmp_path: Path, columns: str, ending: str = "csv") -> None:
    (tmp_path / "spec.yaml").write_text(HEAD.format(rows=ROWS, ending=ending) + columns)
    dpsynth("budget", "grant", "people", "1e9", "--yes")
    ran = dpsynth("release", "spec.yaml", "--strict")
    assert (ran.code, ran.err) == (0, "")  # nothing is not as declared


GERMAN_NAMES = ["Gehalt", "Betrag", "Geboren", "Größe", "Aktiv"]
US_NAMES = ["pay", "debt", "rate", "seen", "score"]


@pytest.mark.parametrize(
    ("encoding", "first"),
    [("cp1252", ""), ("cp1252", "sep=;\r\n"), ("utf-16", ""), ("utf-8-sig", "sep=;\r\n")],
)
def test_a_german_file_gives_a_german_file(dpsynth, tmp_path, encoding, first):
    """At a large epsilon every column of the release has the counts of the input, in the same cells."""
    write(tmp_path / "people.csv", GERMAN_NAMES, german(), ";", encoding, first)
    released(dpsynth, tmp_path, GERMAN.replace("cp1252", encoding))
    header, *rows = made(tmp_path / "out/people.csv", ";", encoding)
    assert header == GERMAN_NAMES
    assert one_way(rows) == one_way(german())
    assert dpsynth("verify", "out/people.audit.public.json").code == 0
    judged = dpsynth("evaluate", "spec.yaml", "out/people.csv", "--metrics", "marginals", "--json")
    assert judged.code == 0, judged.err
    assert judged.json["metrics"]["marginals"]["synthetic"]["tvd1"]["worst"] == 0


def test_an_american_file_gives_an_american_file(dpsynth, tmp_path):
    write(tmp_path / "people.csv", US_NAMES, american(), ",", "utf-8")
    released(dpsynth, tmp_path, AMERICAN)
    header, *rows = made(tmp_path / "out/people.csv", ",", "utf-8")
    assert header == US_NAMES
    assert one_way(rows) == one_way(american())


def test_excel_unicode_text_with_tabs(dpsynth, tmp_path):
    """What Excel calls Unicode text: UTF-16 with its mark, tabs, CRLF."""
    write(tmp_path / "people.csv", US_NAMES, american(), "\t", "utf-16")
    released(dpsynth, tmp_path, 'csv: {delimiter: "\\t", encoding: utf-16}\n' + AMERICAN)
    raw = (tmp_path / "out/people.csv").read_bytes()
    assert raw[:2] == b"\xff\xfe"
    assert one_way(made(tmp_path / "out/people.csv", "\t", "utf-16")[1:]) == one_way(american())


def test_text_columns_of_parquet_have_formats_too(dpsynth, tmp_path):
    table = dict(zip(US_NAMES, zip(*american(), strict=True), strict=True))
    pq.write_table(
        pa.table({name: list(cells) for name, cells in table.items()}), tmp_path / "people.parquet"
    )
    released(dpsynth, tmp_path, AMERICAN, "parquet")
    assert one_way(made(tmp_path / "out/people.csv", ",", "utf-8")[1:]) == one_way(american())


def test_a_mark_of_missing_is_one_in_numbers_of_parquet_too(dpsynth, tmp_path):
    numbers = [-9 if i % 6 == 0 else i % 51 for i in range(ROWS)]
    pq.write_table(pa.table({"score": numbers}), tmp_path / "people.parquet")
    score = 'columns:\n  score: {type: integer, bounds: [0, 50], missing: ["-9"], nullable: true}\n'
    released(dpsynth, tmp_path, score, "parquet")
    found = Counter(row[0] for row in made(tmp_path / "out/people.csv", ",", "utf-8")[1:])
    assert found == Counter(map(str, numbers))


def test_a_draft_says_how_a_german_file_is_written(dpsynth, tmp_path):
    """Only bounds and categories are left to fill in; what is drafted reads every cell."""
    rows = [[cell.replace("k.A.", "") for cell in row] for row in german()]
    write(tmp_path / "people.csv", GERMAN_NAMES, rows, ";", "cp1252", "sep=;\r\n")
    assert dpsynth("init", "people.csv", "-o", "spec.yaml").code == 0
    drafted = (tmp_path / "spec.yaml").read_text()
    assert 'csv: {delimiter: ";", encoding: cp1252}' in drafted
    for bounds, public in {
        'Gehalt: {type: continuous, bounds: ["?", "?"]': "Gehalt: {type: continuous, bounds: [0, 9999.99]",
        'Betrag: {type: integer, bounds: ["?", "?"]': "Betrag: {type: integer, bounds: [-9000, 9000]",
        'Geboren: {type: date, bounds: ["?", "?"]': "Geboren: {type: date, bounds: [1950-01-01, 2010-12-31]",
        'categories: ["?", "?"]': "categories: [klein, groß]",
    }.items():
        assert bounds in drafted
        drafted = drafted.replace(bounds, public)
    for key in ('date: "%d.%m.%Y"', 'currency: "1 €"', "decimals: 2", "true: [Ja], false: [Nein]"):
        assert key in drafted
    assert 'decimal: ",", thousands: "."' in drafted
    (tmp_path / "spec.yaml").write_text(drafted)
    ran = dpsynth("check", "spec.yaml", "--data", "--runs", 0, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["data"]["warnings"] == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
def test_a_draft_without_a_look_knows_the_encoding_of_the_header(dpsynth, tmp_path, encoding):
    write(tmp_path / "people.csv", GERMAN_NAMES, american(), "\t", encoding)
    assert dpsynth("init", "people.csv", "--no-look", "-o", "spec.yaml").code == 0
    drafted = (tmp_path / "spec.yaml").read_text()
    assert f"encoding: {'cp1252' if encoding == 'latin-1' else encoding}}}" in drafted
    assert '"Größe":' in drafted


def test_canonical_output_is_plain_csv(dpsynth, tmp_path):
    write(tmp_path / "people.csv", GERMAN_NAMES, german(), ";", "cp1252")
    released(dpsynth, tmp_path, GERMAN.replace("cp1252", "cp1252, canonical: true"))
    frame = pd.read_csv(tmp_path / "out/people.csv")
    assert frame["Geboren"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    assert Counter(frame["Betrag"]) == Counter(-1234 * (i % 7) for i in range(ROWS))
    assert frame["Aktiv"].isna().sum() == ROWS // 10
    assert set(frame["Aktiv"].dropna()) == {True, False}
    assert dpsynth("verify", "out/people.audit.public.json").code == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_keys_and_constants_are_in_the_release_and_never_from_the_data(dpsynth, tmp_path, ending):
    lines = ["id,x,land", *(f"SECRET{i},{i % 5},SECRET" for i in range(ROWS))]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    columns = "columns:\n  id: {key: true}\n  x: {type: integer, bounds: [0, 4]}\n  land: {constant: DE}\n"
    columns += "  year: {constant: 2026}\n  u: {key: uuid}\n"
    (tmp_path / "spec.yaml").write_text(HEAD.format(rows=ROWS, ending="csv") + columns)
    dpsynth("budget", "grant", "people", "1e9", "--yes")
    assert dpsynth("release", "spec.yaml", "-o", f"out/people.{ending}").code == 0
    path = tmp_path / f"out/people.{ending}"
    frame = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert list(frame) == ["id", "x", "land", "year", "u"]
    assert frame["id"].tolist() == list(range(1, ROWS + 1))
    assert set(frame["land"]) == {"DE"}
    assert set(frame["year"]) == {2026}
    assert frame["u"].nunique() == ROWS
    assert all(uuid.UUID(one).version == 4 for one in frame["u"])
    assert dpsynth("verify", "out/people.audit.public.json").code == 0
    assert b"SECRET" not in path.read_bytes()
    assert dpsynth("record", "out/people.audit.public.json", "-q").code == 0
    fields = json.loads((tmp_path / "out/people.schema.json").read_text())["fields"]
    assert [field["name"] for field in fields] == list(frame)


def test_check_says_columns_that_are_written_alike_once(dpsynth, tmp_path):
    (tmp_path / "people.csv").write_text("x,y,z\n1,2,3\n")
    columns = 'defaults: {missing: ["-9"], nullable: true}\ncolumns:\n  x: {type: integer, bounds: [0, 4]}\n'
    columns += "  y: {type: boolean}\n  z: {type: integer, bounds: [0, 10], step: 5}\n"
    (tmp_path / "spec.yaml").write_text(HEAD.format(rows=ROWS, ending="csv") + columns)
    ran = dpsynth("check", "spec.yaml", "--runs", 0)
    assert ran.code == 0, ran.err
    said = 'note: read and written as declared: x, y (missing: ["-9"]); z (step: 5, missing: ["-9"]).'
    assert said in " ".join(ran.out.split())
