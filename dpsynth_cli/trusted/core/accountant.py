"""One release's privacy budget: one currency, exact fractions, and a hard stop.

Claim. The costs of all questions that were charged never add up to more than the total, exactly; whether
a charge is refused depends on the costs alone, never on an answer. Without a delta the currency is
pure epsilon (discrete Laplace or cube noise, costs add up); with one it is the rho of zero-concentrated
differential privacy (discrete Gaussian noise, rho adds up), which is converted to (epsilon, delta) once,
for the total.
A stop at the total is a valid filter even for shares chosen from earlier answers (Feldman and
Zrnic 2021; Whitehouse et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from dpsynth_cli.errors import NOTHING_SPENT, BudgetError
from dpsynth_cli.trusted.core.scales import check_scale, representable_sigma2

Currency: TypeAlias = Literal["epsilon", "rho"]

_NEXT_STEP = (
    "The shares of all questions must add up to at most 1: see mechanism.split in the spec, or, "
    "if there is none, report it as a mistake in the mechanism."
)


@dataclass(frozen=True)
class Price:
    """What one question costs, and the noise it gets for that."""

    noise: Literal["discrete_laplace", "discrete_cube", "discrete_gaussian", "none"]
    parameter: Fraction  # the scale of Laplace and cube, sigma^2 of Gaussian noise; 0 for none
    cost: Fraction  # in the release's currency
    sd: float  # standard deviation of the noise on one number: public


@dataclass
class Accountant:
    """The budget of one release; build it with `pure` or `zcdp`.

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
    _spent: Fraction = field(default=Fraction(0), init=False)

    @property
    def spent(self) -> Fraction:
        """What was charged so far: only `charge` changes it, and it never falls."""
        return self._spent

    @classmethod
    def pure(cls, epsilon: Fraction) -> Accountant:
        """A budget of epsilon-differential privacy."""
        epsilon = _positive(epsilon, "epsilon")
        return cls("epsilon", epsilon, epsilon, Fraction(0))

    @classmethod
    def zcdp(cls, epsilon: Fraction, delta: Fraction) -> Accountant:
        """A budget of (epsilon, delta)-differential privacy, kept as the rho that implies it."""
        return cls("rho", rho_of_epsilon(epsilon, delta), Fraction(epsilon), Fraction(delta))

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
        if any(price.cost < 0 for price in prices):
            raise ValueError("a cost must not be negative")
        spent = sum((price.cost for price in prices), self.spent)
        if spent > self.total:
            cost, left = spent - self.spent, self.total - self.spent
            raise BudgetError(self._refusal(len(prices), cost, left), self._cost_so_far(), _NEXT_STEP)
        self._spent = spent

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
    cost = _positive(share, "a share") * total
    if currency == "epsilon":
        if cube is not None:
            scale, size = check_scale(cube[0] / cost), cube[1]
            if 2 * scale >= size + 16 and cube_sd(scale, size) < laplace_sd(l1 / cost):
                return Price("discrete_cube", scale, cost, cube_sd(scale, size))
        scale = check_scale(l1 / cost)
        return Price("discrete_laplace", scale, cost, laplace_sd(scale))
    sigma2 = representable_sigma2(l2_squared / (2 * cost))
    return Price("discrete_gaussian", sigma2, cost, gaussian_sd(sigma2))


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
    """The standard deviation of discrete Gaussian noise: sigma, but less where sigma is below 1 or so."""
    if sigma2 >= 4:  # the difference is below 1e-30
        return math.sqrt(sigma2)
    weights = [math.exp(-x * x / (2 * float(sigma2))) for x in range(1, 60)]
    squares = sum(x * x * weight for x, weight in enumerate(weights, start=1))
    return math.sqrt(2 * squares / (1 + 2 * sum(weights)))


# ---- rho and (epsilon, delta) ---------------------------------------------------------------------

