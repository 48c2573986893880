"""The kinds of values that keys hold: each read from a node, written back, and described to an editor.

`allowed` completes "it must be" where a value is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsynth_cli import numbers
from dpsynth_cli.labels import plain
from dpsynth_cli.spec.keys import Kind
from dpsynth_cli.spec.reader import Wrong, did_you_mean, listed, usable
from dpsynth_cli.spec.yaml_nodes import Items, Node

SCALARS = ["string", "number", "boolean"]  # in a schema: taken as text, as written
CONTROL = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
LINE = f"^[^{CONTROL}]+$"
_TRIMMED = rf"^(?!\s)[^{CONTROL}]+(?<!\s)$"
_DECIMAL = r"^\+?(?=[0-9.]*[1-9])(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?$"


def whole(allowed: str, low: int, high: int) -> Kind:
    """Whole numbers from low to high."""
    read = number(allowed, low, high, whole=True)
    return Kind(lambda node: int(read(node)), {"type": "integer", "minimum": low, "maximum": high})


def positive(allowed: str, below: int | None = None) -> Kind:
    """Exact positive decimals; quoted ones too, as the effective document has them."""

    def read(node: Node) -> Fraction:
        value = decimal(node, quoted=True)
        if value is None or value <= 0 or (below is not None and value >= below):
            raise Wrong(allowed)
        return value

    limits = {"maximum": 1e300} if below is None else {"exclusiveMaximum": below}
    schema = {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0} | limits,
            {"type": "string", "pattern": _DECIMAL},
        ]
    }
    return Kind(read, schema, lambda value: None if value is None else numbers.exact(value))


@dataclass(frozen=True)
class Percent:
    """A part of something that is known later: 5% is a twentieth, exactly."""

    part: Fraction


def positive_or_percent(allowed: str) -> Kind:
    """Exact positive decimals, or such a part of something as `5%`; what it is worth is written."""
    plain_number = positive(allowed)

    def read(node: Node) -> Fraction | Percent:
        scalar = usable(node)
        if scalar is None or not scalar.text.endswith("%"):
            number: Fraction = plain_number.read(node)
            return number
        value = numbers.decimal(scalar.text[:-1])
        if value is None or value <= 0:
            raise Wrong(allowed)
        return Percent(value / 100)

    percent = {"type": "string", "pattern": _DECIMAL.removesuffix("$") + "%$"}
    return Kind(read, {"anyOf": [*plain_number.schema["anyOf"], percent]}, plain_number.write)


def text(allowed: str, longest: int | None = None) -> Kind:
    """One line of text: any scalar as written, but nothing empty; one with a limit has no space around it."""

    def read(node: Node) -> str:
        scalar = usable(node)
        if scalar is None or scalar.null or not scalar.text or not plain(scalar.text):
            raise Wrong(allowed)
        if longest is not None and (len(scalar.text) > longest or scalar.text != scalar.text.strip()):
            raise Wrong(allowed)
        return scalar.text

    schema: dict[str, Any] = {"type": SCALARS, "pattern": LINE if longest is None else _TRIMMED}
    return Kind(read, schema if longest is None else schema | {"maxLength": longest})


def choice(words: Collection[str]) -> Kind:
    """One of a few words."""
    return Kind(one_of(words), {"enum": list(words)})


def _flag(node: Node) -> bool:
    scalar = usable(node)
    if scalar is None or scalar.quoted or scalar.text.lower() not in ("true", "false"):
        raise Wrong("true or false")
    return scalar.text.lower() == "true"


FLAG = Kind(_flag, {"type": "boolean"})  # and nothing that only looks like it


# --- what kinds are read with -----------------------------------------------------------------------


def one_of(words: Collection[str], prefix: str = "one of ") -> Callable[[Node], str]:
    """Reads one of a few words, with a hint for a near miss."""

    def read(node: Node) -> str:
        scalar = usable(node)
        if scalar is not None and scalar.text in words:
            return scalar.text
        known = tuple(words)
        hint = did_you_mean(scalar.text, known) if scalar is not None else ""
        raise Wrong(f"{prefix}{listed(known)}{hint}")

    return read


def number(
    allowed: str, low: float | None = None, high: float | None = None, *, whole: bool = False
) -> Callable[[Node], Fraction]:
    """Reads a number from low to high."""

    def read(node: Node) -> Fraction:
        value = decimal(node)
        if value is None or (whole and value.denominator != 1):
            raise Wrong(allowed)
        if (low is not None and value < low) or (high is not None and value > high):
            raise Wrong(allowed)
        return value

    return read


def decimal(node: Node, *, quoted: bool = False) -> Fraction | None:
    """The number that a scalar writes, exactly; None where it writes none, or one beyond 1e±300.

    >>> from dpsynth_cli.spec.yaml_nodes import Place, Scalar
    >>> decimal(Scalar("1e-1", Place("spec.yaml", 1))), decimal(Scalar(".inf", Place("spec.yaml", 1)))
    (Fraction(1, 10), None)
    """
    scalar = usable(node)
    if scalar is None or (scalar.quoted and not quoted):
        return None
    return numbers.decimal(scalar.text)


def items(node: Node, allowed: str) -> tuple[Node, ...]:
    """The items of a list."""
    usable(node)
    if not isinstance(node, Items):
        raise Wrong(allowed)
    return node.nodes
