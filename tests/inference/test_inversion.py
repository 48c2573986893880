"""Quantiles: intervals that end where cells do, and need no guess of what is inside of them."""

import numpy as np

from dpsynth_cli.inference.inversion import Below
from dpsynth_cli.inference.sampling import numbers
from tests.inference.people import people, published, spec, statistic, table

PAY = spec("marginals", 2.0)


def test_an_interval_ends_at_the_first_cell_that_noise_rules_out():
    median = statistic("median(age)", PAY)
    ends = np.array([4, 9, 14, 19, 24, 29])  # codes; ages from 20 on
    below = Below(median, ends)
    beyond, half = np.array([-90.0, -40.0, -8.0, 5.0, 60.0, 90.0]), np.full(6, 10.0)
    assert below.interval(beyond, half) == (30.0, 44.0)  # above code 9, at or below code 24
    assert below.interval(beyond, np.full(6, 1000.0)) == (20.0, 59.0)
    # One end that noise alone pushed over does not cut the interval.
    assert below.interval(np.array([-90.0, 20.0, -8.0, 5.0, 60.0, 90.0]), half) == (25.0, 44.0)


def test_rows_below_ends_are_counted_by_group_and_weight():
    below = Below(statistic("quantile(age, 0.25) by sex", PAY), np.array([9, 19]))
    codes = {"sex": np.array([0, 0, 0, 1]), "age": np.array([5, 15, 25, 9])}
    weight = np.array([1.0, 2.0, 1.0, 4.0])
    assert below(codes, weight).tolist() == [[0.0, 2.0], [3.0, 3.0]]


def test_a_spike_inside_of_a_cell_is_held():
    """All but a few rows have one value, which no cell begins or ends at: the interval is its cell."""
    codes = people()
    spike = int(0.377 * 2**30)
    codes = codes | {"pay": np.where(np.arange(len(codes["pay"])) % 20 > 0, spike, codes["pay"])}
    own = statistic("median(pay)", PAY)
    real = numbers(own, table(PAY, codes))[0]
    for seed in range(4):
        (answer,) = published(PAY, codes, seed).answer(own.query)
        assert answer.low <= real <= answer.high


def test_the_population_and_a_condition_make_it_no_narrower():
    own = statistic("median(age)", PAY)
    shown = published(PAY, people())
    alone, more = (shown.answer(own.query, population=population)[0] for population in (False, True))
    assert more.low <= alone.low <= alone.high <= more.high
    (older,) = shown.answer(statistic("median(age)", PAY, "age >= 40").query)
    assert older.low >= 40
