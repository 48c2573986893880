import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction as F

import mpmath
import pytest

from dpsynth_cli.errors import BudgetError
from dpsynth_cli.trusted.core.accountant import (
    Accountant,
    Price,
    cube_sd,
    epsilon_of_rho,
    gaussian_sd,
    laplace_sd,
    rho_of_epsilon,
)

BOTH = [Accountant.pure(F(1, 10)), Accountant.zcdp(F(1), F(1, 10**9))]


def fresh(accountant):
    return Accountant(accountant.currency, accountant.total, accountant.epsilon, accountant.delta)


# ---- prices ----------------------------------------------------------------------------------------


def test_a_pure_price_is_sensitivity_over_its_part_of_epsilon():
    price = Accountant.pure(F(1, 2)).price(F(1, 4), l1=6, l2_squared=20)
    assert price == Price("discrete_laplace", F(48), F(1, 8), price.sd)
    assert price.sd == pytest.approx(math.sqrt(2) * 48, rel=1e-4)


def test_a_pure_price_takes_the_smaller_of_laplace_and_cube_noise():
    budget = Accountant.pure(F(1, 2))
    everything = budget.price(F(1, 2), l1=64_000, l2_squared=64 * 10**6, cube=(1000, 64))
    assert (everything.noise, everything.parameter, everything.cost) == ("discrete_cube", F(4000), F(1, 4))
    laplace = budget.price(F(1, 2), l1=64_000, l2_squared=64 * 10**6)
    assert everything.sd == pytest.approx(0.418 * laplace.sd, rel=0.01)
    assert budget.price(F(1, 2), l1=1000, l2_squared=10**6, cube=(1000, 64)).noise == "discrete_laplace"
    assert budget.price(F(1, 2), l1=64, l2_squared=64, cube=(1, 64)).noise == "discrete_laplace"  # scale 4
    gaussian = Accountant.zcdp(F(1), F(1, 10**6))
    assert gaussian.price(F(1), 64_000, 64 * 10**6, (1000, 64)) == gaussian.price(F(1), 64_000, 64 * 10**6)


@pytest.mark.parametrize(("scale", "size"), [(F(17, 2), 1), (F(9), 2), (F(20), 24), (F(10**9), 2080)])
def test_the_sd_of_cube_noise_is_that_of_its_distribution(scale, size):
    t = mpmath.exp(-1 / mpmath.mpf(scale.numerator) * scale.denominator)
    if scale < 100:
        weights = [t**m * (2 * m + 1) ** size for m in range(60 * (size + 4) * 10)]
        square = sum(w * m * (m + 1) / 3 for m, w in enumerate(weights)) / sum(weights)
    else:  # the sums are integrals
        square = mpmath.mpf(int(scale)) ** 2 * (size + 1) * (size + 2) / 3
    assert cube_sd(scale, size) == pytest.approx(float(mpmath.sqrt(square)), rel=1e-3)


def test_a_gaussian_price_never_has_less_noise_than_its_part_of_rho_allows():
    budget = Accountant.zcdp(F(1), F(1, 10**6))
    for share in (F(1), F(1, 3), F(1, 7919)):
        price = budget.price(share, l1=99, l2_squared=F(7, 3))
        exact = F(7, 3) / (2 * share * budget.total)
        assert price.noise == "discrete_gaussian"
        assert price.cost == share * budget.total
        assert exact <= price.parameter <= exact * (1 + F(1, 2**52))
        assert price.sd == pytest.approx(math.sqrt(exact))


def test_what_no_row_can_move_is_free():
    for budget in BOTH:
        assert budget.price(F(0), 0, 0) == Price("none", F(0), F(0), 0.0)


@pytest.mark.parametrize("budget", BOTH)
@pytest.mark.parametrize("share", [F(0), F(-1, 2)])
def test_a_share_must_be_positive(budget, share):
    with pytest.raises(ValueError, match="share must be above 0"):
        budget.price(share, 1, 1)


@pytest.mark.parametrize("sensitivities", [(-1, 1), (1, -1), (0, 1), (1, 0)])
def test_impossible_sensitivities_are_refused(sensitivities):
    with pytest.raises(ValueError, match="sensitivities"):
        BOTH[0].price(F(1), *sensitivities)


def test_noise_that_does_not_fit_in_64_bits_is_refused_at_the_price():
    with pytest.raises(ValueError, match="scale"):
        Accountant.pure(F(1)).price(F(1, 2**56 + 1), 1, 1)
    with pytest.raises(ValueError, match="variance"):
        Accountant.zcdp(F(1), F(1, 10**6)).price(F(1, 2**110), 1, 1)


