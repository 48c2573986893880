"""`dpsynth budget`: the ledger, which says what each data set may spend and what it has spent."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli import completion
from dpsynth_cli.cli.options import Json, Neighbours, below_one, positive, print_json, print_table
from dpsynth_cli.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from dpsynth_cli.trusted.ledger.balance import Balance, Grant
    from dpsynth_cli.trusted.ledger.chain import Entry
    from dpsynth_cli.trusted.ledger.ledger import Ledger

app = typer.Typer(
    help="The ledger: what each data set may spend, and what it has spent.", no_args_is_help=True
)


NOTHING_GRANTED = "Nothing was granted."
LARGEST_EPSILON = 1_000_000

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="The ledger file. Else $DPSYNTH_LEDGER, else the user's data folder.",
        show_default=False,
    ),
]
DatasetArgument = Annotated[
    str | None,
    typer.Argument(
        help="Only this data set; else all.", show_default=False, autocompletion=completion.datasets
    ),
]


@app.command("init")
def init(ledger: LedgerOption = None, as_json: Json = False) -> None:
    """Make an empty ledger if there is none, and say where it is."""
    book = _ledger(ledger)
    made = book.create()
    number, own = book.head()
    if as_json:
        print_json({"ledger": str(book.path), "created": made, "head": _head(number, own)})
    elif made:
        typer.echo(f"Made an empty ledger: {book.path}")
    else:
        typer.echo(f"There is a ledger with {_count(number, 'entry', 'entries')}: {book.path}")


@app.command("grant")
def grant(
    dataset: Annotated[
        str,
        typer.Argument(
            help="The data set, as privacy.dataset in its specs.", autocompletion=completion.datasets
        ),
    ],
    epsilon: Annotated[str, typer.Argument(help="What all its releases together may spend, or more of it.")],
    delta: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="Count in rho (Gaussian), for releases with a delta; epsilon is then meant at this delta.",
            show_default=False,
        ),
    ] = None,
    neighbours: Annotated[
        Neighbours, typer.Option(help="The neighbour relation that the budget is kept under.")
    ] = Neighbours.add_remove,
    allow_groups: Annotated[
        bool, typer.Option("--allow-groups", help="Allow releases without differential privacy beside it.")
    ] = False,
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Limit what a data set may spend; a further grant of the same kind adds to it."""
    from dpsynth_cli.trusted.ledger.refusals import kind

    if positive("epsilon", epsilon, NOTHING_GRANTED) > LARGEST_EPSILON:
        raise UsageError(f"epsilon is above {LARGEST_EPSILON:,}, which protects nobody.", NOTHING_GRANTED)
    if delta is not None:
        below_one("delta", delta, NOTHING_GRANTED)
    book = _ledger(ledger)
    balance = book.grant(dataset, epsilon, neighbours.value, delta, allow_groups)
    if as_json:
        print_json({"ledger": str(book.path), **_balance_json(balance)})
    elif balance.grant is not None and balance.remaining is not None:
        granted = balance.grant
        typer.echo(
            f"{dataset} may spend {_amount(granted, granted.total)} in all, counted in {kind(granted)}; "
            f"{_amount(granted, balance.remaining)} is left."
        )


@app.command("show")
def show(dataset: DatasetArgument = None, ledger: LedgerOption = None, as_json: Json = False) -> None:
    """What each data set was granted, has spent and has left."""
    book = _ledger(ledger)
    balances = [book.balance(name) for name in _datasets(book, dataset)]
    if as_json:
        print_json({"ledger": str(book.path), "datasets": [_balance_json(balance) for balance in balances]})
    elif not balances:
        typer.echo(f"The ledger is empty: {book.path}")
    else:
        rows = [row for balance in balances for row in _balance_rows(balance)]
        print_table(["data set", "counted in", "granted", "spent", "left", "releases"], rows)


@app.command("log")
def log(dataset: DatasetArgument = None, ledger: LedgerOption = None, as_json: Json = False) -> None:
    """Every entry of the ledger, in order."""
    book = _ledger(ledger)
    if dataset is not None:
        _datasets(book, dataset)
    entries = book.log(dataset)
    if as_json:
        print_json({"ledger": str(book.path), "entries": [vars(entry) for entry in entries]})
    elif not entries:
        typer.echo(f"The ledger is empty: {book.path}")
    else:
        rows = [
            [str(entry.number), entry.time, entry.dataset, entry.kind, entry.release, _said(entry)]
            for entry in entries
        ]
        print_table(["entry", "time", "data set", "kind", "release", "what"], rows)


