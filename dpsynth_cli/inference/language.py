r"""The text of a query.

    query   := call ["by" column {"," column}] | ["logistic" ":"] expression "~" term {"+" term}
    call    := "count" "(" ")" | "share" "(" column ")"
             | ("mean" | "sum" | "sd" | "median") "(" expression ")"
             | "quantile" "(" expression "," number ")" | "corr" "(" expression "," expression ")"

Expressions and names of columns are those of `derive` and `rules` (relations/language.py). Any text is a
query or an error in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from itertools import pairwise

from dpsynth_cli.errors import UsageError
from dpsynth_cli.relations.language import LONGEST, NotAnExpression, parse, tokens
from dpsynth_cli.relations.nodes import Call, Chain, Expression, Literal, Name, names

ARGUMENTS = {"count": 0, "share": 1, "mean": 1, "sum": 1, "sd": 1, "median": 1, "quantile": 2, "corr": 2}
ALSO = {  # what others call them
    "average": "mean", "avg": "mean", "std": "sd", "stdev": "sd", "var": "sd", "variance": "sd",
    "cor": "corr", "percentile": "quantile", "proportion": "share", "prop": "share", "n": "count",
    "total": "sum",
}  # fmt: skip
REGRESSIONS = ("linear", "logistic")
EXAMPLES = 'Queries look like "mean(income) by sex", "count() by sex, education" or "income ~ age + sex".'
_LOGISTIC = re.compile(r"\s*logistic\s*:")
_TILDE = re.compile(r"""[^~"'`]+|"[^"]*"|'[^']*'|`[^`]*`|~""")


@dataclass(frozen=True)
class Query:
    """What is asked: a statistic of expressions, for each group of columns; or a regression of the first
    expression on the others, whose texts are `terms`. `where` keeps rows, `level` is for quantiles."""

    kind: str
    of: tuple[Expression, ...]
    by: tuple[str, ...] = ()
    level: Fraction = Fraction(1, 2)
    where: Expression | None = None
    terms: tuple[str, ...] = ()
    text: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that it names, each once, in order."""
        parts = (*self.of, *([] if self.where is None else [self.where]))
        found = [name.name for part in parts for name in names(part)]
        return tuple(dict.fromkeys([*found, *self.by]))


def parse_query(text: str, where: str | None = None) -> Query:
    """The query that a text writes, about the rows that a condition keeps.

    >>> query = parse_query("mean(income) by sex, education")
    >>> query.kind, query.by, query.named
    ('mean', ('sex', 'education'), ('income', 'sex', 'education'))
    """
    for given in (text, where or ""):
        if len(given) > LONGEST:
            raise UsageError(f"a query and a condition have at most {LONGEST:,} characters.", "", EXAMPLES)
    try:
        condition = None if where is None else parse(where)
    except NotAnExpression as mistake:
        raise UsageError(f"--where {where!r}: {mistake}.", "", "It is written as in rules.") from None
    try:
        kind, of, by, level = _formula(text) if _tilde(text) is not None else _call(text)
    except NotAnExpression as mistake:
        raise UsageError(f"the query {text[:200]!r}: {mistake}.", "", EXAMPLES) from None
    terms = tuple(_texts(text, of[1:])) if kind in REGRESSIONS else ()
    return Query(kind, of, by, level, condition, terms, text)


_Parts = tuple[str, tuple[Expression, ...], tuple[str, ...], Fraction]


def _tilde(text: str) -> int | None:
    """Where a ~ stands outside of quotes."""
    return next((part.start() for part in _TILDE.finditer(text) if part[0] == "~"), None)


def _formula(text: str) -> _Parts:
    head = _LOGISTIC.match(text)
    start = head.end() if head else 0
    tilde = _tilde(text)
    assert tilde is not None
    outcome, right = _parsed(text[start:tilde], start), _parsed(text[tilde + 1 :], tilde + 1)
    return "logistic" if head else "linear", (outcome, *_terms(right, tilde + 1)), (), Fraction(1, 2)


def _terms(right: Expression, start: int) -> Iterator[Expression]:
    if not isinstance(right, Chain) or any(sign in "*/%//" for sign, _ in right.rest):
        yield right
        return
    for sign, term in right.rest:
        if sign != "+":
            raise NotAnExpression(start + term.at, "terms of a regression are joined by +")
    yield right.first
    yield from (term for _, term in right.rest)


def _texts(text: str, terms: tuple[Expression, ...]) -> Iterator[str]:
    """What was written of each term."""
    tilde = _tilde(text)
    right = text[0 if tilde is None else tilde + 1 :]
    ends = [*(term.at for term in terms[1:]), len(right)]
    for term, end in zip(terms, ends, strict=True):
        yield right[term.at : end].strip().removesuffix("+").strip()


def _parsed(text: str, start: int) -> Expression:
    try:
        return parse(text)
    except NotAnExpression as mistake:
        raise NotAnExpression(mistake.at + start, mistake.problem) from None


def _call(text: str) -> _Parts:
    found = tokens(text)
    split = next((token for token in found if token[:2] == ("word", "by")), None)
    for before, token in pairwise(found):
        if token[:2] == ("word", "where") and (before.text == ")" or before.kind in ("word", "quoted")):
            raise NotAnExpression(
                token.at, f"a condition is an option: --where {text[token.at + 5 :].strip()!r}"
            )
    call = parse(text if split is None else text[: split.at])
    if not isinstance(call, Call) or call.function not in ARGUMENTS:
        begins = f"it begins with one of {', '.join(ARGUMENTS)}, or it is a formula with ~"
        raise NotAnExpression(0, begins + (_near(call.function) if isinstance(call, Call) else ""))
    kind, of = call.function, call.arguments
    if len(of) != ARGUMENTS[kind]:
        groups = f"; groups stand behind by: count() by {found[2].text}" if kind == "count" else ""
        raise NotAnExpression(call.at, f"{kind} takes {_arguments(ARGUMENTS[kind])}{groups}")
    level = Fraction(1, 2)
    if kind == "quantile":
        given = of[1].value if isinstance(of[1], Literal) else None
        if isinstance(given, bool) or not isinstance(given, Fraction) or not 0 < given < 1:
            raise NotAnExpression(of[1].at, "the second argument of quantile is a number between 0 and 1")
        of, level = of[:1], given
    if kind == "share" and not isinstance(of[0], Name):
        raise NotAnExpression(of[0].at, "share takes a column")
    by = () if split is None else tuple(_columns(text, split.at + 2))
    return ("quantile" if kind == "median" else kind), of, by, level


def _near(function: str) -> str:
    """What an unknown statistic may be called here."""
    known = list(ARGUMENTS)
    near = [ALSO.get(function.lower()), *get_close_matches(function.lower(), known, n=1)]
    return next((f" (did you mean {name}?)" for name in near if name), "")


def _arguments(count: int) -> str:
    return {0: "nothing", 1: "one argument"}.get(count, f"{count} arguments")


def _columns(text: str, start: int) -> Iterator[str]:
    rest = tokens(text[start:])
    for place in range(0, len(rest), 2):
        column, after = rest[place], rest[min(place + 1, len(rest) - 1)]
        if column.kind not in ("word", "quoted"):
            raise NotAnExpression(start + column.at, "a column must be here")
        yield column.text if column.kind == "word" else column.text[1:-1].replace("``", "`")
        if after.kind == "end":
            return
        if after.text != ",":
            raise NotAnExpression(
                start + after.at,
                "columns are separated by commas; a name that is not one word stands in backquotes, and a "
                "condition in --where",
            )