def test_floats_are_refused():
    with pytest.raises(TypeError, match="float"):
        Accountant.pure(0.1)
    with pytest.raises(TypeError, match="float"):
        Accountant.zcdp(F(1), 1e-9)
    with pytest.raises(TypeError, match="float"):
        BOTH[0].price(0.5, 1, 1)


def test_pricing_charges_nothing():
    budget = fresh(BOTH[0])
    budget.price(F(1), 1, 1)
    assert budget.spent == 0


# ---- charging --------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BOTH)
def test_ten_shares_of_a_tenth_are_exactly_the_budget(budget):
    budget = fresh(budget)
    for _ in range(10):
        budget.charge([budget.price(F(1, 10), 2, 2)])
    assert budget.spent == budget.total
    with pytest.raises(BudgetError):
        budget.charge([budget.price(F(1, 10**15), 2, 2)])


@pytest.mark.parametrize("budget", BOTH)
def test_overspending_is_refused_as_a_whole_and_costs_nothing(budget):
    budget = fresh(budget)
    half, most = budget.price(F(1, 2), 1, 1), budget.price(F(3, 5), 1, 1)
    with pytest.raises(BudgetError) as refusal:
        budget.charge([half, most])
    assert budget.spent == 0
    assert str(refusal.value) == (
        f"The next 2 questions need 11/10 of the release's {budget.currency}, but 1 of it is left.\n"
        "Nothing was read and nothing was spent. The shares of all questions must add up to at most 1: "
        "see mechanism.split in the spec, or, if there is none, report it as a mistake in the mechanism."
    )
    budget.charge([half])
    with pytest.raises(BudgetError) as refusal:
        budget.charge([most])
    assert budget.spent == budget.total / 2
    assert str(refusal.value).startswith(
        f"The next question needs 3/5 of the release's {budget.currency}, but 1/2 of it is left.\n"
        "Nothing more was asked; the 1/2 spent before stays spent. The shares"
    )
    budget.charge([half])  # what was refused left no trace
    assert budget.spent == budget.total


def test_refusal_depends_on_the_shares_alone():
    # Whatever the sensitivities: the same shares are charged or refused alike.
    for l1, l2_squared in ((1, 1), (2, F(1, 7)), (10**9, 10**12)):
        budget = fresh(BOTH[1])
        budget.charge([budget.price(F(2, 3), l1, l2_squared), budget.price(F(1, 3), l2_squared, l1)])
        with pytest.raises(BudgetError):
            budget.charge([budget.price(F(1, 10**9), l1, l2_squared)])


def test_a_negative_cost_cannot_refund():
    budget = fresh(BOTH[0])
    with pytest.raises(ValueError, match="negative"):
        budget.charge([Price("none", F(0), F(-1), 0.0)])


@pytest.mark.parametrize("epsilon", [F(0), F(-1)])
def test_a_budget_must_be_positive(epsilon):
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        Accountant.pure(epsilon)
    with pytest.raises(ValueError, match="epsilon must be above 0"):
        Accountant.zcdp(epsilon, F(1, 10**9))


# ---- standard deviations ---------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", [F(1, 50), F(1, 3), F(1), F(3), F(4), F(50)])
def test_standard_deviations_are_those_of_the_distributions(parameter):
    reach = range(-int(60 * parameter + 40), int(60 * parameter + 41))
    for sd, exponent in (
        (laplace_sd, lambda x: -abs(x) / parameter),
        (gaussian_sd, lambda x: -F(x * x) / (2 * parameter)),
    ):
        p = [math.exp(max(-700, exponent(x))) for x in reach]
        variance = sum(x * x * p_x for x, p_x in zip(reach, p, strict=True)) / sum(p)
        assert sd(parameter) == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_standard_deviations_of_extreme_parameters_are_numbers():
    assert laplace_sd(F(1, 10**400)) == pytest.approx(0, abs=1e-100)
    assert gaussian_sd(F(1, 2**20)) == 0
    assert laplace_sd(F(2**56)) == pytest.approx(math.sqrt(2) * 2**56)
    assert gaussian_sd(F(2**110)) == 2.0**55


# ---- rho and (epsilon, delta) ----------------------------------------------------------------------

RHOS = [F(1, 10**6), F(1, 1000), F(1, 20), F(1), F(40)]
DELTAS = [F(1, 10**12), F(1, 10**6), F(1, 20), F(9, 10)]


