"""The labels of a column: all that are possible; or candidates, of which those are found that there are; or
neither, and they are found among the cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpsynth_cli.mechanisms.search.outer import STAND_IN_LABELS
from dpsynth_cli.spec.column_kinds import LABEL, LABELS, PRIVATE, or_private
from dpsynth_cli.spec.keys import Key
from dpsynth_cli.spec.kinds import one_of
from dpsynth_cli.spec.reader import Reader
from dpsynth_cli.spec.yaml_nodes import Scalar

CATEGORIES = Key(
    "categories",
    or_private(LABELS),
    "all labels that are possible, none twice, none empty; or `private`: those of the `candidates` that "
    "there are, found for a part of the budget (`privacy.search`), or without candidates those among the "
    "cells that many rows have, for a part of `privacy.delta` too",
    required=True,
    default=(),
    of=lambda column: PRIVATE if column.private else column.categories,
)
CANDIDATES = Key(
    "candidates",
    replace(LABELS, write=lambda labels: None if labels is None else list(labels)),
    "with `categories: private`: all labels that there may be, by public knowledge; those with few rows, or "
    "none, become the `other` one",
    of=lambda column: column.categories if column.private and not column.open else None,
)
OTHER = Key("other", LABEL, "which of the categories an unlisted label becomes")


def read_candidates(declared: Reader, categories: tuple[str, ...] | str) -> dict[str, Any]:
    """The categories, where these are known, else all that there may be."""
    if categories != PRIVATE:
        if declared.value(CANDIDATES) is not None:
            declared.note("candidates", "is stated, but the categories are not private; leave it out")
        return {"private": False}
    candidates = declared.value(CANDIDATES)
    entry = declared.keys.entries.get("candidates")
    if entry is None or (isinstance(entry.node, Scalar) and entry.node.null):
        return {"private": True, "open": True, "categories": STAND_IN_LABELS}
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
    if other is None and values.get("open"):
        declared.note(
            "categories",
            "is private, and candidates are not stated, so labels are looked for among the cells; what "
            "becomes of those that few rows have is not said; state other: LABEL",
        )
    elif other is None and not values["nullable"]:
        declared.note(
            "categories",
            "is private, but what becomes of labels that are not found is not said; state other: LABEL, or "
            "nullable: true",
        )
    return {"other": other, "categories": _with(categories, other)}


def _with(labels: tuple[str, ...], other: str | None) -> tuple[str, ...]:
    return labels if other is None or other in labels else (*labels, other)
