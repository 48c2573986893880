"""Loose bounds: where rows are is found for a small share; a thousand times too wide costs little."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import GRID, Column, Domain
from dpsynth_cli.mechanisms import marginals
from dpsynth_cli.mechanisms.pmm import pmm
from dpsynth_cli.mechanisms.shared.focus import MOST, ask_scales, narrowest
from dpsynth_cli.mechanisms.shared.oneway_plan import plan_for
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Answer, Asking
from tests.asking import asking, drawn

ROWS = 20_000
TENTHS = np.arange(0.1, 0.95, 0.1)


def values(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "plain": np.clip(rng.normal(0.5, 0.12, ROWS), 0, 0.999999),
        "skewed": np.clip(np.exp(rng.normal(-4, 1, ROWS)), 0, 0.999999),
    }


def declared(loose: int) -> tuple[dict[str, np.ndarray], Domain]:
    """The values between bounds that are so many times too wide: a third of what is too much is below."""
    low = (loose - 1) / 3
    codes = {name: ((low + x) / loose * GRID).astype(np.int64) for name, x in values().items()}
    return codes, Domain(tuple(Column(name, "continuous", lower=-low, upper=loose - low) for name in codes))


def error(mechanism, loose: int, epsilon: float) -> float:
    """The mean error of deciles, in interquartile ranges, over columns and five releases."""
    codes, omega = declared(loose)
    errors = []
    for _ in range(5):
        ask, accountant, _, _ = asking(codes, omega, epsilon)
        made = drawn(mechanism.run(ask, omega, mechanism.Params(), mechanism.MECHANISM.stages), ROWS)
        assert accountant.spent == accountant.total
        for name, real in codes.items():
            real_tenths, tenths = np.quantile(real, TENTHS), np.quantile(made[name], TENTHS)
            scale = np.subtract(*np.quantile(real, [0.75, 0.25]))
            errors.append(np.abs(real_tenths - tenths).mean() / scale)
    return float(np.mean(errors))


@pytest.mark.parametrize("mechanism", [marginals, pmm], ids=["marginals", "pmm"])
def test_bounds_a_thousand_times_too_wide_cost_little(mechanism):
    # Without a focus, errors are above 1: all rows are in one cell.
    assert error(mechanism, 1000, 1.0) < 0.08
    assert error(mechanism, 1, 1.0) < 0.08


def test_rows_all_over_their_bounds_are_looked_at_once():
    omega = Domain((Column("x", "continuous", lower=0, upper=1),))
    codes = {"x": np.random.default_rng(1).integers(0, GRID, ROWS)}
    ask, _, charges, _ = asking(codes, omega, 1.0)
    scales, left = ask_scales(ask, "columns", omega.columns, [Fraction(1)], ROWS)
    assert scales[0].plain
    assert len(charges) == 1
    assert 0.95 < left < 1
    assert left == 1 - charges[0].question.share


def test_few_rows_and_few_codes_are_not_looked_at():
    columns = (Column("x", "continuous", lower=0, upper=1), Column("age", "integer", lower=0, upper=99))
    ask, _, charges, _ = asking({"x": np.zeros(1), "age": np.zeros(1)}, Domain(columns), 1.0)
    scales, left = ask_scales(ask, "columns", columns, [Fraction(1, 2)] * 2, 40)
    assert not charges
    assert left == 1
    assert all(scale.plain for scale in scales)


def test_missing_cells_are_not_taken_for_rows_elsewhere():
    column = Column("x", "continuous", lower=0, upper=1, nullable=True)
    rng = np.random.default_rng(2)
    inside = rng.integers(0, GRID // 1000, ROWS)
    codes = {"x": np.where(rng.random(ROWS) < 0.6, GRID, inside)}
    ask, *_ = asking(codes, Domain((column,)), 5.0)
    scale = ask_scales(ask, "columns", (column,), [Fraction(1)], ROWS)[0][0]
    assert not scale.plain
    assert scale.knots[1] <= 2 * GRID // 1000


def test_a_focus_is_taken_only_where_most_rows_surely_are():
    counts = np.zeros(32)
    counts[[3, 20]] = 500.0
    assert narrowest(counts, 1.0, 1000.0) == (3, 21)
    assert narrowest(np.append(counts[:31], 900.0), 1.0, 1900.0) is None
    assert narrowest(counts, 300.0, 1000.0) is None


@pytest.mark.parametrize("seen", [0.65, 1.0])
def test_looks_leave_something_for_the_counts_whatever_the_noise_is(seen):
    """Every other look is in doubt, as noise may have it, and a look costs a sixth of the share."""
    column, n, asked = Column("x", "continuous", lower=0, upper=1, nullable=True), 102.0, []

    def answer(questions):
        asked.extend(question.share for question in questions)
        counts = np.zeros(len(questions[0].statistic.cells.axes[0].edges) - 1, np.int64)
        counts[1] = round(n * (seen if len(asked) % 2 else 1.0))
        return [Answer(counts, (len(counts),), "discrete_laplace", 1.0)]

    ask = Asking(answer, lambda question: math.sqrt(2) / float(question.share))
    _, left = ask_scales(ask, "columns", [column], [Fraction(1)], n)
    assert min(asked) > Fraction(1, 7)
    assert left == 1 - sum(asked)
    assert left >= 1 - MOST > 0


def _answered(shown, sd: float):
    """An ask that gives what `shown` says of each look, by its edges."""

    def answer(questions):
        edges = questions[0].statistic.cells.axes[0].edges
        counts = np.array(shown(edges), np.int64)
        return [Answer(counts, (len(counts),), "rounded_gaussian", sd)]

    return Asking(answer, lambda question: 1 / float(question.share) ** 0.5)


def test_what_was_seen_is_not_given_up_for_a_noisy_number_of_missing_cells():
    """All rows in the first cell, in two looks; noise says that a quarter is missing."""
    column, n, sd = Column("x", "continuous", lower=0, upper=1, nullable=True), 1000.0, 130.0
    ask = _answered(lambda edges: [n, *[0] * (len(edges) - 3), n / 4], sd)
    ((scale,), _) = ask_scales(ask, "columns", [column], [Fraction(1)], n)
    assert scale.focus[1] <= GRID // 32**2


@pytest.mark.parametrize(("high", "found"), [(2.6, False), (8.0, True)])
def test_noise_is_no_focus_where_hardly_a_cell_is_there(high, found):
    """By the noisy numbers more cells are missing than there are rows: what is seen has to be above noise."""
    column, n, sd = Column("x", "continuous", lower=0, upper=1, nullable=True), 1000.0, 130.0
    ask = _answered(lambda edges: [high * sd, *[0] * (len(edges) - 3), n + sd], sd)
    ((scale,), _) = ask_scales(ask, "columns", [column], [Fraction(1)], n)
    assert scale.plain is not found


@pytest.mark.parametrize(("n", "found"), [(11.0, True), (9.0, False)])
def test_rows_of_five_times_the_noise_are_looked_for(n, found):
    """The whole share has noise of 1, and a quarter of it, the most a look may cost, of 2."""
    column = Column("x", "continuous", lower=0, upper=1)
    ask = _answered(lambda edges: [n, *[0] * (len(edges) - 2)], 2.0)
    ((scale,), left) = ask_scales(ask, "columns", [column], [Fraction(1)], n)
    assert (not scale.plain, left < 1) == (found, found)


@pytest.mark.parametrize(("part", "narrower"), [(2, False), (32, True)])
def test_a_range_that_was_found_stays_the_focus_unless_the_next_is_much_narrower(part, narrower):
    """Rows are in a thousandth of the bounds, most of them in a part of that."""
    column, n, end = Column("x", "continuous", lower=0, upper=1), 10_000.0, GRID // 32**2
    knots, reached = [0, end // part, end, GRID], [0, 0.9 * n, n, n]
    ask = _answered(lambda edges: np.rint(np.diff(np.interp(edges, knots, reached))), 1.0)
    ((scale,), _) = ask_scales(ask, "columns", [column], [Fraction(1)], n)
    assert (scale.focus[1] < end // 2) is narrower
    assert scale.focus[1] <= end


def test_cells_in_a_focus_are_as_fine_as_between_tight_bounds():
    """Half of the cells are outside."""
    column, n = Column("x", "continuous", lower=0, upper=1), 10_000.0
    omega, ask = (
        Domain((column,)),
        Asking(lambda questions: [], lambda question: 5 / float(question.share) ** 0.5),
    )
    plans = [
        plan_for(ask, omega, column, scale, Fraction(1), n, None, False)
        for scale in (Scale.even(GRID, False), Scale.focused(GRID, False, 0, GRID // 1000))
    ]
    tight, loose = (plan.levels for plan in plans)
    assert len(tight) == len(loose) == 2
    assert [level + 1 for level in tight] == list(loose)