def slow_epsilon(rho, delta):
    """The least of the conversion's formula over alpha, by a fine grid in 40 digits, refined twice."""
    with mpmath.workdps(40):
        rho, delta = (mpmath.mpf(x.numerator) / x.denominator for x in (rho, delta))

        def f(t):
            alpha = 1 + mpmath.exp(t)
            inner = mpmath.log(1 / delta) + (alpha - 1) * mpmath.log(1 - 1 / alpha) - mpmath.log(alpha)
            return rho * alpha + inner / (alpha - 1)

        best, step = 0, mpmath.mpf(1) / 2
        grid = [step * i for i in range(-60, 61)]
        for _ in range(8):
            best = min(grid, key=f)
            grid = [best + step * i / 10 for i in range(-10, 11)]
            step /= 10
        return max(mpmath.mpf(0), f(best))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_the_optimum_rounded_up(rho, delta):
    epsilon, optimum = epsilon_of_rho(rho, delta), slow_epsilon(rho, delta)
    assert (epsilon * 10**12).denominator == 1
    with mpmath.workdps(40):
        ours = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        assert optimum - mpmath.mpf(10) ** -13 <= ours <= optimum + mpmath.mpf("1.1e-12")


def exact_delta(sigma2, epsilon):
    """The delta of one discrete Gaussian answer of sensitivity 1, summed in 40 digits."""
    with mpmath.workdps(40):
        s, e = (mpmath.mpf(x.numerator) / x.denominator for x in (sigma2, epsilon))
        reach = range(-int(20 * s**0.5 + 20), int(20 * s**0.5 + 21))
        p = [mpmath.exp(-mpmath.mpf(x * x) / (2 * s)) for x in reach]
        q = [mpmath.exp(-mpmath.mpf((x - 1) ** 2) / (2 * s)) for x in reach]
        return sum(max(mpmath.mpf(0), a - mpmath.exp(e) * b) for a, b in zip(p, q, strict=True)) / sum(p)


@pytest.mark.parametrize("rho", [F(1, 100), F(1, 20), F(1)])
@pytest.mark.parametrize("delta", [F(1, 10**6), F(1, 100)])
def test_the_converted_guarantee_holds_for_a_real_mechanism(rho, delta):
    epsilon = epsilon_of_rho(rho, delta)
    assert exact_delta(1 / (2 * rho), epsilon) <= delta
    # And it is no empty promise: half of epsilon would be one.
    assert exact_delta(1 / (2 * rho), epsilon / 2) > delta


@pytest.mark.parametrize("rho", [F(1, 1000), F(1, 20), F(1)])
@pytest.mark.parametrize("delta", [F(1, 10**9), F(1, 10**6)])
def test_the_conversion_is_clearly_better_than_the_usual_one(rho, delta):
    usual = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))
    assert float(epsilon_of_rho(rho, delta)) < 0.95 * usual


def test_epsilon_is_never_negative():
    assert epsilon_of_rho(F(1, 10**30), F(1, 10)) == 0
    assert epsilon_of_rho(F(1), 1 - F(1, 10**18)) == 0


@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1, 10), F(1, 3), F(1), F(10), F(1000)])
@pytest.mark.parametrize("delta", [F(1, 10**300), F(1, 10**9), F(1, 2), 1 - F(1, 10**30)])
def test_rho_is_the_largest_of_13_digits_that_stays_within_epsilon(epsilon, delta):
    rho = rho_of_epsilon(epsilon, delta)
    assert epsilon_of_rho(rho, delta) <= epsilon
    assert epsilon_of_rho(rho * (1 + F(3, 10**9)), delta) > epsilon
    digits = Decimal(rho.numerator) / Decimal(rho.denominator)
    assert F(digits) == rho  # a finite decimal
    assert len(digits.normalize().as_tuple().digits) <= 13


@pytest.mark.parametrize("delta", [F(0), F(1), F(-1, 2), F(3, 2)])
def test_delta_must_lie_between_0_and_1(delta):
    with pytest.raises(ValueError, match="delta"):
        epsilon_of_rho(F(1), delta)
    with pytest.raises(ValueError, match="delta"):
        Accountant.zcdp(F(1), delta)


def test_a_tiny_epsilon_has_a_tiny_rho():
    rho = rho_of_epsilon(F(1, 10**6), F(1, 10**9))
    assert rho < F(1, 10**12)
    assert epsilon_of_rho(rho, F(1, 10**9)) <= F(1, 10**6) < epsilon_of_rho(rho * F(1001, 1000), F(1, 10**9))


def test_an_epsilon_too_small_to_convert_is_refused_and_not_searched_for_ever():
    with pytest.raises(ValueError, match="too small"):
        rho_of_epsilon(F(1, 10**13), F(1, 10**300))


def test_zcdp_keeps_the_users_numbers_and_spends_rho():
    budget = Accountant.zcdp(F(1), F(1, 10**6))
    assert (budget.currency, budget.epsilon, budget.delta) == ("rho", 1, F(1, 10**6))
    assert budget.total == rho_of_epsilon(F(1), F(1, 10**6))
    assert Accountant.pure(F(1)).delta == 0


def test_importing_the_accountant_does_not_import_numpy():
    code = "import sys, dpsynth_cli.trusted.core.accountant; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
