"""What questions about mixed columns cost a row of a stream over its whole life: public, draws nothing.

Sums are measured in every row of C and priced for a whole column. A `Misfit`, which is no sum, is asked once,
at the price of its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Answer, CellCounts, Gram, Misfit, Question, Total
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill, TranscriptMismatch
from dpsynth_cli.trusted.core.prices import Charge, charge_for
from dpsynth_cli.trusted.stream.factorisation import FIRST, factorisation
from dpsynth_cli.trusted.stream.release_prices import charge_over


def length_of(epoch: int) -> int:
    """The most steps that counters of an epoch have; epochs are numbered from 0.

    >>> [length_of(epoch) for epoch in range(2)]
    [128, 16384]
    """
    return int(FIRST ** (2**epoch))


def table_charge(question: Question, omega: Domain, accountant: Accountant, length: int) -> Charge:
    """What a question costs a row over its whole life, and the noise of each row of C for that."""
    if omega.neighbours != "add_remove":
        raise ValueError("tables of a stream are counted under add_remove only")
    statistic = question.statistic
    if isinstance(statistic, Misfit):
        return charge_for(question, omega, accountant)
    if isinstance(statistic, Total | CellCounts) or (isinstance(statistic, Gram) and statistic.scores):
        return charge_over(question, omega, accountant.currency, accountant.total, length)
    raise TranscriptMismatch("a stream counts tables and signs only")


def tables_bill(
    omega: Domain, accountant: Accountant, length: int, recorded: Sequence[tuple[object, Answer]] = ()
) -> Bill:
    """A bill of all that a row pays in an epoch: shares add up to at most 1."""
    return Bill(omega, accountant, recorded, partial(table_charge, length=length))


def table_sd(bill: Bill, question: Question) -> float:
    """The noise of a question's first answer, in rows of the table."""
    unit = 1 if isinstance(question.statistic, Misfit) else factorisation(bill.accountant.currency).unit
    return bill.sd(question) / unit
