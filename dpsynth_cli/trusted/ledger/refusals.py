"""Every refusal of the ledger, in words: what was asked, what there is, what to do next."""

from __future__ import annotations

import shlex
from dataclasses import replace
from fractions import Fraction

from dpsynth_cli.errors import NOTHING_SPENT, BudgetError
from dpsynth_cli.numbers import enough, shown
from dpsynth_cli.trusted.ledger.balance import Account, is_pattern
from dpsynth_cli.trusted.ledger.grants import Cost, Grant, price_in
from dpsynth_cli.trusted.ledger.policy import Policy


def called(name: str) -> str:
    """A data set, or all that match a pattern."""
    return f"{name} (all that match, together)" if is_pattern(name) else name


def kind(grant: Grant) -> str:
    """What a grant is counted in, in words."""
    return str(grant.unit) if grant.delta is None else f"{grant.unit} at delta = {shown(grant.delta)}"


def grant_command(dataset: str, epsilon: str, grant: Grant) -> str:
    """The command that adds to a grant: of the same kind, or it would be refused."""
    delta = "" if grant.delta is None else f" --delta {enough(grant.delta, digits=1000)}"
    relation = "" if grant.unit.neighbours == "add_remove" else f" --neighbours {grant.unit.neighbours}"
    unit = f" --unit {shlex.quote(grant.protects)}" if grant.protects else ""
    return f"dpsynth budget grant {shlex.quote(dataset)} {epsilon}{delta}{relation}{unit}"


def too_little(account: Account, asked: Cost, charged: Fraction, conversion: str | None) -> BudgetError:
    """The grant has less left than the release costs."""
    grant, apart, left = account.grant, account.apart + asked.apart, account.left_for(asked.apart)
    assert grant is not None
    assert left is not None
    if grant.delta is not None and apart >= grant.delta:
        return _no_delta_left(account, asked, grant)
    dataset, currency = account.dataset, grant.unit.currency
    at = f" at delta = {shown(Fraction(asked.delta))}" if asked.delta else ""
    stated = f"epsilon = {asked.epsilon}{at}"
    why = f" (its {stated}: {conversion})" if conversion else f" (its {stated})" if currency == "rho" else ""
    needs = f"this release needs {currency} = {shown(charged)}{why}"
    worth = f" (epsilon {shown(grant.epsilon_of(left, apart), up=False, digits=6)})"
    has = f"{called(dataset)} has {shown(left, up=False)} left{'' if grant.delta is None else worth}"
    more = enough(grant.more_for(grant.total_beside(apart) - left + charged, apart))
    return BudgetError(
        f"{needs}, but {has}.",
        NOTHING_SPENT,
        "Lower privacy.epsilon, or ask the owner of the ledger for more: "
        + grant_command(dataset, more, grant),
    )


