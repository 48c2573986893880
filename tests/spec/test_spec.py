"""Claims about the spec: what is accepted, what it means, and every refusal word for word."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column, CsvOptions, Domain
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.evaluate.metrics.names import QUICK
from dpsynth_cli.hashing import canonical
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.numbers import exact
from dpsynth_cli.spec import schema as spec_schema
from dpsynth_cli.spec import yaml_nodes
from dpsynth_cli.spec.spec import Privacy, Spec, from_document, load_spec, public_document
from dpsynth_cli.spec.yaml_nodes import Items, Keys, Node, Place, Scalar, parse

CONFIGS = Path(__file__).parents[2] / "configs"


@dataclass(frozen=True)
class Params:
    depth: int | None = parameter(None, "halvings", low=1, high=30, auto=True)
    shape: str = parameter("tree", "what to grow", choices=("tree", "bush"))
    clip: float = parameter(1.0, "row norm", low=0.5, whole=False)
    steps: int = parameter(3, "how often", high=9)


def fits(domain: Domain, params: Any) -> list[str]:
    return [] if len(domain.modelled) <= 6 else ["toy takes 1 to 6 columns"]


TOY = {
    "toy": Mechanism(
        name="toy",
        summary="a toy",
        suits="tests",
        citation="nobody, nowhere",
        run=lambda *_: pytest.fail("a spec runs nothing"),
        params=Params,
        stages={"counts": 3.0, "links": 1.0},
        fits=fits,
    )
}

GOOD = """\
dpsynth: 1
name: trips
input: data/trips.csv
output: out/trips.parquet
rows: noisy
rows_hint: 70000
privacy:
  epsilon: 0.1
  delta: 1e-9
  neighbours: replace_one
  dataset: trips-2026
mechanism:
  name: toy
  strata: stage
  split: {counts: 7}
  depth: 12
columns:
  lon:    {type: continuous, bounds: [-74.3, -73.7]}
  age:    {type: integer, bounds: [0, 120], nullable: true}
  stage:  {type: ordinal, categories: [low, 2, NO]}
  sex:    {type: nominal, categories: [F, M], other: M}
  smoker: {type: boolean}
  seen:   {type: date, bounds: [2020-01-01, 2020-12-31]}
csv: {delimiter: ";"}
sampling: {seed: 7}
"""

SMALL = """\
dpsynth: 1
name: t
input: t.csv
output: "-"
privacy: {epsilon: 1}
mechanism: {name: toy}
columns:
  x: {type: boolean}
