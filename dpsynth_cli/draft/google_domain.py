"""Domain files of google/dpsynth: by column `possible_values`, or `min_value` and `max_value`, or nothing.

https://github.com/google/dpsynth/blob/main/docs/specifying_domains.md
"""

from __future__ import annotations

from typing import Any

from dpsynth_cli.draft.documents import flag, mapping, scalar, sequence
from dpsynth_cli.draft.facts import Facts, about, labels, wrong
from dpsynth_cli.numbers import whole

KIND = "google/dpsynth domain"
_OWN = {
    "possible_values",
    "min_value",
    "max_value",
    "max_tokens",
    "default_value",
    "type",
    "dtype",
    "description",
}


def fits(document: Any) -> bool:
    columns = _columns(document)
    return bool(columns) and all(
        one is None or (isinstance(one, dict) and (not one or _OWN & set(one))) for one in columns.values()
    )


def _columns(document: Any) -> dict[str, Any]:
    """The columns, which newer files keep beside constraints."""
    inside = document.get("attributes", document) if isinstance(document, dict) else {}
    return inside if isinstance(inside, dict) else {}


def read(document: Any, path: str, table: str) -> list[Facts]:
    return [
        _column(name, mapping(one, f"{path}, {name}"), f"{path}, {name}")
        for name, one in _columns(document).items()
    ]


def _column(name: str, column: dict[str, Any], at: str) -> Facts:
    label = about(column.get("description"))
    if "max_tokens" in column:
        return Facts(name, at, about=label, left_out="it is free text")
    if "possible_values" in column:
        values = sequence(column["possible_values"], f"{at}.possible_values")
        categories = labels(values, f"{at}.possible_values")
        return Facts(
            name, at, "nominal", categories=categories, other=_other(column, values, at), about=label
        )
    if "min_value" in column or "max_value" in column:
        kind = "integer" if column.get("dtype") == "int" else "continuous"
        ends = scalar(column.get("min_value")), scalar(column.get("max_value"))
        nullable = True if flag(column.get("clip_to_range")) is False else None
        return Facts(name, at, kind, *ends, nullable=nullable, about=label)
    return Facts(name, at, "nominal", about=label)


def _other(column: dict[str, Any], values: list[Any], at: str) -> str | None:
    """Where values outside the domain go: the first one, unless an index says otherwise."""
    index = whole(scalar(column.get("out_of_domain_index")) or "0")
    if index is None or not 0 <= index < len(values):
        raise wrong(at, "out_of_domain_index is not the place of one of its possible_values.")
    return scalar(values[index])
