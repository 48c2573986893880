"""What an expression can be, from what its columns can be: kinds and mistakes of a spec, and of every box of
rows that a search looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from dpsynth_cli.relations.arithmetic import arithmetic
from dpsynth_cli.relations.functions import FUNCTIONS
from dpsynth_cli.relations.kinds import (
    NUMBERS,
    Facts,
    either,
    facing,
    of_literal,
    truth,
)
from dpsynth_cli.relations.language import NotAnExpression
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

NOTHING = Facts("nothing", missing=True, present=False)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Typing:
    """Evaluates expressions over what columns can be. A `strict` one refuses labels that no row can have:
    they are misspelt."""

    def __init__(self, columns: Mapping[str, Facts], strict: bool = True) -> None:
        self.columns, self.strict = columns, strict

    def __call__(self, node: Expression) -> Facts:
        match node:
            case Literal():
                return of_literal(node)
            case Name(name, at):
                if name not in self.columns:
                    hint = _near(name, self.columns)
                    raise NotAnExpression(at, f"{name[:60]!r} is not a declared column{hint}")
                return self.columns[name]
            case Chain(first, rest, at):
                found = self(first)
                for operator, operand in rest:
                    found = arithmetic(operator, found, self(operand), at)
                return found
            case Negative(operand, at):
                return arithmetic("-", Facts("integer"), self._number(operand, at), at)
            case Compare(operator, left, right, at):
                return self._compared(operator, left, right, at)
            case Within(operand, choices, at):
                facts = self(operand)
                parts = [self._against("==", facts, choice, at) for choice in choices]
                return _any(parts)
            case IsMissing(operand):
                facts = self(operand)
                return truth(facts.missing, facts.present, False)
            case Not(operand, at):
                facts = self._boolean(operand, at)
                return truth(facts.can_be_false, facts.can_be_true, facts.missing)
            case Logic(operator, operands, at):
                parts = [self._boolean(operand, at) for operand in operands]
                return _any(parts) if operator == "or" else _all(parts)
            case Case():
                return self._case(node)
            case Lookup():
                return self._looked_up(node)
            case Call():
                return self._called(node)

    def _number(self, node: Expression, at: int) -> Facts:
        facts = self(node)
        if facts.kind not in (*NUMBERS, "nothing"):
            raise NotAnExpression(at, f"this is {facts.in_words}; it must be a number")
        return facts

    def _boolean(self, node: Expression, at: int) -> Facts:
        facts = self(node)
        if facts.kind not in ("boolean", "nothing"):
            raise NotAnExpression(at, f"this is {facts.in_words}; it must be true or false")
        return facts if facts.kind == "boolean" else truth(False, False, True)

    def _compared(self, operator: str, left: Expression, right: Expression, at: int) -> Facts:
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, operator = right, left, _TURNED[operator]
        facts = self(left)
        if isinstance(right, Literal):
            return self._against(operator, facts, right, at)
        return _comparison(operator, facts, self(right), at)

    def _against(self, operator: str, facts: Facts, literal: Literal, at: int) -> Facts:
        if literal.value is None:
            raise NotAnExpression(literal.at, "nothing equals missing; write `is missing`")
        other = facing(literal, facts)
        if isinstance(other, int):
            return _comparison(operator, facts, Facts(facts.kind, other, other), at)
        label = literal.value
        if self.strict and facts.kind == "text" and isinstance(label, str):
            known = facts.order or facts.labels
            if label not in known:
                problem = f"{label[:60]!r} is not a declared category here{_near(label, known)}"
                raise NotAnExpression(literal.at, problem)
        return _comparison(operator, facts, of_literal(literal), at)

    def _case(self, node: Case) -> Facts:
        parts, missing, open_ = [], False, True
        for condition, value in node.cases:
            facts, then = self._boolean(condition, node.at), self(value)
            parts.append((then, open_ and facts.can_be_true))
            missing = missing or (open_ and facts.missing)
            open_ = open_ and facts.can_be_false
        if node.otherwise is not None:
            parts.append((self(node.otherwise), open_))
        elif all(part.kind == "boolean" for part, _ in parts):
            parts.append((truth(True, False, False), open_))
        else:
            missing = missing or open_
        found = kind = NOTHING
        reached = False
        for part, can_be in parts:
            kind = either(kind, part, node.at)  # of one kind, whether it can be reached or not
            if can_be:
                found, reached = (either(found, part, node.at) if reached else part), True
        if not reached:
            return replace(kind, missing=True, present=False)
        if missing:
            found = either(found, NOTHING, node.at)
        return replace(found, kind=kind.kind)

    def _looked_up(self, node: Lookup) -> Facts:
        facts = self(node.operand)
        found: Facts | None = None
        left = facts
        for key, value in node.table:
            same = self._against("==", facts, key, node.at)
            if same.can_be_true:
                found = of_literal(value) if found is None else either(found, of_literal(value), node.at)
                if facts.point:
                    left = Facts("nothing", present=False)
        known = {key.value for key, _ in node.table}
        covered = facts.kind == "text" and set(facts.labels) <= known
        if facts.kind == "integer" and facts.high - facts.low < len(known):
            covered = all(value in known for value in range(int(facts.low), int(facts.high) + 1))
        if facts.kind == "boolean":
            covered = {True, False} <= known
        if left.present and not covered:
            rest = of_literal(node.otherwise)
            found = rest if found is None else either(found, rest, node.at)
        kind = of_literal(node.otherwise)
        for _, value in node.table:
            kind = either(kind, of_literal(value), node.at)
        if found is None:
            return replace(kind, missing=True, present=False)
        if facts.missing:
            found = either(found, NOTHING, node.at)
        return replace(found, kind=kind.kind)

    def _called(self, node: Call) -> Facts:
        function = FUNCTIONS.get(node.function)
        if function is None:
            known = ", ".join(FUNCTIONS)
            problem = f"there is no function {node.function[:60]!r}{_near(node.function, FUNCTIONS)}"
            raise NotAnExpression(node.at, f"{problem}; the functions are {known}")
        count = len(node.arguments)
        if not function.least <= count <= function.most:
            some = str(function.least)
            some += f" to {function.most}" if function.most > function.least else ""
            raise NotAnExpression(node.at, f"{node.function} takes {some} of them, not {count}")
        given = [self(argument) for argument in node.arguments]
        for one in given:
            if function.kinds and one.kind not in function.kinds:
                allowed = " or ".join(dict.fromkeys(Facts(kind).in_words for kind in function.kinds))
                raise NotAnExpression(node.at, f"{node.function} is of {allowed}, not of {one.in_words}")
        return function.facts(given, node.at)


def _comparison(operator: str, left: Facts, right: Facts, at: int) -> Facts:
    missing, present = left.missing or right.missing, left.present and right.present
    if "nothing" in (left.kind, right.kind):
        return truth(False, False, True)
    kinds = {left.kind, right.kind}
    if len(kinds) > 1 and not kinds <= set(NUMBERS):
        hint = ""
        if kinds == {"text", "integer"} or kinds == {"text", "continuous"}:
            hint = "; a label that writes a number is one as number(column)"
        if kinds == {"text", "boolean"}:
            hint = (
                "; a boolean column is a condition by itself, whatever is written for true: its name, or not "
            )
            hint += "its name"
        problem = f"{left.in_words} and {right.in_words} cannot be compared{hint}"
        raise NotAnExpression(at, problem)
    if left.kind == "text":
        return _compared_labels(operator, left, right, at, missing, present)
    if operator not in ("==", "!=") and kinds == {"boolean"}:
        raise NotAnExpression(at, "true and false are compared by == and !=")
    (a, b), (c, d) = (left.low, left.high), (right.low, right.high)
    point = a == b == c == d
    true, false = {
        "<": (a < d, b >= c),
        "<=": (a <= d, b > c),
        ">": (b > c, a <= d),
        ">=": (b >= c, a < d),
        "==": (a <= d and c <= b, not point),
        "!=": (not point, a <= d and c <= b),
    }[operator]
    return truth(true and present, false and present, missing)


def _compared_labels(
    operator: str, left: Facts, right: Facts, at: int, missing: bool, present: bool
) -> Facts:
    if operator in ("==", "!="):
        same = bool(set(left.labels) & set(right.labels))
        other = not (left.labels == right.labels and len(left.labels) == 1)
        true, false = (same, other) if operator == "==" else (other, same)
        return truth(true and present, false and present, missing)
    order = left.order or right.order
    if not order or (left.order and right.order and left.order != right.order):
        raise NotAnExpression(at, "only categories of an ordinal column have an order; use == or !=")
    try:
        places = [[order.index(label) for label in side.labels] for side in (left, right)]
    except ValueError:
        raise NotAnExpression(at, "this is not one of the ordinal column's categories") from None
    low, high = (Facts("integer", min(own), max(own)) for own in places)
    found = _comparison(operator, low, high, at)
    return truth(found.can_be_true and present, found.can_be_false and present, missing)


def _any(parts: Sequence[Facts]) -> Facts:
    surely = any(not part.can_be_false and not part.missing for part in parts)
    true = any(part.can_be_true for part in parts)
    false = all(part.can_be_false for part in parts)
    return truth(true, false, any(part.missing for part in parts) and not surely)


def _all(parts: Sequence[Facts]) -> Facts:
    never = any(not part.can_be_true and not part.missing for part in parts)
    true = all(part.can_be_true for part in parts)
    false = any(part.can_be_false for part in parts)
    return truth(true, false, any(part.missing for part in parts) and not never)


def _near(word: str, words: Mapping[str, object] | Sequence[str]) -> str:
    near = get_close_matches(word[:80], list(words)[:2000], n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
