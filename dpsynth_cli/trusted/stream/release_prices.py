"""What the counts of a release cost an event over its whole life: public, draws nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.questions import Answer, CellCounts, Cells, Question, Total
from dpsynth_cli.trusted.core.accountant import Accountant, Currency, Price, price
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.prices import Charge, charge_for
from dpsynth_cli.trusted.core.sensitivity import MAX_ROWS, Sensitivity, is_free
from dpsynth_cli.trusted.stream.factorisation import factorisation, phase_of

NOISE = {"rho": "factorised_gaussian", "epsilon": "branched_laplace"}


def release_charge(
    question: Question, omega: Domain, accountant: Accountant, release: int, most: int | None = None
) -> Charge:
    """What a level's counts cost an event over its whole life, and the noise of each row of C for that."""
    if is_free(question, omega) or not question.share:
        once = charge_for(replace(question, share=Fraction(1)), omega, accountant)
        return replace(once, question=question, price=Price("none", Fraction(0), Fraction(0), 0.0))
    return charge_over(question, omega, accountant.currency, accountant.total, phase_of(release, most).length)


@lru_cache(maxsize=128)
def charge_over(
    question: Question, omega: Domain, currency: Currency, total: Fraction, length: int
) -> Charge:
    """A question that is measured in every row of C of a phase of so many releases.

    A total is priced as a single cell: a row, or a unit, that is replaced by one of another push leaves one
    column of C and enters another, so that totals of releases change where that of a table does not.
    """
    method = factorisation(currency)
    asked = question
    if isinstance(question.statistic, Total):
        asked = replace(question, statistic=CellCounts(Cells(())))
    once = charge_for(asked, omega, Accountant(currency, total, total, Fraction(0)))
    norm = method.norm(length)
    moved = Sensitivity(once.sensitivity.l1 * norm, once.sensitivity.l2_squared * norm)
    try:
        paid = price(currency, total, question.share, moved.l1, moved.l2_squared)
        if MAX_ROWS * method.unit + 64 * paid.sd < 2**62:
            return replace(once, question=question, sensitivity=moved, price=paid)
    except ValueError:
        pass
    raise UsageError(
        f"epsilon is too small: the noise of step {question.step!r} would not fit in 64 bits.",
        next_step="Raise privacy.epsilon, or release fewer columns.",
    )


def release_bill(
    omega: Domain,
    accountant: Accountant,
    release: int,
    recorded: Iterable[tuple[object, Answer]] = (),
    most: int | None = None,
) -> Bill:
    """A bill of one release, of so many: the shares of all its levels add up to at most 1."""
    return Bill(omega, accountant, recorded, partial(release_charge, release=release, most=most))


def sd_of(bill: Bill, question: Question) -> float:
    """The standard deviation of a row's noise, in rows of the table."""
    return bill.sd(question) / factorisation(bill.accountant.currency).unit
