"""Where a condition changes along a column: at the ends of comparisons that change once, or anywhere."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.relations.nodes import (
    Call,
    Case,
    Chain,
    Compare,
    Expression,
    IsMissing,
    Literal,
    Logic,
    Name,
    Negative,
    Not,
    Within,
    inside,
)
from dpsynth_cli.relations.relations import Relations

RISING = ("floor", "ceil", "round", "year", "date")  # functions that never turn


def comparisons(node: Expression) -> Iterator[Expression]:
    """All that is compared, as what changes once while one side grows."""
    if isinstance(node, Compare):
        yield Compare("<=", node.left, node.right)
    if isinstance(node, Within):
        yield from (Compare("<=", node.operand, choice) for choice in node.choices)
    for part in inside(node):
        yield from comparisons(part)


def shows_changes(statistic: Statistic, name: str) -> bool:
    """Whether the query changes along a column only where its comparisons do, each once at most: not where it
    has a group for each of its values, and not in remainders or sums of columns."""
    query, relations = statistic.query, statistic.relations
    if any(name in relations.modelled(Name(one)) for one in (*query.by, *_shared(statistic))):
        return False
    return query.where is None or _known(query.where, name, relations)


def _shared(statistic: Statistic) -> tuple[str, ...]:
    return statistic.query.named[:1] if statistic.query.kind == "share" else ()


def _known(node: Expression, name: str, relations: Relations) -> bool:
    if name not in relations.modelled(node):
        return True
    match node:
        case Compare(_, left, right):
            sides = [side for side in (left, right) if relations.modelled(side)]
            return len(sides) == 1 and _turns_never(sides[0], name, relations)
        case Within(operand):
            return _turns_never(operand, name, relations)
        case IsMissing(operand):
            return isinstance(operand, Name)
        case Not() | Logic() | Case():
            return all(_known(part, name, relations) for part in inside(node))
        case Name(called) if called in relations.by_name:
            return _known(relations.by_name[called].expression, name, relations)
        case _:
            return isinstance(node, Name)


def _turns_never(node: Expression, name: str, relations: Relations) -> bool:
    """Whether a number only rises, or only falls, with the column, of which alone it is."""
    match node:
        case Name(called) if called in relations.by_name:
            return _turns_never(relations.by_name[called].expression, name, relations)
        case Name(called):
            return called == name
        case Negative(operand):
            return _turns_never(operand, name, relations)
        case Chain(first, rest):
            others = [operand for _, operand in rest]
            if any(operator == "%" for operator, _ in rest):
                return False
            if _turns_never(first, name, relations):
                return all(isinstance(operand, Literal) for operand in others)
            known = isinstance(first, Literal) and len(others) == 1 and rest[0][0] in ("+", "-", "*")
            return known and _turns_never(others[0], name, relations)
        case Call(function, arguments):
            others = list(arguments[1:])
            plain = all(isinstance(operand, Literal) for operand in others)
            return function in RISING and plain and _turns_never(arguments[0], name, relations)
        case _:
            return False
