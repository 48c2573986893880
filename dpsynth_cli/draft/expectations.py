"""Expectation suites in the style of Great Expectations: what a data test allows in each column.

https://greatexpectations.io/expectations/
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsynth_cli.draft.documents import mapping, scalar, sequence
from dpsynth_cli.draft.facts import Facts, labels, type_of

KIND = "expectation suite"


def fits(document: Any) -> bool:
    return isinstance(document, dict) and "expectations" in document


def read(document: Any, path: str, table: str) -> list[Facts]:
    columns: dict[str, Facts] = {}
    for i, one in enumerate(sequence(document["expectations"], f"{path}, expectations")):
        at = f"{path}, expectations[{i}]"
        stated = mapping(one, at)
        word = scalar(stated.get("expectation_type")) or scalar(stated.get("type")) or ""
        given = mapping(stated.get("kwargs"), f"{at}, kwargs")
        name = scalar(given.get("column"))
        if name is not None:
            before = columns.get(name, Facts(name, at))
            columns[name] = _with(
                replace(before, at=f"{at} ({name})"), word.removeprefix("expect_column_"), given
            )
    return list(columns.values())


def _with(known: Facts, word: str, given: dict[str, Any]) -> Facts:
    low, high = scalar(given.get("min_value")), scalar(given.get("max_value"))
    if word == "values_to_be_between":
        return replace(known, lower=low or known.lower, upper=high or known.upper)
    if word == "min_to_be_between":
        return replace(known, lower=known.lower or low)
    if word == "max_to_be_between":
        return replace(known, upper=known.upper or high)
    if word in ("values_to_be_in_set", "distinct_values_to_be_in_set", "distinct_values_to_equal_set"):
        values = given.get("value_set")
        found = labels(values, known.at) if isinstance(values, list) else ()
        return replace(known, categories=found or known.categories)
    if word == "values_to_not_be_null":
        mostly = scalar(given.get("mostly"))
        return replace(known, nullable=mostly is not None and mostly not in ("1", "1.0"))
    if word in ("values_to_be_of_type", "values_to_be_in_type_list"):
        listed = given.get("type_list")
        words = listed if isinstance(listed, list) else [given.get("type_")]
        kinds = {type_of(one) for one in words if isinstance(one, str)} - {None}
        if kinds == {"integer", "continuous"}:
            kinds = {"continuous"}
        return replace(known, type=kinds.pop() if len(kinds) == 1 else known.type)
    if word == "values_to_match_strftime_format":
        form = scalar(given.get("strftime_format")) or ""
        return replace(known, type="date" if form == "%Y-%m-%d" else known.type)
    return known
