"""How many rows there are, in all or in each class: what every mechanism asks first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Ask, Floats, Question, Total
from dpsynth_cli.shares import divide


@dataclass(frozen=True)
class Sizes:
    """One size a class (one without strata), never negative, and the variance and the kind of its noise.

    Where only a public hint is known the variance is infinite: use the size to choose, not to count.
    """

    rows: Floats
    variance: float
    noise: str = "none"

    @property
    def total(self) -> int:
        return round(float(self.rows.sum()))

    @property
    def at_least(self) -> float:
        """Rows that there are, but for noise; a public hint is taken as it is."""
        noise = 0.0 if math.isinf(self.variance) else math.sqrt(self.variance * len(self.rows))
        return max(1.0, self.total - noise)


def sizes_and_rest(ask: Ask, omega: Domain, split: Mapping[str, float]) -> tuple[Sizes, Fraction]:
    """The sizes, and the share that is left for the rest.

    replace_one: the plain total is public; classes are paid for, and add up to it. add_remove, or units: the
    stage `total` pays for them, unless the spec has a public rows_hint and there are no classes.
    """
    public = omega.rows_public
    n = float(ask([Question("n", Total(), Fraction(0))])[0].values[0]) if public else None
    if omega.strata is None:
        if n is not None:
            return Sizes(np.array([n]), 0.0), Fraction(1)
        if omega.rows_hint is not None:
            return Sizes(np.array([float(omega.rows_hint)]), np.inf), Fraction(1)
    own, rest = divide(Fraction(1), [split["total"], sum(split.values()) - split["total"]])
    answer = ask([Question("total", Total(), own, omega.strata)])[0]
    noisy = answer.values.astype(np.float64)
    rows = on_simplex(noisy, n) if n is not None else np.maximum(noisy, 0.0)
    return Sizes(rows, answer.sd**2, answer.noise), rest
