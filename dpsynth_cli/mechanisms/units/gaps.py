"""How much time passes from one row of a unit to the next, such that there is time left for all its rows.

Gaps are drawn from one distribution. A unit with many rows has less time for each: its gaps are those of the
distribution up to a limit, chosen such that on average the rows still to come fit into the time that is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_cli.changes import change_step, change_zero, changes
from dpsynth_cli.domain import Column
from dpsynth_cli.numeric.exact import exp
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, Bins, Floats, Ints

ENOUGH = 0.1  # the part of gaps that must be left before the end of time, or a unit ends
FINER = 8  # limits of gaps for each bin
HEAVIEST = 1.0  # logarithm of by how much weights may change what was counted


@dataclass(frozen=True, eq=False)
class Gaps:
    """The probability of each bin of changes of time; inside a bin all are as likely. What is left of them at
    the end of time is told by these; drawn they are by their weights besides, logarithms."""

    time: Column
    axis: Bins
    part: Floats
    weights: Floats

    @property
    def least(self) -> int:
        """In codes of time: within so much is the next row where it comes soonest, one time in ten."""
        return self._soon() * change_step(self.time)

    def bins(self, before: Ints, after: Ints) -> Ints:
        """The bin of each change."""
        return np.searchsorted(self.axis.edges, changes(self.time, before, after), "right") - 1

    def weigh(self, more: Floats) -> None:
        """Gaps of each bin more likely; by no more than units with time enough can make up for others."""
        weights = self.weights
        weights += more
        np.clip(weights, -HEAVIEST, HEAVIEST, out=weights)

    def after(self, time: Ints, left: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        """The time of the row after, where `left` more are to follow it: the earliest and the latest that its
        gap allows, and one of them; where no time is left, the last is below the first."""
        zero, step = change_zero(self.time), change_step(self.time)
        edges, upto = np.asarray(self.axis.edges, np.int64), self._upto(self.part * exp(self.weights))
        room = (self.time.size - 1 - time) // step + zero + 1  # changes below this one end in time
        room = self._with_time_left(room, left)
        room = np.clip(room, edges[0], edges[-1])
        enough = np.interp(room, edges, self._upto(self.part)) >= ENOUGH
        fits = np.interp(room, edges, upto)
        at = rng.random(len(time)) * fits
        bins = np.clip(np.searchsorted(upto, at, "right") - 1, 0, len(self.part) - 1)
        low, high = edges[bins], np.minimum(edges[bins + 1], room)
        change = low + (rng.random(len(time)) * np.maximum(high - low, 1)).astype(np.int64)
        high = np.where(enough, high, low)  # none
        least, most = time + (low - zero) * step, time + (high - 1 - zero) * step + step - 1
        return least, most, np.clip(time + (change - zero) * step, least, np.maximum(most, least))

    def _with_time_left(self, room: Ints, left: Ints) -> Ints:
        """Where changes must end: below the limit up to which gaps are, on average, what each row may have;
        and at last such that all others can come soon."""
        zero, soon = change_zero(self.time), self._soon()
        limits, means = self._means()
        fair = np.interp((room - 1 - zero) / (left + 1), means, limits)
        latest = room - left * soon
        return np.where(
            (left > 0) & (latest > zero + soon),
            np.clip(np.ceil(fair), zero + soon + 1, np.maximum(latest, zero + soon + 1)),
            room,
        ).astype(np.int64)

    def _upto(self, part: Floats) -> Floats:
        """Of all gaps those below each edge."""
        return np.concatenate([[0.0], np.cumsum(part / part.sum())])

    def _soon(self) -> int:
        """The least change up to which a part of all gaps is that is enough."""
        edges, upto = np.asarray(self.axis.edges, np.float64), self._upto(self.part)
        last = min(int(np.searchsorted(upto, ENOUGH)), len(upto) - 1)
        into = (ENOUGH - upto[last - 1]) / max(upto[last] - upto[last - 1], 1e-12)
        below = edges[last - 1] + min(1.0, into) * (edges[last] - edges[last - 1])
        return max(0, int(np.ceil(below - 1e-9)) - 1 - change_zero(self.time))

    def _means(self) -> tuple[Floats, Floats]:
        """Limits, and the mean of all gaps below each."""
        edges, upto = np.asarray(self.axis.edges, np.float64), self._upto(self.part * exp(self.weights))
        limits = np.interp(np.arange(FINER * (len(edges) - 1) + 1) / FINER, np.arange(len(edges)), edges)
        part = np.diff(np.interp(limits, edges, upto))
        middle = (limits[1:] + limits[:-1] - 1) / 2 - change_zero(self.time)
        means = np.cumsum(part * middle) / np.maximum(np.cumsum(part), 1e-12)
        means = np.append(0.0, np.maximum.accumulate(np.maximum(means, 0.0)))
        keep = np.append(True, np.diff(means) > 0)
        keep[:-1] |= keep[1:]  # the limit at which means begin to rise
        return limits[keep], means[keep]


def gaps_of(answer: Answer, axis: Bins, time: Column) -> Gaps:
    """The probability of each gap; none is below 0. Where noise left nothing, as many of each."""
    possible = (np.asarray(axis.edges[:-1]) >= change_zero(time)).astype(np.float64)
    counts = answer.values * possible
    found = on_simplex(counts, max(0.0, float(counts.sum()))) * possible
    part = found / found.sum() if found.sum() > 0 else possible / possible.sum()
    return Gaps(time, axis, np.asarray(part), np.zeros(len(part)))
