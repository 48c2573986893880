"""The bill of one run: every question is charged before it is answered; and what was answered before.

Without rows and without noise: a release asks through `curator.py`, and whoever verifies one through
`recorded_ask`, which gives the recorded answers again, at their prices, and has nothing else to give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dpsynth_cli.domain import Domain
from dpsynth_cli.labels import unpacked
from dpsynth_cli.questions import Answer, Asking, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.prices import Charge, charge_for


class TranscriptMismatch(ValueError):
    """The recorded answers do not fit what the mechanism asks."""


class Bill:
    """All charges so far. `recorded` are the answers of an interrupted run, (question as JSON, answer) in
    order: they are charged and given again, and nothing that they answer is asked a second time. `charge` is
    what a question costs: a stream's, over the whole life of an event.
    """

    def __init__(
        self,
        omega: Domain,
        accountant: Accountant,
        recorded: Iterable[tuple[object, Answer]] = (),
        charge: Callable[[Question, Domain, Accountant], Charge] = charge_for,
    ) -> None:
        self.omega, self.accountant, self._charge_for = omega, accountant, charge
        self.charges: list[Charge] = []
        self._recorded = list(recorded)

    def declare(self, omega: Domain) -> None:
        """From now on questions are about these columns. Which they are follows from public facts and earlier
        answers, so that no answer tells more than its price."""
        self.omega = omega

    def charge(self, questions: Sequence[Question]) -> tuple[list[Charge], list[Answer]]:
        """Charge all questions, or refuse all. Their charges, and the answers to the first of them, as far as
        they were recorded."""
        charges = [self._charge_for(question, self.omega, self.accountant) for question in questions]
        self.accountant.charge([charge.price for charge in charges])
        self.charges.extend(charges)
        answers: list[Answer] = []
        for charge in charges[: len(self._recorded)]:
            question, again = self._recorded.pop(0)
            if question != charge.asked or not _fits(again, charge):
                raise TranscriptMismatch("the recorded answers are to other questions")
            answers.append(again)
        return charges, answers

    def sd(self, question: Question) -> float:
        """The standard deviation that the noise of a question would have; nothing is charged."""
        return self._charge_for(question, self.omega, self.accountant).price.sd


def _fits(answer: Answer, charge: Charge) -> bool:
    """Whether it is as long as the question says; of labels, whether all are labels that reach the
    threshold."""
    if charge.price.threshold is None:
        return answer.lengths == charge.lengths
    try:
        counts = unpacked(answer.values)[1]
    except ValueError:
        return False
    return len(answer.lengths) == 1 and all(count >= charge.price.threshold for count in counts)


def recorded_ask(bill: Bill) -> Asking:
    """An `ask` that has the recorded answers and no more."""

    def answer(questions: Sequence[Question]) -> list[Answer]:
        charges, answers = bill.charge(questions)
        if len(answers) < len(charges):
            raise TranscriptMismatch("the transcript ends before the mechanism does")
        return answers

    return Asking(answer, bill.sd)
