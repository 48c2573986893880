"""`derive` and `rules` of a spec: mistakes at their lines, columns that follow, and the same spec again."""

from __future__ import annotations

import json

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_cli.domain import Column
from dpsynth_cli.errors import UsageError
from dpsynth_cli.hashing import canonical
from dpsynth_cli.spec.schema import json_schema
from dpsynth_cli.spec.spec import from_document, load_spec

HEAD = """\
dpsynth: 1
name: t
input: t.csv
output: t.parquet
privacy: {epsilon: 1}
mechanism: {name: marginals}
columns:
  time: {type: integer, bounds: [0, 2359]}
  gap:  {type: continuous, bounds: [0, 1], nullable: true}
  late: {type: boolean, nullable: true}
  kind: {type: nominal, categories: [a, b, c]}
  rank: {type: ordinal, categories: [low, mid, high], nullable: true}
  born: {type: date, bounds: [2000-01-01, 2009-12-31]}
  hour: {type: integer, bounds: [0, 23]}
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def loaded(more, *overrides):
        (tmp_path / "spec.yaml").write_text(HEAD + more)
        return load_spec("spec.yaml", overrides)

    return loaded


GOOD = """\
derive:
  hour: time // 100
  half: gap * 0.5
  next: born + 1
  odd: time % 2 == 1
  group: {of: kind, table: {b: first, a: first}, else: rest}
  size: {of: rank, table: {low: 1, mid: 2.5}}
  bigger: or_else(rank, "low")
rules:
  always: [odd or time < 2000, if late then gap is missing]
  impossible: [{kind: [a, b], rank: high}, {time: [1, 2, 3], late: {missing: true}}]
  missing_with: {gap: rank, late: rank}
