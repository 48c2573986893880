"""Metric projection on a convex set: the pi_K of 001, Theorem 5.10, for many points.

Points are rows x; the set is {A x <= b, E x = f, 0 <= x <= 1}, and inside of cones (`cones.py`). Sums are
taken column by column and not by matrix products, whose last bits depend on the machine: a point decides a
code, and codes must come out the same again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.mechanisms.microaggregation.cones import Cone

Floats: TypeAlias = NDArray[np.float64]

ROUNDS = 400
CUTS = 200
REST = 1e-9  # a row that moves less in a round has arrived


@dataclass(frozen=True, eq=False)
class Polytope:
    """A x <= b and E x = f inside the unit cube."""

    A: Floats
    b: Floats
    E: Floats
    f: Floats
    cones: tuple[Cone, ...] = ()

    def tightened(self, step: Floats) -> Polytope:
        """The same with room for half a step of each column, and a little more for the rounding of floats."""
        cones = tuple(cone.tightened(step) for cone in self.cones)
        return replace(self, b=self.b - (np.abs(self.A) @ step * 0.51 + 1e-9), cones=cones)

    def excess(self, x: Floats) -> Floats:
        """By how much each row breaks its worst inequality; at most 0 where it keeps them all."""
        worst = np.full(len(x), -np.inf)
        if len(self.b):
            worst = (times(x, self.A) - self.b).max(axis=1)
        for cone in self.cones:
            worst = np.maximum(worst, cone.excess(x))
        return np.asarray(worst)

    def apart(self, x: Floats) -> Floats:
        """By how much each row misses its worst equation."""
        return np.asarray(np.abs(times(x, self.E) - self.f).max(axis=1, initial=0.0))

    def centre(self) -> Floats | None:
        """A point as deep inside as may be; None where the set is empty. Cones are seen by half-spaces that
        they are inside of, one more for each point that is too near to their ends."""
        known = replace(self, cones=())
        for _ in range(CUTS):
            found = known._deepest()
            if found is None or not self.cones:
                return None if found is None else found[0]
            x, deep = found
            worst = max(self.cones, key=lambda cone: float(cone.excess(x[None])[0]))
            if float(worst.excess(x[None])[0]) <= -deep / 4:
                return x
            a, b = worst.cut(x)
            known = replace(known, A=np.vstack([known.A, a]), b=np.append(known.b, b))
        return None

    def _deepest(self) -> tuple[Floats, float] | None:
        """A point as far from the half-spaces as may be, and how far."""
        from scipy.optimize import linprog

        d = self.A.shape[1]
        deep = np.linalg.norm(self.A, axis=1)[:, None]
        box = np.concatenate([np.eye(d), -np.eye(d)])
        found = linprog(
            np.append(np.zeros(d), -1.0),
            A_ub=np.concatenate([np.hstack([self.A, deep]), np.hstack([box, np.ones((2 * d, 1))])]),
            b_ub=np.concatenate([self.b, np.ones(d), np.zeros(d)]),
            A_eq=np.hstack([self.E, np.zeros((len(self.E), 1))]) if len(self.E) else None,
            b_eq=self.f if len(self.E) else None,
            bounds=[(0, 1)] * d + [(0, None)],
        )
        return (_steady(found.x[:d]), float(found.x[d])) if found.status == 0 else None

    def nearest(self, x: Floats, centre: Floats) -> Floats:
        """The nearest points of the set (Dykstra), and then all of them surely inside.

        What Dykstra's rounds leave undone is undone by a step towards the centre, which is inside.
        """
        inside = self._dykstra(x)
        # Each constraint's break, as the part of the way to the centre that mends it.
        A = np.concatenate([self.A, np.eye(len(centre)), -np.eye(len(centre))])
        b = np.concatenate([self.b, np.ones(len(centre)), np.zeros(len(centre))])
        over = np.maximum(times(inside, A) - b, 0.0)
        room = np.maximum(b - A @ centre, 0.0)
        step = (over / np.maximum(over + room, 1e-300)).max(axis=1, keepdims=True)
        for cone in self.cones:  # convex: at a part of the way it is broken by no more than in proportion
            outside = np.maximum(cone.excess(inside), 0.0)
            depth = max(-float(cone.excess(centre[None])[0]), 0.0)
            step = np.maximum(step, (outside / np.maximum(outside + depth, 1e-300))[:, None])
        return np.asarray(np.clip(inside + step * (centre - inside), 0.0, 1.0))

    def _dykstra(self, x: Floats) -> Floats:
        """Projections on one half-space after the other, each with its own correction, until rows rest."""
        solve = _steady(np.linalg.pinv(self.E)) if len(self.E) else None
        norms = np.maximum((self.A**2).sum(axis=1), 1e-300)
        done, left = x.copy(), np.arange(len(x))
        moved = np.zeros((len(self.b) + len(self.cones) + 1, *x.shape))
        for _ in range(ROUNDS):
            before, corrections = x, moved.copy()
            for i, (a, b) in enumerate(zip(self.A, self.b, strict=True)):
                y = x + moved[i]
                x = y - np.maximum(times(y, a[None, :]) - b, 0.0) * (a / norms[i])
                moved[i] = y - x
            for i, cone in enumerate(self.cones, len(self.b)):
                y = x + moved[i]
                x = cone.nearest(y)
                moved[i] = y - x
            y = x + moved[-1]
            x = np.clip(y, 0.0, 1.0)
            moved[-1] = y - x
            if solve is not None:
                x = x - times(times(x, self.E) - self.f, solve)
            done[left] = x
            # A point may stand still while its corrections do not: then it will move again.
            moving = np.abs(x - before).max(axis=1) > REST
            moving |= np.abs(moved - corrections).max(axis=(0, 2)) > REST
            if 2 * moving.sum() <= len(left):
                x, moved, left = x[moving], moved[:, moving], left[moving]
            if not len(left):
                break
        return np.asarray(done)


def times(x: Floats, rows: Floats) -> Floats:
    """x rows^T, added up in the order of the columns.

    >>> times(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[11.0, 2.0]]
    """
    total = np.zeros((len(x), len(rows)))
    for column, weights in zip(x.T, rows.T, strict=True):
        total += column[:, None] * weights
    return total


def _steady(values: NDArray[np.floating[Any]]) -> Floats:
    """Without the last bits, in which machines differ."""
    return np.asarray(np.rint(values * 2.0**36) * 2.0**-36)
