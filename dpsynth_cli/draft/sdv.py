"""SDV metadata: an `sdtype` for each column, of one table or of several.

It has no bounds and, but for an order, no categories: those stay to be filled in.
https://docs.sdv.dev/sdv/concepts/metadata/metadata-json
"""

from __future__ import annotations

from typing import Any

from dpsynth_cli.draft.documents import mapping, scalar, sequence
from dpsynth_cli.draft.facts import Facts, format_of, labels, type_of, wrong

KIND = "SDV metadata"
_TYPES = {"categorical": "nominal", "boolean": "boolean", "numerical": None, "datetime": "datetime"}


def fits(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    return (
        "METADATA_SPEC_VERSION" in document or _columns(document) or isinstance(document.get("tables"), dict)
    )


def _columns(document: dict[str, Any]) -> bool:
    columns = document.get("columns")
    return isinstance(columns, dict) and any(isinstance(c, dict) and "sdtype" in c for c in columns.values())


def read(document: Any, path: str, table: str) -> list[Facts]:
    at = path
    if "tables" in document:
        tables = mapping(document["tables"], f"{path}, tables")
        if table not in tables and len(tables) != 1:
            raise wrong(
                path,
                f"it describes {len(tables)} tables, and not one is called {table}.",
                "Name the table so.",
            )
        name = table if table in tables else next(iter(tables))
        document, at = mapping(tables[name], f"{path}, tables.{name}"), f"{path}, tables.{name}"
    keys = {document.get("primary_key"), document.get("sequence_key")}
    columns = mapping(document.get("columns"), f"{at}, columns")
    where = f"{at}, columns"
    return [
        _column(name, mapping(one, f"{where}.{name}"), f"{where}.{name}", keys)
        for name, one in columns.items()
    ]


def _column(name: str, column: dict[str, Any], at: str, keys: set[Any]) -> Facts:
    word = scalar(column.get("sdtype")) or "unknown"
    kind = _TYPES.get(word)
    if word == "numerical":
        kind = type_of(scalar(column.get("computer_representation")) or "")
    clock = scalar(column.get("datetime_format"))
    if kind == "datetime" and clock is not None and not any(f"%{c}" in clock for c in "HIMSfXcpT"):
        kind = "date"
    categories = (
        labels(sequence(column.get("order"), at), at) if isinstance(column.get("order"), list) else ()
    )
    secret = word not in _TYPES and word != "unknown"
    key = isinstance(name, str) and name in keys
    why = f"its sdtype is {word}" if secret else "it is a key" if key else ""
    iso = clock is None or clock.startswith("%Y-%m-%d")  # as cells are read anyway
    form = None if iso else format_of(date=clock)
    return Facts(
        name, at, "ordinal" if categories else kind, categories=categories, left_out=why, format=form
    )