@app.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH",
            help="An entry's hash from a published audit: finds a cut-off tail or a restored old copy.",
            show_default=False,
        ),
    ] = None,
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Check that no entry was edited, removed, reordered or inserted, and no grant is overdrawn."""
    known = None if head is None else _parse_head(head)
    book = _ledger(ledger)
    problems = book.verify(known)
    found = {"ledger": str(book.path), "ok": not problems, "problems": problems}
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise VerificationError(
            f"the ledger {book.path} is not as it was written:{listed}",
            "Nothing was changed.",
            "Keep this file as it is, and compare it with its backups and with published audits.",
            found,
        )
    if as_json:
        print_json(found)
    else:
        number, own = book.head()
        typer.echo(f"The ledger is whole, {_count(number, 'entry', 'entries')}: {book.path}")
        typer.echo(f"Head: {own}")


# --- reading what was typed --------------------------------------------------------------------------


def _ledger(option: str | None) -> Ledger:
    from dpsynth_cli.trusted.ledger.ledger import Ledger, ledger_path

    return Ledger(ledger_path(option))


def _parse_head(text: str) -> str:
    own = text.strip().lower()
    if re.fullmatch(r"[0-9a-f]{64}", own) is None:
        raise UsageError(
            f"--head must be a hash of 64 hexadecimal digits; it is {text!r}.",
            "Nothing was checked.",
            "Every published audit has one: budget.ledger.hash.",
        )
    return own


def _datasets(book: Ledger, wanted: str | None) -> list[str]:
    names = book.datasets()
    if wanted is None:
        return names
    if wanted not in names:
        known = f"It has {', '.join(names)}." if names else "It is empty."
        raise UsageError(f"the ledger {book.path} has no data set {wanted!r}.", "Nothing was changed.", known)
    return [wanted]


# --- printing ----------------------------------------------------------------------------------------


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _head(number: int, own: str) -> dict[str, Any]:
    return {"entry": number, "hash": own}


def _amount(grant: Grant, amount: Fraction, *, up: bool = False) -> str:
    """An amount of a grant; a rho with the epsilon that it is worth at the grant's delta."""
    from dpsynth_cli.numbers import shown

    if grant.delta is None:
        return shown(amount, up=up)
    worth = grant.epsilon if amount == grant.total else grant.epsilon_of(amount)
    return f"{shown(amount, up=up)} (epsilon {shown(worth, up=up, digits=6)})"


def _balance_rows(balance: Balance) -> list[list[str]]:
    """A line for the grant, or without one a line for each unit: what differs in unit is not added up."""
    from dpsynth_cli.numbers import shown
    from dpsynth_cli.trusted.ledger.refusals import kind

    rows = []
    if balance.grant is not None and balance.charged is not None and balance.remaining is not None:
        grant, private = balance.grant, str(balance.releases - balance.unbounded)
        spent = _amount(grant, balance.charged, up=True)
        left = _amount(grant, balance.remaining)
        rows.append([kind(grant), _amount(grant, grant.total), spent, left, private])
    else:
        for unit, amount in balance.spent.items():
            rows.append([str(unit), "no limit", shown(amount), "", str(balance.counts[unit])])
    if balance.unbounded:
        rows.append(["no differential privacy", "", "unbounded", "", str(balance.unbounded)])
    return [[balance.dataset, *row] for row in rows or [["nothing", "no limit", "0", "", "0"]]]


def _balance_json(balance: Balance) -> dict[str, Any]:
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
        },
        **_with_epsilon("charged", granted, balance.charged),
        **_with_epsilon("remaining", granted, balance.remaining),
        "spent": [
            {"currency": unit.currency, "neighbours": unit.neighbours, "amount": str(amount)}
            for unit, amount in balance.spent.items()
        ],
        "releases": balance.releases,
        "unbounded": balance.unbounded,
    }


def _with_epsilon(key: str, grant: Grant | None, amount: Fraction | None) -> dict[str, str | None]:
    """An amount in the grant's unit, and as an epsilon at its delta."""
    if grant is None or amount is None:
        return {key: None, f"{key}_epsilon": None}
    return {key: str(amount), f"{key}_epsilon": str(grant.epsilon_of(amount))}


def _said(entry: Entry) -> str:
    """An entry's payload in a few words."""
    from dpsynth_cli.numbers import shown

    payload = entry.payload
    if payload.get("currency") == "unbounded":
        return "no differential privacy"
    if entry.kind == "grant":
        at = f" at delta = {shown(Fraction(payload['delta']))}" if payload["delta"] else ""
        return f"epsilon = {shown(Fraction(payload['epsilon']))}{at} under {payload['neighbours']}"
    if entry.kind == "reserve":
        words = f"{payload['currency']} = {shown(Fraction(payload['amount']))} under {payload['neighbours']}"
        return f"{words} ({payload['conversion']})" if payload.get("conversion") else words
    if entry.kind == "abort":
        return f"{payload['why']} ({'refunded' if payload['refunded'] else 'not refunded: rows were read'})"
    return ""