"""

LOWEST = {"name": "toy", "strata": None, "split": {"counts": 3.0, "links": 1.0}}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str | bytes, *overrides: str, **options: Any) -> Spec:
    Path("spec.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_spec("spec.yaml", overrides, registry=TOY, **options)


def refusal(text: str | bytes, *overrides: str, **options: Any) -> list[str]:
    """The mistakes, one a line."""
    with pytest.raises(UsageError) as caught:
        load(text, *overrides, **options)
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith(caught.value.happened + "\nNothing was read and nothing was spent. ")
    return caught.value.happened.split("\n")


def edited(old: str, new: str, base: str = GOOD) -> str:
    assert base.count(old) == 1, old
    return base.replace(old, new)


# --- what a good spec means -----------------------------------------------------------------------------


def test_a_full_spec_means_what_it_says() -> None:
    spec = load(GOOD)
    assert spec.name == "trips"
    assert (spec.input, spec.output) == ("data/trips.csv", "out/trips.parquet")
    assert spec.rows is None
    assert spec.privacy == Privacy(Fraction(1, 10), Fraction(1, 10**9), "replace_one", "trips-2026")
    assert spec.mechanism is TOY["toy"]
    assert spec.params == Params(depth=12)
    assert spec.split == {"counts": 7.0, "links": 1.0}
    assert spec.domain == Domain(
        (
            Column("lon", "continuous", -74.3, -73.7),
            Column("age", "integer", 0, 120, nullable=True),
            Column("stage", "ordinal", categories=("low", "2", "NO")),
            Column("sex", "nominal", categories=("F", "M"), other="M"),
            Column("smoker", "boolean", categories=("false", "true")),
            Column("seen", "date", 18262, 18627),
        ),
        neighbours="replace_one",
        rows_hint=70000,
        strata="stage",
    )
    assert isinstance(spec.domain["age"].upper, int)
    assert isinstance(spec.domain["lon"].upper, float)
    assert (spec.seed, spec.csv) == (7, CsvOptions(False, ";"))
    assert spec.places["privacy.epsilon"] == "spec.yaml, line 8"


def test_what_is_left_out_has_its_default() -> None:
    spec = load(SMALL)
    assert spec.privacy == Privacy(Fraction(1), None, "add_remove", "t")
    assert spec.params == Params()
    assert spec.effective == {
        "dpsynth": 1,
        "name": "t",
        "input": "t.csv",
        "output": "-",
        "rows": "noisy",
        "rows_hint": None,
        "privacy": {
            "epsilon": "1",
            "delta": None,
            "neighbours": "add_remove",
            "search": None,
            "dataset": "t",
        },
        "mechanism": LOWEST | {"depth": "auto", "shape": "tree", "clip": 1.0, "steps": 3},
        "columns": [{"name": "x", "type": "boolean", "nullable": False}],
        "derive": None,
        "rules": None,
        "csv": {"multiline": False, "delimiter": ","},
        "sampling": {"seed": None},
        "evaluate": {"metrics": list(QUICK), "epsilon": None, "target": None},
        "strict": False,
    }


def test_an_audit_lists_what_is_declared_of_a_column_in_this_order() -> None:
    columns = {column["name"]: list(column) for column in load(GOOD).effective["columns"]}
    assert columns["smoker"] == ["name", "type", "nullable"]
    assert (
        columns["sex"]
        == columns["stage"]
        == ["name", "type", "categories", "candidates", "other", "nullable"]
    )
    assert columns["age"] == columns["lon"] == columns["seen"] == ["name", "type", "bounds", "nullable"]


@pytest.mark.parametrize("text", [GOOD, SMALL])
def test_the_effective_document_gives_the_same_spec_even_with_its_keys_sorted(text: str) -> None:
    spec = load(text)
    recorded = json.loads(canonical(spec.effective))
    assert from_document(recorded, registry=TOY) == spec


def test_a_release_by_groups_records_no_budget_and_no_noisy_total() -> None:
    Path("spec.yaml").write_text(edited("privacy: {epsilon: 1}\n", "", SMALL))
    groups = {"toy": replace(TOY["toy"], private=lambda params: False)}
    spec = load_spec("spec.yaml", registry=groups)
    with_budget = load(SMALL).effective
    assert spec.effective == with_budget | {
        "rows": None,
        "privacy": {"dataset": "t"},
        "mechanism": with_budget["mechanism"] | {"split": {}},
        "evaluate": {"metrics": list(QUICK), "target": None},
    }
    assert from_document(spec.effective, registry=groups) == spec


def test_the_public_document_has_no_path_and_gives_the_same_model() -> None:
    spec = load(GOOD + "strict: true\n")
    assert spec.strict
    public = public_document(spec.effective)
    assert "input" not in public
    assert "strict" not in public  # that it was made would tell that the look at its rows was passed
    assert public["output"] == "trips.parquet"
    again = from_document(public, registry=TOY)
    assert public_document(again.effective) == public
    assert (again.input, again.domain, again.params, again.split) == (
        "",
        spec.domain,
        spec.params,
        spec.split,
    )


@pytest.mark.parametrize(
    "document", [None, [], {}, {"columns": [1]}, {"columns": [{"name": []}]}, {"privacy": float("nan")}]
)
def test_a_recorded_document_that_is_no_spec_is_refused(document: Any) -> None:
    with pytest.raises(UsageError, match="recorded spec"):
        from_document(document, registry=TOY)


def test_a_recorded_document_with_a_column_twice_is_refused() -> None:
    effective = load(SMALL).effective
    with pytest.raises(UsageError, match=r"^the recorded spec: columns is "):
        from_document(effective | {"columns": effective["columns"] * 2}, registry=TOY)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e-9", Fraction(1, 10**9)),
        ("012", Fraction(12)),
        (".5", Fraction(1, 2)),
        ("+2.", Fraction(2)),
        ("'0.30'", Fraction(3, 10)),
        ("1e300", Fraction(10**300)),
    ],
)
def test_epsilon_is_exactly_the_decimal_written(written: str, value: Fraction) -> None:
    spec = load(edited("epsilon: 1", f"epsilon: {written}", SMALL))
    assert spec.privacy.epsilon == value
    assert Fraction(spec.effective["privacy"]["epsilon"]) == value


@given(st.integers(1, 10**60), st.integers(-300, 240))
def test_exact_text_gives_the_fraction_back(mantissa: int, exponent: int) -> None:
    value = mantissa * Fraction(10) ** exponent
    assert Fraction(exact(value)) == value


def test_scalars_are_read_as_yaml_1_2_and_labels_as_written() -> None:
    labels = "[NO, yes, 012, 0x1F, 1.50, 1e3, true, 12:30:45, 2020-01-01, 'null']"
    spec = load(edited("{type: boolean}", f"{{type: nominal, categories: {labels}}}", SMALL))
    assert ", ".join(spec.domain["x"].categories) == labels.replace("'", "").strip("[]")


def test_a_column_may_have_any_name_of_one_line() -> None:
    names = ["no", "1", "größe", "a.b: c", '"q" ']
    columns = {json.dumps(name, ensure_ascii=False): "{type: boolean}" for name in names}
    text = edited("  x: {type: boolean}\n", "".join(f"  {k}: {v}\n" for k, v in columns.items()), SMALL)
    assert [column.name for column in load(text).domain] == names


@pytest.mark.parametrize(
    ("written", "microseconds"),
    [
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01 00:00", 0),
        ("1970-01-01T00:00:00.25Z", 250_000),
        ("1970-01-01T02:30:00+02:30", 0),
        ("1969-12-31T19:00:00-05:00", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("1969-12-31T23:59:59.999999", -1),
    ],
)
def test_times_become_microseconds_in_utc(written: str, microseconds: int) -> None:
    declared = f"{{type: datetime, bounds: [{written}, 1970-01-02T00:00:00]}}"
    column = load(edited("{type: boolean}", declared, SMALL)).domain["x"]
    assert (column.lower, column.upper) == (microseconds, 86400 * 10**6)


def test_a_time_before_the_first_year_is_refused() -> None:
    first = "{type: datetime, bounds: [0001-01-01T00:00+00:01, 1970-01-01T00:00]}"
    assert refusal(edited("{type: boolean}", first, SMALL)) == [
        f"spec.yaml, line 8: columns.x.bounds is [0001-01-01T00:00+00:01, 1970-01-01T00:00]; {_TIMES}"
    ]


def test_bounds_may_be_equal() -> None:
    for kind, end in (("integer", "5"), ("continuous", "0.5"), ("date", "1970-01-01")):
        column = load(edited("{type: boolean}", f"{{type: {kind}, bounds: [{end}, {end}]}}", SMALL)).domain[
            "x"
        ]
        assert column.lower == column.upper
        assert column.size == 1


def test_paths_are_relative_to_the_spec_and_options_to_the_current_folder() -> None:
    Path("configs").mkdir()
    Path("configs/spec.yaml").write_text(edited("input: t.csv", "input: ../data/t.csv", SMALL))
    spec = load_spec("configs/spec.yaml", registry=TOY)
    assert spec.input == "data/t.csv"
    spec = load_spec("configs/spec.yaml", ["output=o.csv"], input="in.parquet", registry=TOY)
    assert (spec.input, spec.output) == ("in.parquet", "o.csv")
    spec = load_spec("configs/spec.yaml", input="-", output="/o.csv", rows=12, registry=TOY)
    assert (spec.input, spec.output, spec.rows) == ("-", "/o.csv", 12)


def test_a_linked_folder_keeps_its_meaning() -> None:
    Path("far/configs").mkdir(parents=True)
    Path("configs").symlink_to("far/configs")
    Path("configs/spec.yaml").write_text(edited("input: t.csv", "input: ../t.csv", SMALL))
    path = load_spec("configs/spec.yaml", registry=TOY).input
    assert os.path.realpath(path) == os.path.realpath("far/t.csv")


def test_overrides_are_in_the_effective_spec() -> None:
    spec = load(
        GOOD,
        *("privacy.epsilon=0.5", "privacy.delta=null", "mechanism.depth=auto", "mechanism.split.links=2"),
        *("columns.age.bounds=[0,100]", 'columns."new.one"={type: boolean}', "sampling.seed=0"),
        rows="1e3",
    )
    assert spec.privacy.epsilon == Fraction(1, 2)
    assert spec.privacy.delta is None
    assert spec.params.depth is None
    assert spec.split == {"counts": 7.0, "links": 2.0}
    assert spec.domain["age"].upper == 100
    assert spec.domain.columns[-1].name == "new.one"
    assert (spec.seed, spec.rows) == (0, 1000)
    assert spec.effective["privacy"] == {
        "epsilon": "0.5",
        "delta": None,
        "neighbours": "replace_one",
        "search": None,
        "dataset": "trips-2026",
    }
    assert spec.effective["rows"] == 1000
    assert spec.places["privacy.epsilon"] == "--set privacy.epsilon"


def test_an_override_may_make_a_section() -> None:
    assert load(SMALL, "csv.multiline=true").csv == CsvOptions(True, ",")
    assert load(SMALL, 'csv.delimiter="\\t"').csv == CsvOptions(False, "\t")


def test_both_yaml_parsers_give_the_same_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = parse(GOOD, lambda line: Place("spec.yaml", line))
    monkeypatch.setattr(yaml_nodes, "_Loader", yaml.SafeLoader)
    assert parse(GOOD, lambda line: Place("spec.yaml", line)) == fast


# --- one mistake, one line ------------------------------------------------------------------------------

_KEYS = (
    "dpsynth, name, input, output, rows, rows_hint, privacy, csv, columns, defaults, derive, rules, "
    "mechanism, sampling, evaluate, strict"
)
_NAME = "it must be text without / or \\, at most 100 characters, such as trips"
_INPUT = "it must be a .csv, .csv.gz or .parquet file, a folder of Parquet files, or - for standard input"
_OUTPUT = "it must be a .csv or .parquet file, or - for standard output"
_ROWS = "it must be noisy, or a whole number from 1 to 10000000000"
_WHOLE = "it must be two whole numbers within ±2^53, the lower first, such as [0, 120]"
_REAL = "it must be two numbers, the lower first, such as [0, 1.5]"
_DATES = "it must be two dates, the earlier first, such as [2020-01-01, 2020-12-31]"
_TIMES = "it must be two times, the earlier first, such as [2020-01-01T00:00:00, 2020-12-31T23:59:59]"
_LABELS = "it must be a list of different labels, none of them empty, such as [low, mid, high]"
_TYPES = "it must be one of continuous, integer, ordinal, nominal, boolean, date, datetime"
_DELIMITER = 'it must be one ASCII sign such as ";", "|" or, for a tab, "\\t" (in double quotes)'
_SEED = "it must be a whole number from 0 to 9223372036854775807"
_SPLIT = "it must be a positive number; only proportions matter"
_EPSILON = "it must be a positive number such as 1.0"

LONG = f"epsilon: 0.{'1' * 5000}"

MISTAKES = [
    ("dpsynth: 1", "dpsynth: 2", "line 1: dpsynth is 2; it must be 1, the version of the spec"),
    ("name: trips\n", "name:\n", f"line 2: name is empty; {_NAME}"),
    ("name: trips", 'name: ""', f'line 2: name is ""; {_NAME}'),
    ("name: trips", "name: a/b", f"line 2: name is a/b; {_NAME}"),
    ("name: trips", "name: a\\b", f"line 2: name is a\\b; {_NAME}"),
    ("name: trips", "name: [a]", f"line 2: name is [a]; {_NAME}"),
    ("name: trips", 'name: "a\\nb"', f'line 2: name is "a\\nb"; {_NAME}'),
    ("name: trips", f"name: {'x' * 101}", f"line 2: name is {'x' * 59}…; {_NAME}"),
    ("name: trips", 'name: " x"', f'line 2: name is " x"; {_NAME}'),
    ("name: trips", 'name: "a\\Lb"', f'line 2: name is "a\\u2028b"; {_NAME}'),
    ("name: trips\n", "", f"line 1: name is missing; {_NAME}"),
    ("data/trips.csv", "trips.xlsx", f"line 3: input is trips.xlsx; {_INPUT}"),
    ("out/trips.parquet", "out/trips", f"line 4: output is out/trips; {_OUTPUT}"),
    (
        "out/trips.parquet",
        "data/../data/trips.csv",
        "line 4: output is data/trips.csv, which is the input or inside it; it must be another file",
    ),
    ("rows: noisy", "rows: 0", f"line 5: rows is 0; {_ROWS}"),
    ("rows: noisy", "rows: 1.5", f"line 5: rows is 1.5; {_ROWS}"),
    ("rows: noisy", "rows: 10000000001", f"line 5: rows is 10000000001; {_ROWS}"),
    ("rows: noisy", "rows: 70_000", f"line 5: rows is 70_000; {_ROWS}"),
    ("rows: noisy", 'rows: "5"', f'line 5: rows is "5"; {_ROWS}'),
    (
        "rows_hint: 70000",
        "rows_hint: 0",
        "line 6: rows_hint is 0; it must be a whole number from 1 to 10000000000, a public guess",
    ),
    ("epsilon: 0.1", "epsilon: -1", f"line 8: privacy.epsilon is -1; {_EPSILON}"),
    ("epsilon: 0.1", "epsilon: 0", f"line 8: privacy.epsilon is 0; {_EPSILON}"),
    ("epsilon: 0.1", "epsilon: .nan", f"line 8: privacy.epsilon is .nan; {_EPSILON}"),
    ("epsilon: 0.1", "epsilon: .inf", f"line 8: privacy.epsilon is .inf; {_EPSILON}"),
    ("epsilon: 0.1", "epsilon: 1/3", f"line 8: privacy.epsilon is 1/3; {_EPSILON}"),
    ("epsilon: 0.1", "epsilon: 1e999999999", f"line 8: privacy.epsilon is 1e999999999; {_EPSILON}"),
    ("epsilon: 0.1", LONG, f"line 8: privacy.epsilon is 0.{'1' * 57}…; {_EPSILON}"),
    ("epsilon: 0.1", "epsilon: {a: 1}", f"line 8: privacy.epsilon is {{a: 1}}; {_EPSILON}"),
    ("epsilon: 0.1", "epsilon:", f"line 8: privacy.epsilon is empty; {_EPSILON}"),
    ("  epsilon: 0.1\n", "", f"line 7: privacy.epsilon is missing; {_EPSILON}"),
    (
        "delta: 1e-9",
        "delta: 1",
        "line 9: privacy.delta is 1; it must be a number between 0 and 1 such as 1e-9",
    ),
    (
        "delta: 1e-9",
        "delta: 0",
        "line 9: privacy.delta is 0; it must be a number between 0 and 1 such as 1e-9",
    ),
    (
        "neighbours: replace_one",
        "neighbours: replace-one",
        "line 10: privacy.neighbours is replace-one; it must be one of add_remove, replace_one"
        " (did you mean replace_one?)",
    ),
    (
        "neighbours: replace_one",
        "neighbors: replace_one",
        "line 10: privacy.neighbors is not a known key (did you mean neighbours?);"
        " the keys here are epsilon, delta, neighbours, unit, search, dataset",
    ),
    (
        "dataset: trips-2026",
        "dataset: []",
        "line 11: privacy.dataset is []; it must be text on one line,"
        " at most 100 characters, such as trips-2026",
    ),
    (
        "  name: toy",
        "  name: tyo",
        "line 13: mechanism.name is tyo; it must be one of toy (did you mean toy?)",
    ),
    ("  name: toy\n", "", "line 12: mechanism.name is missing; it must be one of toy"),
    (
        "strata: stage",
        "strata: stag",
        "line 14: mechanism.strata is stag; it must be a declared ordinal, nominal or boolean column:"
        " stage, sex, smoker (did you mean stage?)",
    ),
    (
        "strata: stage",
        "strata: age",
        "line 14: mechanism.strata is age; it must be a declared ordinal, nominal or boolean column:"
        " stage, sex, smoker (did you mean stage?)",
    ),
    ("counts: 7", "counts: 0", f"line 15: mechanism.split.counts is 0; {_SPLIT}"),
    (
        "counts: 7",
        "count: 7",
        "line 15: mechanism.split.count is not a known key (did you mean counts?);"
        " the keys here are counts, links",
    ),
    (
        "split: {counts: 7}",
        "split: 7",
        "line 15: mechanism.split is 7; it must be keys such as {counts: 3, links: 1}",
    ),
    (
        "depth: 12",
        "depth: 31",
        "line 16: mechanism.depth is 31; it must be a whole number from 1 to 30, or auto",
    ),
    (
        "depth: 12",
        "depth: 1.5",
        "line 16: mechanism.depth is 1.5; it must be a whole number from 1 to 30, or auto",
    ),
    ("depth: 12", "clip: 0.4", "line 16: mechanism.clip is 0.4; it must be a number, at least 0.5"),
    ("depth: 12", "steps: 10", "line 16: mechanism.steps is 10; it must be a whole number, at most 9"),
    (
        "depth: 12",
        "shape: bash",
        "line 16: mechanism.shape is bash; it must be one of tree, bush (did you mean bush?)",
    ),
    (
        "depth: 12",
        "deph: 12",
        "line 16: mechanism.deph is not a known key (did you mean depth?);"
        " the keys here are name, strata, depth, shape, clip, steps, split",
    ),
    (
        "type: boolean",
        "type: bool",
        f"line 22: columns.smoker.type is bool; {_TYPES} (did you mean boolean?)",
    ),
    (
        "{type: boolean}",
        "{}",
        "line 22: columns.smoker is {}; it must be keys such as {type: integer, bounds: [0, 120]}",
    ),
    (
        "{type: boolean}",
        "",
        "line 22: columns.smoker is empty; it must be keys such as {type: integer, bounds: [0, 120]}",
    ),
    ("{type: boolean}", "{nullable: true}", f"line 22: columns.smoker.type is missing; {_TYPES}"),
    (
        "type: boolean",
        "type: boolean, bounds: [0, 1]",
        "line 22: columns.smoker.bounds is [0, 1]; it must be left out:"
        " a column of type boolean has neither bounds nor categories",
    ),
    (
        "other: M",
        "bounds: [0, 1]",
        "line 21: columns.sex.bounds is [0, 1]; it must be left out: a column of type nominal has categories",
    ),
    (
        "bounds: [-74.3, -73.7]",
        "bounds: [0, 1], categories: [a]",
        "line 18: columns.lon.categories is [a]; it must be left out: a column of type continuous has bounds",
    ),
    (
        "bounds: [-74.3, -73.7]",
        "bounds: [0, 1], other: a",
        "line 18: columns.lon.other is a; it must be left out: a column of type continuous has bounds",
    ),
    (
        "other: M",
        "othr: M",
        "line 21: columns.sex.othr is not a known key (did you mean other?);"
        " the keys here are type, categories, candidates, other, nullable, of, labels, missing",
    ),
    (", bounds: [-74.3, -73.7]", "", f"line 18: columns.lon.bounds is missing; {_REAL}"),
    ("[-74.3, -73.7]", "[1, 0]", f"line 18: columns.lon.bounds is [1, 0]; {_REAL}"),
    ("[-74.3, -73.7]", "[0, .inf]", f"line 18: columns.lon.bounds is [0, .inf]; {_REAL}"),
    ("[-74.3, -73.7]", "[-1e308, 1e308]", f"line 18: columns.lon.bounds is [-1e308, 1e308]; {_REAL}"),
    ("[-74.3, -73.7]", "[0, 1, 2]", f"line 18: columns.lon.bounds is [0, 1, 2]; {_REAL}"),
    ("[-74.3, -73.7]", "5", f"line 18: columns.lon.bounds is 5; {_REAL}"),
    ("[-74.3, -73.7]", '["?", "?"]', f"line 18: columns.lon.bounds is still to be filled in; {_REAL}"),
    ("[0, 120]", "[0, 1.5]", f"line 19: columns.age.bounds is [0, 1.5]; {_WHOLE}"),
    ("[0, 120]", "[0, 9007199254740993]", f"line 19: columns.age.bounds is [0, 9007199254740993]; {_WHOLE}"),
    ("nullable: true", "nullable: yes", "line 19: columns.age.nullable is yes; it must be true or false"),
    ("[low, 2, NO]", "[low, 2, 2]", f"line 20: columns.stage.categories lists 2 twice; {_LABELS}"),
    ("[low, 2, NO]", "[]", f"line 20: columns.stage.categories is []; {_LABELS}"),
    ("[low, 2, NO]", '["?", "?"]', f"line 20: columns.stage.categories is still to be filled in; {_LABELS}"),
    ("[low, 2, NO]", '[low, ""]', f'line 20: columns.stage.categories is [low, ""]; {_LABELS}'),
    ("[low, 2, NO]", '["a\\nb"]', f'line 20: columns.stage.categories is ["a\\nb"]; {_LABELS}'),
    (
        "[low, 2, NO]",
        "[low, null]",
        f"line 20: columns.stage.categories lists null; {_LABELS};"
        ' missing cells are declared by nullable: true, a label null is written "null"',
    ),
    ("other: M", "other: X", "line 21: columns.sex.other is X; it must be one of the categories: F, M"),
    ("2020-12-31", "2020-12-32", f"line 23: columns.seen.bounds is [2020-01-01, 2020-12-32]; {_DATES}"),
    ("2020-12-31", "20201231", f"line 23: columns.seen.bounds is [2020-01-01, 20201231]; {_DATES}"),
    ("type: date,", "type: datetime,", f"line 23: columns.seen.bounds is [2020-01-01, 2020-12-31]; {_TIMES}"),
    ('delimiter: ";"', "delimiter: ab", f"line 24: csv.delimiter is ab; {_DELIMITER}"),
    ('delimiter: ";"', "delimiter: '\"'", f'line 24: csv.delimiter is "\\""; {_DELIMITER}'),
    ('delimiter: ";"', "multiline: 1", "line 24: csv.multiline is 1; it must be true or false"),
    ("seed: 7", "seed: -1", f"line 25: sampling.seed is -1; {_SEED}"),
    ("seed: 7", "seed: 9223372036854775808", f"line 25: sampling.seed is 9223372036854775808; {_SEED}"),
    (
        "sampling: {seed: 7}",
        "evalute: {metrics: all}",
        f"line 25: evalute is not a known key (did you mean evaluate?); the keys here are {_KEYS}",
    ),
    ("csv: {", "cvs: {", f"line 24: cvs is not a known key (did you mean csv?); the keys here are {_KEYS}"),
    # the form of the document
    (
        "delta: 1e-9",
        "epsilon: 1",
        "line 9: privacy.epsilon is written twice, first on line 8; it must be there once",
    ),
    (
        "epsilon: 0.1",
        "epsilon: &e 0.1",
        "line 8: privacy.epsilon has the anchor &e; anchors are not used here, leave it out",
    ),
    ("delta: 1e-9", "delta: *e", "line 9: privacy.delta is the alias *e; write the value itself"),
    ("[-74.3, -73.7]", "[*e, 1]", "line 18: columns.lon.bounds is the alias *e; write the value itself"),
    ("[2020-01-01,", "[*e,", "line 23: columns.seen.bounds is the alias *e; write the value itself"),
    (
        "epsilon: 0.1",
        "epsilon: !!float 0.1",
        "line 8: privacy.epsilon has the tag tag:yaml.org,2002:float; tags are not used here, leave it out",
    ),
    ("delta: 1e-9", "<<: {delta: 1e-9}", "line 9: privacy has a merge key (<<); write the keys themselves"),
    ("delta: 1e-9", "[a]: 1", "line 9: privacy has a key that is a list or a mapping; keys are text"),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_each_mistake_is_said_in_one_line(old: str, new: str, said: str) -> None:
    assert refusal(edited(old, new)) == [f"spec.yaml, {said}"]


def test_all_mistakes_are_said_at_once_in_the_order_of_the_file() -> None:
    text = """\
