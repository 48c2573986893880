"""A mechanism that asks how far the rows are from its model: for tests of the question itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.questions import Asking, Cells, Halves, Misfit, Question

HALF = Fraction(1, 2)


def asking_misfit(mechanism: Mechanism) -> Mechanism:
    """The same model for half of the budget; for the other half, how far from a uniform table of so many rows
    all columns and pairs of them are: a note of the audit, which must come out the same in a replay."""

    def run(ask, omega, params, split):
        def halved(question: Question) -> Question:
            return replace(question, share=question.share / 2)

        half = Asking(
            lambda asked: ask([halved(question) for question in asked]),
            lambda question: ask.sd(halved(question)),
            ask.progress,
        )
        model = mechanism.run(half, omega, params, split)
        axes = [Halves(column.name, 1 + column.nullable) for column in omega]
        tables = tuple(Cells(some) for ways in (1, 2) for some in combinations(axes, ways))
        sizes = [2 ** sum(axis.bits for axis in table.axes) for table in tables]
        classes = omega[omega.strata].codes if omega.strata else 1
        expected = tuple((max(0, model.total) // (classes * size),) * size for size in sizes)
        (far,) = ask([Question("fit", Misfit(tables, (expected,) * classes), HALF, omega.strata)])
        return replace(model, notes=(*model.notes, f"misfit {far.values.tolist()}"))

    return replace(mechanism, run=run)
