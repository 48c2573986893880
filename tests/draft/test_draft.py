"""Claims about drafts: what a public table tells, what is refused, and what is marked."""

from __future__ import annotations

import gzip
import json
import math
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth_cli.cell_format import CellFormat
from dpsynth_cli.draft.columns import MEANINGS, line_of
from dpsynth_cli.draft.draft import draft
from dpsynth_cli.draft.facts import Facts
from dpsynth_cli.errors import DpsynthError, FileError, UsageError
from dpsynth_cli.spec.spec import load_spec
from dpsynth_cli.trusted.rows.forms import FORMS, OTHERS, Look
from dpsynth_cli.trusted.rows.look import Seen, widest
from dpsynth_cli.trusted.rows.public_table import Range, _add

LAST = "n;x;word;flag;day;at;free\n" + "".join(
    f"{i};{i / 8};{'ab'[i % 2]};yes;2020-01-{i + 1:02};2020-01-01 10:00:{i:02};name {i}\n" for i in range(25)
)
THIS = LAST.replace("2020", "2021") + "99;;SECRET;no;;;\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("last.csv").write_text(LAST)
    Path("this.csv").write_text(THIS)


def lines(*arguments: str, **options) -> list[str]:
    return [line.text for line in draft(*arguments, **options).lines]


def test_a_public_table_gives_bounds_categories_and_types() -> None:
    period = "  # as in last.csv: set it to the period of this table"
    assert lines("this.csv", like="last.csv") == [
        '  "n": {type: integer, bounds: [0, 24]}',
        "  x: {type: continuous, bounds: [0.0, 3.0], decimals: 3}",
        "  word: {type: nominal, categories: [a, b]}",
        '  flag: {type: boolean, true: ["yes"], false: ["no"]}',
        "  day: {type: date, bounds: [2020-01-01, 2020-01-25]}" + period,
        '  at: {type: datetime, bounds: ["2020-01-01T10:00:00", "2020-01-01T10:00:24"]}' + period,
        "  # free: left out; hardly two of its cells are alike: names, keys or free text",
    ]
    Path("spec.yaml").write_text(draft("this.csv", "spec.yaml", like="last.csv").text)
    assert load_spec("spec.yaml").csv.delimiter == ";"


def test_a_public_table_in_parquet_gives_the_same_as_in_csv() -> None:
    table = {"n": [3, None, 7], "x": [0.5, 1.5, None], "word": ["b", "a", None], "flag": [True, False, None]}
    pq.write_table(pa.table(table), "last.parquet")
    assert lines("this.csv", like="last.parquet")[:4] == [
        '  "n": {type: integer, bounds: [3, 7], nullable: true}',
        "  x: {type: continuous, bounds: [0.5, 1.5], nullable: true, decimals: 3}",
        "  word: {type: nominal, categories: [a, b], nullable: true}",
        '  flag: {type: boolean, nullable: true, true: ["yes"], false: ["no"]}',
    ]


def test_ends_and_labels_of_a_public_table_are_those_of_all_its_pieces() -> None:
    number, word = Range(), Range()
    for piece in ([5.5, None], [-3.0], [9.0, math.inf]):
        _add(number, pa.array(piece), widest("x", "continuous"))
    for labels in (["a", " "], ["b", "a"]):
        _add(word, pa.array(labels), widest("w", "nominal"))
    assert (number.lower, number.upper, number.missing) == (-3.0, 9.0, True)
    assert (word.labels, word.missing) == ({"a", "b"}, True)


def test_the_table_itself_and_a_copy_of_it_are_refused_as_public() -> None:
    shutil.copy("this.csv", "copy.csv")
    Path("link.csv").symlink_to("this.csv")
    Path("parts").mkdir()
    pq.write_table(pa.table({"n": [1, 2]}), "parts/0.parquet")
    shutil.copy("parts/0.parquet", "one.parquet")
    for data, like in [("this.csv", "this.csv"), ("this.csv", "copy.csv"), ("link.csv", "this.csv"),
                       ("parts", "one.parquet")]:  # fmt: skip
        with pytest.raises(UsageError) as caught:
            draft(data, like=like)
        assert caught.value.happened == f"--like {like} is the table itself, or a copy of it."
    with pytest.raises(FileError, match=r"^no\.csv cannot be read: No such file or directory\."):
        draft("this.csv", like="no.csv")


