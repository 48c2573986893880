"""Whether a query can be asked of the columns that there are, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpsynth_cli.errors import UsageError
from dpsynth_cli.inference.language import REGRESSIONS, Query
from dpsynth_cli.relations.facts import Typing
from dpsynth_cli.relations.kinds import NUMBERS, TIMES, Facts
from dpsynth_cli.relations.language import NotAnExpression
from dpsynth_cli.relations.nodes import Compare, Expression, Literal, Name, Within, inside, names

CALLED = {"quantile": "a quantile", "linear": "a linear regression", "logistic": "a logistic regression"}
SHOWN = 8  # categories that are listed


def check(query: Query, typing: Typing) -> None:
    """Numbers where numbers are needed, and a condition that is true or false."""
    if query.where is not None:
        facts = facts_of(query.where, "--where", typing)
        if facts.kind not in ("boolean", "nothing"):
            raise UsageError(f"--where is {facts.in_words}; it must be true or false.", "")
    if query.kind not in ("count", "share"):
        for place, part in enumerate(query.of):
            _check_part(query, part, place, typing)
    columns = [part.name if isinstance(part, Name) else None for part in query.of]
    if query.kind in REGRESSIONS and columns[0] is not None and columns[0] in columns[1:]:
        raise UsageError("the outcome of a regression is among its terms, too.", "", "Leave it out of these.")


def facts_of(expression: Expression, called: str, typing: Typing) -> Facts:
    """What an expression of columns can be; `called` is where it stands."""
    try:
        return typing(expression)
    except NotAnExpression as mistake:
        hint = _backquotes(expression, typing.columns) or _quotes_or_categories(expression, typing)
        raise UsageError(f"{called}: {mistake.problem}.", "", hint) from None


def _check_part(query: Query, part: Expression, place: int, typing: Typing) -> None:
    facts, kind = facts_of(part, "the query", typing), query.kind
    two = facts.kind == "text" and len(facts.labels) == 2
    if kind == "logistic" and place == 0:
        if facts.kind == "boolean" or two:
            return
        said = "the outcome of a logistic regression has two values."
        raise UsageError(said, "", "Write a comparison, such as x > 3.")
    indicators = kind in REGRESSIONS and place > 0 and facts.kind == "text"
    if facts.kind in (*NUMBERS, "boolean", "nothing") or indicators:
        return
    what = part.name if isinstance(part, Name) else "this"
    hint = ""
    if kind == "linear" and place == 0 and two:
        hint = f"Of two categories: logistic: {query.text.strip()}"
    elif kind == "mean" and facts.kind == "text":
        hint = f"share({what}) has the part of each category."
    elif facts.kind in TIMES and isinstance(part, Name):
        hint = f"year({what}) is a number."
    raise UsageError(f"{CALLED.get(kind, kind)} needs numbers, and {what} is {facts.in_words}.", "", hint)


def _backquotes(expression: Expression, columns: Iterable[str]) -> str:
    """What to write, where an expression has the first word of a name that is not one word."""
    words = {name.name for name in names(expression)}
    for column in columns:
        parts = re.findall(r"\w+", column)
        if len(parts) > 1 and parts[0] in words:
            return f"A name that is not one word stands in backquotes: `{column.replace('`', '``')}`"
    return ""


def _quotes_or_categories(node: Expression, typing: Typing) -> str:
    """What to write, where a column of categories is compared with a bare word, or with none of them."""
    if isinstance(node, Compare | Within):
        others: list[Expression] = [node.right] if isinstance(node, Compare) else [*node.choices]
        left = node.left if isinstance(node, Compare) else node.operand
        known = typing.columns.get(left.name) if isinstance(left, Name) else None
        if isinstance(left, Name) and known is not None and known.kind == "text":
            labels = known.order or known.labels
            for other in others:
                if isinstance(other, Name) and other.name not in typing.columns and other.name in labels:
                    return f"A category stands in quotes: '{other.name}'"
                if isinstance(other, Literal) and other.value not in labels:
                    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
                    return f"{left.name} has {', '.join(map(repr, labels[:SHOWN]))}{more}."
    return next((found for part in inside(node) if (found := _quotes_or_categories(part, typing))), "")
