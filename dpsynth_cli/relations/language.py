r"""The text of an expression: arithmetic, comparison, `if`, lists, missing, and a few functions.

    expression := "if" expression "then" expression {"else" "if" ...} ["else" expression] | any
    any        := all {"or" all}
    all        := negation {"and" negation}
    negation   := "not" negation | comparison
    comparison := sum [("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") sum
                       | ["not"] "in" "[" literal {"," literal} "]" | "is" ["not"] "missing"]
    sum        := product {("+" | "-") product}
    product    := signed {("*" | "/" | "//" | "%") signed}
    signed     := "-" signed | atom
    atom       := number | text | "true" | "false" | "missing" | column | function "(" arguments ")"
                | "(" expression ")"

A text is in double or single quotes (the same quote twice is that quote), a column that is not one plain
word in backquotes. Nothing is evaluated by Python. Each character is looked at once, from each token there
is one way on, and nesting is bounded, so any text is an expression or an error in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, NoReturn

from dpsynth_cli import numbers
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
)

LONGEST = 4000  # characters
DEEPEST = 40  # parts inside parts
WORDS = ("if", "then", "else", "and", "or", "not", "in", "is", "missing", "true", "false")
_COMPARISONS = ("==", "=", "!=", "<=", "<", ">=", ">")
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{numbers.UNSIGNED})|(?P<word>[^\W\d]\w*)"
    r"""|(?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')|(?P<quoted>`(?:[^`]|``)*`)"""
    r"|(?P<sign>//|==|!=|<=|>=|[-+*/%=<>()\[\],]))"
)


class NotAnExpression(ValueError):
    """What is wrong with a text, and at which of its characters (from 1)."""

    def __init__(self, at: int, problem: str) -> None:
        self.at, self.problem = at, problem
        super().__init__(f"at character {at + 1}: {problem}")


class Token(NamedTuple):
    kind: str  # number, word, text, quoted, sign, end
    text: str
    at: int


def tokens(text: str) -> list[Token]:
    """The tokens of a text, and one for its end.

    >>> [token.text for token in tokens("hour // 100 is 'a''b'")]
    ['hour', '//', '100', 'is', "'a''b'", '']
    """
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if not match or match.lastgroup is None:
            at = end - len(text[at:end].lstrip())
            raise NotAnExpression(at, f"{_shown(text[at : at + 12])} cannot be read here")
        kind = match.lastgroup
        found.append(Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*found, Token("end", "", end)]


def parse(text: str) -> Expression:
    """The expression that a text writes; NotAnExpression says what is wrong, and where.

    >>> parse("hour > 2")
    Compare(operator='>', left=Name(name='hour', at=0), right=Literal(value=Fraction(2, 1), at=7), at=5)
    """
    if len(text) > LONGEST:
        raise NotAnExpression(LONGEST, f"an expression has at most {LONGEST:,} characters")
    parser = _Parser(tokens(text))
    found = parser.expression(0)
    rest = parser.token
    if rest.kind != "end":
        raise NotAnExpression(rest.at, f"{_shown(rest.text)} follows; the expression ended before it")
    return found


