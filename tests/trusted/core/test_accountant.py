import math
import subprocess
import sys
from fractions import Fraction as F
from statistics import NormalDist

import mpmath
import pytest

from dpsynth_cli.errors import BudgetError
from dpsynth_cli.trusted.core.accountant import (
    Accountant,
    Price,
    cube_sd,
    gaussian_sd,
    laplace_sd,
)
from dpsynth_cli.trusted.core.gaussian import rho_of_epsilon

BOTH = [Accountant.pure(F(1, 10)), Accountant.gaussian(F(1), F(1, 10**9))]


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
    gaussian = Accountant.gaussian(F(1), F(1, 10**6))
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
    budget = Accountant.gaussian(F(1), F(1, 10**6))
    for share in (F(1), F(1, 3), F(1, 7919)):
        price = budget.price(share, l1=99, l2_squared=F(7, 3))
        exact = F(7, 3) / (2 * share * budget.total)
        assert price.noise == "rounded_gaussian"
        assert price.cost == share * budget.total
        assert exact <= price.parameter <= exact * (1 + F(1, 2**52))
        assert price.sd == pytest.approx(math.sqrt(exact + F(1, 12)))


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
        Accountant.gaussian(F(1), F(1, 10**6)).price(F(1, 2**110), 1, 1)


def test_floats_are_refused():
    with pytest.raises(TypeError, match="float"):
        Accountant.pure(0.1)
    with pytest.raises(TypeError, match="float"):
        Accountant.gaussian(F(1), 1e-9)
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
        Accountant.gaussian(epsilon, F(1, 10**9))


# ---- standard deviations ---------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", [F(1, 50), F(1, 3), F(1), F(3), F(4), F(50)])
def test_standard_deviations_are_those_of_the_distributions(parameter):
    reach = range(-int(60 * parameter + 40), int(60 * parameter + 41))
    p = [math.exp(max(-700, -abs(x) / parameter)) for x in reach]
    variance = sum(x * x * p_x for x, p_x in zip(reach, p, strict=True)) / sum(p)
    assert laplace_sd(parameter) == pytest.approx(math.sqrt(variance), rel=1e-9)
    normal = NormalDist(0, math.sqrt(parameter))
    variance = sum(x * x * (normal.cdf(x + 0.5) - normal.cdf(x - 0.5)) for x in reach)
    assert gaussian_sd(parameter) == pytest.approx(math.sqrt(variance), rel=1e-6)


def test_standard_deviations_of_extreme_parameters_are_numbers():
    assert laplace_sd(F(1, 10**400)) == pytest.approx(0, abs=1e-100)
    assert gaussian_sd(F(1, 2**20)) == 0
    assert laplace_sd(F(2**56)) == pytest.approx(math.sqrt(2) * 2**56)
    assert gaussian_sd(F(2**110)) == 2.0**55


def test_a_gaussian_budget_keeps_the_users_numbers_and_spends_rho():
    budget = Accountant.gaussian(F(1), F(1, 10**6))
    assert (budget.currency, budget.epsilon, budget.delta) == ("rho", 1, F(1, 10**6))
    assert budget.total == rho_of_epsilon(F(1), F(1, 10**6))
    assert Accountant.pure(F(1)).delta == 0


@pytest.mark.parametrize("delta", [F(0), F(1), F(-1, 2), F(3, 2)])
def test_a_budgets_delta_lies_between_0_and_1(delta):
    with pytest.raises(ValueError, match="delta"):
        Accountant.gaussian(F(1), delta)


def test_importing_the_accountant_does_not_import_numpy():
    code = "import sys, dpsynth_cli.trusted.core.accountant; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
