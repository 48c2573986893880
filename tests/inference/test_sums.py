"""Sums that were measured instead of counts, and the noise that sums of one table share."""

from functools import cache

import numpy as np
import pytest

from dpsynth_cli.inference.honesty import summed, why_not
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.sampling import numbers
from dpsynth_cli.inference.sums import Sums, other_noise, sums_of_pairs
from dpsynth_cli.inference.tables import Counted
from dpsynth_cli.spec.spec import Spec
from tests.inference.people import people, published, released, spec, statistic, table

COLUMNS = {
    "sex": {"type": "nominal", "categories": ["f", "m"]},
    "level": {"type": "ordinal", "categories": ["low", "mid", "high"], "nullable": True},
    "age": {"type": "integer", "bounds": [20, 59]},
    "pay": {"type": "continuous", "bounds": [0, 100]},
}
CODES = people()


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_noise_of_products_is_what_their_deviation_says(delta):
    """10 seeded releases of 10 products: the mean square of their standardised errors is 1, give or take a
    seventh."""
    whole = {"about": "middle"}  # rows that were pulled in to their means would not add up to the table's
    own = spec("lowdim", 2.0, delta, params=whole, age=COLUMNS["age"], pay=COLUMNS["pay"], sex=COLUMNS["sex"])
    errors = []
    for seed in range(10):
        for one in released(own, CODES, seed).known().signed:
            if len(one.columns) == 2:
                rows = [score(CODES[name]) for name, score in zip(one.columns, one.scores, strict=True)]
                errors.append((one.value - float((rows[0] * rows[1]).sum())) / one.sd)
    assert np.mean(np.square(errors)) == pytest.approx(1.0, abs=0.45)


@cache
def _of_products() -> tuple[Spec, Known]:
    own = spec("lowdim", 5.0, **COLUMNS)
    return own, released(own, CODES).known()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mean(pay)", True),
        ("mean(pay) by sex", True),
        ("sd(pay)", True),
        ("corr(age, pay)", True),
        ("pay ~ age + sex", True),
        ("corr(age, pay) by sex", False),  # products of three columns
        ("mean(pay) by level", False),  # ordinal: one coordinate for all its categories
        ("median(pay)", False),
        ("logistic: sex ~ age", False),
        ("mean(pay * 2)", False),
    ],
)
def test_what_products_tell(text, told):
    own, known = _of_products()
    assert summed(statistic(text, own), known) is told
    assert why_not(statistic(text, own), known).startswith("no interval: of ") is not told


def test_answers_from_products_hold_and_say_that_they_are_measured():
    """6 seeded releases, the same ones but for how a machine rounds."""
    own = spec("lowdim", 5.0, **COLUMNS)
    shown = [published(own, CODES, seed) for seed in range(6)]
    for text in ("mean(pay)", "corr(age, pay)", "pay ~ age"):
        asked = statistic(text, own)
        real = numbers(asked, table(own, CODES))
        answers = [one.answer(asked.query) for one in shown]
        assert {one.source for rows in answers for one in rows} == {"measured"}
        held = [rows[-1].low <= real[-1] <= rows[-1].high for rows in answers]
        assert sum(held) >= 5


def test_sums_of_one_table_have_the_same_noise():
    """Two ways of adding up a table: totals of both agree in every draw."""
    counts = Counted((), (), np.zeros((8, 4)), 3.0, "discrete_laplace", "counts", 0)
    nobody = np.zeros(0, np.int64), np.zeros(0)

    def along(axis: int) -> Sums:
        size, added = counts.values.shape[axis], counts.values.shape[1 - axis]
        sd = 3.0 * added**0.5
        noise = "discrete_laplace"
        return Sums(*nobody, np.zeros(size), sd, noise, added, {}, counts, lambda x: x.sum(axis=1 - axis))

    rng = np.random.default_rng(3)
    drawn = np.stack([other_noise([along(0), along(1)], rng) for _ in range(1000)])
    assert drawn[:, :8].sum(axis=1) == pytest.approx(drawn[:, 8:].sum(axis=1))
    assert drawn[:, :8].std() == pytest.approx(6.0, rel=0.1)
    assert drawn[:, 8:].std() == pytest.approx(3.0 * 8**0.5, rel=0.1)


def test_cells_of_pairs_are_joined_until_they_are_told_from_noise():
    shown = published(spec("pmm", 0.3, **{name: COLUMNS[name] for name in ("sex", "age", "pay")}), CODES)
    for one in sums_of_pairs(shown.released, shown.known):
        numeric = [name for name in one.axes if name != "sex"]
        assert one.noisy.mean() >= one.sd or not numeric or one.size <= 2
