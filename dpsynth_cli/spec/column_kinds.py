"""What bounds and categories may be, by the type of the column; bounds are kept in the column's own unit."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

from dpsynth_cli.labels import plain
from dpsynth_cli.numbers import CLOCK, DAY, ZONE, day, day_text, moment, moment_text, whole
from dpsynth_cli.spec.keys import Kind
from dpsynth_cli.spec.kinds import SCALARS, decimal, items, text
from dpsynth_cli.spec.reader import TO_FILL_IN, Wrong, usable
from dpsynth_cli.spec.yaml_nodes import Keys, Node, Scalar, shortened

MOST_EXACT = 2**53  # whole numbers up to here are exact in a float64
_LARGEST_FILE = 10_000_000
_MOST_IN_A_ROW = 1_000_000
_OTHER_FORMS = "{file: labels.txt} with a label a line, {from: 1, to: 12}, or a list such as [low, mid, high]"
_LABELS = "a list of different labels, none of them empty, such as [low, mid, high]"


def _pair(allowed: str, end: Kind) -> Kind:
    """Two ends in order; `end` reads None where a node is none."""

    def read(node: Node) -> tuple[float, float]:
        ends = [end.read(one) for one in items(node, allowed)]
        if len(ends) != 2 or ends[0] is None or ends[1] is None or ends[0] > ends[1]:
            raise Wrong(allowed)
        return ends[0], ends[1]

    return Kind(
        read,
        {"type": "array", "items": dict(end.schema), "minItems": 2, "maxItems": 2},
        lambda pair: [end.write(one) for one in pair],
    )


def _number(node: Node) -> float | None:
    value = decimal(node)
    return None if value is None else float(value)


def _whole(node: Node) -> int | None:
    value = decimal(node)
    if value is None or value.denominator != 1 or abs(value) > MOST_EXACT:
        return None
    return int(value)


def _since_1970(count: Callable[[str], int | None], pattern: str, spell: Callable[[int], str]) -> Kind:
    """Days, or microseconds in UTC, that are spelt as text."""

    def read(node: Node) -> int | None:
        return count(node.text) if isinstance(node, Scalar) else None

    return Kind(read, {"type": "string", "pattern": f"^{pattern}$"}, lambda end: spell(int(end)))


BOUNDS = {
    "continuous": _pair("two numbers, the lower first, such as [0, 1.5]", Kind(_number, {"type": "number"})),
    "integer": _pair(
        "two whole numbers within ±2^53, the lower first, such as [0, 120]",
        Kind(_whole, {"type": "integer", "minimum": -MOST_EXACT, "maximum": MOST_EXACT}),
    ),
    "date": _pair(
        "two dates, the earlier first, such as [2020-01-01, 2020-12-31]", _since_1970(day, DAY, day_text)
    ),
    "datetime": _pair(
        "two times, the earlier first, such as [2020-01-01T00:00:00, 2020-12-31T23:59:59]",
        _since_1970(moment, f"{DAY}{CLOCK}{ZONE}?", moment_text),
    ),
}

LABEL = text(_LABELS)
PRIVATE = "private"  # in place of bounds, categories or a step: found for a part of the budget
ANY = "any"  # in place of a step: values are not rounded


def or_private(kind: Kind, *words: str) -> Kind:
    """The same, or the word private, or another of these."""
    words = (PRIVATE, *words)

    def read(node: Node) -> object:
        if isinstance(node, Scalar) and node.text in words:
            return node.text
        try:
            return kind.read(node)
        except Wrong as wrong:
            more = f", {' or '.join(words)}" if len(words) > 1 else ""
            raise Wrong(wrong.allowed + more, wrong.fault) from None

    said = {"enum": list(words)} if len(words) > 1 else {"const": PRIVATE}
    schema = {"anyOf": [said, dict(kind.schema)]}
    return Kind(read, schema, lambda value: value if value in words else kind.write(value))


def _categories(node: Node) -> tuple[str, ...]:
    if isinstance(node, Keys):
        return _elsewhere(node)
    labels = tuple(_label(one) for one in items(node, _LABELS))
    if not labels or (len(labels) > 1 and set(labels) == {TO_FILL_IN}):
        raise Wrong(_LABELS)
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise Wrong(_LABELS, f"lists {shortened(label)} twice")
        seen.add(label)
    return labels


def _elsewhere(node: Keys) -> tuple[str, ...]:
    """Labels that are not written out: the lines of a file beside the spec, or whole numbers in a row."""
    said = {key: usable(entry.node) for key, entry in node.entries.items()}
    if set(said) == {"file"} and said["file"] is not None:
        return _lines(said["file"])
    if set(said) == {"from", "to"} and said["from"] is not None and said["to"] is not None:
        return _row(said["from"].text, said["to"].text)
    raise Wrong(_OTHER_FORMS)


def _lines(said: Scalar) -> tuple[str, ...]:
    folder = os.path.dirname(said.place.source) if said.place.line is not None else ""
    try:
        with open(os.path.join(folder, said.text), "rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "this is not a file name").lower()
        raise Wrong(
            _OTHER_FORMS, f"names the file {shortened(said.text)}, which cannot be read: {reason}"
        ) from None
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise Wrong(_OTHER_FORMS, f"names the file {shortened(said.text)}, which is not UTF-8") from None
    labels = tuple(line for line in lines if line.strip())
    if len(raw) > _LARGEST_FILE or not labels or not all(plain(label) for label in labels):
        raise Wrong(_OTHER_FORMS, f"names the file {shortened(said.text)}, which is not a label a line")
    if twice := [label for label, times in Counter(labels).items() if times > 1]:
        raise Wrong(_LABELS, f"names the file {shortened(said.text)}, which has {shortened(twice[0])} twice")
    return labels


def _row(first: str, last: str) -> tuple[str, ...]:
    """The whole numbers from one to another; 01 to 12 have two digits each."""
    low, high = whole(first), whole(last)
    if low is None or high is None or not low <= high < low + _MOST_IN_A_ROW:
        raise Wrong(_OTHER_FORMS)
    digits = len(first) if first.startswith("0") and len(first) > 1 else 0
    return tuple(f"{number:0{digits}}" for number in range(low, high + 1))


def _label(node: Node) -> str:
    if isinstance(node, Scalar) and node.null:
        fault = f"lists {node.text}" if node.text else "lists an empty label"
        raise Wrong(
            f'{_LABELS}; missing cells are declared by nullable: true, a label null is written "null"', fault
        )
    label: str = LABEL.read(node)
    return label


LABELS = Kind(
    _categories,
    {
        "anyOf": [
            {"type": "array", "items": dict(LABEL.schema), "minItems": 1, "uniqueItems": True},
            {
                "type": "object",
                "properties": {"file": {"type": "string"}},
                "required": ["file"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"from": {"type": SCALARS}, "to": {"type": SCALARS}},
                "required": ["from", "to"],
                "additionalProperties": False,
            },
        ]
    },
    list,
)
