"""Rules as an integer program: a row that keeps them, or the certainty that there is none.

A number is its code, a category one of several 0/1 variables, a missing value another one. Of every part of
a rule three 0/1 variables say "this is true", "this is false", "this is missing"; each of them *implies* what
it says, which is all that is needed: a solution is a row that keeps the rules, and from such a row follows a
solution. Solved by HiGHS (scipy.optimize.milp); what it finds is checked on the rules themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.relations.kinds import of_literal
from dpsynth_cli.relations.nodes import (
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
)
from dpsynth_cli.relations.relations import Relations, Rule
from dpsynth_cli.values import numbers_of

NODES = 5000  # of the search for integers: a limit in seconds would differ between machines
MOST_LABELS = 200
Terms = dict[int, Fraction]  # a weight for each variable; the constant is at -1


class NotLinear(Exception):
    """A part that is no linear comparison of numbers and no comparison of categories."""


def solved(
    relations: Relations,
    omega: Domain,
    columns: tuple[str, ...],
    rules: tuple[Rule, ...],
    fixed: Mapping[str, int],
) -> tuple[dict[str, int] | None, bool]:
    """Codes that keep the rules, or None; and whether that is certain."""
    program = _Program(relations, omega)
    try:
        for name in columns:
            program.column(name, fixed.get(name))
        for rule in rules:
            program.at_least([(program.says(rule.expression, "true"), 1),
                              (program.says(rule.expression, "missing"), 1)], 1)  # fmt: skip
    except NotLinear:
        return None, False
    found, certain = program.solution()
    if found is None:
        return None, certain
    row = {name: program.code(name, found) for name in columns}
    broken = relations.broken({name: np.array([code]) for name, code in row.items()}, omega, rules)
    return (None, False) if broken[0] else (row, True)


@dataclass
class _Program:
    relations: Relations
    omega: Domain
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    rows: list[tuple[Terms, float]] = field(default_factory=list)  # terms >= bound
    numbers: dict[str, int] = field(default_factory=dict)
    labels: dict[str, list[int]] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    exact: bool = True

    def variable(self, low: float = 0, high: float = 1) -> int:
        self.lower.append(low)
        self.upper.append(high)
        return len(self.lower) - 1

    def at_least(self, terms: list[tuple[int, int]], bound: float) -> None:
        self.rows.append(({at: Fraction(weight) for at, weight in terms}, bound))

    def column(self, name: str, fixed: int | None) -> None:
        column = self.omega[name]
        if column.type == "datetime" or (column.categorical and column.size > MOST_LABELS):
            raise NotLinear
        self.exact = self.exact and column.type != "continuous"
        here = fixed if fixed is not None and fixed < column.size else None
        missing = 1 if fixed is not None and fixed >= column.size else 0
        self.gone[name] = self.variable(missing, 1 if column.nullable and fixed is None else missing)
        if column.categorical:
            self.labels[name] = [self.variable(here == at, here in (None, at)) for at in range(column.size)]
            ones = {at: Fraction(1) for at in self.labels[name]}
            self.rows += [(ones, 1), ({at: -weight for at, weight in ones.items()}, -1)]
        else:
            low, high = (0, column.size - 1) if here is None else (here, here)
            self.numbers[name] = self.variable(low, high)

    def code(self, name: str, found: np.ndarray) -> int:
        if found[self.gone[name]] > 0.5:
            return self.omega[name].size
        if name in self.labels:
            return int(np.argmax(found[self.labels[name]]))
        return round(float(found[self.numbers[name]]))

    # --- parts of rules -------------------------------------------------------------------------------------

    def says(self, node: Expression, what: str) -> int:
        """A 0/1 variable: if it is 1, the expression is true, false or missing."""
        match node:
            case Literal(bool() as value):
                one = 1 if what == ("true" if value else "false") else 0
                return self.variable(one, one)
            case Not(operand):
                return self.says(operand, {"true": "false", "false": "true"}.get(what, what))
            case IsMissing(Name(name)) if name in self.gone:
                if what == "missing":
                    return self.variable(0, 0)
                found = self.variable()
                sign = 1 if what == "true" else -1
                self.at_least([(self.gone[name], sign), (found, -1)], 0 if sign == 1 else -1)
                return found
            case Logic(operator, operands):
                return self.logic(operator, operands, what)
            case Case(cases, otherwise):
                return self.case(cases, otherwise, what)
            case Within(operand, choices):
                parts = tuple(Compare("==", operand, choice) for choice in choices)
                return self.logic("or", parts, what)
            case Compare(operator, left, right):
                return self.compared(operator, left, right, what)
            case Name(name) if name in self.relations.by_name:
                return self.says(self.relations.by_name[name].expression, what)
            case Name(name) if name in self.labels and self.omega[name].type == "boolean":
                return self.compared("==", node, Literal("true"), what)
        raise NotLinear

    def any(self, parts: list[int]) -> int:
        found = self.variable()
        self.at_least([*((part, 1) for part in parts), (found, -1)], 0)
        return found

    def all(self, parts: list[int]) -> int:
        found = self.variable()
        for part in parts:
            self.at_least([(part, 1), (found, -1)], 0)
        return found

    def logic(self, operator: str, operands: tuple[Expression, ...], what: str) -> int:
        decides = "true" if operator == "or" else "false"
        if what == decides:
            return self.any([self.says(operand, what) for operand in operands])
        other = "false" if decides == "true" else "true"
        if what == other:
            return self.all([self.says(operand, what) for operand in operands])
        gone = [self.says(operand, "missing") for operand in operands]
        open_ = [self.any([self.says(operand, other), gone[i]]) for i, operand in enumerate(operands)]
        return self.all([self.any(gone), *open_])

    def case(
        self, cases: tuple[tuple[Expression, Expression], ...], otherwise: Expression | None, what: str
    ) -> int:
        (condition, value), *more = cases
        if more:
            rest: Expression = Case(tuple(more), otherwise)
        else:
            rest = Literal(True) if otherwise is None else otherwise
        ways = [
            self.all([self.says(condition, "true"), self.says(value, what)]),
            self.all([self.says(condition, "false"), self.says(rest, what)]),
        ]
        return self.any([*ways, self.says(condition, "missing")] if what == "missing" else ways)

    def compared(self, operator: str, left: Expression, right: Expression, what: str) -> int:
        if isinstance(left, Literal) and not isinstance(right, Literal):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
            left, right, operator = right, left, turned.get(operator, operator)
        if isinstance(left, Name) and left.name in self.labels and isinstance(right, Literal):
            terms, names = self.category(left.name, operator, right), {left.name}
        else:
            terms, names = self.difference(left, right), self.named(left) | self.named(right)
        gone = [self.gone[name] for name in names]
        if what == "missing":
            return self.any(gone)
        turned = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
        sign = operator if what == "true" else turned[operator]
        found = self.variable()
        for one in gone:
            self.at_least([(one, -1), (found, -1)], -1)
        if sign == "!=":
            ways = [self.holds(terms, "<"), self.holds(terms, ">")]
            self.at_least([*((way, 1) for way in ways), (found, -1)], 0)
        else:
            for part in ("<=", ">=") if sign == "==" else (sign,):
                self.at_least([(self.holds(terms, part), 1), (found, -1)], 0)
        return found

    def category(self, name: str, operator: str, literal: Literal) -> Terms:
        """The place of a category, less that of the literal; for == that it is another one."""
        column = self.omega[name]
        label = {True: "true", False: "false"}.get(literal.value, literal.value)  # type: ignore[arg-type]
        at = column.categories.index(label) if label in column.categories else -1
        places = enumerate(self.labels[name])
        if operator in ("==", "!="):
            return {variable: Fraction(place != at) for place, variable in places}
        return {variable: Fraction(place - at) for place, variable in places}

    def holds(self, terms: Terms, sign: str) -> int:
        """A 0/1 variable: if it is 1, terms are < 0, <= 0, > 0 or >= 0; whole ones > 0 are >= 1."""
        if sign in ("<", "<="):
            return self.holds({at: -weight for at, weight in terms.items()}, ">" if sign == "<" else ">=")
        whole = all(weight.denominator == 1 for weight in terms.values())
        bound = 0.0 if sign == ">=" else 1.0 if whole else 1e-9
        self.exact = self.exact and (whole or sign == ">=")
        constant = float(terms.get(-1, Fraction(0)))
        least = constant + sum(
            float(weight) * (self.lower[at] if weight > 0 else self.upper[at])
            for at, weight in terms.items()
            if at >= 0
        )
        found = self.variable()
        big = max(0.0, bound - least)
        own = {at: weight for at, weight in terms.items() if at >= 0}
        self.rows.append((own | {found: Fraction(-big)}, bound - constant - big))
        return found

    def named(self, node: Expression) -> set[str]:
        return set(self.relations.modelled(node))

    def difference(self, left: Expression, right: Expression) -> Terms:
        terms = self.sum(left)
        for at, weight in self.sum(right).items():
            terms[at] = terms.get(at, Fraction(0)) - weight
        return terms

    def sum(self, node: Expression) -> Terms:
        """A linear expression, in variables."""
        match node:
            case Literal(value) if of_literal(node).kind in ("integer", "continuous"):
                return {-1: Fraction(value)}  # type: ignore[arg-type]
            case Name(name) if name in self.relations.by_name:
                return self.sum(self.relations.by_name[name].expression)
            case Name(name) if name in self.numbers:
                column, at = self.omega[name], self.numbers[name]
                if column.scale != "linear":
                    raise NotLinear
                first, last = map(Fraction, numbers_of(np.array([0, column.size - 1]), column).tolist())
                return {at: (last - first) / max(1, column.size - 1), -1: first}
            case Negative(operand):
                return {at: -weight for at, weight in self.sum(operand).items()}
            case Chain(first, rest):
                terms = self.sum(first)
                for operator, operand in rest:
                    terms = _joined(operator, terms, self.sum(operand))
                return terms
        raise NotLinear

    def solution(self) -> tuple[np.ndarray | None, bool]:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        cells = [
            (i, at, float(weight)) for i, (terms, _) in enumerate(self.rows) for at, weight in terms.items()
        ]
        rows, at, weights = zip(*cells, strict=True)
        A = csr_array((weights, (rows, at)), shape=(len(self.rows), len(self.lower)))
        found = milp(
            np.zeros(len(self.lower)),
            constraints=LinearConstraint(A, [bound for _, bound in self.rows], np.inf),
            bounds=Bounds(self.lower, self.upper),
            integrality=np.ones(len(self.lower)),
            options={"node_limit": NODES},
        )
        if found.status == 0:
            return np.asarray(found.x), True
        return None, found.status == 2 and self.exact


def _joined(operator: str, one: Terms, other: Terms) -> Terms:
    if operator in ("+", "-"):
        sign = 1 if operator == "+" else -1
        return {at: one.get(at, Fraction(0)) + sign * other.get(at, Fraction(0)) for at in one | other}
    if operator == "*" and set(one) <= {-1}:
        one, other = other, one
    constant = other.get(-1, Fraction(0))
    if set(other) <= {-1} and operator == "*":
        return {at: weight * constant for at, weight in one.items()}
    if set(other) <= {-1} and operator == "/" and constant:
        return {at: weight / constant for at, weight in one.items()}
    raise NotLinear
