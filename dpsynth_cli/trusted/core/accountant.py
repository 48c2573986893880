"""One release's privacy budget: one currency, exact fractions, and a hard stop.

Claim. The costs of all questions that were charged never add up to more than the total, exactly; whether
a charge is refused depends on the costs alone, never on an answer. Without a delta the currency is
pure epsilon (discrete Laplace or cube noise, costs add up); with one it is rho, half of the mu^2 of
Gaussian differential privacy (rounded Gaussian noise, rho adds up), which is converted to (epsilon, delta)
once, for the total. A part of that delta may be set apart, for labels that are released because they reach
a threshold (`threshold.py`): then rho is converted at the rest, and the deltas of such questions never
add up to more than the part.
A stop at the total is a valid filter even for shares chosen from earlier answers: for pure epsilon by Feldman
and Zrnic 2021, for rho by the argument of docs/privacy.md (see also Smith and Thakurta 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from dpsynth_cli.errors import NOTHING_SPENT, BudgetError
from dpsynth_cli.trusted.core.gaussian import positive, rho_of_epsilon
from dpsynth_cli.trusted.core.scales import check_scale, representable_sigma2

Currency: TypeAlias = Literal["epsilon", "rho"]

_NEXT_STEP = (
    "The shares of all questions must add up to at most 1: see mechanism.split in the spec, or, "
    "if there is none, report it as a mistake in the mechanism."
)


@dataclass(frozen=True)
class Price:
    """What one question costs, and the noise it gets for that."""

    noise: Literal["discrete_laplace", "discrete_cube", "rounded_gaussian", "none"]
    parameter: (
        Fraction  # the scale of Laplace and cube, sigma^2 of Gaussian noise before it is rounded; 0 for none
    )
    cost: Fraction  # in the release's currency
    sd: float  # standard deviation of the noise on one number: public
    delta: Fraction = Fraction(0)  # of the part that is set apart
    threshold: int | None = None  # that noisy counts of labels reach


@dataclass
class Accountant:
    """The budget of one release; build it with `pure` or `gaussian`.

    >>> budget = Accountant.pure(Fraction("0.5"))
    >>> histogram = budget.price(Fraction(2, 5), l1=1, l2_squared=1)
    >>> histogram.parameter, histogram.cost
    (Fraction(5, 1), Fraction(1, 5))
    >>> budget.charge([histogram])
    >>> budget.spent
    Fraction(1, 5)
    """

    currency: Currency
    total: Fraction  # in the currency
    epsilon: Fraction  # the guarantee as the user reads it
    delta: Fraction
    apart: Fraction = Fraction(0)  # of the delta, for thresholds
    _spent: Fraction = field(default=Fraction(0), init=False)
    _spent_apart: Fraction = field(default=Fraction(0), init=False)

    @property
    def spent(self) -> Fraction:
        """What was charged so far: only `charge` changes it, and it never falls."""
        return self._spent

    @classmethod
    def pure(cls, epsilon: Fraction) -> Accountant:
        """A budget of epsilon-differential privacy."""
        epsilon = positive(epsilon, "epsilon")
        return cls("epsilon", epsilon, epsilon, Fraction(0))

    @classmethod
    def gaussian(cls, epsilon: Fraction, delta: Fraction, apart: Fraction = Fraction(0)) -> Accountant:
        """A budget of (epsilon, delta)-differential privacy, kept as the rho that implies it, at the delta
        that is left beside what is set apart."""
        if not isinstance(apart, Fraction | int) or apart < 0:
            raise ValueError("what is set apart of delta is a Fraction, and not below 0")
        total = rho_of_epsilon(epsilon, delta - apart if apart else delta)
        return cls("rho", total, Fraction(epsilon), Fraction(delta), Fraction(apart))

    def price(
        self,
        share: Fraction,
        l1: Fraction | int,
        l2_squared: Fraction | int,
        cube: tuple[int, int] | None = None,
    ) -> Price:
        """The noise that a share of the budget buys, and what it costs: nothing is charged yet."""
        return price(self.currency, self.total, share, l1, l2_squared, cube)

    def charge(self, prices: Sequence[Price]) -> None:
        """Spend the cost of all these questions; if that is more than is left, refuse and spend nothing."""
        if any(price.cost < 0 or price.delta < 0 for price in prices):
            raise ValueError("a cost must not be negative")
        spent = sum((price.cost for price in prices), self.spent)
        if spent > self.total:
            cost, left = spent - self.spent, self.total - self.spent
            raise BudgetError(self._refusal(len(prices), cost, left), self._cost_so_far(), _NEXT_STEP)
        apart = sum((price.delta for price in prices), self._spent_apart)
        if apart > self.apart:
            raise BudgetError(
                f"The next questions need a delta of {apart - self._spent_apart}, but "
                f"{self.apart - self._spent_apart} of it is left beside that of the release's rho.",
                self._cost_so_far(),
                "Report it as a mistake in what looks for labels.",
            )
        self._spent, self._spent_apart = spent, apart

    def _refusal(self, questions: int, cost: Fraction, left: Fraction) -> str:
        """In parts of the whole, which are short and exact: "11/10 of the release's epsilon"."""
        need = (
            f"The next question needs {cost / self.total}"
            if questions == 1
            else (f"The next {questions} questions need {cost / self.total}")
        )
        return f"{need} of the release's {self.currency}, but {left / self.total} of it is left."

    def _cost_so_far(self) -> str:
        if self.spent == 0:
            return NOTHING_SPENT
        return f"Nothing more was asked; the {self.spent / self.total} spent before stays spent."


def price(
    currency: Currency,
    total: Fraction,
    share: Fraction,
    l1: Fraction | int,
    l2_squared: Fraction | int,
    cube: tuple[int, int] | None = None,
) -> Price:
    """The noise that a share of a total buys, for a statistic of these sensitivities.

    `cube` says how far any one integer of it moves, and how many integers a block has: where they all
    move at once, noise from a cube is less than half of Laplace noise. Pure epsilon takes the smaller.

    Depends on the arguments alone. A statistic that no row can move is free. Raises ValueError where the
    noise would not fit in 64 bits.
    """
    if l1 < 0 or l2_squared < 0 or (l1 == 0) != (l2_squared == 0):
        raise ValueError("sensitivities must be positive, or both 0")
    if l1 == 0:
        return Price("none", Fraction(0), Fraction(0), 0.0)
    cost = positive(share, "a share") * total
    if currency == "epsilon":
        if cube is not None:
            scale, size = check_scale(cube[0] / cost), cube[1]
            if 2 * scale >= size + 16 and cube_sd(scale, size) < laplace_sd(l1 / cost):
                return Price("discrete_cube", scale, cost, cube_sd(scale, size))
        scale = check_scale(l1 / cost)
        return Price("discrete_laplace", scale, cost, laplace_sd(scale))
    sigma2 = representable_sigma2(l2_squared / (2 * cost))
    return Price("rounded_gaussian", sigma2, cost, gaussian_sd(sigma2))


# ---- standard deviations, for mechanisms and readers ----------------------------------------------


def laplace_sd(scale: Fraction) -> float:
    """sqrt(2r)/(1-r), r = exp(-1/scale): the standard deviation of discrete Laplace noise."""
    x = float(min(1 / scale, Fraction(1000)))  # beyond that it is 0 as a float
    return math.sqrt(2 * math.exp(-x)) / -math.expm1(-x)


def cube_sd(scale: Fraction, size: int) -> float:
    """The standard deviation of one integer of discrete cube noise, for scales above 8.

    It is uniform in {-m..m}, so of variance m(m+1)/3, where m + 1/2 is nearly Gamma(size + 1, scale).

    >>> round(cube_sd(Fraction(100), 64) / laplace_sd(Fraction(6400)), 3)
    0.418
    """
    return float(scale) * math.sqrt((size + 1) * (size + 2) / 3)


def gaussian_sd(sigma2: Fraction) -> float:
    """The standard deviation of Gaussian noise that is rounded to integers.

    >>> round(gaussian_sd(Fraction(1)) ** 2 - 1, 3)  # that of rounding, 1/12
    0.083
    """
    if sigma2 >= 4:  # the difference is below 1e-30
        return math.sqrt(float(sigma2) + 1 / 12)
    root = math.sqrt(2 * float(sigma2))
    return math.sqrt(sum((2 * x - 1) * math.erfc((x - 0.5) / root) for x in range(1, 60)))
