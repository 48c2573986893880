"""Frictionless Table Schema, alone or in a Data Package: `fields` with a type and constraints.

https://datapackage.org/standard/table-schema/
"""

from __future__ import annotations

from typing import Any

from dpsynth_cli.draft.documents import flag, mapping, opposite, scalar, sequence
from dpsynth_cli.draft.facts import Facts, about, format_of, labels, type_of, wrong

KIND = "Frictionless Table Schema"
_NO_TABLE = ("time", "duration", "geopoint", "geojson", "object", "array", "list", "yearmonth")


def fits(document: Any) -> bool:
    return isinstance(document, dict) and ("fields" in document or "resources" in document)


def read(document: Any, path: str, table: str) -> list[Facts]:
    schema, at = _schema(document, path, table)
    fields = sequence(mapping(schema, at).get("fields"), f"{at}, fields")
    missing = mapping(schema, at).get("missingValues")
    return [
        _field(mapping(one, f"{at}, fields[{i}]"), f"{at}, fields[{i}]", missing)
        for i, one in enumerate(fields)
    ]


def _schema(document: dict[str, Any], path: str, table: str) -> tuple[Any, str]:
    """The schema itself, or that of the package's resource with the name of the table, or of the only one."""
    if "resources" not in document:
        return document, path
    resources = [mapping(one, f"{path}, resources") for one in sequence(document["resources"], path)]
    named = [one for one in resources if _called(one, table)]
    if len(named or resources) != 1:
        raise wrong(
            path,
            f"it describes {len(resources)} tables, and not one is called {table}.",
            "Name the table so.",
        )
    (resource,) = named or resources
    return resource.get("schema"), f"{path}, resource {resource.get('name', '')}".rstrip()


def _called(resource: dict[str, Any], table: str) -> bool:
    paths = resource.get("path")
    first = paths[0] if isinstance(paths, list) and paths else paths
    file = first.rpartition("/")[2].partition(".")[0] if isinstance(first, str) else None
    return table in (resource.get("name"), file)


def _field(field: dict[str, Any], at: str, missing: Any = None) -> Facts:
    name = scalar(field.get("name"))
    if name is None:
        raise wrong(at, "the field has no name.")
    at = f"{at} ({name})"
    word = scalar(field.get("type")) or "string"
    limits = mapping(field.get("constraints"), f"{at}, constraints")
    listed = field.get("categories", limits.get("enum"))
    values = [one.get("value") if isinstance(one, dict) else one for one in sequence(listed, at)]
    categories, kind = labels(values, at), type_of(word)
    if categories and kind != "boolean":
        ordered = flag(field.get("categoriesOrdered")) or kind in ("integer", "continuous")
        kind = "ordinal" if ordered else "nominal"
    return Facts(
        name,
        at,
        kind,
        _end(limits, "minimum", "exclusiveMinimum"),
        _end(limits, "maximum", "exclusiveMaximum"),
        () if kind == "boolean" else categories,
        nullable=opposite(limits.get("required")),
        about=about(field.get("title") or field.get("description")),
        left_out=f"its type is {word}" if word in _NO_TABLE else "",
        format=format_of(
            field.get("decimalChar"),
            field.get("groupChar"),
            field.get("format") if kind in ("date", "datetime") else None,
            field.get("missingValues", missing),
            (field.get("trueValues"), field.get("falseValues")) if kind == "boolean" else None,
        ),
        labels=_labels(listed, categories),
    )


def _labels(listed: Any, categories: tuple[str, ...]) -> tuple[str, ...]:
    """What categories mean, where each is given with a label."""
    said = [one.get("label") for one in listed] if isinstance(listed, list) and _both(listed) else []
    return tuple(map(about, said)) if len(said) == len(categories) and all(map(about, said)) else ()


def _both(listed: list[Any]) -> bool:
    return all(isinstance(one, dict) and "label" in one for one in listed)


def _end(limits: dict[str, Any], *keys: str) -> str | None:
    return next((end for key in keys if (end := scalar(limits.get(key))) is not None), None)
