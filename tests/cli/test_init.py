"""Claims about `dpsynth init` and `dpsynth mechanisms`."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from dpsynth_cli.cli import init, mechanisms
from dpsynth_cli.draft.columns import _FIND
from dpsynth_cli.draft.draft import draft
from dpsynth_cli.errors import DpsynthError, FileError, UsageError
from dpsynth_cli.mechanisms import registry
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.spec.spec import load_spec
from dpsynth_cli.trusted.rows.header import COST


@dataclass(frozen=True)
class Params:
    depth: int | None = parameter(None, "halvings of the cube", low=1, high=30, auto=True)
    shape: str = parameter("tree", "what to grow", choices=("tree", "bush"))


def mechanism(name: str) -> Mechanism:
    return Mechanism(
        name=name,
        summary=f"the {name} mechanism",
        suits="1-5 columns",
        citation="Nobody [et al.], Nowhere, 2000",
        run=lambda *_: pytest.fail("nothing is run"),
        params=Params,
        stages={"counts": 3.0, "links": 0.5},
    )


TOYS = {name: mechanism(name) for name in ("auto", "marginals", "pmm")}

app = typer.Typer()
app.command("init")(init.command)
app.command("mechanisms")(mechanisms.command)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "mechanisms", lambda: TOYS)
    monkeypatch.setenv("COLUMNS", "100")


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(app, arguments, input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def mistakes(path: str) -> list[str]:
    with pytest.raises(UsageError) as caught:
        load_spec(path, registry=TOYS)
    return caught.value.happened.split("\n")


DRAFT = """\
# Drafted by dpsynth. Types are from the form of the first cells: a look at the rows that tells types only.
# Fill in every "?" from public knowledge, never from the rows; then: dpsynth check specs/trips.yaml
dpsynth: 1
name: trips
input: ../data/trips.csv
output: trips.synthetic.csv
rows: noisy                   # as many as the private total says, or a number
# rows_hint: 10000            # a public guess of the number of rows, if there is one

privacy:
  epsilon: 1.0                # the smaller, the more private
  # delta: 1e-9               # then Gaussian noise: less error with many columns
  neighbours: add_remove      # one person's row is there or not; replace_one: the number of rows is public
  dataset: trips              # whose budget is charged

mechanism:
  name: auto                  # dpsynth mechanisms lists them
  # strata: COLUMN            # a model for each class of this nominal, ordinal or boolean column

# Only the columns that are listed are released, in this order. There are also nullable: true where cells may
# be missing, other: LABEL for what an unlisted label becomes, type: ordinal for labels that have an order.
columns:
  lon: {type: continuous, bounds: [-180, 180], decimals: 2}  # by its name: check it
  "a, b": {type: nominal, categories: ["?", "?"]}  # fill in LABELS
  "no": {type: integer, bounds: ["?", "?"], nullable: true}  # fill in BOUNDS
  # left out: field 4 of the header has no name

# Errors that may be published have to be paid for: this part of epsilon buys distances of the synthetic
# tables from the real ones, with their noise, in the public audit. Without this line none is measured
# publicly, and the release has all of epsilon; dpsynth check says whether the rows are enough for it.
evaluate: {epsilon: 5%}