_DIGITS = Context(prec=80)
_DECIMALS = Decimal("1e-12")


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon, rounded up to 12 decimals, such that rho-zCDP implies (epsilon, delta)-DP.

    The least over alpha > 1 of rho alpha + (log(1/delta) + (alpha-1) log(1-1/alpha) - log alpha)/(alpha-1)
    (Canonne, Kamath, Steinke 2020), or 0. Every alpha gives a valid epsilon: floats choose a good one, and
    its value is then computed with error bounds.

    >>> float(epsilon_of_rho(Fraction(1, 100), Fraction(1, 10**6)))
    0.62169265456
    """
    rho, delta = _positive(rho, "rho"), _between_0_and_1(delta)
    # In beta = alpha - 1, because alpha may be close to 1.
    r, log_1_delta = float(rho), _minus_log(delta)

    def f(log_beta: float) -> float:
        beta = math.exp(log_beta)
        alpha = 1 + beta
        return r * alpha + (log_1_delta - math.log(alpha)) / beta - math.log1p(1 / beta)

    beta = Decimal(repr(math.exp(_argmin(f, -50, 50))))
    # beta has 17 digits and is between 1e-22 and 1e22, so alpha is exact. Every operation has a relative
    # error below 1e-79, and that of 1/delta becomes an error below 1e-79/beta of its logarithm's term:
    # 1e-50 of all sizes added up covers everything.
    add, mul, div, ln = _DIGITS.add, _DIGITS.multiply, _DIGITS.divide, _DIGITS.ln
    alpha = add(1, beta)
    terms = [
        mul(_decimal(rho), alpha),
        div(ln(_decimal(1 / delta)), beta),
        ln(beta),
        -ln(alpha),
        -div(ln(alpha), beta),
    ]
    value, size = Decimal(0), Decimal(0)
    for term in terms:
        value, size = add(value, term), add(size, abs(term))
    above = add(value, mul(add(size, 1), Decimal("1e-50")))
    return max(Fraction(0), Fraction(above.quantize(_DECIMALS, ROUND_CEILING, _DIGITS)))


@lru_cache(maxsize=64, typed=True)  # a stream converts at every block
def rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho of 13 decimal digits with epsilon_of_rho(rho, delta) <= epsilon.

    >>> rho = rho_of_epsilon(Fraction(1), Fraction(1, 10**6))
    >>> float(rho), float(epsilon_of_rho(rho, Fraction(1, 10**6)))
    (0.02435597035953, 1.0)
    """
    epsilon, delta = _positive(epsilon, "epsilon"), _between_0_and_1(delta)

    def fits(rho: Fraction) -> bool:
        return epsilon_of_rho(rho, delta) <= epsilon

    # The power of ten: 10^e fits, 10^(e+1) does not.
    e = 0
    while fits(Fraction(10) ** (e + 1)):
        e += 1
    while not fits(Fraction(10) ** e):
        e -= 1
        if e < -100:  # epsilon is below the 12 decimals, and delta below 1e-21
            raise ValueError("epsilon and delta are too small to be converted to rho")
    unit = Fraction(10) ** (e - 12)
    low, high = 10**12, 10**13
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * unit) else (low, middle)
    return low * unit


def _argmin(f: Callable[[float], float], low: float, high: float) -> float:
    """Where the quasi-convex f is least (golden section), near enough."""
    golden = (math.sqrt(5) - 1) / 2
    a, b = high - golden * (high - low), low + golden * (high - low)
    fa, fb = f(a), f(b)
    while high - low > 1e-9:
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - golden * (high - low)
            fa = f(a)
        else:
            low, a, fa = a, b, fb
            b = low + golden * (high - low)
            fb = f(b)
    return (low + high) / 2


def _minus_log(delta: Fraction) -> float:
    """log(1/delta), also where delta is too small for a float or close to 1."""
    if delta > Fraction(1, 2):
        return -math.log1p(-float(1 - delta))
    return math.log(delta.denominator) - math.log(delta.numerator)


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def _positive(value: Fraction, name: str) -> Fraction:
    if not isinstance(value, Fraction | int):
        raise TypeError(f"{name} must be a Fraction: a float is not the number that was meant")
    if value <= 0:
        raise ValueError(f"{name} must be above 0")
    return Fraction(value)


def _between_0_and_1(delta: Fraction) -> Fraction:
    if _positive(delta, "delta") >= 1:
        raise ValueError("delta must be below 1")
    return Fraction(delta)