name: t
input: t.csv
output: t.txt
privacy: {epsilon: zero}
mechanism: {name: toyy, strata: z}
columns:
  x: {type: integer}
  "": {type: boolean}
  "a.b": {type: real}
sampling: 7
colums: 3
"""
    assert refusal(
        text, "privacy.delta=2", "rows=many", "nonsense", "name.first=x", "rows_hint=[", rows="few"
    ) == [
        "spec.yaml, line 1: dpsynth is missing; it must be 1, the version of the spec",
        f"spec.yaml, line 3: output is t.txt; {_OUTPUT}",
        f"spec.yaml, line 4: privacy.epsilon is zero; {_EPSILON}",
        "spec.yaml, line 5: mechanism.name is toyy; it must be one of toy (did you mean toy?)",
        "spec.yaml, line 5: mechanism.strata is z; it must be a declared ordinal, nominal or boolean column:"
        ' ""',
        f"spec.yaml, line 7: columns.x.bounds is missing; {_WHOLE}",
        'spec.yaml, line 8: columns."" is not a name for a column; it must be one line of text',
        f'spec.yaml, line 9: columns."a.b".type is real; {_TYPES}',
        "spec.yaml, line 10: sampling is 7; it must be keys such as {seed: 7}",
        f"spec.yaml, line 11: colums is not a known key (did you mean columns?); the keys here are {_KEYS}",
        "--set nonsense: it must be KEY=VALUE, such as --set privacy.epsilon=0.5",
        "--set name.first: name.first cannot be set: name is t, which has no keys inside",
        "--set rows_hint: this is not valid YAML: did not find expected node content",
        f"--rows: rows is few; {_ROWS}",
        "--set privacy.delta: privacy.delta is 2; it must be a number between 0 and 1 such as 1e-9",
    ]


def test_a_mistake_that_an_override_repairs_is_no_mistake() -> None:
    assert load(edited("epsilon: 0.1", "epsilon: -1"), "privacy.epsilon=1").privacy.epsilon == 1


def test_a_name_alone_is_a_mechanism_with_its_defaults() -> None:
    start, end = GOOD.index("mechanism:"), GOOD.index("columns:")
    short, long = (
        GOOD[:start] + own + GOOD[end:] for own in ("mechanism: toy\n", "mechanism: {name: toy}\n")
    )
    assert load(short) == load(long)
    assert refusal(short.replace("mechanism: toy", "mechanism: toi")) == [
        "spec.yaml, line 12: mechanism.name is toi; it must be one of toy (did you mean toy?)"
    ]
    assert refusal(short.replace("mechanism: toy", "mechanism:")) == [
        "spec.yaml, line 12: mechanism is empty; it must be keys such as name: pmm"
    ]


def test_what_the_mechanism_cannot_do_is_a_mistake_at_its_name() -> None:
    text = edited("csv:", "  more: {type: boolean}\n  most: {type: boolean}\ncsv:")
    assert refusal(text) == ["spec.yaml, line 13: toy takes 1 to 6 columns"]
    assert refusal(edited("epsilon: 0.1", "epsilon: 0", text)) == [
        f"spec.yaml, line 8: privacy.epsilon is 0; {_EPSILON}",
        "spec.yaml, line 13: toy takes 1 to 6 columns",
    ]
    # but not where what it would go by is itself a mistake
    assert refusal(edited("neighbours: replace_one", "neighbours: both", text)) == [
        "spec.yaml, line 10: privacy.neighbours is both; it must be one of add_remove, replace_one"
    ]


def test_a_column_with_a_mistake_is_one_mistake_not_three() -> None:
    text = edited("csv:", "  more: {type: boolean}\n  most: {type: boolean}\ncsv:")
    text = edited("type: ordinal", "type: ordnal", text)
    assert refusal(text) == [
        f"spec.yaml, line 20: columns.stage.type is ordnal; {_TYPES} (did you mean ordinal?)"
    ]


def test_a_key_written_twice_in_an_override_is_a_mistake() -> None:
    said = "--set privacy: privacy.epsilon is written twice; it must be there once"
    assert refusal(SMALL, "privacy={epsilon: 1, epsilon: 2}") == [said]


def test_the_only_column_cannot_be_the_strata() -> None:
    assert refusal(SMALL, "mechanism.strata=x") == [
        "--set mechanism.strata: mechanism.strata is x, the only column; there must be another one to release"
    ]


def test_a_wrong_epsilon_is_one_mistake_though_a_part_of_it_pays_for_evaluation() -> None:
    said = f"--set privacy.epsilon: privacy.epsilon is zero; {_EPSILON}"
    assert refusal(SMALL, "privacy.epsilon=zero", "evaluate.epsilon=0.1") == [said]


def test_a_wrong_output_is_one_mistake_though_the_input_is_around_it() -> None:
    assert refusal(SMALL, input="..", output="o.txt") == [f'--output: output is "o.txt"; {_OUTPUT}']


@pytest.mark.parametrize("section", ["privacy", "mechanism", "columns"])
def test_a_missing_section_is_one_mistake(section: str) -> None:
    document = yaml.safe_load(SMALL)
    del document[section]
    such_as = {
        "privacy": "epsilon: 1.0",
        "mechanism": "name: pmm",
        "columns": "age: {type: integer, bounds: [0, 120]}",
    }[section]
    assert refusal(json.dumps(document)) == [
        f"spec.yaml, line 1: {section} is missing; it must be keys such as {such_as}"
    ]


# --- input and output -----------------------------------------------------------------------------------


def test_an_output_that_is_the_input_by_another_name_is_refused() -> None:
    Path("t.csv").touch()
    Path("hard.csv").hardlink_to("t.csv")
    Path("soft.csv").symlink_to("t.csv")
    for name in ("t.csv", "hard.csv", "soft.csv"):
        said = f"--output: output is {name}, which is the input or inside it; it must be another file"
        assert refusal(SMALL, output=name) == [said]
    load(SMALL, output="other.csv")


def test_an_output_inside_the_input_folder_is_refused() -> None:
    Path("parts.2026").mkdir()
    said = (
        "--output: output is parts.2026/new.parquet, which is the input or inside it; it must be another file"
    )
    assert refusal(SMALL, input="parts.2026", output="parts.2026/new.parquet") == [said]
    assert load(SMALL, input="parts.2026", output="parts.2026-new.parquet").input == "parts.2026/"


@pytest.mark.parametrize(
    "name", ["a.csv", "a.csv.gz", "a.parquet", "folder", "v1.2/folder", "not.there/", "null", "-"]
)
def test_an_input_may_be(name: str) -> None:
    spec = load(SMALL, input=name)
    assert from_document(spec.effective, registry=TOY) == spec


# --- files that are no specs ----------------------------------------------------------------------------

_INIT = "Nothing was read and nothing was spent. A spec is a short YAML file; `dpsynth init DATA` drafts one."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "spec.yaml is empty."),
        (b"# nothing\n", "spec.yaml is empty."),
        (b"~", "spec.yaml is empty."),
        (b"- dpsynth: 1\n", "spec.yaml is not a spec: it does not begin with keys such as dpsynth: 1."),
        (b"id,name\n1,Ann\n", "spec.yaml is not a spec: it does not begin with keys such as dpsynth: 1."),
        (
            b'{"id": 1, "name": "Ann"}',
            "spec.yaml is not a spec: it does not begin with keys such as dpsynth: 1.",
        ),
        (b"\xff\xfea\x00", "spec.yaml is not a spec: it is not UTF-8 text."),
        (b"a\nPAR1\x00\x15", "spec.yaml, line 2: this is not text: it holds a control character"),
        (b"#" * 1_000_001, "spec.yaml is not a spec: it is larger than 1 MB."),
        (
            b"dpsynth: 1\n---\ndpsynth: 1\n",
            "spec.yaml, line 2: a second document starts here; one is allowed",
        ),
        (b"dpsynth: " + b"[" * 50, "spec.yaml, line 1: this is nested more than 20 deep"),
        (
            b"a: b: c",
            "spec.yaml, line 1: this is not valid YAML: mapping values are not allowed in this context",
        ),
        (b"a: 1\nb: 'x", "spec.yaml, line 2: this is not valid YAML: found unexpected end of stream"),
    ],
)
def test_a_file_that_is_no_spec_is_refused_without_repeating_it(content: bytes, said: str) -> None:
    Path("spec.yaml").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_spec("spec.yaml", registry=TOY)
    assert str(caught.value) == f"{said}\n{_INIT}"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere.yaml", "No such file or directory"),
        (".", "Is a directory"),
        ("a\0b", "this is not a file name"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_file_error(path: str, reason: str) -> None:
    with pytest.raises(FileError) as caught:
        load_spec(path, registry=TOY)
    assert (
        str(caught.value)
        == f"The spec {path} cannot be read: {reason}.\nNothing was read and nothing was spent."
    )


def test_a_byte_order_mark_and_windows_line_ends_are_no_mistake() -> None:
    assert load(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()).effective == load(GOOD).effective


def test_the_refusal_ends_with_what_to_do() -> None:
    with pytest.raises(UsageError) as caught:
        load(edited("epsilon: 0.1", "epsilon: -1"))
    assert str(caught.value) == (
        f"spec.yaml, line 8: privacy.epsilon is -1; {_EPSILON}\n"
        "Nothing was read and nothing was spent. Correct this, then: dpsynth check spec.yaml"
    )


# --- whatever is written, the answer is a Spec or a UsageError ------------------------------------------

_PIECES = st.sampled_from(
    [
        *(
            "",
            " ",
            "\n",
            "\n  ",
            ":",
            ": ",
            "- ",
            "?",
            "{",
            "}",
            "[",
            "]",
            ",",
            "#",
            "&a",
            "*a",
            "!!str",
            "|",
            ">",
        ),
        *(
            "<<",
            "'",
            '"',
            "\\",
            "\t",
            "\r",
            "\x00",
            "\x7f",
            "\u2028",
            "\ufeff",
            "\ud800",
            "é",
            "%",
            "@",
            "`",
            "---",
            "...",
        ),
        *(
            "~",
            "null",
            "true",
            "1e999",
            "-0",
            ".nan",
            "9" * 400,
            "1e-999",
            "0x1",
            "2020-02-30",
            "9999-12-31T23:59-23:59",
        ),
        *(
            "0001-01-01T00:00+23:59",
            "auto",
            "columns:",
            "type: date",
            "bounds: [1, 2]",
            "categories: [a]",
            "name",
            "split",
        ),
    ]
)
_JUNK = st.one_of(_PIECES, st.text(max_size=8))


def _spec_or_usage_error(text: str, *overrides: str) -> None:
    Path("spec.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        spec = load_spec("spec.yaml", overrides, registry=TOY)
    except (UsageError, FileError) as error:  # a pattern of names wants the header of the input
        said = error.happened
    else:
        said = canonical(spec.effective).decode()
        assert from_document(json.loads(said), registry=TOY).effective == spec.effective
        assert all(column.size >= 1 for column in spec.domain)
    assert said.encode()  # and it can be printed


_fuzz = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_fuzz
@given(st.lists(_JUNK, max_size=30).map("".join))
def test_random_text_is_a_spec_or_a_usage_error(text: str) -> None:
    _spec_or_usage_error(text)


@_fuzz
@given(st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 12), _JUNK), min_size=1, max_size=4))
@example([(GOOD.index("0.1"), 3, "9" * 400)])
@example([(GOOD.index("-74.3"), 5, '"\\ud800"')])
def test_a_spec_with_random_damage_is_a_spec_or_a_usage_error(damage: list[tuple[int, int, str]]) -> None:
    text = GOOD
    for start, length, junk in damage:
        text = text[:start] + junk + text[start + length :]
    _spec_or_usage_error(text)


@_fuzz
@given(
    st.sampled_from(
        ["columns", "columns.age.bounds", "privacy", "privacy.epsilon", "mechanism.depth", "", "csv.x"]
    ),
    st.lists(_JUNK, max_size=5).map("".join),
)
def test_any_override_gives_a_spec_or_a_usage_error(key: str, value: str) -> None:
    _spec_or_usage_error(GOOD, f"{key}={value}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(GOOD)), st.integers(0, 12), _JUNK), min_size=1, max_size=4))
def test_the_slow_yaml_parser_fails_no_other_way(damage: list[tuple[int, int, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_nodes, "_Loader", yaml.SafeLoader)
        text = GOOD
        for start, length, junk in damage:
            text = text[:start] + junk + text[start + length :]
        _spec_or_usage_error(text)


# --- the JSON Schema ------------------------------------------------------------------------------------


def value(node: Node) -> Any:
    """A node as YAML 1.2's core schema reads it."""
    if isinstance(node, Keys):
        return {key: value(entry.node) for key, entry in node.entries.items()}
    if isinstance(node, Items):
        return [value(one) for one in node.nodes]
    assert isinstance(node, Scalar)
    if node.null:
        return None
    if not node.quoted and "_" not in node.text:
        for read in (_boolean, int, float):
            try:
                return read(node.text)
            except ValueError:
                continue
    return node.text


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text] if text in ("true", "false") else bool(int("no"))


