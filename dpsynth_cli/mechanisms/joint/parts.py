"""What tables of three columns say of pairs: their sums, put together with what was counted of the pairs.

Weighted least squares for nested cells (as in M. Hay et al.: Boosting the Accuracy of Differentially Private
Histograms Through Consistency. VLDB 2010): where a sum over some cells is known twice, both are averaged by
inverse variance, and what that changes is spread over the cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from dpsynth_cli.mechanisms.joint.characters import pattern
from dpsynth_cli.mechanisms.joint.estimates import Counted, coarser, combined
from dpsynth_cli.mechanisms.joint.frame import Frame
from dpsynth_cli.questions import Floats

Pair = tuple[int, ...]


def pair_sums(larger: Iterable[Counted]) -> dict[Pair, list[Counted]]:
    """The sums of larger tables over all but two columns, by those two."""
    found: dict[Pair, list[Counted]] = {}
    for one in larger:
        columns, levels = one.scope
        for some in combinations(range(len(columns)), 2) if not one.is_character else ():
            others = tuple(at + 1 for at in range(len(columns)) if at not in some)
            cells = math.prod(one.noisy.shape[at] for at in others)
            pair = tuple(columns[at] for at in some)
            scope = (pair, tuple(levels[at] for at in some))
            found.setdefault(pair, []).append(
                Counted(scope, one.noisy.sum(axis=others), one.variance * cells)
            )
    return found


def together(frame: Frame, one: Counted, sums: Sequence[Counted]) -> Counted:
    """A pair's table, or its character, by what was counted and by sums of other tables of the pair."""
    if one.is_character:
        for own in sums:
            if own.noisy.shape[1:] == (2, 2):
                signed = (own.noisy * pattern(2)).reshape(len(own.noisy), -1).sum(axis=1)
                one = combined(one, Counted(one.scope, signed, 4 * own.variance))
        return one
    columns, levels = one.scope
    known: dict[tuple[int, ...], Counted] = {}
    for own in sums:  # at the coarser of both levels, those of the same levels averaged
        least = tuple(map(min, levels, own.scope[1]))
        table = coarser(frame, own.noisy, own.scope, least)
        again = Counted((columns, least), table, own.variance * own.noisy.size / table.size)
        known[least] = combined(known[least], again) if least in known else again
    noisy, each, left = one.noisy, np.full(one.noisy.shape[1:], one.variance), one.variance
    for again in sorted(known.values(), key=lambda own: (-own.noisy.size, own.scope)):
        noisy, each, less = _averaged(frame, Counted(one.scope, noisy, 0.0), each, again)
        left -= less
    return Counted(one.scope, np.round(noisy, 6), max(left, 1e-9))


def _averaged(frame: Frame, one: Counted, each: Floats, again: Counted) -> tuple[Floats, Floats, float]:
    """Cells whose sums are averaged with those of a coarser table, and the part that each has in the variance
    of sums: both after it, and by how much the mean variance of a cell fell."""
    groups = [
        frame.ladders[j].between(fine, level)
        for j, fine, level in zip(*one.scope, again.scope[1], strict=True)
    ]
    levels, at = again.scope[1], np.ix_(*groups)
    variance = coarser(frame, each[None], one.scope, levels)[0]
    cells = coarser(frame, np.ones((1, *each.shape)), one.scope, levels)[0]
    trust = variance / np.maximum(variance + again.variance, 1e-300)
    change = (again.noisy - coarser(frame, one.noisy, one.scope, levels)) * (trust / cells)
    less = float((variance * trust / cells**2)[at].mean())
    return one.noisy + change[:, at[0], at[1]], each * (1 - trust)[at], less
