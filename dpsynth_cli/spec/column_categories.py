"""The labels of a column: all that are possible, or candidates, of which those are found that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpsynth_cli.spec.column_kinds import LABEL, LABELS, PRIVATE, or_private
from dpsynth_cli.spec.keys import Key
from dpsynth_cli.spec.kinds import one_of
from dpsynth_cli.spec.reader import Reader

CATEGORIES = Key(
    "categories",
    or_private(LABELS),
    "all labels that are possible, none twice, none empty; or `private`: those of the `candidates` that "
    "there are, found for a part of the budget (`privacy.search`)",
    required=True,
    default=(),
    of=lambda column: PRIVATE if column.private else column.categories,
)
CANDIDATES = Key(
    "candidates",
    replace(LABELS, write=lambda labels: None if labels is None else list(labels)),
    "with `categories: private`: all labels that there may be, by public knowledge; those with few rows, or "
    "none, become the `other` one",
    of=lambda column: column.categories if column.private else None,
)
OTHER = Key("other", LABEL, "which of the categories an unlisted label becomes")


def read_candidates(declared: Reader, categories: tuple[str, ...] | str) -> dict[str, Any]:
    """The categories, where these are known, else all that there may be."""
    if categories != PRIVATE:
        if declared.value(CANDIDATES) is not None:
            declared.note("candidates", "is stated, but the categories are not private; leave it out")
        return {"private": False}
    candidates = declared.value(CANDIDATES)
    if candidates is None and "candidates" not in declared.keys.entries:
        declared.note(
            "categories",
            "is private, but which labels there may be is not said; state candidates: a list by public "
            "knowledge, such as all codes of a standard. Labels that nobody has listed are not looked for",
        )
    return {"private": True, "categories": candidates or ()}


def read_other(declared: Reader, values: Mapping[str, Any]) -> dict[str, Any]:
    """One of the categories, where these are known; of private ones any label, which is then always there."""
    categories: tuple[str, ...] = values["categories"]
    if not categories:
        declared.expect(OTHER)
        return {}
    if not values["private"]:
        return {"other": declared.value(OTHER, one_of(categories, "one of the categories: "))}
    other: str | None = declared.value(OTHER)
    if other is None and not values["nullable"]:
        declared.note(
            "categories",
            "is private, but what becomes of labels that are not found is not said; state other: LABEL, or "
            "nullable: true",
        )
    return {"other": other, "categories": _with(categories, other)}


def _with(labels: tuple[str, ...], other: str | None) -> tuple[str, ...]:
    return labels if other is None or other in labels else (*labels, other)
