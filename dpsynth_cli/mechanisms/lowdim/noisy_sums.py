"""Sums of y and y y^T for `lowdim`: the questions, and their noisy answers in units of y.

y has one coordinate in [-1/2, 1/2] for a number; for a nominal column one for each category (missing too),
1/2 at the row's own and 0 at the others. In integers, z = 2 q y: a public unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.lowdim.classes import Sums, centred
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.spectrum import mirrored
from dpsynth_cli.questions import Answer, Ask, Bins, CellCounts, Cells, Floats, Moments, Question
from dpsynth_cli.shares import divide

BITS = 14  # of a coordinate; fewer where the noise would not fit
RAREST = 0.05  # part of a column that is there, below which sums are not scaled up further


def question(
    ask: Ask, omega: Domain, clip: float | None, step: str, degree: int, share: Fraction, by: str | None
) -> Question:
    """Sums of coordinates or products, with as many bits as their noise leaves room for in 64."""
    names = tuple(column.name for column in omega.modelled)
    bound = None if clip is None else Fraction(str(clip))
    return fitting(ask, Question(step, Moments(names, BITS, degree, bound), share, by))


def fits(ask: Ask, asked: Question) -> bool:
    """Whether sums and their noise have room in 64 bits."""
    try:
        ask.sd(asked)
    except UsageError:
        return False
    return True


def fitting(ask: Ask, asked: Question) -> Question:
    """The same, with fewer bits where the share leaves no room for so many."""
    assert isinstance(asked.statistic, Moments)
    for bits in range(asked.statistic.bits, 2, -2):
        found = replace(asked, statistic=replace(asked.statistic, bits=bits))
        if fits(ask, found):
            break
    return found


def bits_of(asked: Question) -> int:
    """Those of a coordinate."""
    assert isinstance(asked.statistic, Moments)
    return asked.statistic.bits


def unit(asked: Question) -> int:
    """z = unit y."""
    assert isinstance(asked.statistic, Moments)
    return int(2 * (2**asked.statistic.bits - 1))


def finest(asked: Iterable[Question]) -> bool:
    """Whether all sums are of coordinates as fine as they may be, and so the same."""
    return all(q.statistic.bits == BITS for q in asked if isinstance(q.statistic, Moments))


def with_rates(omega: Domain, share: Fraction) -> tuple[Fraction, dict[str, Question]]:
    """What is left of the share of a mean; and how many values of each column are missing, by their steps."""
    names = [c.name for c in omega.modelled if c.nullable and c.type != "nominal"]
    left, *missing = divide(share, [4 * len(omega.modelled)] + [1] * len(names))
    asked = {}
    for name, share in zip(names, missing, strict=True):
        cells = Cells((Bins(name, (0, omega[name].size, omega[name].codes)),))
        asked[f"missing {name}"] = Question(f"missing {name}", CellCounts(cells), share)
    return left, asked


def present(omega: Domain, answers: Mapping[str, Answer], n: float) -> Floats:
    """The part of each column that is there, by private estimate; in a nominal one missing is a category."""
    steps = [f"missing {column.name}" for column in omega.modelled]
    rates = [float(answers[step].values[1]) / n if step in answers else 0.0 for step in steps]
    return 1 - np.clip(rates, 0.0, 1.0)


def in_units_of_y(
    omega: Domain,
    asked: Mapping[str, Question],
    answers: Mapping[str, Answer],
    sizes: Sizes,
    there: Floats,
) -> Sums:
    """The answers as if nothing were missing; `there` is what `present` says."""
    widths = [column.width for column in omega.modelled]
    d, part = sum(widths), np.maximum(np.repeat(there, widths), RAREST)
    both = np.outer(part, part)
    np.fill_diagonal(both, part)

    def second(step: str) -> tuple[list[Floats], float]:
        if step not in answers:
            return [np.zeros((d, d))], 0.0
        answer, statistic = answers[step], asked[step].statistic
        assert isinstance(statistic, Moments)
        # Where rows are clipped, Gaussian noise has half the variance above the diagonal (recipe F).
        half = answer.noise == "rounded_gaussian" and statistic.clip is not None
        one = unit(asked[step]) ** 2
        noise = (answer.sd / one) ** 2 / (2 if half else 1)
        return [mirrored(block / one, d) / both for block in answer.blocks], noise

    of_all, noise = second("moments")
    of_class, class_noise = second("class moments")
    return Sums(
        np.maximum(1.0, sizes.rows),
        sizes.variance,
        np.stack(answers["mean"].blocks) / unit(asked["mean"]) / part,
        (answers["mean"].sd / unit(asked["mean"])) ** 2,
        of_all[0],
        noise,
        np.stack(of_class) if "class moments" in answers else None,
        class_noise,
        np.repeat([0.0 if column.type == "nominal" else -0.5 for column in omega.modelled], widths),
    )


def means_of_two(sums: Sums, again: Answer, one: int, omega: Domain, there: Floats) -> Floats:
    """The centres of the classes from two answers about the means, each trusted as its noise allows."""
    part = np.maximum(np.repeat(there, [column.width for column in omega.modelled]), RAREST)
    second, noise = np.stack(again.blocks) / one / part, (again.sd / one) ** 2
    trust = sums.first_noise / (sums.first_noise + noise)
    first = sums.first + trust * (second - sums.first)
    return centred(replace(sums, first=first, first_noise=trust * noise))
