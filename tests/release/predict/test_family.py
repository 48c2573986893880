"""The generated tables that errors are predicted on: declared, bounded, public, and of many kinds."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.release.predict.family import FAMILY, family
from dpsynth_cli.spec.spec import from_document

COLUMNS = {
    "age": {"type": "integer", "bounds": [0, 99], "nullable": True},
    "score": {"type": "continuous", "bounds": [-1, 1]},
    "level": {"type": "ordinal", "categories": ["low", "mid", "high"], "nullable": True},
    "city": {"type": "nominal", "categories": [f"city {i}" for i in range(40)]},
    "smoker": {"type": "boolean", "nullable": True},
    "seen": {"type": "date", "bounds": ["2020-01-01", "2020-12-31"]},
    "at": {"type": "datetime", "bounds": ["2020-01-01T00:00:00", "2020-12-31T00:00:00"]},
    "same": {"type": "integer", "bounds": [5, 5]},
}


def spec_of(columns=COLUMNS, rules=None, **mechanism):
    return from_document(
        {"dpsynth": 1, "name": "t", "output": "-", "privacy": {"epsilon": 1},
         "mechanism": {"name": "joint"} | mechanism, "columns": columns, "rules": rules}
    )  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_every_table_has_the_declared_columns_and_codes_only(rows):
    spec = spec_of(strata="smoker")
    tables = family(spec, rows)
    assert list(tables) == list(FAMILY)
    for table in tables.values():
        assert list(table.codes) == list(COLUMNS)
        assert table.rows == len(table) == rows
        for column in spec.domain:
            codes = table.codes[column.name]
            assert codes.dtype == np.int64
            assert 0 <= codes.min() <= codes.max() < column.codes


def test_only_nullable_columns_have_missing_values_and_some_tables_many():
    spec = spec_of()
    shares = {
        name: [np.mean(table.codes[c.name] == c.size) for c in spec.domain if c.nullable]
        for name, table in family(spec, 2000).items()
    }
    assert not any(shares["even"])
    assert max(shares["sparse"]) > 0.3
    for table in family(spec, 2000).values():
        assert not any((table.codes[c.name] == c.size).any() for c in spec.domain if not c.nullable)


def test_the_same_declaration_gives_the_same_tables():
    first, again = (family(spec_of(), 500) for _ in range(2))
    for name, table in first.items():
        assert all((table.codes[column] == again[name].codes[column]).all() for column in COLUMNS)


def test_no_row_breaks_a_rule():
    rules = {"impossible": [{"age": {"to": 49}, "city": [f"city {i}" for i in range(1, 40)]},
                            {"level": "low", "smoker": "true"}]}  # fmt: skip
    spec = spec_of(rules=rules)
    for name, table in family(spec, 2000).items():
        age, city, level, smoker = (table.codes[c] for c in ("age", "city", "level", "smoker"))
        assert not ((age < 50) & (city > 0)).any(), name
        yes = spec.domain["smoker"].categories.index("true")
        assert not ((level == 0) & (smoker == yes)).any(), name


def test_a_single_row_that_breaks_a_rule_becomes_a_possible_one():
    rules = {"impossible": [{"age": {"to": 98}, "city": [f"city {i}" for i in range(1, 40)]}]}
    for table in family(spec_of(rules=rules), 1).values():
        assert table.codes["age"][0] >= 99 or table.codes["city"][0] == 0


def test_tables_reach_from_independent_to_strongly_linked_columns_and_from_even_to_one_value():
    columns = {f"c{i}": {"type": "continuous", "bounds": [0, 1]} for i in range(6)}
    spec = spec_of(columns)

    def linked(table) -> float:
        ranks = np.array([np.argsort(np.argsort(codes)) for codes in table.codes.values()])
        return float(np.abs(np.corrcoef(ranks)[np.triu_indices(6, 1)]).mean())

    def heaviest(table) -> float:
        cells = [np.bincount(codes * 16 // 2**30, minlength=16) for codes in table.codes.values()]
        return float(np.mean([counts.max() / counts.sum() for counts in cells]))

    tables = family(spec, 3000)
    assert linked(tables["even"]) < 0.05
    assert linked(tables["aligned"]) > 0.7
    assert heaviest(tables["even"]) < 0.1
    assert heaviest(tables["zipf"]) > 0.3
    assert heaviest(tables["sparse"]) > 0.75
    values = len(np.unique(tables["spiky"].codes["c0"]))
    assert values < 0.5 * len(tables["spiky"])  # heaps of round values
    assert len(np.unique(tables["even"].codes["c0"])) == 3000


def test_columns_of_the_spiky_table_determine_others():
    columns = {f"c{i}": {"type": "nominal", "categories": [str(k) for k in range(12)]} for i in range(3)}
    tables = family(spec_of(columns), 3000)

    def told(table) -> float:
        counts = np.zeros((12, 12))
        np.add.at(counts, (table.codes["c0"], table.codes["c1"]), 1)
        return float(counts.max(axis=1).sum() / counts.sum() - counts.sum(axis=0).max() / counts.sum())

    assert told(tables["spiky"]) > 0.25 > 0.05 > told(tables["even"])