def test_a_codebook_goes_before_a_public_table_which_fills_its_gaps() -> None:
    Path("book.csv").write_text("name,type,min,max,label\nn,integer,-5,500,Count\nx,number,,,Share\n")
    made = lines("this.csv", codebook="book.csv", like="last.csv")
    assert made[0] == '  "n": {type: integer, bounds: [-5, 500]}  # Count'
    assert made[1] == "  x: {type: continuous, bounds: [0.0, 3.0], decimals: 3}  # Share"
    Path("book.csv").write_text("name,type\nn,ordinal\nx,boolean\nday,nominal\n")
    made = lines("this.csv", codebook="book.csv", like="last.csv")
    labels = ", ".join(map(str, range(25)))
    assert (
        made[0] == f'  "n": {{type: ordinal, categories: [{labels}]}}'
    )  # its own type, not that of its form
    assert made[1].startswith("  x: {type: boolean")
    assert made[4].startswith("  day: {type: nominal, categories: [2020-01-01, 2020-01-02, ")


def test_nothing_of_the_rows_but_types_is_in_a_draft() -> None:
    rows = "a,b,c\n" + "4711,SECRET,1977-07-07\n" * 30
    Path("t.csv.gz").write_bytes(gzip.compress(rows.encode()))
    text = draft("t.csv.gz").text
    for value in ("4711", "SECRET", "1977", "30"):
        assert value not in text
    other = rows.replace("4711", "815").replace("SECRET", "OTHER").replace("1977-07-07", "2001-02-03")
    Path("t.csv.gz").write_bytes(gzip.compress(other.encode() * 1))
    assert draft("t.csv.gz").text == text


def test_every_form_has_a_meaning_and_a_line() -> None:
    assert set(MEANINGS) == {*FORMS, *OTHERS, "unknown"}
    for form in MEANINGS:
        line = line_of(Seen("column", Look(form)), None)
        assert bool(line.left_out) == bool(MEANINGS[form].why)


def test_a_line_says_how_cells_are_written() -> None:
    days = Look("day", False, format=CellFormat(date="%d/%m/%Y"))
    line = line_of(Seen("joined", days), Facts("joined", "book", "date", "2020-01-01", "2020-12-31"))
    assert line.text == (
        '  joined: {type: date, bounds: [2020-01-01, 2020-12-31], date: "%d/%m/%Y"}'
        "  # check which is first, the day or the month"
    )
    money = Look("number", False, 2, format=CellFormat(decimal=",", thousands=".", currency="1 €"))
    line = line_of(Seen("pay", money), Facts("pay", "book", "continuous", "0", "9999.99"))
    assert line.text == (
        '  pay: {type: continuous, bounds: [0, 9999.99], decimals: 2, decimal: ",", thousands: ".", '
        'currency: "1 €"}'
    )
    off = line_of(Seen("pay", Look("number", False, 1)), Facts("pay", "book", "continuous", "0", "9.99"))
    assert "decimals" not in off.text  # a bound is not on that grid


def test_a_step_is_drafted_unless_the_format_has_no_finer_one() -> None:
    facts = Facts("at", "book", "datetime", "2020-01-01 00:00:00", "2020-12-31 00:00:00")
    for step, drafted in (("1h", True), ("1min", False)):
        moments = Look("moment", False, step=step, format=CellFormat(date="%d.%m.%Y %H:%M"))
        assert (f"step: {step}" in line_of(Seen("at", moments), facts).text) == drafted


def test_bounds_that_everybody_knows_are_remarked() -> None:
    share = Look("number", False, 1, format=CellFormat(percent=True))
    assert line_of(Seen("r1", share), None).text == (
        "  r1: {type: continuous, bounds: [0, 100], decimals: 1, percent: true}  # a percentage: check it"
    )
    assert '["?", "?"]' in line_of(Seen("r1", share), Facts("r1", "book"), strict=True).text
    assert line_of(Seen("year", Look("integer", False)), None).text.endswith(
        "# by its name: narrow it to the years that this table is about"
    )


def test_what_a_public_table_hardly_tells_of_this_one_is_remarked() -> None:
    rows = "".join(f"2019,{k % 2 + 1},N{k % 600:03}\n" for k in range(1800))
    Path("flown.csv").write_text("year,month,tail\n" + rows)
    Path("fly.csv").write_text("year,month,tail\n" + rows.replace("2019", "2020"))
    year, month, tail = lines("fly.csv", like="flown.csv")
    period = "  # as in flown.csv: set it to the period of this table"
    assert year == "  year: {type: integer, bounds: [2019, 2019]}" + period
    assert month == "  month: {type: integer, bounds: [1, 2]}" + period
    assert tail.endswith("  # 600 labels: delete the line if they are names or keys")