def _no_delta_left(account: Account, asked: Cost, grant: Grant) -> BudgetError:
    assert grant.delta is not None
    left = max(grant.delta - account.apart, Fraction(0))
    return BudgetError(
        f"this release spends delta = {shown(asked.apart)} on labels that nobody has listed, but "
        f"{called(account.dataset)} has {shown(left, up=False)} of its delta left.",
        NOTHING_SPENT,
        "State candidates of such columns, lower privacy.delta, or ask the owner of the ledger for a budget "
        "with a larger delta in its place.",
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
    if grant.protects and cost.unit.protects != grant.protects:
        changes.append(f"set privacy.unit to {{column: {grant.protects}, rows: K}}")
    elif not cost.unit.protects and (cost.unit.neighbours, grant.neighbours) == ("replace_one", "add_remove"):
        changes.append("set privacy.neighbours to add_remove")
    if (cost.unit.currency, grant.unit.currency) == ("rho", "epsilon"):
        changes.append("leave out privacy.delta")
    delta = grant.delta if cost.delta is None or grant.delta else Fraction(cost.delta)
    both = {cost.unit.neighbours, grant.neighbours}  # replace_one counts the other, too
    other = replace(
        grant,
        delta=delta,
        neighbours="replace_one" if "replace_one" in both else "add_remove",
        protects=cost.unit.protects if grant.protects else "",
    )
    return BudgetError(
        f"this release is counted in {cost.unit}, but the budget of {dataset} is {kind(grant)}: "
        "the one does not imply the other at any price.",
        NOTHING_SPENT,
        f"In the spec, {' and '.join(changes)}. Or ask the owner of the ledger for another budget in its "
        f"place, what was spent included: {_replacing(dataset, other)}",
    )


def _replacing(dataset: str, new: Grant) -> str:
    return f"{grant_command(dataset, enough(new.epsilon, digits=1000), new)} --replace"


def stopped(account: Account) -> BudgetError:
    """The owner has ended it."""
    if account.stopped == "closed":
        return BudgetError(
            f"{called(account.dataset)} is closed: nothing more is released from it.",
            NOTHING_SPENT,
            "See who closed it and when: dpsynth budget log",
        )
    return BudgetError(
        f"the budget of {called(account.dataset)} was revoked.",
        NOTHING_SPENT,
        "Ask the owner of the ledger for a new one: "
        f"dpsynth budget grant {shlex.quote(account.dataset)} EPSILON",
    )


def second_stream(dataset: str, name: str) -> BudgetError:
    """Somebody else, perhaps on another machine, was faster: a stream is charged once."""
    return BudgetError(
        f"the stream {name} of {dataset} is charged already, and goes on where it was started.",
        NOTHING_SPENT,
        "Push to it there, or bring its state here. If that is lost: dpsynth stream init SPEC --start-over",
    )


def against_the_rules(rule: str, dataset: str, cost: Cost, policy: Policy) -> BudgetError:
    """The ledger's own rules forbid it."""
    next_step = "Ask the owner of the ledger; its rules are shown by: dpsynth budget policy"
    if rule == "require_grant":
        happened = f"{dataset} has no grant, and this ledger releases nothing without one."
        next_step = (
            "Name the data set as its grant does (privacy.dataset), or ask the owner of the ledger for one: "
            f"dpsynth budget grant {shlex.quote(dataset)} EPSILON"
        )
    elif rule == "most_epsilon":
        asked = "no epsilon at all" if cost.epsilon is None else f"epsilon = {cost.epsilon}"
        most = shown(policy.most_epsilon or Fraction(0), up=False)
        happened = f"this release has {asked}, and this ledger allows you at most {most} for one release."
    else:
        most = shown(policy.most_delta or Fraction(0), up=False)
        asked = "no delta at all" if cost.epsilon is None else f"delta = {cost.delta}"
        happened = f"this release has {asked}, and this ledger allows you at most {most}."
    return BudgetError(happened, NOTHING_SPENT, next_step)


def check_stop(account: Account, kind: str, cost: str) -> None:
    """Refuse to end what has ended, and to take back what was never given."""
    if account.stopped == "closed":
        raise BudgetError(f"{called(account.dataset)} is closed already.", cost)
    if kind == "revoke" and account.grant is None:
        raise BudgetError(f"{called(account.dataset)} has no grant.", cost, "See: dpsynth budget show")


def check_grant(account: Account, new: Grant, cost: str, replace: bool = False) -> None:
    """Refuse a grant of another kind than the last, and one that is overdrawn from the start."""
    old = account.grant
    if account.stopped == "closed":
        raise BudgetError(f"{called(account.dataset)} is closed, for ever.", cost)
    if old is None or replace or account.stopped:
        _check_first_grant(account, new, cost)
    elif (old.unit, old.delta) != (new.unit, new.delta):
        raise BudgetError(
            f"the budget of {account.dataset} is {kind(old)}, and this grant is {kind(new)}: "
            "they do not add up.",
            cost,
            f"Grant more of the same kind: {grant_command(account.dataset, 'EPSILON', old)}. Or put this one "
            f"in its place, what was spent included: {_replacing(account.dataset, new)}",
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
        price = price_in(cost, new.unit)
        if price is None:
            raise BudgetError(
                f"{account.dataset} already has a release counted in {cost.unit}, which a budget in "
                f"{kind(new)} cannot count.",
                nothing,
                "Grant one that can: with --neighbours replace_one it counts both relations, "
                "with --delta both currencies.",
            )
        spent += price[0]
    if spent > new.total_beside(account.apart):
        raise BudgetError(
            f"{account.dataset} was already charged {new.unit.currency} = {shown(spent)}, more than this "
            f"grant of {shown(new.total, up=False)}.",
            nothing,
            "Grant what was spent and what may still be spent, together.",
        )
