"""Keys that say how cells are written, grids, and columns that are declared together."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpsynth_cli.cell_format import CellFormat
from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.errors import FileError
from dpsynth_cli.fillers import Filler
from dpsynth_cli.spec.schema import json_schema
from dpsynth_cli.spec.spec import from_document
from tests.spec.test_spec import SMALL, TOY, load, refusal


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def of(columns: str, more: str = "") -> str:
    return SMALL.replace("  x: {type: boolean}\n", columns) + more


def domain(columns: str, more: str = "") -> Domain:
    """The columns of a spec; its effective document says the same, and an editor takes the text."""
    text = of(columns, more)
    spec = load(text)
    assert from_document(spec.effective, registry=TOY) == spec
    if not any(key in text for key in ("true:", "date")):  # YAML 1.1 makes other types of these
        jsonschema.validate(yaml.load(text, yaml.CSafeLoader), json_schema(TOY))
    return spec.domain


def mistakes(columns: str, more: str = "") -> list[str]:
    return [line.partition(": ")[2] for line in refusal(of(columns, more))]


def test_formats_are_part_of_a_column():
    found = domain(
        '  pay: {type: continuous, bounds: [0, 9], decimals: 2, decimal: ",", currency: "1 €"}\n'
        '  day: {type: date, bounds: [2019-01-01, 2019-12-31], date: "%d/%m/%Y", step: 7d}\n'
        '  at: {type: datetime, bounds: ["2019-01-01 00:00", "2019-12-31 23:59"], step: 15min}\n'
        '  yes: {type: boolean, true: [Ja, J], false: [Nein], missing: ["", NA]}\n'
        "  sex: {type: nominal, categories: [1, 2], labels: {1: male, 2: female}}\n"
        '  n: {type: integer, bounds: [0, 100], step: 5, thousands: ".", missing: ["-9"]}\n'
    )
    rate = domain("  rate: {type: continuous, bounds: [0, 100], percent: true, scale: asinh}\n")["rate"]
    assert (rate.scale, rate.format.percent) == ("asinh", True)
    assert found["pay"].format == CellFormat(decimal=",", currency="1 €")
    assert (found["pay"].size, found["pay"].decimals) == (901, 2)
    assert (found["day"].step, found["day"].format.date) == (7, "%d/%m/%Y")
    assert found["at"].unit == 900_000_000
    assert found["yes"].format == CellFormat(true=("Ja", "J"), false=("Nein",), missing=("", "NA"))
    assert found["sex"].labels == ("male", "female")
    assert found["n"] == Column("n", "integer", 0, 100, step=Fraction(5),
                                format=CellFormat(decimal=",", thousands=".", missing=("-9",)))  # fmt: skip


def test_csv_has_an_encoding():
    assert load(
        of("  x: {type: boolean}\n", "csv: {encoding: latin-1, canonical: true}\n")
    ).csv == CsvOptions(encoding="latin-1", canonical=True)


X = "  x: {{type: continuous, bounds: [0, 10], {}}}\n"
WRONG = {
    X.format('decimal: ";"'): ('columns.x.decimal is ";"; it must be one of ".", ","'),
    X.format('thousands: ",", decimal: ","'): (
        'columns.x.thousands is ",", which is the decimal sign; they must differ'
    ),
    X.format("percent: true, currency: EUR"): (
        "columns.x.percent is true, and there is a currency; it must be one of them"
    ),
    X.format("step: 0"): (
        "columns.x.step is 0; it must be a positive number such as 0.01 or 5, private or any"
    ),
    X.format("step: 0.3"): ("columns.x.step does not fit the bounds: 10 is not a multiple of it"),
    X.format("step: 1e-9"): (
        "columns.x.step gives 10,000,000,001 values; there may be 1,073,741,824: widen it or leave it out"
    ),
    X.format("step: 0.1, decimals: 1"): ("columns.x.decimals is stated beside step; state one of them"),
    X.format("scale: log"): (
        "columns.x.scale is log, which needs a lower bound above 0; for other bounds there is asinh"
    ),
    X.format("scale: asinh, decimals: 1"): (
        "columns.x.scale is stated beside step or decimals, which keep every value; state one of them"
    ),
    X.format("date: '%d/%m/%Y'"): (
        'columns.x.date is "%d/%m/%Y"; it must be left out: columns of type date and datetime '
        "have it, continuous has not"
    ),
    '  x: {type: date, bounds: [2019-01-01, 2019-12-31], date: "%d/%m"}\n': (
        "columns.x.date is %d/%m, where it must have a year (%Y or %y), once; it must be text "
        "such as %d/%m/%Y, of %d %m %b %B %Y %y %H %I %p %M %S %f %z and signs between them"
    ),
    '  x: {type: date, bounds: [1900-01-01, 2019-12-31], date: "%d/%m/%y"}\n': (
        "columns.x.date has %y, which is 1969 to 2068; the bounds must lie there"
    ),
    "  x: {type: date, bounds: [2019-01-01, 2019-12-31], step: 1h}\n": (
        "columns.x.step is 1h; it must be whole days such as 1d or 7d"
    ),
    "  x: {type: boolean, true: [Ja]}\n": (
        "columns.x.true is stated without the other; state true and false"
    ),
    "  x: {type: boolean, true: [Ja], false: [ja]}\n": (
        "columns.x.true and false share a text; each must mean one thing"
    ),
    "  x: {type: nominal, categories: [a, NA], missing: [NA]}\n": (
        "columns.x.missing lists NA, which is a value of the column too"
    ),
    "  x: {type: nominal, categories: [a], labels: {b: B}}\n": (
        "columns.x.labels names b, which is not one of the categories"
    ),
    "  x: {type: nominal, categories: {file: none.txt}}\n": (
        "columns.x.categories names the file none.txt, which cannot be read: no such file or "
        "directory; it must be {file: labels.txt} with a label a line, {from: 1, to: 12}, or a"
        " list such as [low, mid, high]"
    ),
    "  x: {type: nominal, categories: {from: 5, to: 1}}\n": (
        "columns.x.categories is {from: 5, to: 1}; it must be {file: labels.txt} with a label "
        "a line, {from: 1, to: 12}, or a list such as [low, mid, high]"
    ),
}


@pytest.mark.parametrize("columns", WRONG)
def test_what_does_not_go_together_is_said_in_one_line(columns):
    assert mistakes(columns) == [WRONG[columns]]


def test_categories_from_a_file_beside_the_spec_or_in_a_row(tmp_path):
    (tmp_path / "airports.txt").write_text("\ufeffEWR\r\nJFK\r\n\r\nLGA\r\n", encoding="utf-8")
    found = domain(
        "  a: {type: nominal, categories: {file: airports.txt}}\n"
        "  m: {type: ordinal, categories: {from: 1, to: 12}}\n"
        "  z: {type: nominal, categories: {from: 08, to: 10}}\n"
    )
    assert found["a"].categories == ("EWR", "JFK", "LGA")
    assert found["m"].categories == tuple(map(str, range(1, 13)))
    assert found["z"].categories == ("08", "09", "10")
    (tmp_path / "twice.txt").write_text("a\na\n")
    (told,) = mistakes("  a: {type: nominal, categories: {file: twice.txt}}\n")
    assert told.startswith("columns.a.categories names the file twice.txt, which has a twice; it must be")


def test_defaults_are_for_columns_that_can_have_them():
    found = domain(
        "  x: {type: continuous, bounds: [0, 9]}\n"
        "  y: {type: integer, bounds: [0, 9], decimal: '.', nullable: false}\n"
        "  s: {type: nominal, categories: [a]}\n",
        'defaults: {decimal: ",", nullable: true, missing: [NA]}\n',
    )
    assert [column.format.decimal for column in found] == [",", ".", "."]
    assert [column.nullable for column in found] == [True, False, True]
    assert [column.format.missing for column in found] == [("NA",)] * 3


def test_a_mistake_in_defaults_is_one_mistake():
    columns = "".join(f"  x{i}: {{type: continuous, bounds: [0, 9]}}\n" for i in range(5))
    assert mistakes(columns, "defaults: {decimal: x}\n") == [
        'columns.x0.decimal is x; it must be one of ".", ","'
    ]
    (told,) = mistakes(columns, "defaults: {decimals: 1, decimel: x}\n")
    assert told.startswith("defaults.decimel is not a known key (did you mean decimal?)")


def test_a_pattern_stands_for_the_columns_of_the_header(tmp_path):
    (tmp_path / "t.csv").write_text("id,q1,q10,q2,other q,q3\n")
    found = domain(
        "  id: {type: integer, bounds: [0, 9]}\n"
        '  "q*": {type: ordinal, categories: {from: 1, to: 5}}\n'
        "  q10: {type: boolean}\n"
        "  q3: {drop: true}\n"
    )
    assert [(column.name, column.type) for column in found] == [
        ("id", "integer"), ("q1", "ordinal"), ("q2", "ordinal"), ("q10", "boolean")
    ]  # fmt: skip
    pq.write_table(pa.table({"a_1": [1], "b_1": [1], "a_2": [1]}), tmp_path / "t.parquet")
    spec = load(of('  "a_*": {type: boolean}\n').replace("t.csv", "t.parquet"))
    assert [column.name for column in spec.domain] == ["a_1", "a_2"]


def test_a_range_of_names_needs_no_file():
    found = domain('  "q{08..10}": {type: boolean}\n')
    assert [column.name for column in found] == ["q08", "q09", "q10"]


def test_a_pattern_without_a_column_is_a_mistake(tmp_path):
    with pytest.raises(FileError):
        load(of('  "q*": {type: boolean}\n'))
    (tmp_path / "t.csv").write_text("a,b\n")
    assert mistakes('  "q*": {type: boolean}\n')[0] == (
        'columns."q*" is the name of no column of the input; for columns without a file there is q{1..20}'
    )
    (tmp_path / "t.csv").write_text("a,q*,qq\n")  # a column that has this very name
    assert [column.name for column in load(of('  "q*": {type: boolean}\n')).domain] == ["q*"]


def test_keys_and_constants_are_filled_in_and_not_modelled():
    text = of(
        "  id: {key: true}\n  x: {type: boolean}\n  land: {constant: DE}\n"
        "  y: {type: boolean}\n  u: {key: uuid}\n"
    )
    spec = load(text)
    assert [column.name for column in spec.domain] == ["x", "y"]
    assert spec.fillers == (
        Filler("id", 0, key="sequence"),
        Filler("land", 1, constant="DE"),
        Filler("u", 2, key="uuid"),
    )
    assert [column["name"] for column in spec.effective["columns"]] == ["id", "x", "land", "y", "u"]
    assert from_document(spec.effective, registry=TOY) == spec
    jsonschema.validate(yaml.load(text, yaml.CSafeLoader), json_schema(TOY))


def test_a_key_has_no_other_keys_and_needs_a_column_beside_it():
    assert mistakes("  x: {type: boolean}\n  id: {key: true, type: integer}\n") == [
        "columns.id.type is not a known key; the keys here are key"
    ]
    assert mistakes("  x: {type: boolean}\n  id: {key: random}\n") == [
        "columns.id.key is random; it must be true, for 1, 2, 3, ..., or uuid"
    ]
    assert mistakes("  id: {key: true}\n") == ["columns has none with a type; there must be one to release"]


def test_a_label_that_the_encoding_cannot_write_is_a_mistake():
    columns = "  x: {type: nominal, categories: [Köln, Łódź]}\n"
    assert mistakes(columns, "csv: {encoding: cp1252}\n") == [
        "csv has encoding cp1252, which cannot write Łódź"
    ]
    domain(columns, "csv: {encoding: cp1250}\n")
    domain(columns, "csv: {encoding: cp1252, canonical: true}\n")
