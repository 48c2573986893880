"""Replicates: tables that the real one might be, and the rule that combines what code says of them."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.sparse import csr_array

from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.calibration import Calibration
from dpsynth_cli.inference.combine import combine
from dpsynth_cli.inference.draws import drawn_weights, never_negative, whole_rows
from dpsynth_cli.inference.empty import with_empty_cells
from dpsynth_cli.inference.moments import FIRST, Moment
from dpsynth_cli.inference.query import Published
from dpsynth_cli.inference.relations import Known
from dpsynth_cli.inference.replicates import replicate_tables
from dpsynth_cli.inference.sampling import numbers, sampling_variance
from dpsynth_cli.inference.simulate import Drawn
from dpsynth_cli.inference.statistics import Statistic
from dpsynth_cli.inference.sums import Sums
from tests.inference.people import COLUMNS, people, published, spec, statistic, table

CODES = people()
JOINT = spec("joint", 5.0, **{name: COLUMNS[name] for name in ("sex", "age", "pay")})


MANY = 200


def _calibrated(
    counts: list[float], sd: float, noise: str = "rounded_gaussian", **axes: object
) -> Calibration:
    """Two cells of 100 rows each in the release, and their noisy counts."""
    codes = {"sex": np.repeat([0, 1], MANY // 2)}
    rows = Drawn(Table(codes, MANY), JOINT.domain, MANY)
    return Calibration(
        [Sums(codes["sex"], np.ones(MANY), np.array(counts), sd, "rounded_gaussian", axes=axes)], rows
    )


def _known() -> Known:
    return Known(JOINT.domain, MANY, [], [], {}, [])


@cache
def _release(seed: int) -> Published:
    return published(JOINT, CODES, seed)


@cache
def _replicates(shown: Published, count: int, seed: int) -> list[Table]:
    return list(replicate_tables(shown, count, seed))


ALL_ROWS = [Moment(np.ones(MANY), np.ones(MANY), FIRST)]


def _drawn_counts(own: Calibration, times: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    drawn = np.stack([drawn_weights(own, ALL_ROWS, _known(), rng) for _ in range(times)])
    assert drawn.min() >= 0
    return drawn.reshape(times, 2, MANY // 2).sum(axis=2)


def test_draws_have_the_counts_and_their_noise_and_are_never_negative():
    cells = _drawn_counts(_calibrated([150.0, 60.0], 4.0), 400)
    assert cells.mean(axis=0) == pytest.approx([150, 60], abs=2)
    assert cells.std(axis=0) == pytest.approx([4, 4], rel=0.2)


def test_a_count_below_nothing_takes_no_rows_of_the_whole():
    """The other cell has less by what this one has too much, so that all rows are as many as was measured."""
    cells = _drawn_counts(_calibrated([-60.0, 300.0], 30.0), 200)
    assert cells.sum(axis=1).mean() == pytest.approx(240, abs=10)
    assert 25 < cells.sum(axis=1).std() < 50


def test_a_category_that_noise_hides_may_be_there():
    cells = _drawn_counts(_calibrated([-90.0, 300.0], 30.0, sex=np.asarray), 50)
    assert (cells[:, 0] > 1).mean() > 0.8
    assert cells[:, 0].max() < 60


def test_weights_that_are_never_negative_are_the_nearest_ones():
    """Beside a quadratic programme that scipy solves in another way."""
    rng = np.random.default_rng(3)
    features, start = rng.normal(size=(12, 4)), rng.uniform(0, 1, 12)
    sums, sd, free = rng.normal(0, 3, 4), np.array([0.1, 0.5, 1.0, 2.0]), 5.0
    found = never_negative(csr_array(features), sums, sd**2, start, free)
    rows = np.vstack([np.eye(12) / free**0.5, features.T / sd[:, None]])
    other, _ = nnls(rows, np.concatenate([start / free**0.5, sums / sd]))
    assert (found == 0).any()
    assert found == pytest.approx(other, abs=1e-6)


def test_whole_rows_have_the_sums_of_weights():
    """1,000 rows with parts of rows: sums over 30 categories and over all rows are off by less than 3 and 5
    rows, where a coin for each part has standard deviations of 2 and 13."""
    rng = np.random.default_rng(4)
    weight, cell, x = rng.uniform(0, 3, 1000), rng.integers(30, size=1000), rng.normal(size=1000)
    sums = csr_array((np.ones(1000), (np.arange(1000), cell)), shape=(1000, 30))
    ones = np.ones(1000)
    rows = whole_rows(weight, [Moment(ones, ones, FIRST), Moment(x, ones, FIRST)], sums, rng)
    assert np.abs(np.bincount(rows, minlength=1000) - weight).max() < 1
    assert np.abs(np.bincount(cell[rows], minlength=30) - np.bincount(cell, weight, 30)).max() < 3
    assert abs(len(rows) - weight.sum()) < 3
    assert abs(x[rows].sum() - weight @ x) < 5


@pytest.mark.parametrize("text", ["count() by sex", "mean(age)", "mean(pay) by sex", "mean(age) by sex"])
def test_replicates_tell_as_much_as_queries_do(text):
    """3 seeded releases: the intervals of 10 replicates are about as wide as those of `query`, not twice."""
    own, times = statistic(text, JOINT), []
    for seed in range(3):
        shown = _release(seed)
        found = _found(shown, own, 10, seed)
        for k, one in enumerate(shown.answer(own.query)):
            _, low, high = combine(found[:, k].tolist(), [0.0] * 10)
            times.append((high - low) / (one.high - one.low))
    assert 0.4 < np.median(times) < 1.5


@pytest.mark.parametrize("left_out", [{"sex": 1}, {"sex": 1, "level": 2}])
def test_categories_and_pairs_of_them_without_released_rows_get_some(left_out):
    own = spec("joint", 5.0, **{name: COLUMNS[name] for name in ("sex", "level")})
    shown = published(own, CODES)
    codes = shown.released.table.codes
    kept = ~np.logical_and.reduce([codes[name] == code for name, code in left_out.items()])
    rows = Table({name: own[kept] for name, own in codes.items()}, int(kept.sum()))
    more = with_empty_cells(
        ["sex", "level"], Drawn(rows, shown.domain, MANY), shown.known, np.random.default_rng(0)
    )
    assert more.added > 0
    for name, code in left_out.items():
        assert (more.table.codes[name][-more.added :] == code).all()
    assert not more.weight[-more.added :].any()


def test_cells_of_a_number_and_a_category_without_released_rows_get_some():
    """A release that drew no high pay for f, as if these rows were noise: weights bring them back."""
    own = spec("joint", 30.0, **{name: COLUMNS[name] for name in ("sex", "pay")})
    shown = published(own, CODES)
    query = statistic("mean(pay) by sex", own)
    real = numbers(query, table(own, CODES))
    codes = shown.released.table.codes
    kept = ~((codes["sex"] == 0) & (codes["pay"] > 2**30 * 0.45))
    assert kept.mean() < 0.9
    rows = Drawn(Table({name: one[kept] for name, one in codes.items()}, int(kept.sum())), own.domain, MANY)
    more = with_empty_cells(["sex", "pay"], rows, shown.known, np.random.default_rng(0))
    weight = Calibration.about(["sex", "pay"], more, shown.known).weights()
    assert query(more.table.codes, weight) == pytest.approx(real, abs=0.6)


def _found(shown: Published, own: Statistic, count: int, seed: int) -> np.ndarray:
    """What a statistic is in each replicate."""
    tables = [Drawn(one, shown.domain, len(one)) for one in _replicates(shown, count, seed)]
    return np.stack([numbers(own, one) for one in tables])


def test_an_analysis_of_replicates_combines_to_intervals_that_hold():
    """4 seeded releases, the same ones but for how a machine rounds. How many hold is measured by
    `benchmarks/coverage.py`; this sees what is far off, such as draws that are drawn to the released rows."""
    held = []
    for seed in range(4):
        shown = _release(seed)
        for text in ("mean(pay) by sex", "pay ~ age + sex", "count() by sex"):
            own = statistic(text, JOINT)
            found, real = _found(shown, own, 10, seed), numbers(own, table(JOINT, CODES))
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
