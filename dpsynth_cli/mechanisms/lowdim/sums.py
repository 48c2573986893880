"""The sums that `lowdim` asks for: about the middle of the box, where a bound on W1 needs every row as it is,
or about private means, with less noise (`near.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.lowdim import near, noisy_sums
from dpsynth_cli.mechanisms.lowdim.classes import Sums
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.questions import Answer, Ask, Floats, Moments, Question
from dpsynth_cli.shares import divide

POOLED = (8, 7)  # how the share of the moments is divided: all rows together, and each class
FOR_CLASSES = (2, 1)  # what second moments keep of their share, and what they give to the means of classes

# A public rule: second moments are left out where nothing could stand above the edge of their noise. Without
# classes means alone are little, so that is never unless hopeless.
WORTH = {False: 1.0, True: 0.1}  # by strata: the largest edge worth paying for, in the whole variance
OWN = 0.5  # the largest edge of one class
WIDE = 16  # coordinates from which on a part of a pure epsilon is paid for how far rows are from means


class Wanted(Protocol):
    """What the spec says."""

    @property
    def dimension(self) -> int | None: ...
    @property
    def inside(self) -> str: ...
    @property
    def basis(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def clip(self) -> float | None: ...


@dataclass(frozen=True, eq=False)
class Learnt:
    """Questions and answers by their steps; what they say of second moments and of means, and of how much of
    each column is there; the share left for counts, the edge that was expected, and whether second moments
    were not worth it."""

    asked: Mapping[str, Question]
    answers: Mapping[str, Answer]
    sums: Sums
    means: Sums
    present: Floats
    counts: Fraction | None
    edge: float | None
    dropped: bool = False

    @property
    def bounds(self) -> dict[str, float]:
        """To what distance from their mean rows were pulled in; half of a column's range is 1."""
        statistics = {step: question.statistic for step, question in self.asked.items()}
        return {
            s: float(m.clip) for s, m in statistics.items() if isinstance(m, Moments) and m.clip is not None
        }


def coordinates(omega: Domain) -> int:
    return sum(column.width for column in omega.modelled)


def asked_for(
    ask: Ask, omega: Domain, wanted: Wanted, split: Mapping[str, float], rest: Fraction, sizes: Sizes
) -> Learnt:
    """Sums, and what they cost, by what the spec wants."""
    by, d = omega.strata, len(omega.modelled)
    rows = np.maximum(1.0, sizes.rows)
    stages = ["mean"]
    if wanted.dimension != 0:
        stages += ["moments"] if wanted.inside == "gaussian" else ["moments", "counts"]
    # What is not asked for is spent on the rest.
    shares = dict(zip(stages, divide(rest, [split[stage] for stage in stages]), strict=True))
    if by is not None and "moments" in shares and "counts" not in shares:
        shares["moments"], more = divide(shares["moments"], FOR_CLASSES)
        shares["mean"] += more
    counts, left = shares.get("counts"), shares["mean"]

    def plain(step: str, degree: int, share: Fraction, of: str | None) -> Question:
        return noisy_sums.question(ask, omega, None, step, degree, share, of)

    alone = wanted.basis == "per_class" and by is not None
    step, of, behind = ("class moments", by, rows.mean()) if alone else ("moments", None, rows.sum())
    mean = plain("mean", 1, left, by)
    second = plain(step, 2, shares["moments"], of) if "moments" in shares else None

    # How far rows are from their means, if sums may be about them: a coordinate can be twice as large.
    look = None
    laplace = near.pure(ask, mean)
    near_means = counts is None and wanted.about == "means" and (not laplace or coordinates(omega) >= WIDE)
    if near_means or wanted.clip is not None:
        first, distances, left = divide(left, near.MEAN[laplace])
        norms = (2, 1) if laplace else (2,)
        bits = min(noisy_sums.bits_of(own) for own in (mean, second) if own) - 1
        look = near.first_look(ask, omega, sizes, first, distances, wanted.clip, norms, bits)

    # Second moments, of all rows and of each class: where they are worth it.
    asked: dict[str, Question] = {}
    edge, dropped = None, False
    if second is not None:
        second, edge = near.best(ask, omega, look, second, float(behind), wanted.clip)
        # Rows that are uniform have the variance d/12 in all columns together; inside classes they have less.
        # Less still is asked of normals by class, a part of whose share goes to second moments of each.
        guess = d / (12 if by is None else 24 if counts else 30)
        whole = look.variance if look and look.distances else guess
        dropped = wanted.dimension is None and edge > WORTH[by is not None] * whole
        if dropped:
            left, counts = left + shares["moments"] + (counts or 0), None
        else:
            asked[step] = second
            if counts is None and by is not None and not alone and edge * len(rows) < OWN * whole:
                pooled, own = divide(shares["moments"], POOLED)
                parts = {step: replace(second, share=pooled)}
                parts["class moments"] = replace(second, step="class moments", share=own, by=by)
                found = {name: near.smaller(ask, part) for name, part in parts.items()}
                asked |= {name: part for name, part in found.items() if part and all(found.values())}

    # The mean, and what is missing if that is not known yet.
    if look is None:
        left, missing = noisy_sums.with_rates(omega, left)
        asked |= missing
    asked["mean"] = noisy_sums.fitting(ask, replace(mean, share=left))
    if look is not None:
        asked["mean"], _ = near.best(ask, omega, look, asked["mean"], float(rows.mean()), wanted.clip)
    answers = dict(zip(asked, ask(list(asked.values())), strict=True))
    present = (
        noisy_sums.present(omega, answers, max(1.0, float(rows.sum()))) if look is None else look.present
    )
    sums = means = noisy_sums.in_units_of_y(omega, asked, answers, sizes, present)
    if look is not None:
        sums, means = near.brought_together(look, asked, sums)
    return Learnt(asked, answers, sums, means, present, counts, edge, dropped)