"""


def test_what_is_computed_has_the_type_that_follows_from_its_expression(load):
    spec = load(GOOD)
    assert [column.name for column in spec.domain] == ["time", "gap", "late", "kind", "rank", "born"]
    assert [column.name for column in spec.declared] == [*(c.name for c in spec.domain), "hour"]
    made = spec.stated.columns[6:]
    assert made == (
        Column("hour", "integer", 0, 23),
        Column("half", "continuous", 0.0, pytest.approx(0.5), nullable=True),
        Column("next", "date", 10957 + 1, 14609 + 1),
        Column("odd", "boolean", categories=("false", "true")),
        Column("group", "nominal", categories=("first", "rest")),
        Column("size", "continuous", 1, 2.5, nullable=True),
        Column("bigger", "ordinal", categories=("low", "mid", "high")),
    )
    assert spec.released.columns == spec.stated.columns
    assert spec.stated.relations.missing_with == (("gap", "rank"), ("late", "rank"))
    assert [pair.columns for pair in spec.domain.impossible] == [("kind", "rank"), ("late", "time")]


def test_the_effective_document_gives_the_same_spec_even_with_its_keys_sorted(load):
    spec = load(GOOD)
    recorded = json.loads(canonical(spec.effective))
    again = from_document(recorded)
    assert again == spec
    assert [one["name"] for one in recorded["derive"]] == [
        "hour", "half", "next", "odd", "group", "size", "bigger",
    ]  # fmt: skip
    assert recorded["rules"]["always"] == ["odd or time < 2000", "if late then gap is missing"]
    assert spec.keeper.possible == again.keeper.possible


def test_the_schema_takes_what_the_spec_takes(load):
    validator = jsonschema.Draft202012Validator(json_schema())
    load(GOOD)
    assert not list(validator.iter_errors(_plain(yaml.safe_load(HEAD + GOOD))))
    for wrong in ("derive: [a]\n", "rules: {never: [a]}\n", "rules: {always: a}\n", "derive: {x: {of: a}}\n"):
        with pytest.raises(UsageError):
            load(wrong)
        assert list(validator.iter_errors(_plain(yaml.safe_load(HEAD + wrong)))), wrong


def _plain(document):
    """Dates as the texts that they are in a spec."""
    return json.loads(json.dumps(document, default=str))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("derive: {hour: tim // 100}", "line 15: derive.hour at character 1: 'tim' is not a declared column "
         "(did you mean 'time'?)"),
        ("derive:\n  hour: time //", "line 16: derive.hour is time //; at character 8: a column, a number, a "
         "text in quotes or ( must be here; it ends"),
        ("derive:\n  x: time / 0", "line 16: derive.x is always missing"),
        ("derive: {hour: kind}", "line 15: derive.hour is a text, and was declared as integer"),
        ("derive: {hour: time / 100}", "line 15: derive.hour is a number, and was declared as integer; write "
         "round(…) or floor(…)"),
        ("derive: {a: b + 1, b: a}", "line 15: derive.a is computed from itself, directly or by others"),
        ("derive: {x: x + 1}", "line 15: derive.x is computed from itself, directly or by others"),
        ("derive: {x: {of: kind}}", "line 15: derive.x must be an expression, or {of: column, table: {key: "
         "value, …}, else: value}"),
        ("derive: {x: {of: kind, table: {z: 1}}}",
         "line 15: derive.x has the key 'z', which is not a declared "
         "category"),
        ("derive: {x: {of: gap, table: {1: 1}}}", "line 15: derive.x has the key '1'; a table is of labels, "
         "whole numbers, true or false, as its column is"),
        ("derive: {x: {of: time, table: {one: 1}}}", "line 15: derive.x has the key 'one'; a table is of "
         "labels, whole numbers, true or false, as its column is"),
        ("derive: {x: [time]}", "line 15: derive.x must be an expression"),
        ("derive: 7", "line 15: derive is 7; it must be columns such as {hour: sched_dep_time // 100}, at "
         "most 500"),
        ("derive: {time: 1, gap: 1.0, late: true, kind: '\"a\"', rank: '\"low\"', born: hour, hour: 1}",
         "line 15: derive.born is a whole number, and was declared as date"),
        ("rules:\n  always:\n  - time > 3\n  - time",
         "line 18: rules.always is time; a rule is true or false, "
         "not a whole number"),
        ("rules: {always: [1 < 2]}", "line 15: rules.always is 1 < 2; a rule names a column"),
        ("rules: {always: [kind == \"d\"]}", "line 15: rules.always is kind == \"d\"; at character 9: 'd' is "
         "not a declared category here"),
        ("rules: {alwys: [a]}",
         "line 15: rules.alwys is not a known key (did you mean always?); the keys here "
         "are always, impossible, missing_with, determines"),
        ("rules: {always: [time < 5, time > 7]}", "line 15: the rules `time < 5`, `time > 7` leave no row: "
         "drop one, or widen what is declared"),
        ("derive: {hour: time // 10}\nrules: {always: [time > 500]}",
         "line 16: the rules `hour is at most 23, "
         "as declared`, `time > 500` leave no row: drop one, or widen what is declared"),
        ("rules: {impossible: [{kind: a, rank: z}]}",
         "line 15: rules.impossible, rule 1: z is not a declared "
         "category of rank"),
        ("rules: {impossible: [{kind: [a, b, c], rank: low}]}",
         "line 15: rules.impossible leaves no row that "
         "has low in rank; leave that out of the column's declaration, or drop a rule"),
        ("rules: {missing_with: {gap: time}}", "line 15: rules.missing_with.gap names time, which is never "
         "missing; declare it with nullable: true"),
        ("rules: {missing_with: {gap: nobody}}",
         "line 15: rules.missing_with.gap names nobody, which is not a "
         "declared column that is modelled"),
        ("rules: {missing_with: {gap: late, late: gap}}", "line 15: rules.missing_with.gap leads back to "
         "itself; name a column that is not missing with another"),
        ("rules: {determines: {kind: hour}}",
         "line 15: rules.determines.kind must be columns with tables such "
         "as {education: {education_num: {Bachelors: 13, Masters: 14}}}, or private in place of a table"),
        ("rules: {determines: {kind: {huor: {a: 1}}}}",
         "line 15: rules.determines.kind.huor is not a declared "
         "column (did you mean hour?)"),
        ("rules: {determines: {kind: {hour: {a: x}}}}",
         "line 15: rules.determines.kind.hour is a text, and was "
         "declared as integer"),
        ("rules: {determines: {kind: {late: {a: 1}}}}", "line 15: rules.determines.kind.late gives '1'; the "
         "column is boolean, which is true or false"),
        ("rules: {determines: {kind: {born: {a: 2001-01-01}}}}",
         "line 15: rules.determines.kind.born a table "
         "gives numbers, labels, true or false; the column is date"),
    ],
)  # fmt: skip
def test_each_mistake_is_said_at_its_line(load, more, said):
    with pytest.raises(UsageError) as refused:
        load(more + "\n")
    assert f"spec.yaml, {said}" in refused.value.happened.split("\n")


PIECES = st.sampled_from(
    ["time", "gap", "late", "kind", "rank", "born", "1", "0", "2.5", '"a"', '"low"', "(", ")", " + ", " - ",
     " * ", " / ", " // ", " % ", " == ", " < ", " <= ", " and ", " or ", " not ", " in [1, 2]",
     " is missing", "if ", " then ", " else ", "true", "missing", "min(", ", ", "year(", "or_else(",
     "x", "$", "'", "\u00e9"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=12).map("".join))


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_any_text_is_a_spec_or_a_mistake_with_its_place(computed, rule, of):
    document = _plain(yaml.safe_load(HEAD)) | {
        "derive": {"x": computed, "y": {"of": of, "table": {"a": "1", "true": "2", "1": "3"}}},
        "rules": {"always": [rule]},
    }
    try:
        spec = from_document(document)
    except UsageError as error:
        lines = error.happened.split("\n")
    else:
        lines, names = [], [column.name for column in spec.released]
        assert names[-2:] == ["x", "y"]
        assert from_document(json.loads(canonical(spec.effective))) == spec
    for line in lines:
        assert line.startswith(
            ("the recorded spec: derive.", "the recorded spec: rules", "the recorded spec: the rule")
        )


def test_a_strata_or_a_target_is_not_computed(load):
    more = 'derive: {kind: \'if time > 1000 then "a" else "b"\'}\n'
    with pytest.raises(UsageError, match=r"mechanism\.strata is kind; it must be a declared"):
        load(more, "mechanism.strata=kind")
    with pytest.raises(UsageError, match="target is kind"):
        load(more, "evaluate.target=kind")


def test_if_everything_is_computed_there_is_nothing_to_start_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = "columns: {x: {type: integer, bounds: [0, 9]}}\nderive: {x: 1}\n"
    (tmp_path / "spec.yaml").write_text(HEAD.split("columns:")[0] + columns)
    with pytest.raises(UsageError, match="line 8: derive leaves no column to model"):
        load_spec("spec.yaml")
