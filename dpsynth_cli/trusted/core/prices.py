"""What a question costs, and which noise that buys: public, a function of the question alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import Misfit, OpenLabels, Question
from dpsynth_cli.trusted.core.accountant import Accountant, Currency, Price, price
from dpsynth_cli.trusted.core.checks import check_question
from dpsynth_cli.trusted.core.sensitivity import Sensitivity, is_free, largest_value, sensitivity
from dpsynth_cli.trusted.core.shapes import columns_of, lengths_of
from dpsynth_cli.trusted.core.threshold import threshold


@dataclass(frozen=True)
class Charge:
    """One question's line in the bill."""

    question: Question
    lengths: tuple[int, ...]
    sensitivity: Sensitivity
    price: Price
    table: str = ""  # that it is about, where a release has several

    @cached_property
    def asked(self) -> Any:
        """The question as transcripts have it; not to be written on."""
        return as_json(self.question)

    def as_json(self) -> dict[str, Any]:
        """The line as the audit shows it; amounts are exact strings."""
        moved, noise = self.sensitivity, self.price.noise
        norm, value = {
            "rounded_gaussian": ("L2 squared", moved.l2_squared),
            "discrete_cube": ("Linf", moved.largest),
        }.get(noise, ("L1", moved.l1))
        parameter = {"none": None, "rounded_gaussian": "variance"}.get(noise, "scale")
        line: dict[str, Any] = {
            **({"table": self.table} if self.table else {}),
            "step": self.question.step,
            "question": type(self.question.statistic).__name__,
            "columns": sorted(columns_of([self.question])),
            "by": self.question.by,
            "cells": sum(self.lengths),
            "noise": noise,
        }
        if parameter:
            line[parameter] = str(self.price.parameter)
            line["standard_deviation"] = self.price.sd
            line["sensitivity"] = {"norm": norm, "value": str(value)}
        line["cost"] = str(self.price.cost)
        if self.price.threshold is not None:
            line |= {"threshold": self.price.threshold, "delta": str(self.price.delta)}
        return line


def charge_for(question: Question, omega: Domain, accountant: Accountant) -> Charge:
    """The bill for one question; nothing is charged or read by asking for it."""
    # Here, since a float may equal a share whose price is known already.
    if not isinstance(question.share, Fraction | int):
        raise TypeError("a share must be a Fraction: a float is not the number that was meant")
    # Not kept: it may have a million integers, which are there for one question only.
    priced = _priced if isinstance(question.statistic, Misfit) else _priced_before
    return priced(question, omega, accountant.currency, accountant.total)


def _priced(question: Question, omega: Domain, currency: Currency, total: Fraction) -> Charge:
    check_question(question, omega)
    moved, lengths = sensitivity(question, omega), lengths_of(question, omega)
    if is_free(question, omega):
        free = Price("none", Fraction(0), Fraction(0), 0.0)
        return Charge(question, lengths, moved, free, omega.table)
    if question.share <= 0:
        raise ValueError("a question needs a positive share")
    if isinstance(question.statistic, OpenLabels) and currency != "rho":
        raise ValueError("labels that nobody has listed need a delta")
    try:
        cube = None if moved.largest is None else (moved.largest, max(lengths))
        paid = price(currency, total, question.share, moved.l1, moved.l2_squared, cube)
        if isinstance(question.statistic, OpenLabels):
            paid = _with_threshold(paid, question.statistic)
        if largest_value(question.statistic) + 64 * paid.sd < 2**62:
            return Charge(question, lengths, moved, paid, omega.table)
    except ValueError:
        pass
    raise UsageError(
        f"epsilon is too small: the noise of step {question.step!r} would not fit in 64 bits.",
        next_step="Raise privacy.epsilon, or release fewer columns.",
    )


def _with_threshold(paid: Price, asked: OpenLabels) -> Price:
    """The same, with what the labels must reach."""
    return replace(paid, delta=asked.delta, threshold=threshold(paid.parameter, asked.delta))


# A stream's snapshot asks the same of most of its many blocks.
_priced_before = lru_cache(maxsize=128)(_priced)
