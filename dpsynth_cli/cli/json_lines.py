"""What `--json` prints: exactly one line of JSON on standard output, whether a command succeeds or fails.

Amounts are exact text, and beside each is a number of the same name with _float. A failure is an object with
`error`: its exit code, what happened, what it cost and what to do next, as standard error says it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import typer

from dpsynth_cli.errors import NOTHING_SPENT, DpsynthError

AMOUNTS = frozenset(
    ("epsilon", "delta", "total", "spent", "charged", "remaining", "amount", "cost", "scale", "sensitivity")
)
_EPSILONS = ("charged_epsilon", "remaining_epsilon")
VERBATIM = ("spec", "payload")  # documents that are read or hashed again as they are


def print_json(document: Any) -> None:
    """One line on standard output. All but ASCII is escaped, so that any reader finds the end of the line."""
    typer.echo(json.dumps(with_numbers(document), allow_nan=False))


def wanted() -> bool:
    """Whether this command was asked for JSON: for errors that come before its options are read."""
    words = sys.argv[1:]
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def print_error(error: BaseException, exit_code: int, message: str) -> None:
    """The line of a command that failed."""
    if isinstance(error, DpsynthError):
        said = {"happened": error.happened, "cost": error.cost, "next_step": error.next_step}
    else:
        wrong_words = exit_code == 2  # on the command line, which is read before all else
        said = {"happened": message, "cost": NOTHING_SPENT if wrong_words else "", "next_step": ""}
    found = error.found if isinstance(error, DpsynthError) else {}
    print_json({"error": {"exit_code": exit_code, "kind": type(error).__name__, **said}, **found})


def with_numbers(value: Any) -> Any:
    """The same with a number beside each amount, and null for a number that JSON has not.

    >>> with_numbers({"spent": "1/3", "rows": 5, "noise": math.nan})
    {'spent': '1/3', 'spent_float': 0.3333333333333333, 'rows': 5, 'noise': None}
    """
    if isinstance(value, Mapping):
        made: dict[str, Any] = {}
        for key, inside in value.items():
            made[key] = inside if key in VERBATIM else with_numbers(inside)
            if (number := _amount(key, inside)) is not None:
                made.setdefault(f"{key}_float", number)
        return made
    if isinstance(value, (list, tuple)):
        return [with_numbers(inside) for inside in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _amount(key: str, value: Any) -> float | None:
    if not isinstance(value, str) or not (key in AMOUNTS or key in _EPSILONS):
        return None
    try:
        return float(Fraction(value))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