class _Parser:
    """Goes through the tokens once; each method takes what its line of the grammar says."""

    def __init__(self, found: list[Token]) -> None:
        self.found, self.next = found, 0

    @property
    def token(self) -> Token:
        return self.found[self.next]

    def expression(self, depth: int) -> Expression:
        at = self.token.at
        if depth > DEEPEST:
            raise NotAnExpression(at, f"this is nested more than {DEEPEST} deep")
        if not self.took("if"):
            return self.any(depth)
        cases, otherwise = [], None
        while True:
            condition = self.expression(depth + 1)
            self.expect("then")
            cases.append((condition, self.expression(depth + 1)))
            if not self.took("else"):
                break
            if not self.took("if"):
                otherwise = self.expression(depth + 1)
                break
        return Case(tuple(cases), otherwise, at)

    def any(self, depth: int) -> Expression:
        at, parts = self.token.at, [self.all(depth)]
        while self.took("or"):
            parts.append(self.all(depth))
        return Logic("or", tuple(parts), at) if len(parts) > 1 else parts[0]

    def all(self, depth: int) -> Expression:
        at, parts = self.token.at, [self.negation(depth)]
        while self.took("and"):
            parts.append(self.negation(depth))
        return Logic("and", tuple(parts), at) if len(parts) > 1 else parts[0]

    def negation(self, depth: int) -> Expression:
        at, times = self.token.at, 0
        while self.took("not"):
            times += 1
        found = self.comparison(depth)
        for _ in range(min(times, 2 - times % 2)):  # twice not is the same as not at all
            found = Not(found, at)
        return found

    def comparison(self, depth: int) -> Expression:
        left, at = self.sum(depth), self.token.at
        for sign in _COMPARISONS:
            if self.took(sign):
                right = self.sum(depth)
                if self.token.text in _COMPARISONS and self.token.kind == "sign":
                    _refuse(self.token, "one comparison at a time; join two by `and`")
                return Compare("==" if sign == "=" else sign, left, right, at)
        if self.took("is"):
            turned = self.took("not")
            self.expect("missing")
            return Not(IsMissing(left, at), at) if turned else IsMissing(left, at)
        turned = self.took("not")
        if turned or self.token[:2] == ("word", "in"):
            self.expect("in")
            within = Within(left, self.choices(), at)
            return Not(within, at) if turned else within
        return left

    def choices(self) -> tuple[Literal, ...]:
        self.expect("[")
        found = [self.literal()]
        while self.took(","):
            found.append(self.literal())
        self.expect("]")
        return tuple(found)

    def literal(self) -> Literal:
        at, minus = self.token.at, self.took("-")
        found = self.atom(DEEPEST) if self.token.kind in ("number", "text", "word") else None
        if isinstance(found, Literal) and minus and isinstance(found.value, Fraction):
            return Literal(-found.value, at)
        if not isinstance(found, Literal) or found.value is None or minus:
            raise NotAnExpression(at, "a list has numbers, texts in quotes, true or false")
        return found

    def sum(self, depth: int) -> Expression:
        return self.chain(("+", "-"), lambda: self.chain(("*", "//", "/", "%"), lambda: self.signed(depth)))

    def chain(self, signs: tuple[str, ...], operand: Callable[[], Expression]) -> Expression:
        at, first = self.token.at, operand()
        rest = []
        while self.token.kind == "sign" and self.token.text in signs:
            sign = self.take().text
            rest.append((sign, operand()))
        return Chain(first, tuple(rest), at) if rest else first

    def signed(self, depth: int) -> Expression:
        at, times = self.token.at, 0
        while self.took("-"):
            times += 1
        found = self.atom(depth)
        return Negative(found, at) if times % 2 else found

    def atom(self, depth: int) -> Expression:
        token = self.take()
        if token.kind == "number":
            value = numbers.decimal(token.text)
            if value is None:
                raise NotAnExpression(token.at, f"a number is 0 or {numbers.RANGE}")
            return Literal(value, token.at)
        if token.kind == "text":
            quote = token.text[0]
            return Literal(token.text[1:-1].replace(2 * quote, quote), token.at)
        if token.kind == "quoted":
            return Name(token.text[1:-1].replace("``", "`"), token.at)
        if token.text == "(" and token.kind == "sign":
            found = self.expression(depth + 1)
            self.expect(")")
            return found
        if token.kind == "word" and token.text in ("true", "false", "missing"):
            return Literal(None if token.text == "missing" else token.text == "true", token.at)
        if token.kind != "word" or token.text in WORDS:
            _refuse(token, "a column, a number, a text in quotes or ( must be here")
        if not self.took("("):
            return Name(token.text, token.at)
        arguments = [] if self.token.text == ")" else [self.expression(depth + 1)]
        while arguments and self.took(","):
            arguments.append(self.expression(depth + 1))
        self.expect(")")
        return Call(token.text, tuple(arguments), token.at)

    def take(self) -> Token:
        token = self.token
        self.next = min(self.next + 1, len(self.found) - 1)
        return token

    def took(self, text: str) -> bool:
        """Take a word or a sign, if it is the next token."""
        there = self.token.kind in ("word", "sign") and self.token.text == text
        if there:
            self.take()
        return there

    def expect(self, text: str) -> None:
        if not self.took(text):
            _refuse(self.token, f"`{text}` must be here")


def _refuse(token: Token, problem: str) -> NoReturn:
    instead = "it ends" if token.kind == "end" else f"there is {_shown(token.text)}"
    raise NotAnExpression(token.at, f"{problem}; {instead}")


def _shown(text: str) -> str:
    return ascii(text[:30])
