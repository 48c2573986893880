"""`dpsynth budget grant`, `revoke`, `close`, `refund` and `policy`: what the owner of a ledger decides."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth_cli.cli import completion
from dpsynth_cli.cli.budget_words import LedgerOption, amount, balance_json, opened, policy_lines
from dpsynth_cli.cli.options import Json, Neighbours, below_one, positive, print_json
from dpsynth_cli.errors import UsageError

if TYPE_CHECKING:
    from dpsynth_cli.trusted.ledger.balance import Balance

NOTHING_GRANTED = "Nothing was granted."
NOTHING_CHANGED = "Nothing was changed."
LARGEST_EPSILON = 1_000_000

Name = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="The data set, as privacy.dataset in its specs; or a pattern such as 'census-*': all that "
        "match, together.",
        autocompletion=completion.datasets,
    ),
]


def grant(
    dataset: Name,
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
    unit: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The column of privacy.unit, where the budget protects persons with several rows.",
            show_default=False,
        ),
    ] = "",
    allow_groups: Annotated[
        bool, typer.Option("--allow-groups", help="Allow releases without differential privacy beside it.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="In place of the grant there is, of any kind: the total, what was spent included.",
        ),
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
    book = opened(ledger)
    balance = book.grant(dataset, epsilon, neighbours.value, delta, allow_groups, replace, unit)
    if as_json:
        print_json({"ledger": str(book.path), **balance_json(balance)})
    elif balance.grant is not None and balance.remaining is not None:
        granted = balance.grant
        typer.echo(
            f"{dataset} may spend {amount(granted, granted.total)} in all, counted in {kind(granted)}; "
            f"{amount(granted, balance.remaining, balance.apart)} is left."
        )


def revoke(dataset: Name, ledger: LedgerOption = None, as_json: Json = False) -> None:
    """Take back what is left of a grant: no more releases until there is a new one.

    The next grant is then the total again, what was spent included.
    """
    book = opened(ledger)
    balance = book.revoke(dataset)
    _tell(
        str(book.path), balance, "is revoked: nothing more may be spent until there is a new grant", as_json
    )


def close(dataset: Name, ledger: LedgerOption = None, as_json: Json = False) -> None:
    """End a data set for ever: no more releases, and no more grants."""
    book = opened(ledger)
    balance = book.close(dataset)
    _tell(str(book.path), balance, "is closed: nothing more is released from it", as_json)


def _tell(path: str, balance: Balance, words: str, as_json: bool) -> None:
    if as_json:
        print_json({"ledger": path, **balance_json(balance)})
    else:
        typer.echo(f"{balance.dataset} {words}.")


def refund(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="The release's id: dpsynth status.")],
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Give back the charge of a release that was cut off before it read a row.

    If its process still runs somewhere, that will be refused: it can no longer read a row.
    """
    book = opened(ledger)
    state = book.state(release)
    if state != "reserved":
        why = "the ledger does not know it" if state is None else f"it is {state}"
        raise UsageError(
            f"the charge of {release} cannot be given back: {why}.",
            NOTHING_CHANGED,
            "Only what has read no row is given back. See: dpsynth status",
        )
    book.refund(release, "given back by hand")
    if as_json:
        print_json({"ledger": str(book.path), "release": release, "refunded": True})
    else:
        typer.echo(f"The charge of {release} is given back: no row was read for it.")


def policy(
    require_grant: Annotated[
        bool | None,
        typer.Option(
            "--require-grant/--no-require-grant",
            help="Refuse (exit code 3) to release a data set that no grant covers.",
            show_default=False,
        ),
    ] = None,
    most_epsilon: Annotated[
        str | None,
        typer.Option("--most-epsilon", metavar="E", help="The most that one release may cost, or any."),
    ] = None,
    most_delta: Annotated[
        str | None,
        typer.Option(
            "--most-delta", metavar="D", help="The largest delta of a release, 0 for none at all, or any."
        ),
    ] = None,
    person: Annotated[
        str,
        typer.Option(
            "--person", metavar="USER", help="Only for this user of the operating system; else for everybody."
        ),
    ] = "",
    ledger: LedgerOption = None,
    as_json: Json = False,
) -> None:
    """Show the ledger's own rules, or change them: for everybody, or for one person of the team.

    A rule for one person goes before the rule for everybody, stricter or not.
    """
    from dpsynth_cli.trusted.ledger.policy import Policy

    book = opened(ledger)
    stated = {"require_grant": require_grant, "most_epsilon": most_epsilon, "most_delta": most_delta}
    only = [rule for rule, said in stated.items() if said is not None]
    if only:
        any_epsilon = most_epsilon in (None, "any")
        new = Policy(
            require_grant,
            None if any_epsilon else positive("epsilon", str(most_epsilon), NOTHING_CHANGED),
            None if most_delta is None else _delta(most_delta),
        )
        book.set_policy(new, person, only)
    rules = book.policies()
    if as_json:
        print_json({"ledger": str(book.path), "policies": {who: own.as_json() for who, own in rules.items()}})
        return
    for line in policy_lines(rules):
        typer.echo(line)


def _delta(text: str) -> Fraction | None:
    if text == "any":
        return None
    return Fraction(0) if text == "0" else below_one("delta", text, NOTHING_CHANGED)
