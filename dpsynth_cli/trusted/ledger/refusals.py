"""Every refusal of the ledger, in words: what was asked, what there is, what to do next."""

from __future__ import annotations

import shlex
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from dpsynth_cli.errors import NOTHING_SPENT, BudgetError
from dpsynth_cli.trusted.ledger.balance import Account, Cost, Grant, converted


def shown(amount: Fraction, *, up: bool = True, digits: int = 12) -> str:
    """The amount for people: exact as a decimal of so many digits if it is one, else rounded, and said so.

    Rounding goes up for what is needed, down for what is left: then a shortage always shows.

    >>> shown(Fraction(1, 10)), shown(Fraction(1, 10**30)), shown(Fraction(2, 3)), shown(Fraction(1200))
    ('0.1', '1e-30', 'about 0.666667', '1200')
    """
    short = decimal_of(amount, up=up, digits=digits)
    return _text(short) if Fraction(short) == amount else f"about {_text(short)}"


def enough(amount: Fraction, digits: int = 12) -> str:
    """A decimal that is at least the amount, to type on a command line: exact if digits allow.

    >>> enough(Fraction(1, 3))
    '0.333334'
    """
    return _text(decimal_of(amount, up=True, digits=digits))


def decimal_of(amount: Fraction, *, up: bool, digits: int = 12) -> Decimal:
    """The amount exactly if so many digits hold it, else rounded to 6 digits in the given direction."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    for precision in (digits, 6):
        context = Context(prec=precision, rounding=rounding, Emin=-100_000, Emax=100_000)
        short = context.divide(Decimal(amount.numerator), Decimal(amount.denominator))
        if Fraction(short) == amount:
            break
    return short


def _text(number: Decimal) -> str:
    if number == 0:
        return "0"
    plain = number.normalize(Context(prec=1000))
    return str(plain).lower() if plain.adjusted() < -6 else f"{plain:f}"


def kind(grant: Grant) -> str:
    """What a grant is counted in, in words."""
    return str(grant.unit) if grant.delta is None else f"{grant.unit} at delta = {shown(grant.delta)}"


def grant_command(dataset: str, epsilon: str, grant: Grant) -> str:
    """The command that adds to a grant: of the same kind, or it would be refused."""
    delta = "" if grant.delta is None else f" --delta {enough(grant.delta, digits=1000)}"
    relation = "" if grant.unit.neighbours == "add_remove" else f" --neighbours {grant.unit.neighbours}"
    return f"dpsynth budget grant {shlex.quote(dataset)} {epsilon}{delta}{relation}"


def too_little(
    dataset: str,
    asked: Cost,
    charged: Fraction,
    conversion: str | None,
    grant: Grant,
    left: Fraction,
) -> BudgetError:
    """The grant has less left than the release costs."""
    currency = grant.unit.currency
    at = f" at delta = {shown(Fraction(asked.delta))}" if asked.delta else ""
    stated = f"epsilon = {asked.epsilon}{at}"
    why = f" (its {stated}: {conversion})" if conversion else f" (its {stated})" if currency == "rho" else ""
    needs = f"this release needs {currency} = {shown(charged)}{why}"
    has = f"{dataset} has {shown(left, up=False)} left"
    more = enough(grant.more_for(grant.total - left + charged))
    return BudgetError(
        f"{needs}, but {has}.",
        NOTHING_SPENT,
        "Lower privacy.epsilon, or ask the owner of the ledger for more: "
        + grant_command(dataset, more, grant),
    )


def not_covered(dataset: str, cost: Cost, grant: Grant) -> BudgetError:
    """The grant is in a unit that the release's own does not imply."""
    if cost.unit is None:
        return BudgetError(
            f"this release has no differential privacy, and {dataset} has a budget that does not allow that.",
            NOTHING_SPENT,
            "Choose a mechanism that is differentially private, or ask the owner of the ledger to allow it: "
            f"{grant_command(dataset, 'EPSILON', grant)} --allow-groups",
        )
    changes = []
    if (cost.unit.neighbours, grant.unit.neighbours) == ("replace_one", "add_remove"):
        changes.append("set privacy.neighbours to add_remove")
    if (cost.unit.currency, grant.unit.currency) == ("rho", "epsilon"):
        changes.append("leave out privacy.delta")
    return BudgetError(
        f"this release is counted in {cost.unit}, but the budget of {dataset} is {kind(grant)}: "
        "the one does not imply the other at any price.",
        NOTHING_SPENT,
        f"In the spec, {' and '.join(changes)}.",
    )


def check_grant(account: Account, new: Grant, cost: str) -> None:
    """Refuse a grant of another kind than the last, and a first one that is overdrawn from the start."""
    old = account.grant
    if old is None:
        _check_first_grant(account, new, cost)
    elif (old.unit, old.delta) != (new.unit, new.delta):
        raise BudgetError(
            f"the budget of {account.dataset} is {kind(old)}, and this grant is {kind(new)}: "
            "they do not add up.",
            cost,
            f"Grant more of the same kind: {grant_command(account.dataset, 'EPSILON', old)}",
        )


def _check_first_grant(account: Account, new: Grant, nothing: str) -> None:
    spent = Fraction(0)
    for cost in account.costs.values():
        if cost.amount is None or cost.unit is None:
            if not new.allow_unbounded:
                raise BudgetError(
                    f"{account.dataset} already has a release without differential privacy.",
                    nothing,
                    "If the budget is to stand beside it, say so with --allow-groups.",
                )
            continue
        price = converted(cost.amount, cost.unit, new.unit)
        if price is None:
            raise BudgetError(
                f"{account.dataset} already has a release counted in {cost.unit}, which a budget in "
                f"{kind(new)} cannot count.",
                nothing,
                "Grant one that can: with --neighbours replace_one it counts both relations, "
                "with --delta both currencies.",
            )
        spent += price[0]
    if spent > new.total:
        raise BudgetError(
            f"{account.dataset} was already charged {new.unit.currency} = {shown(spent)}, more than this "
            f"grant of {shown(new.total, up=False)}.",
            nothing,
            "Grant what was spent and what may still be spent, together.",
        )