def problems(schema: dict[str, Any], text: str) -> list[str]:
    tree, _ = parse(text, lambda line: Place("spec.yaml", line))
    assert tree is not None
    checker: Callable[..., Any] = jsonschema.Draft202012Validator
    return [error.message for error in checker(schema).iter_errors(value(tree))]


def test_the_schema_is_one_and_takes_good_specs() -> None:
    schema = spec_schema.json_schema(TOY)
    jsonschema.Draft202012Validator.check_schema(schema)
    for text in (GOOD, SMALL, edited("depth: 12", "depth: auto"), edited("delta: 1e-9", "delta: null")):
        assert problems(schema, text) == []
        load(text)


def test_the_schema_takes_a_release_by_groups_without_privacy_and_no_other() -> None:
    text = edited("privacy: {epsilon: 1}\n", "", SMALL)
    by_groups = "{name: microaggregation, guarantee: groups, group_size: 10}"
    assert problems(spec_schema.json_schema(), edited("{name: toy}", by_groups, text)) == []
    assert problems(spec_schema.json_schema(), edited("{name: toy}", "{name: microaggregation}", text))


BOTH = [
    m[:2] for m in MISTAKES if not m[2].partition(": ")[2].startswith(("mechanism.strata", "output is data/"))
]
TWO_KEYS = {
    "other: X",
    "[1, 0]",
    "trips.xlsx",
    "[-1e308, 1e308]",
    "2020-12-32",
    LONG,
}  # only `check` says these
FORM = {
    "epsilon: 1",
    "epsilon: &e 0.1",
    "delta: *e",
    "[*e, 1]",
    "[*e,",
    "epsilon: !!float 0.1",
    "<<: {delta: 1e-9}",
    "[a]: 1",
}


@pytest.mark.parametrize(("old", "new"), [pair for pair in BOTH if pair[1] not in TWO_KEYS | FORM])
def test_a_bad_spec_fails_the_schema_too(old: str, new: str) -> None:
    assert problems(spec_schema.json_schema(TOY), edited(old, new))


@pytest.mark.parametrize("config", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_config_is_valid_by_both(config: Path) -> None:
    assert problems(spec_schema.json_schema(), config.read_text(encoding="utf-8")) == []
    load_spec(str(config))


def test_the_committed_schema_is_the_current_one() -> None:
    committed = (CONFIGS / "spec.schema.json").read_text(encoding="utf-8")
    again = "out of date: python -m dpsynth_cli.spec.schema > configs/spec.schema.json"
    assert committed == spec_schema.document(), again