def test_a_type_that_the_file_cannot_have_is_left_out_with_both() -> None:
    seen = Seen("day", Look("integer"), pa.int64())
    line = line_of(seen, Facts("day", "book.json, fields[0]", "date", "2020-01-01", "2020-12-31"))
    assert line.left_out == "book.json, fields[0] says date, but the file has int64"


def test_text_of_strangers_stays_in_its_comment() -> None:
    evil = "x\nprivacy: {epsilon: 99}\r\u2028columns: \x85"
    Path("book.json").write_text(
        json.dumps(
            {
                "columns": {
                    "n": {"sdtype": evil},
                    "x": {"sdtype": "numerical", "computer_representation": "Float"},
                },
                "METADATA_SPEC_VERSION": evil,
            }
        )
    )
    made = draft("this.csv", codebook="book.json")
    assert "# n: left out; its sdtype is x privacy: {epsilon: 99} columns:\n" in made.text
    assert all(
        line.startswith(("  #", "  "))
        for line in made.text.partition("\ncolumns:\n")[2].split("\n\n")[0].split("\n")
    )
    for about in (evil, "\uffff\ufffe"):
        line = line_of(
            Seen("c", Look("integer", False)), Facts("c", "book", "integer", "0", "1", about=about)
        )
        assert "\n" not in line.text
        assert line.text.isprintable()


def test_cells_that_are_not_what_a_source_says_are_remarked() -> None:
    facts = Facts("c", "book", "integer", "0", "9")
    line = line_of(Seen("c", Look("label", False)), facts)
    assert line.text.endswith(
        "bounds: [0, 9]}  # many cells are no integer: dpsynth check --data counts them"
    )
    assert line_of(Seen("c", Look("text", False)), facts).left_out == (
        "book says integer, but its cells are not written so"
    )


def test_a_category_for_the_rest_takes_unlisted_labels() -> None:
    facts = Facts("c", "book", "nominal", categories=("Arden", "Other"), nullable=False)
    assert "categories: [Arden, Other], other: Other}" in line_of(Seen("c", Look("label")), facts).text


@pytest.mark.parametrize(
    ("form", "lower", "upper", "expected"),
    [
        ("integer", "0", "10", "{type: integer, bounds: [0, 10]}"),
        ("integer", "0", "10.5", "{type: continuous, bounds: [0, 10.5]}"),
        ("number", "0", "10", "{type: continuous, bounds: [0, 10]}"),
        ("label", "2020-01-01", "2020-12-31", "{type: date, bounds: [2020-01-01, 2020-12-31]}"),
        (
            "moment",
            "2020-01-01",
            "2020-12-31",
            '{type: datetime, bounds: ["2020-01-01T00:00:00", "2020-12-31T23:59:59"]}',
        ),
        ("unknown", "0", "10", '{type: "?", bounds: [0, 10]}'),
        ("integer", "0", None, '{type: integer, bounds: [0, "?"]}'),
    ],
)
def test_bounds_without_a_type_leave_it_to_the_form(form: str, lower: str, upper: str, expected: str) -> None:
    line = line_of(Seen("c", Look(form, False)), Facts("c", "book", lower=lower, upper=upper))
    assert line.text.partition(": ")[2].partition("  # ")[0] == expected
    assert bool(line.missing) == ("?" in expected)


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=9)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), NAMES)
def test_every_label_comes_through_the_draft_as_it_was(labels: list[str], about: str) -> None:
    facts = Facts("c", "book", "nominal", categories=tuple(labels), about=about, nullable=False)
    line = line_of(Seen("c", Look("label")), facts)
    Path("spec.yaml").write_text(
        "dpsynth: 1\nname: t\ninput: t.csv\noutput: o.csv\nprivacy: {epsilon: 1}\nmechanism: {name: joint}\n"
        f"columns:\n{line.text}\n  x: {{type: boolean}}\n",
        encoding="utf-8",
    )
    assert load_spec("spec.yaml").domain["c"].categories == tuple(labels)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80), st.booleans())
def test_any_rows_give_a_draft_or_an_error_of_ours(content: bytes, public: bool) -> None:
    Path("t.csv").write_bytes(b"a,b\n" + content)
    try:
        made = draft("this.csv", like="t.csv") if public else draft("t.csv")
    except DpsynthError as error:
        assert str(error)  # noqa: PT017
    else:
        assert made.text
