"""Single columns: what is asked of them first, and the frame of levels and masses that follows."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.joint.characters import ask_signs, binary
from dpsynth_cli.mechanisms.joint.frame import Frame, with_rules
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.joint.repeated import ask_repeated
from dpsynth_cli.mechanisms.shared.oneway import Marginal, marginals_and_more
from dpsynth_cli.mechanisms.shared.rules import Rules
from dpsynth_cli.mechanisms.shared.sizes import Sizes
from dpsynth_cli.numeric.histogram import alike
from dpsynth_cli.questions import Ask, CellCounts, Cells, Floats, Question, Total
from dpsynth_cli.shares import divide

FINEST = 512  # cells of a numeric column, at most
SCREENED = 16  # cells of a column in tables that are looked at before they are counted
WIDE = 40  # columns, from which on these are half as many
SIZE_SHARE = 0.1  # of the columns' share, for the number of rows where no histogram tells it


def ask_columns(
    ask: Ask, omega: Domain, sizes: Sizes, share: Fraction, rules: Rules, more: Fraction = Fraction(0)
) -> tuple[Frame, Fraction]:
    """A marginal of each column, for one share: columns of two values by signs, the others by counts. And
    what was spent of what may be spent besides on values that are repeated."""
    columns = omega.modelled
    two = [column for column in columns if binary(column)]
    others = [column for column in columns if not binary(column)]
    marginals, spent = dict[str, Marginal](), Fraction(0)
    if others:
        if two:
            weights = [sum(math.sqrt(min(column.codes, 24)) for column in others), 1.4 * len(two)]
            own, share = divide(share, weights)
        else:
            own = share
        marginals, spent = marginals_and_more(ask, omega, others, sizes, own, more)
        if more > spent:
            marginals, again = ask_repeated(ask, omega, marginals, more - spent)
            spent += again
        if omega.classes > 1:
            one = Question("columns", CellCounts(Cells(())), own / len(others), omega.strata)
            marginals = {name: _nearer(omega[name], each, ask.sd(one)) for name, each in marginals.items()}
        totals = np.array([mass.sum() for mass in marginals[others[0].name].masses])
    else:
        totals, share = _totals(ask, omega, sizes, share)
    if two:
        marginals |= ask_signs(ask, omega, two, totals, share)
    most = SCREENED if len(columns) < WIDE else SCREENED // 2
    ladders = [ladder(column, marginals[column.name], FINEST, rules.cuts(column.name)) for column in columns]
    masses = [np.array([own.finest.masses(k) for k in range(omega.classes)]) for own in ladders]
    frame = Frame(ladders, masses, [own.level(most) for own in ladders])
    return with_rules(frame, omega, rules), spent


def _nearer(column: Column, marginal: Marginal, sd: float) -> Marginal:
    """Of what classes of a categorical column seem to differ by, much is noise where rows are few: a
    classifier would learn it, and the more so the better links tell what columns share."""
    if not column.categorical:
        return marginal
    return replace(marginal, masses=list(alike(np.array(marginal.masses), sd**2)))


def _totals(ask: Ask, omega: Domain, sizes: Sizes, share: Fraction) -> tuple[Floats, Fraction]:
    """The class sizes once more where only signs are asked, and the share that is left."""
    if sizes.variance == 0:
        return sizes.rows, share
    own, share = divide(share, [SIZE_SHARE, 1 - SIZE_SHARE])
    again = ask([Question("columns", Total(), own, omega.strata)])[0]
    trust = 1.0 if math.isinf(sizes.variance) else sizes.variance / (sizes.variance + again.sd**2)
    return np.maximum(sizes.rows + trust * (again.values - sizes.rows), 0.0), share
