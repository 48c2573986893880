"""An expression as data: what was written, and at which character, so that a mistake can be named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias


@dataclass(frozen=True)
class Literal:
    """A number, a text, true, false, or None for missing."""

    value: Fraction | str | bool | None
    at: int = 0


@dataclass(frozen=True)
class Name:
    """A column, declared or derived."""

    name: str
    at: int = 0


@dataclass(frozen=True)
class Chain:
    """first + a - b ..., or first * a / b ...: from left to right."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    at: int = 0


@dataclass(frozen=True)
class Negative:
    operand: Expression
    at: int = 0


@dataclass(frozen=True)
class Compare:
    """One of == != < <= > >=."""

    operator: str
    left: Expression
    right: Expression
    at: int = 0


@dataclass(frozen=True)
class Within:
    """Whether it is one of these literals."""

    operand: Expression
    choices: tuple[Literal, ...]
    at: int = 0


@dataclass(frozen=True)
class IsMissing:
    operand: Expression
    at: int = 0


@dataclass(frozen=True)
class Not:
    operand: Expression
    at: int = 0


@dataclass(frozen=True)
class Logic:
    """All of them (and), or any of them (or)."""

    operator: str
    operands: tuple[Expression, ...]
    at: int = 0


@dataclass(frozen=True)
class Case:
    """if c then v else if d then w else x; without `else`, `otherwise` is None."""

    cases: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    at: int = 0


@dataclass(frozen=True)
class Lookup:
    """What a table says of it; `otherwise` for what is not in the table."""

    operand: Expression
    table: tuple[tuple[Literal, Literal], ...]
    otherwise: Literal
    at: int = 0


@dataclass(frozen=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]
    at: int = 0


Expression: TypeAlias = (
    Literal | Name | Chain | Negative | Compare | Within | IsMissing | Not | Logic | Case | Lookup | Call
)


def inside(node: Expression) -> tuple[Expression, ...]:
    """The parts of a node."""
    match node:
        case Chain(first, rest):
            return (first, *(operand for _, operand in rest))
        case Negative(operand) | Within(operand) | IsMissing(operand) | Not(operand) | Lookup(operand):
            return (operand,)
        case Compare(_, left, right):
            return (left, right)
        case Logic(_, operands):
            return operands
        case Case(cases, otherwise):
            parts = tuple(part for pair in cases for part in pair)
            return parts if otherwise is None else (*parts, otherwise)
        case Call(_, arguments):
            return arguments
        case _:
            return ()


def names(node: Expression) -> Iterator[Name]:
    """The columns it names, in the order written, each as often as it is."""
    if isinstance(node, Name):
        yield node
    for part in inside(node):
        yield from names(part)
