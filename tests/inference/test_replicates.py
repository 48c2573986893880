"""Replicates: tables that the real one might be, and the rule that combines what code says of them."""

import numpy as np
import pytest

from dpsynth_cli.inference.combine import combine
from dpsynth_cli.inference.posterior import Posterior
from dpsynth_cli.inference.replicates import replicate_tables
from dpsynth_cli.inference.sampling import numbers, sampling_variance
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.sums import Sums
from tests.inference.people import COLUMNS, people, published, spec, statistic, table

CODES = people()
JOINT = spec("joint", 5.0, **{name: COLUMNS[name] for name in ("sex", "age", "pay")})


def _one_table(counts: list[float], sd: float) -> Posterior:
    """Two cells of 100 rows each in the release, and their noisy counts."""
    cell = np.repeat([0, 1], 100)
    return Posterior([Sums(cell, np.ones(200), np.array(counts), sd, "rounded_gaussian")], np.ones(200))


def test_draws_have_the_counts_and_their_noise_and_are_never_negative():
    rng = np.random.default_rng(1)
    posterior = _one_table([150.0, 60.0], 4.0)
    drawn = np.stack([posterior.draw(rng) for _ in range(400)])
    cells = np.stack([drawn[:, :100].sum(axis=1), drawn[:, 100:].sum(axis=1)])
    assert drawn.min() >= 0
    assert cells.mean(axis=1) == pytest.approx([150, 60], abs=2)
    assert cells.std(axis=1) == pytest.approx([4, 4], rel=0.2)


def test_noise_that_hides_a_count_leaves_what_was_released_open_by_the_prior():
    rng = np.random.default_rng(1)
    posterior = _one_table([-5000.0, 7000.0], 5000.0)
    drawn = np.stack([posterior.draw(rng).reshape(2, 100).sum(axis=1) for _ in range(300)])
    assert np.log(drawn / 100).std(axis=0) == pytest.approx([1, 1], rel=0.3)


def test_an_analysis_of_replicates_combines_to_intervals_that_hold():
    """5 seeded releases, the same ones but for how a machine rounds. How many hold is measured by
    `benchmarks/coverage.py`; this sees what is far off, such as draws that are drawn to the released rows."""
    held = []
    for seed in range(5):
        shown = published(JOINT, CODES, seed)
        tables = [Drawn(one, shown.domain, len(one)) for one in replicate_tables(shown, 10, seed)]
        for text in ("mean(pay) by sex", "pay ~ age + sex", "count() by sex"):
            own = statistic(text, JOINT)
            found, real = np.stack([numbers(own, one) for one in tables]), numbers(own, table(JOINT, CODES))
            for k, x in enumerate(real):
                _, low, high = combine(found[:, k].tolist(), [0.0] * 10)
                held.append(low <= x <= high)
    assert np.mean(held) >= 0.85


def test_about_the_population_the_sampling_error_comes_on_top():
    own, shown = statistic("mean(age) by sex", JOINT), published(JOINT, CODES)
    tables = [Drawn(one, shown.domain, len(one)) for one in replicate_tables(shown, 8, 3)]
    found = [float(numbers(own, one)[0]) for one in tables]
    within = float(sampling_variance(own, tables[0], np.random.default_rng(1))[0])
    _, low, high = combine(found, [within] * 8)
    _, lower, higher = combine(found, [within] * 8, population=True)
    assert lower < low < high < higher


def test_replicates_have_as_many_rows_as_the_table_may_have():
    rows = [len(one) for one in replicate_tables(published(JOINT, CODES), 6, 0)]
    assert len(set(rows)) > 1
    assert abs(np.mean(rows) - len(CODES["age"])) < 200


@pytest.mark.parametrize(
    ("estimates", "variances", "problem"),
    [([], [], "at least two"), ([1.0], [1.0], "at least two"), ([1.0, 2.0], [1.0], "2 estimates and 1 ")],
)
def test_what_cannot_be_combined_is_refused(estimates, variances, problem):
    with pytest.raises(ValueError, match=problem):
        combine(estimates, variances)
