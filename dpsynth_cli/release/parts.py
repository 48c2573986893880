"""An `ask` whose whole budget is a part of another's."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsynth_cli.questions import Ask, Asking, Question


def part_of(ask: Ask, share: Fraction) -> Asking:
    """The same `ask`, but its whole budget is a share of the real one."""

    def scaled(question: Question) -> Question:
        return replace(question, share=question.share * share)

    return Asking(
        lambda questions: ask([scaled(question) for question in questions]),
        lambda question: ask.sd(scaled(question)),
        ask.progress,
    )
