"""Amounts, balances and entries of the ledger, in words and in JSON; and what was typed about them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli import completion
from dpsynth_cli.errors import UsageError

if TYPE_CHECKING:
    from dpsynth_cli.trusted.ledger.balance import Balance
    from dpsynth_cli.trusted.ledger.chain import Entry
    from dpsynth_cli.trusted.ledger.grants import Grant
    from dpsynth_cli.trusted.ledger.ledger import Ledger
    from dpsynth_cli.trusted.ledger.policy import Policy

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="LEDGER",
        help="The ledger, a file or postgresql://...; else $DPSYNTH_LEDGER, else the user's data folder.",
        show_default=False,
    ),
]
DatasetArgument = Annotated[
    str | None,
    typer.Argument(
        help="Only this data set; else all.", show_default=False, autocompletion=completion.datasets
    ),
]


def opened(option: str | None) -> Ledger:
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

    return Ledger(ledger_path(option))


def parse_head(text: str) -> str:
    own = text.strip().lower()
    if re.fullmatch(r"[0-9a-f]{64}", own) is None:
        raise UsageError(
            f"--head must be a hash of 64 hexadecimal digits; it is {text!r}.",
            "Nothing was checked.",
            "Every published audit has one: budget.ledger.hash.",
        )
    return own


def data_sets(book: Ledger, wanted: str | None) -> list[str]:
    names = book.datasets()
    if wanted is None:
        return names
    if wanted not in names:
        known = f"It has {', '.join(names)}." if names else "It is empty."
        raise UsageError(f"the ledger {book.path} has no data set {wanted!r}.", "Nothing was changed.", known)
    return [wanted]


def count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def head_json(number: int, own: str) -> dict[str, Any]:
    return {"entry": number, "hash": own}


def amount(grant: Grant, value: Fraction, apart: Fraction = Fraction(0), *, up: bool = False) -> str:
    """An amount of a grant; a rho with the epsilon that it is worth at the grant's delta, less what is set
    apart of it."""
    from dpsynth_cli.numbers import shown

    if grant.delta is None:
        return shown(value, up=up)
    worth = grant.epsilon if value == grant.total else grant.epsilon_of(value, apart)
    return f"{shown(value, up=up)} (epsilon {shown(worth, up=up, digits=6)})"


def balance_rows(balance: Balance) -> list[list[str]]:
    """A line for the grant, or without one a line for each unit: what differs in unit is not added up."""
    from dpsynth_cli.numbers import shown
    from dpsynth_cli.trusted.ledger.refusals import kind

    rows = []
    if balance.grant is not None and balance.charged is not None and balance.remaining is not None:
        grant, private = balance.grant, str(balance.releases - balance.unbounded)
        spent = amount(grant, balance.charged, balance.apart, up=True)
        left = (
            f"0 ({balance.stopped})" if balance.stopped else amount(grant, balance.remaining, balance.apart)
        )
        rows.append([kind(grant), amount(grant, grant.total), spent, left, private])
    else:
        limit = balance.stopped or "no limit"
        for unit, total in balance.spent.items():
            rows.append([str(unit), limit, shown(total), "", str(balance.counts[unit])])
    if balance.unbounded:
        rows.append(["no differential privacy", "", "unbounded", "", str(balance.unbounded)])
    return [
        [balance.dataset, *row] for row in rows or [["nothing", balance.stopped or "no limit", "0", "", "0"]]
    ]


def balance_json(balance: Balance) -> dict[str, Any]:
    """The balance, with amounts as exact strings."""
    granted = balance.grant
    return {
        "dataset": balance.dataset,
        "grant": granted
        and {
            "total": str(granted.total),
            "currency": granted.unit.currency,
            "neighbours": granted.unit.neighbours,
            "epsilon": str(granted.epsilon),
            "delta": granted.delta and str(granted.delta),
            "allow_groups": granted.allow_unbounded,
            **({"unit": granted.protects} if granted.protects else {}),
        },
        **_with_epsilon("charged", granted, balance.charged, balance.apart),
        **_with_epsilon("remaining", granted, balance.remaining, balance.apart),
        "spent": [
            {"currency": unit.currency, "neighbours": unit.neighbours, "amount": str(amount)}
            | ({"unit": unit.protects} if unit.protects else {})
            for unit, amount in balance.spent.items()
        ],
        "releases": balance.releases,
        "unbounded": balance.unbounded,
        **({"stopped": balance.stopped} if balance.stopped else {}),
    }


def _with_epsilon(
    key: str, grant: Grant | None, amount: Fraction | None, apart: Fraction
) -> dict[str, str | None]:
    """An amount in the grant's unit, and as an epsilon at its delta."""
    if grant is None or amount is None:
        return {key: None, f"{key}_epsilon": None}
    return {key: str(amount), f"{key}_epsilon": str(grant.epsilon_of(amount, apart))}


def said(entry: Entry) -> str:
    """An entry's payload in a few words."""
    from dpsynth_cli.numbers import shown
    from dpsynth_cli.trusted.ledger.grants import by_unit

    payload = entry.payload
    under = f"under {payload.get('neighbours')}{by_unit(payload.get('unit', ''))}"
    by = f", by {payload['by']}" if payload.get("by") else ""
    if payload.get("currency") == "unbounded":
        return f"no differential privacy{by}"
    if entry.kind == "grant":
        at = f" at delta = {shown(Fraction(payload['delta']))}" if payload["delta"] else ""
        instead = ", instead of what was granted" if payload.get("replace") else ""
        return f"epsilon = {shown(Fraction(payload['epsilon']))}{at} {under}{instead}"
    if entry.kind == "reserve":
        at = f" (epsilon {payload['epsilon']} at delta = {payload['delta']})" if payload["delta"] else ""
        words = f"{payload['currency']} = {shown(Fraction(payload['amount']))}{at} {under}"
        return f"{words} ({payload['conversion']}){by}" if payload.get("conversion") else f"{words}{by}"
    if entry.kind == "abort":
        return f"{payload['why']} ({'refunded' if payload['refunded'] else 'not refunded: rows were read'})"
    if entry.kind == "policy":
        from dpsynth_cli.trusted.ledger.policy import Policy

        return policy_lines({payload["person"]: Policy.of(payload)})[0]
    return {"revoke": "no more until there is a new grant", "close": "no more, for ever"}.get(entry.kind, "")


def policy_lines(rules: dict[str, Policy]) -> list[str]:
    """The ledger's own rules, a line for each person."""
    from dpsynth_cli.numbers import shown

    lines = []
    for person, own in rules.items():
        said = {
            True: ["a data set needs a grant"],
            False: ["a data set needs no grant"],
            None: [],
        }[own.require_grant]
        if own.most_epsilon is not None:
            said.append(f"at most epsilon = {shown(own.most_epsilon, up=False)} a release")
        if own.most_delta is not None:
            said.append(f"at most delta = {shown(own.most_delta, up=False)}")
        lines.append(f"{person or 'everybody'}: {'; '.join(said) or 'no rule'}")
    return lines or ["The ledger has no rules of its own."]
