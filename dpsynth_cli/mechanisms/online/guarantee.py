"""How far a snapshot of a stream is from the events so far, on average and whatever they are.

`sparse`, with public arrivals. Theorem 5.1 with all constants (`sparse_theorem`), and by the counts that were
answered (`sparse_by_answers`). A node of level j of the partition is off by
- noise: Lap(2/epsilon_ji) of each finished time level i (with one column also Lap(1/epsilon) of what came
  before), and of the binary mechanism under way at most H times Lap(4 H/epsilon_jr), H = bit_length(T);
- what it lacks: events of its open segment, on average at most T_0 and the largest of T thresholds' noises;
  and, with more columns, the events before it was there, in all nodes of the level together t_j.
The theorem takes both from public numbers. The answers say what all nodes of a level lack together: the
number of events, which is public, less what they count.

`blocks` (`running_by_answers`). Counts of a level have a known variance, except for what came while the tree
was not yet so deep: these events are divided as later ones lie. They may be anywhere in the cell that they
were last seen in, and are moved inside of that at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.bounds import Bound
from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.online import schedule
from dpsynth_cli.mechanisms.pmm.guarantee import diameters
from dpsynth_cli.numeric.moved_rows import ABSOLUTE, moved_rows
from dpsynth_cli.numeric.partition import turns
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Answer, Floats, Ints

THEOREM = "Algorithm 12 at so many events (Theorem 5.1, with all constants)"
SPARSE = "this snapshot, by its counts and the number of events"
RUNNING = "this snapshot, by its own noisy counts"


@dataclass(frozen=True)
class NodeError:
    """Of each node of a level: the standard deviation of its noise, and what it lacks at most on average; and
    what all nodes of the level lack together of the time before them."""

    sd: float
    lacks: float
    before: float


def node_errors(
    t: int, d: int, depth: int, epsilon: Fraction, replaced: bool, per_doubling: int
) -> dict[int, NodeError]:
    """By the levels of the partition that are there after t events of d columns."""
    r = schedule.time_level(t, epsilon)
    T = schedule.checks(r, epsilon, per_doubling)
    H, per_path = T.bit_length(), float(epsilon) / (2 if replaced else 1)
    levels = [
        {j: per_path * float(part) for j, part in schedule.shares(i, d, depth, False).items()}
        for i in range(r + 1)
    ]
    found = {}
    for j, own in levels[-1].items():
        finished = [2 / levels[i][j] for i in range(r) if j in levels[i]]
        scales = [*finished, *[4 * H / own] * H] + ([1 / own] if d == 1 else [])
        T_0 = math.ceil(9 * math.log(max(2, T)) / (own / 2))
        lacks = T_0 + 4 / own * (math.log(T + 1) + 2)
        before = 0.0 if d == 1 else min(t, math.ceil(2**j / epsilon) - 1)
        found[j] = NodeError(math.sqrt(2 * sum(s**2 for s in scales)), lacks, before)
    return found


def sparse_theorem(columns: Sequence[Column], t: int, errors: Mapping[int, NodeError]) -> Bound:
    """(5.8): the levels' errors, each inside the cells of the level before, and a cell; the partition may be
    looked at as deep as it says most."""
    widest = [float(level.max()) for level in _diameters(columns, max(errors, default=0))]
    best, moved = widest[0], 0.0
    for j in range(1, len(widest)):
        own = errors[j]
        noise = ABSOLUTE * own.sd * 2**j
        moved += widest[j - 1] * (noise + min(t, 2**j * own.lacks) + own.before) / t
        best = min(best, moved + widest[j])
    return Bound(best, THEOREM)


def sparse_by_answers(
    columns: Sequence[Column],
    t: int,
    errors: Mapping[int, NodeError],
    counts: Mapping[int, Ints],
    mass: Floats,
    rows: int,
) -> Bound | None:
    """The same from what was counted: `mass` are the leaves of the snapshot of t events."""
    if t < 1 or rows < 1 or not counts:
        return None
    depth = max(counts)
    whole = np.array([float(t)])
    estimates = [whole, *(counts[j].astype(np.float64) for j in range(1, depth + 1))]
    variances = [np.full(1 << j, errors[j].sd ** 2 if j else 0.0) for j in range(depth + 1)]
    lacking, expected = [0.0], [0.0]
    for j in range(1, depth + 1):
        own = errors[j]
        lacking.append(max(0.0, t - float(estimates[j].sum())) + ABSOLUTE * own.sd * 2 ** (j / 2))
        expected.append(min(float(t), 2**j * own.lacks + own.before))
    moved = moved_rows(estimates, variances, mass, _diameters(columns, depth), rows / t, (lacking, expected))
    return Bound.of_terms(
        SPARSE, noise=moved.between / t, not_yet_counted=moved.lacking / t, cells=moved.inside / t
    )


def running_by_answers(
    columns: Sequence[Column],
    counts: Sequence[Floats | None],
    variances: Sequence[float],
    mass: Floats,
    total: float,
    seen: Mapping[int, float] | None,
    rows: int,
) -> Bound | None:
    """By level the noisy counts (None: not measured) and their variance, the leaves of the snapshot and their
    sum, and how many events were seen how deep when they came; None where that is not known."""
    if seen is None or round(total) < 1 or rows < 1:
        return None
    depth = len(counts) - 1
    estimates, spread = [np.zeros(0)] * (depth + 1), [np.zeros(0)] * (depth + 1)
    for j in range(depth, -1, -1):
        own = counts[j]
        if own is None:
            estimates[j] = estimates[j + 1][::2] + estimates[j + 1][1::2]
            spread[j] = spread[j + 1][::2] + spread[j + 1][1::2]
        else:
            estimates[j], spread[j] = own, np.full(1 << j, variances[j])
    widths = _diameters(columns, depth)
    even = mass * (total / max(float(mass.sum()), 1e-300))
    moved = moved_rows(estimates, spread, even, widths, rows / total)
    early = sum(
        max(0.0, events) * float(widths[min(j, len(widths) - 1)].max())
        for j, events in seen.items()
        if j < moved.level
    )
    least = min(range(depth + 1), key=lambda j: float(spread[j].sum()))  # says most of the number of events
    sizes = abs(float(estimates[least].sum()) - total) + ABSOLUTE * float(spread[least].sum()) ** 0.5
    terms = {"noise": moved.between, "early_events": early, "cells": moved.inside, "number_of_rows": sizes}
    return Bound.of_terms(RUNNING, **{name: term / total for name, term in terms.items()})


def seen_depths(
    before: Mapping[str, float] | None, past: Sequence[tuple[Any, Answer]], now: Sequence[tuple[Any, Answer]]
) -> dict[str, float] | None:
    """How many events were seen how deep when they came, by the answers of the last release and of this one:
    events since then were seen on the deepest level that was paid for. None where it was not noted so far."""
    if before is None and past:
        return None
    events = float(now[0][1].values.sum()) - (float(past[0][1].values.sum()) if past else 0.0)
    paid = [answer for question, answer in now if question["share"] != "0"]
    level = str(max(((len(answer.values) - 1).bit_length() for answer in paid), default=0))
    found = dict(before or {})
    return found | {level: found.get(level, 0.0) + events}


def _diameters(columns: Sequence[Column], depth: int) -> list[Floats]:
    sizes = [(c.size, c.nullable) for c in columns]
    return diameters(turns(sizes, depth), [Scale.even(*size) for size in sizes], columns)