# sampling: {seed: 7}         # the seed of sampling; noise has none
""".replace("LABELS", _FIND["nominal"]).replace("BOUNDS", _FIND["integer"])


def test_a_draft_from_a_csv_file_word_for_word() -> None:
    Path("data").mkdir()
    Path("specs").mkdir()
    rows = b"1.25,SECRET,3,4\r\n" * 20 + b",SECRET,,4\r\n" * 3
    Path("data/trips.csv").write_bytes(
        b'\xef\xbb\xbflon,"a, b",no,\r\n' + rows.replace(b",SECRET,,4", b"2,SECRET,,4")
    )
    result = run("init", "data/trips.csv", "-o", "specs/trips.yaml")
    assert Path("specs/trips.yaml").read_text(encoding="utf-8") == DRAFT
    assert result.stdout == ""
    assert (
        result.stderr
        == "Wrote specs/trips.yaml: 2 columns to complete, then: dpsynth check specs/trips.yaml\n"
    )


def test_check_says_exactly_what_is_left_to_fill_in() -> None:
    Path("t.csv").write_text("a,b\n3,2.5\n")
    run("init", "t.csv", "-o", "t.yaml")
    number = "is still to be filled in; it must be two numbers, the lower first, such as [0, 1.5]"
    whole = number.replace("two numbers", "two whole numbers within ±2^53").replace("[0, 1.5]", "[0, 120]")
    assert mistakes("t.yaml") == [
        f"t.yaml, line 23: columns.a.bounds {whole}",
        f"t.yaml, line 24: columns.b.bounds {number}",
    ]
    Path("t.yaml").write_text(Path("t.yaml").read_text().replace('["?", "?"]', "[0, 1]"))
    assert load_spec("t.yaml", registry=TOYS).input == "t.csv"


def test_without_a_look_no_row_is_read_and_types_are_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.csv").write_text("a,b\n1,2.5\n")
    monkeypatch.setattr("dpsynth_cli.trusted.rows.look.cells", lambda *_: pytest.fail("a row is looked at"))
    run("init", "t.csv", "-o", "t.yaml", "--no-look")
    assert (
        "# Drafted by dpsynth. Made from its header alone; no row was looked at.\n"
        in Path("t.yaml").read_text()
    )
    assert [mistake.split(";")[0] for mistake in mistakes("t.yaml")] == [
        "t.yaml, line 23: columns.a.type is still to be filled in",
        "t.yaml, line 24: columns.b.type is still to be filled in",
    ]


def test_a_draft_goes_to_standard_output_without_o() -> None:
    Path("t.csv").write_text("a\n")
    result = run("init", "t.csv")
    assert "\ninput: t.csv\n" in result.stdout
    assert "then: dpsynth check SPEC\n" in result.stdout
    assert result.stderr == ""
    assert run("init", "t.csv", "-o", "-").stdout == result.stdout
    assert not Path("-").exists()


def test_standard_input_is_read_as_csv() -> None:
    result = run("init", "-", stdin=b"a,b\n1,2\n")
    assert '\nname: table\ninput: "-"\noutput: table.synthetic.csv\n' in result.stdout


def test_a_gzip_file_and_other_delimiters_are_read() -> None:
    Path("t.csv.gz").write_bytes(gzip.compress(b'"a;x";b,c;d\n1;2;3\n', mtime=0))
    run("init", "t.csv.gz", "-o", "t.yaml")
    text = Path("t.yaml").read_text()
    assert '\ncsv: {delimiter: ";"}\n' in text
    Path("t.yaml").write_text(text.replace('["?", "?"]', "[0, 1]"))
    spec = load_spec("t.yaml", registry=TOYS)
    assert [column.name for column in spec.domain] == ["a;x", "b,c", "d"]
    assert spec.csv.delimiter == ";"


def test_parquet_types_are_taken_from_the_schema_and_no_value_from_the_rows() -> None:
    table = pa.table(
        {
            "x": pa.array([4242.5, 4242.25]),
            "whole": pa.array([4242.0, None]),
            "n": pa.array([4242, 1], pa.int16()),
            "money": pa.array([4242, 1], pa.decimal128(9, 2)),
            "flag": pa.array([True, False]),
            "day": pa.array([4242, 1], pa.date32()),
            "at": pa.array([4242, 1], pa.timestamp("ms")),
            "word": pa.array(["SECRET", "SECRET"]),
            "code": pa.array(["SECRET", None]).dictionary_encode(),
            "nested": pa.array([["SECRET"], []]),
        }
    )
    Path("parts").mkdir()
    pq.write_table(table, "t.parquet")
    pq.write_table(table, "parts/0.parquet")
    drafts = [run("init", "t.parquet").stdout, run("init", "parts").stdout]
    for made in drafts:
        lines = made.partition("\ncolumns:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split("  # ")[0] for line in lines[:-1]] == [
            '  x: {type: continuous, bounds: ["?", "?"], decimals: 2}',
            '  whole: {type: integer, bounds: ["?", "?"]}',
            '  "n": {type: integer, bounds: ["?", "?"]}',
            '  money: {type: continuous, bounds: ["?", "?"], decimals: 2}',
            "  flag: {type: boolean}",
            '  day: {type: date, bounds: ["?", "?"]}',
            '  at: {type: datetime, bounds: ["?", "?"]}',
            '  word: {type: nominal, categories: ["?", "?"]}',
            '  code: {type: nominal, categories: ["?", "?"]}',
        ]
        assert lines[-1] == "  # left out: nested has type list<element: string>"
        assert "SECRET" not in made
        assert "4242" not in made
    assert "\noutput: t.synthetic.parquet\n" in drafts[0]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12),
        min_size=2,
        max_size=5,
        unique=True,
    )
)
@example(["null", "~", "a: b", "- x", "# y"])
@example(["a;b", ";;;;", "||", "\u00a0"])
@example(["{", "%", "'", '"', "\\"])
def test_every_name_comes_through_the_draft_as_it_was(names: list[str]) -> None:
    line = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    Path("t.csv").write_text(line + "\n", encoding="utf-8")
    Path("t.yaml").write_text(
        draft("t.csv", "t.yaml", header=True, rows=False)
        .text.replace('type: "?"', "type: continuous")
        .replace('["?", "?"]', "[0, 1]")
    )
    spec = load_spec("t.yaml", registry=TOYS)
    assert spec.csv.delimiter == ","
    assert [column.name for column in spec.domain] == names


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.sampled_from(["t.csv", "t.csv.gz", "t.parquet"]))
def test_any_bytes_give_a_draft_or_an_error_of_ours(content: bytes, name: str) -> None:
    Path(name).write_bytes(content)
    try:
        made = draft(name)
    except DpsynthError as error:
        assert str(error)  # noqa: PT017
    else:
        assert made.text.startswith("# Drafted")


def test_a_file_is_not_overwritten_unless_forced() -> None:
    Path("t.csv").write_text("a\n")
    Path("t.yaml").write_text("mine")
    with pytest.raises(UsageError) as caught:
        run("init", "t.csv", "-o", "t.yaml")
    assert str(caught.value) == (
        "t.yaml is already there.\nNothing was spent. Choose another name, or overwrite it with --force."
    )
    assert Path("t.yaml").read_text() == "mine"
    run("init", "t.csv", "-o", "t.yaml", "--force")
    assert Path("t.yaml").read_text().startswith("# Drafted")


def test_a_first_row_of_data_is_not_taken_for_a_header() -> None:
    Path("t.csv").write_text("39,State-gov,1999-12-31\n")
    with pytest.raises(UsageError) as caught:
        run("init", "t.csv")
    assert str(caught.value) == (
        "The first line of t.csv does not look like a header: a name in it is a number or a date.\n"
        "No row was read and nothing was spent. Add a header line; or, if it is one, say so with --header."
    )
    Path("t.csv").write_text("0,1,label\n")
    assert '"0": {type' in run("init", "t.csv", "--header").stdout


def test_a_first_row_of_labels_is_not_taken_for_a_header_and_not_repeated() -> None:
    Path("t.csv").write_text("anna,f,berlin\notto,m,berlin\neva,f,bonn\n")
    with pytest.raises(UsageError) as caught:
        run("init", "t.csv")
    assert str(caught.value) == (
        "The first line of t.csv does not look like a header: most names in it are values of their columns.\n"
        "Rows were looked at; nothing was spent. Add a header line; or, if it is one, say so with --header."
    )
    assert "  anna: {type" in run("init", "t.csv", "--header").stdout
    Path("t.csv").write_text("no,yes,no\nno,yes,yes\n")
    with pytest.raises(FileError) as twice:
        run("init", "t.csv")
    assert "fields 1 and 3" in str(twice.value)
    assert "no," not in str(twice.value)


def test_a_few_names_may_be_values_of_their_columns() -> None:
    Path("t.csv").write_text("person,age,Python,R\np1,30,Python,\np2,31,,\np3,32,Python,\n")
    assert "  Python: {type" in run("init", "t.csv").stdout


def test_without_a_look_parquet_has_the_types_of_its_schema_and_room_for_missing_cells() -> None:
    schema = pa.schema(
        [
            pa.field("x", pa.float64()),
            pa.field("word", pa.string()),
            pa.field("n", pa.int16()),
            pa.field("sure", pa.int16(), nullable=False),
        ]
    )
    pq.write_table(pa.table({"x": [1.5], "word": ["a"], "n": [1], "sure": [1]}, schema), "t.parquet")
    lines = run("init", "t.parquet", "--no-look").stdout.partition("\ncolumns:\n")[2].splitlines()
    assert [line.split("  # ")[0] for line in lines[:4]] == [
        '  x: {type: continuous, bounds: ["?", "?"], nullable: true}',
        '  word: {type: nominal, categories: ["?", "?"], nullable: true}',
        '  "n": {type: integer, bounds: ["?", "?"], nullable: true}',
        '  sure: {type: integer, bounds: ["?", "?"]}',
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("no.csv", None, "no.csv cannot be read: No such file or directory."),
        ("no.parquet", None, "no.parquet cannot be read: No such file or directory."),
        ("t.csv", b"", "The first line of t.csv is empty; it must name the columns."),
        ("t.csv", b"\n1,2\n", "The first line of t.csv is empty; it must name the columns."),
        ("t.csv", b"a,,b,a\n", "t.csv cannot be described: fields 1 and 4 of its header have the same name."),
        ("t.csv", b",,\n", "t.csv has no column that can be released."),
        ("t.csv", b"a,b\x00\n", "The header of t.csv has a name with a control character in it."),
        ("t.csv", b"a" * 1_000_001, "The first line of t.csv is longer than 1 MB, so it is no header."),
        ("t.csv.gz", b"a,b\n", "t.csv.gz is not a whole gzip file."),
        ("t.csv.gz", gzip.compress(b"a,b" * 99, mtime=0)[:20], "t.csv.gz is not a whole gzip file."),
        ("t.parquet", b"a,b\n", "t.parquet is not a Parquet file."),
        ("t.parquet", b"PAR1" + b"x" * 99 + b"PAR1", "t.parquet is not a Parquet file."),
    ],
)
def test_a_file_without_a_header_is_refused(name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(FileError) as caught:
        run("init", name)
    assert str(caught.value) == f"{said}\n{COST}"


def test_other_files_and_places_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        run("init", "t.xlsx")
    assert str(caught.value) == (
        f"t.xlsx is neither .csv, .csv.gz nor .parquet.\n{COST} "
        "Name a file that is, a folder of Parquet files, or - for CSV on standard input."
    )
    Path("empty").mkdir()
    with pytest.raises(FileError, match=r"^The folder empty has no \.parquet file\.\n"):
        draft("empty")
    Path("t.csv").write_text("a\n")
    with pytest.raises(FileError, match=r"^no/t\.yaml cannot be written: No such file or directory\.\n"):
        run("init", "t.csv", "-o", "no/t.yaml")
    with pytest.raises(UsageError, match=r"^The name of the file is not UTF-8\.\n"):
        draft("\udcff.csv")


# --- dpsynth mechanisms ---------------------------------------------------------------------------------


def test_the_list_names_each_mechanism_what_for_and_what_it_does() -> None:
    lines = run("mechanisms").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines if "mechanism" in line] == [
        "auto",
        "marginals",
        "pmm",
        lines[-1],
    ]
    assert any(line.split() == ["pmm", "1-5", "columns", "the", "pmm", "mechanism"] for line in lines)
    assert lines[-1] == "dpsynth mechanisms NAME shows the parameters of one."


def test_one_mechanism_is_shown_with_ranges_stages_and_citation() -> None:
    lines = [" ".join(line.split()) for line in run("mechanisms", "pmm").stdout.splitlines()]
    assert lines[:2] == ["pmm: the pmm mechanism", "For 1-5 columns."]
    assert "depth auto a whole number from 1 to 30, or auto halvings of the cube" in lines
    assert "shape tree tree, bush what to grow" in lines
    assert "counts 3" in lines
    assert "links 0.5" in lines
    assert lines[-1] == "Nobody [et al.], Nowhere, 2000"


def test_json_is_one_object_with_everything() -> None:
    one = json.loads(run("mechanisms", "pmm", "--json").stdout)
    depth: dict[str, Any] = {"name": "depth", "default": None, "help": "halvings of the cube", "choices": []}
    assert one["parameters"][0] == depth | {
        "low": 1,
        "high": 30,
        "whole": True,
        "auto": True,
        "structure": None,
    }
    assert one["stages"] == {"counts": 3.0, "links": 0.5}
    everything = json.loads(run("mechanisms", "--json").stdout)
    assert [mechanism["name"] for mechanism in everything["mechanisms"]] == ["auto", "marginals", "pmm"]
    assert everything["mechanisms"][2] == one


def test_an_unknown_mechanism_is_a_usage_error_with_the_nearest_one() -> None:
    with pytest.raises(UsageError) as caught:
        run("mechanisms", "marginal")
    assert str(caught.value) == (
        "There is no mechanism marginal (did you mean marginals?).\n"
        "Nothing was read and nothing was spent. The mechanisms are auto, marginals, pmm."
    )
