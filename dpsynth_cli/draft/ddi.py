"""DDI-Codebook XML (2.x): a `var` with its range of valid values and its categories.

Statistics of a DDI file (`sumStat`, `catStat`) are of the rows, and are not read. https://ddialliance.org/ddi-codebook
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsynth_cli.draft.documents import Element, from_xml
from dpsynth_cli.draft.facts import Facts, about, format_of, labels, wrong

KIND = "DDI-Codebook"


def read(path: str) -> list[Facts]:
    return [_variable(element, path) for element in from_xml(path, "var")]


def _variable(var: Element, path: str) -> Facts:
    at = f"{path}, line {var.line}"
    name = var.attributes.get("name", "").strip()
    if not name:
        raise wrong(at, "the variable has no name.")
    at = f"{at} ({name})"
    formats = [one.attributes for one in var.all("varFormat")] or [{}]
    numeric, about_time = formats[0].get("type") == "numeric", formats[0].get("category", "")
    valid = [one for one in var.all("catgry") if not _missing(one)]
    categories = labels((value.said for one in valid for value in one.all("catValu")), at)
    ranges = [one.attributes for limits in var.all("valrng") for one in limits.all("range")]
    low, high = (ranges[0].get("min"), ranges[0].get("max")) if len(ranges) == 1 else (None, None)
    kind = _kind(var, numeric, about_time, ranges)
    if var.attributes.get("intrvl") == "contin":
        categories = ()  # codes beside the numbers, such as 97 or more: not all of its values
    elif categories:
        kind = "ordinal" if var.attributes.get("nature") == "ordinal" else "nominal"
    marked = len(valid) < len(var.all("catgry")) or bool(var.all("invalrng"))
    return Facts(
        name,
        at,
        kind,
        low or None,
        high or None,
        categories,
        nullable=True if marked else None,
        about=about(next((one.said for one in var.all("labl")), "")),
        format=format_of(missing=_codes(one for one in var.all("catgry") if _missing(one))),
        labels=_meanings(valid) if categories else (),
    )


def _codes(categories: Iterable[Element]) -> list[str]:
    return [value.said for one in categories for value in one.all("catValu") if value.said]


def _meanings(categories: list[Element]) -> tuple[str, ...]:
    """What categories mean, where each has a label that is not its code."""
    said = [about(next((one.said for one in each.all("labl")), "")) for each in categories]
    return tuple(said) if all(said) and said != _codes(categories) else ()


def _missing(category: Element) -> bool:
    return category.attributes.get("missing", "").strip().lower() in ("y", "yes", "true", "1")


def _kind(var: Element, numeric: bool, about_time: str, ranges: list[dict[str, str]]) -> str | None:
    if about_time in ("date", "time"):
        return "date" if about_time == "date" else None
    if not numeric and not ranges:
        return "nominal" if var.all("varFormat") else None
    decimals = var.attributes.get("dcml")
    if ranges and ranges[0].get("UNITS") in ("INT", "REAL"):
        return "integer" if ranges[0]["UNITS"] == "INT" and decimals in (None, "", "0") else "continuous"
    if decimals is not None:
        return "integer" if decimals in ("", "0") else "continuous"
    return None
