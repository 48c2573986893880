"""Sums about private means, for `lowdim`: of rows that are pulled in to a distance which few of them exceed.

Noise is that of the furthest row there could be: in d columns sqrt(d)/2 from the middle of the box. Rows are
much nearer to the mean of their class. So a first mean is asked for, and how many rows there are at which
distance from it, and then the sums about it, of rows no further away than C. C is where what is cut off and
what noise adds are least together; the covariance is lengthened by what was cut off. After S. Biswas,
Y. Dong, G. Kamath and J. Ullman, "CoinPress: practical private mean and covariance estimation" (2020).

Distances are in l2 where noise is Gaussian, and in l1 where it is Laplace. Sums about the middle are asked
for where even the best C is worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.lowdim import noisy_sums
from dpsynth_cli.mechanisms.lowdim.classes import Sums, centred
from dpsynth_cli.mechanisms.lowdim.noisy_sums import unit
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.numeric.spectrum import noise_edge
from dpsynth_cli.questions import (
    Answer,
    Ask,
    CellCounts,
    Cells,
    Centres,
    Distance,
    Floats,
    Moments,
    Question,
)
from dpsynth_cli.shares import divide

FINE = 13  # bits of a bound
TOLD = 5.0  # times the noise of a count of distances: fewer rows, and it says nothing
STEPS, FINER = 24, 4  # distances that are told apart, and how many of them make a factor of two
# How far what is cut off of means (1) and of second moments (2) counts: these are lengthened, and it is
# spread over all axes.
CUT = {1: 1.0, 2: 0.25}
LEAST_LEFT = 0.5  # of lengths or of squares, after clipping
# How the share of the mean is divided: a first one, distances, and a second one. Of a pure epsilon (True) two
# means with a half of the share each are worse than one.
MEAN = {False: (4, 1, 10), True: (1, 1, 6)}


@dataclass(frozen=True, eq=False)
class Distances:
    """How large rows are about their centres in one norm, in units of y: the part of them at each size."""

    norm: int
    sizes: Floats
    part: Floats
    steps: Floats  # where rows may be cut

    @property
    def squared(self) -> float:
        """The mean of their squares."""
        return float(self.part @ self.sizes**2)

    def cut(self, bound: float, power: int) -> float:
        """What part of all lengths (power 1) or squares (2) is lost if rows are pulled in to the bound."""
        kept = np.minimum(1.0, bound / self.sizes) ** power
        whole = self.part if power == 1 else self.part * self.sizes**2
        return 1.0 - float(whole @ kept) / max(float(whole.sum()), 1e-300)


@dataclass(frozen=True, eq=False)
class FirstLook:
    """The first sums, and how much of each column is there; centres in units of z, and its bits; rows'
    distances from them in l2 and in the norm that sums are clipped in, unless the spec has a bound or noise
    hides them."""

    sums: Sums
    present: Floats
    about: Centres
    bits: int
    distances: tuple[Distances, ...]

    @property
    def variance(self) -> float:
        """That of all columns together."""
        return self.distances[0].squared

    @property
    def centres(self) -> Floats:
        """In units of y."""
        return np.asarray(np.array(self.about.points) / _unit(self.bits))


def first_look(
    ask: Ask,
    omega: Domain,
    sizes: Sizes,
    share: Fraction,
    distances: Fraction,
    clip: float | None,
    norms: Sequence[int],
    bits: int,
) -> FirstLook:
    """A mean of each class and, unless the spec has a bound, how far rows are from it in these norms."""
    mean, missing = noisy_sums.with_rates(omega, share if clip is None else share + distances)
    asked = {"mean": noisy_sums.question(ask, omega, None, "first mean", 1, mean, omega.strata)}
    asked |= missing
    answers = dict(zip(asked, ask(list(asked.values())), strict=True))
    present = noisy_sums.present(omega, answers, max(1.0, float(sizes.rows.sum())))
    sums = noisy_sums.in_units_of_y(omega, asked, answers, sizes, present)
    points = np.rint(centred(sums) * _unit(bits)).astype(np.int64)
    look = FirstLook(sums, present, Centres(tuple(map(tuple, points.tolist())), omega.strata), bits, ())
    if clip is not None:
        return look
    axes = [_axis(omega, look, norm) for norm in norms]
    questions = [
        Question(f"distances l{norm}", CellCounts(Cells((axis,))), own)
        for norm, (axis, _), own in zip(norms, axes, divide(distances, [1.0] * len(norms)), strict=True)
    ]
    n = float(sizes.rows.sum())
    told = list(zip(norms, axes, ask(questions), strict=True))
    if any(n < TOLD * answer.sd for _, _, answer in told):
        return look
    found = [_distances(norm, steps, answer, n) for norm, (_, steps), answer in told]
    return replace(look, distances=tuple(found))


def about_centres(look: FirstLook, plain: Question, bound: float, norm: int) -> Question:
    """The same sums about the centres, of rows no larger than the bound."""
    assert isinstance(plain.statistic, Moments)
    clip = Fraction(max(1, math.floor(2 * bound * 2**FINE)), 2**FINE)
    return replace(
        plain, statistic=replace(plain.statistic, bits=look.bits, clip=clip, about=look.about, norm=norm)
    )


def best(
    ask: Ask, omega: Domain, look: FirstLook | None, plain: Question, rows: float, clip: float | None
) -> tuple[Question, float]:
    """The question, or the same about the centres with the bound where noise and what is cut off are least
    together, and its cost; `rows` are those that it is about, `clip` is the spec's own bound in l2.

    Of second moments noise is the edge, below which no axis is seen; of the mean it is the noise's length.
    """
    assert isinstance(plain.statistic, Moments)
    d, degree = sum(column.width for column in omega.modelled), plain.statistic.degree

    def noise(asked: Question) -> float:
        if not noisy_sums.fits(ask, asked):
            return math.inf
        sd = ask.sd(asked) / unit(asked) ** degree / rows
        return noise_edge(sd, d) if degree == 2 else sd * math.sqrt(d)

    if look is None or (clip is None and not look.distances):
        return plain, noise(plain)
    if clip is not None:
        asked = about_centres(look, plain, clip / 2, 2)
        return (asked, noise(asked)) if noisy_sums.fits(ask, asked) else (plain, noise(plain))
    by, whole = look.distances[-1], look.variance ** (degree / 2)
    found = [(noise(plain), plain)]
    for bound in by.steps.tolist():
        cut = by.cut(bound, degree)
        if cut <= 1 - LEAST_LEFT:
            asked = about_centres(look, plain, bound, by.norm)
            found.append((CUT[degree] * cut * whole + noise(asked), asked))
    cost, asked = min(found, key=lambda one: one[0])
    return asked, cost


def smaller(ask: Ask, asked: Question) -> Question | None:
    """What was chosen for a whole share, for a part of it; None where that has no room for its noise. About
    centres bits are those of the centres."""
    found = asked if _is_about(asked) else noisy_sums.fitting(ask, asked)
    return found if noisy_sums.fits(ask, found) else None


def lengthened(sums: Sums, look: FirstLook, asked: Question) -> Sums:
    """Second moments as long as those of rows that were not pulled in to the bound."""
    assert isinstance(asked.statistic, Moments)
    if not look.distances or asked.statistic.clip is None:
        return sums
    more = 1 / max(1 - look.distances[-1].cut(float(asked.statistic.clip) / 2, 2), LEAST_LEFT)
    return replace(
        sums,
        second=more * sums.second,
        second_noise=more**2 * sums.second_noise,
        by_class=None if sums.by_class is None else more * sums.by_class,
        class_noise=more**2 * sums.class_noise,
    )


def combined(first: Sums, second: Sums) -> Sums:
    """The means of two answers, each trusted as its noise allows."""
    trust = first.first_noise / (first.first_noise + second.first_noise)
    best = first.first + trust * (second.first - first.first)
    return replace(second, first=best, first_noise=trust * second.first_noise)


def brought_together(look: FirstLook, asked: Mapping[str, Question], sums: Sums) -> tuple[Sums, Sums]:
    """Sums about the centres if second moments are, else about the middle; and the means of all answers."""
    off = sums.sizes[:, None] * look.centres
    second = replace(sums, first=sums.first + off) if _is_about(asked["mean"]) else sums
    means = combined(look.sums, second)
    moments = asked.get("moments", asked.get("class moments"))
    if moments is None or not _is_about(moments):
        return means, means
    about = replace(second, first=second.first - off, about=look.centres)
    return lengthened(about, look, moments), means


def _unit(bits: int) -> int:
    """z = unit y."""
    return int(2 * (2**bits - 1))


def _is_about(asked: Question) -> bool:
    return isinstance(asked.statistic, Moments) and asked.statistic.about is not None


def pure(ask: Ask, question: Question) -> bool:
    """Whether noise is that of pure epsilon, which half the share doubles; Gaussian noise grows by 1.4."""
    half, quarter = (ask.sd(replace(question, share=Fraction(1, part))) for part in (2, 4))
    return quarter > 1.7 * half


def _axis(omega: Domain, look: FirstLook, norm: int) -> tuple[Distance, Floats]:
    """Cells of distances, each larger than the last by the same factor, and where they end in units of y.

    In whole numbers: what a processor makes of a last digit would else decide what is asked."""
    furthest, ends = _furthest(look, norm), range(STEPS, -1, -1)
    edges = (0, *(_shrunk(furthest, at, FINER // norm) for at in ends))
    root = math.sqrt(furthest) if norm == 2 else float(furthest)
    parts = [1.0, math.sqrt(math.sqrt(0.5)), math.sqrt(0.5), math.sqrt(0.5) * math.sqrt(math.sqrt(0.5))]
    steps = [root / _unit(look.bits) * math.ldexp(parts[at % FINER], -(at // FINER)) for at in ends]
    names = tuple(column.name for column in omega.modelled)
    return Distance(names, look.about, edges, look.bits, norm), np.array(steps)


def _furthest(look: FirstLook, norm: int) -> int:
    """The largest size (squared, in l2) that a row can have about its centre, in units of z: public, given
    the centres."""
    points = np.array(look.about.points, object)
    low = np.rint(np.asarray(look.sums.low) * _unit(look.bits)).astype(np.int64).astype(object)
    far = np.maximum(points - low, _unit(look.bits) // 2 - points)
    return int((far**norm).sum(axis=1).max())


def _shrunk(size: int, at: int, root: int) -> int:
    """The size times 2^(-at / root), rounded up.

    >>> _shrunk(1000, 2, 2), _shrunk(1000, 1, 2), _shrunk(1000, 1, 4)
    (500, 708, 841)
    """
    found = int(size * 2.0 ** (-at / root))
    while found > 0 and (found - 1) ** root << at >= size**root:
        found -= 1
    while found**root << at < size**root:
        found += 1
    return found


def _distances(norm: int, steps: Floats, answer: Answer, n: float) -> Distances:
    part = on_simplex(answer.values, max(1.0, n))
    return Distances(norm, steps * 2.0 ** (-0.5 / FINER), part / part.sum(), steps)
