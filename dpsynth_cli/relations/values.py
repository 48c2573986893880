"""What an expression is, row by row: arrays of values, and which of them are missing.

An operation on a missing value is missing, but `is missing` and or_else never are; `and` and `or` are missing
only where the values that are there do not decide (Kleene). A division by zero, a number beyond 1e300 and
an `if` whose condition is missing are missing. Whole numbers are exact (`Typing` has refused what is beyond
2^53), others are float64. Expressions come here after `Typing` has found no mistake in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.relations.arithmetic import SECOND, result_kind
from dpsynth_cli.relations.arrays import Values
from dpsynth_cli.relations.functions import FUNCTIONS, label_number
from dpsynth_cli.relations.kinds import REAL, common_order, facing, of_literal
from dpsynth_cli.relations.nodes import (
    Call,
    Case,
    Chain,
    Compare,
    Expression,
    IsMissing,
    Literal,
    Logic,
    Lookup,
    Name,
    Negative,
    Not,
    Within,
)

Array = NDArray[Any]
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def evaluate(node: Expression, columns: Mapping[str, Values], rows: int) -> Values:
    """An expression over columns of so many rows."""
    with np.errstate(all="ignore"):
        return _Evaluation(columns, rows)(node)


@dataclass(frozen=True)
class _Evaluation:
    columns: Mapping[str, Values]
    rows: int

    def __call__(self, node: Expression) -> Values:
        match node:
            case Literal():
                return self.literal(node)
            case Name(name):
                return self.columns[name]
            case Chain(first, rest):
                found = self(first)
                for operator, operand in rest:
                    found = _arithmetic(operator, found, self(operand))
                return found
            case Negative(operand):
                found = self(operand)
                return replace(found, data=-found.data)
            case Compare(operator, left, right):
                return self.compared(operator, left, right)
            case Within(operand, choices):
                value = self(operand)
                same = np.zeros(self.rows, bool)
                for choice in choices:
                    same |= self.against("==", value, choice).data
                return Values("boolean", same, value.missing)
            case IsMissing(operand):
                return Values("boolean", self(operand).missing, np.zeros(self.rows, bool))
            case Not(operand):
                found = self(operand)
                return Values("boolean", ~found.data.astype(bool), found.missing)
            case Logic(operator, operands):
                return self.logic(operator, [self(operand) for operand in operands])
            case Case(cases, otherwise):
                return self.case([(self(c), self(v)) for c, v in cases], otherwise)
            case Lookup(operand):
                return _looked_up(self(operand), node)
            case Call():
                return self.called(node)

    def literal(self, node: Literal) -> Values:
        facts = of_literal(node)
        missing = np.full(self.rows, not facts.present)
        if facts.kind == "text":
            return Values("text", np.zeros(self.rows, np.int64), missing, facts.labels)
        kinds = {"continuous": np.float64, "boolean": np.bool_}
        return Values(facts.kind, np.full(self.rows, facts.low, kinds.get(facts.kind, np.int64)), missing)

    def compared(self, operator: str, left: Expression, right: Expression) -> Values:
        if isinstance(right, Literal):
            return self.against(operator, self(left), right)
        if isinstance(left, Literal):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            return self.against(turned, self(right), left)
        return _comparison(operator, self(left), self(right))

    def against(self, operator: str, value: Values, literal: Literal) -> Values:
        other = facing(literal, value.facts)
        if isinstance(other, int):
            return Values("boolean", _COMPARE[operator](value.data, np.asarray(other)), value.missing)
        return _comparison(operator, value, self.literal(literal))

    def logic(self, operator: str, parts: list[Values]) -> Values:
        decides = operator == "or"  # one true decides `or`, one false decides `and`
        decided, missing = np.zeros(self.rows, bool), np.zeros(self.rows, bool)
        for part in parts:
            decided |= ~part.missing & (part.data.astype(bool) == decides)
            missing |= part.missing
        return Values("boolean", decided if decides else ~decided, missing & ~decided)

    def case(self, cases: list[tuple[Values, Values]], otherwise: Expression | None) -> Values:
        if otherwise is not None:
            rest = self(otherwise)
        elif all(value.kind == "boolean" for _, value in cases):
            rest = Values("boolean", np.ones(self.rows, bool), np.zeros(self.rows, bool))
        else:
            rest = self.literal(Literal(None))
        results = _alike([*(value for _, value in cases), rest])
        found = results[-1]
        data, missing = found.data.copy(), found.missing.copy()
        for (condition, _), result in zip(reversed(cases), reversed(results[:-1]), strict=True):
            true = condition.data.astype(bool) & ~condition.missing
            data[true], missing[true] = result.data[true], result.missing[true]
            missing[condition.missing] = True
        return replace(found, data=data, missing=missing)

    def called(self, node: Call) -> Values:
        given = [self(argument) for argument in node.arguments]
        if node.function == "or_else":
            alike = _alike(given)
            data, missing = alike[-1].data.copy(), alike[-1].missing.copy()
            for one in reversed(alike[:-1]):
                data[~one.missing] = one.data[~one.missing]
                missing &= one.missing
            return replace(alike[0], data=data, missing=missing)
        if node.function == "number":
            return _numbers(given[0])
        arrays = [one.data.astype("datetime64[us]") if one.kind == "datetime" else one.data for one in given]
        data = np.asarray(FUNCTIONS[node.function].values(*arrays))
        kind = _kind_of(node.function, given)
        if data.dtype.kind == "M":  # the least or the greatest of times
            data = data.astype(np.int64)
        missing = np.any([one.missing for one in given], axis=0)
        return _bounded(Values(kind, data, missing))


def _kind_of(function: str, given: list[Values]) -> str:
    if function in ("abs", "min", "max"):
        return "continuous" if any(one.kind == "continuous" for one in given) else given[0].kind
    if function == "round" and len(given) > 1:
        return "continuous"
    return "date" if function == "date" else "integer"


def _arithmetic(operator: str, left: Values, right: Values) -> Values:
    missing = left.missing | right.missing
    kind = result_kind(operator, left.kind, right.kind)
    if kind is None:  # one of them is always missing
        known = right if left.kind == "nothing" else left
        return replace(known, missing=np.ones_like(missing))
    a, b = left.data, right.data
    if "datetime" in (left.kind, right.kind):
        a, b = (
            side.data if side.kind == "datetime" else np.rint(np.where(missing, 0, side.data) * float(SECOND))
            for side in (left, right)
        )
        data = (a + b if operator == "+" else a - b).astype(np.int64)
        return Values(kind, data / SECOND if kind == "continuous" else data, missing)
    if operator in ("/", "//", "%"):
        zero = b == 0
        missing, b = missing | zero, np.where(zero, 1, b)
    integers = left.kind == right.kind == "integer"
    if operator == "//":
        data = a // b if integers else np.floor(a / b)
        data = np.where(missing, 0, data).astype(np.int64)
    else:
        data = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "%": np.remainder}[
            operator
        ](a, b)
    return _bounded(Values(kind, data, missing))


def _bounded(values: Values) -> Values:
    if values.kind != "continuous":
        return values
    beyond = ~(np.abs(values.data) <= REAL)
    return replace(values, data=np.where(beyond, 0.0, values.data), missing=values.missing | beyond)


def _comparison(operator: str, left: Values, right: Values) -> Values:
    missing = left.missing | right.missing
    if "nothing" in (left.kind, right.kind):
        return Values("boolean", np.zeros(len(missing), bool), np.ones(len(missing), bool))
    if left.kind == "text":
        labels = left.order or right.order or tuple(dict.fromkeys((*left.labels, *right.labels)))
        left, right = _relabelled(left, labels), _relabelled(right, labels)
    return Values("boolean", _COMPARE[operator](left.data, right.data), missing)


def _alike(parts: list[Values]) -> list[Values]:
    """The same values, of one kind and with the same labels."""
    kinds = [part.kind for part in parts if part.kind != "nothing"]
    kind = "continuous" if "continuous" in kinds else next(iter(kinds), "nothing")
    labels = tuple(dict.fromkeys(label for part in parts for label in part.labels))
    order = common_order((part.order for part in parts), labels)
    dtype = {"continuous": np.float64, "boolean": np.bool_}.get(kind, np.int64)
    return [
        replace(part, kind=kind, data=part.data.astype(dtype), order=order)
        if kind != "text"
        else replace(_relabelled(part, labels), kind=kind, order=order)
        for part in parts
    ]


def _looked_up(values: Values, node: Lookup) -> Values:
    """What the table says of each value; what is not in it has the last of the results."""
    keys = [facing(key, values.facts) for key, _ in node.table]
    plain = [key.value if isinstance(key, Literal) else key for key in keys]
    last = len(plain)
    if values.kind == "text":
        place = {key: at for at, key in enumerate(plain)}
        at = np.array([place.get(label, last) for label in values.labels] or [last])[values.data]
    else:
        known = np.array([float(key) for key in plain if not isinstance(key, str | None)])
        order = np.argsort(known)
        found = np.minimum(np.searchsorted(known[order], values.data), last - 1)
        at = np.where(known[order][found] == values.data, order[found], last)
    results = _literals([*(result for _, result in node.table), node.otherwise])
    return replace(results, data=results.data[at], missing=results.missing[at] | values.missing)


def _literals(literals: list[Literal]) -> Values:
    """Literals of one kind, one a row."""
    facts = [of_literal(literal) for literal in literals]
    missing = np.array([not one.present for one in facts])
    kinds = {one.kind for one in facts if one.present}
    labels = tuple(dict.fromkeys(label for one in facts for label in one.labels))
    if labels:
        place = {label: at for at, label in enumerate(labels)}
        return Values(
            "text", np.array([place[one.labels[0]] if one.labels else 0 for one in facts]), missing, labels
        )
    kind = "continuous" if "continuous" in kinds else next(iter(kinds), "nothing")
    dtype = {"continuous": np.float64, "boolean": np.bool_}.get(kind, np.int64)
    return Values(kind, np.array([one.low for one in facts], dtype), missing)


def _relabelled(values: Values, labels: tuple[str, ...]) -> Values:
    """Places in other labels, which have them all; -1 for those that they do not have."""
    if values.labels == labels:
        return values
    place = {label: at for at, label in enumerate(labels)}
    places = np.array([place.get(label, -1) for label in values.labels] or [0], np.int64)
    return replace(values, data=places[values.data], labels=labels)


def _numbers(values: Values) -> Values:
    found = [label_number(label) for label in values.labels]
    integers = all(value is None or isinstance(value, int) for value in found)
    data = np.array([0 if value is None else value for value in found], np.int64 if integers else np.float64)
    none = np.array([value is None for value in found])
    kind = "integer" if integers else "continuous"
    return Values(kind, data[values.data], values.missing | none[values.data])
