"""Rows that no released row stands for, and conditions inside of measured cells: wide, or no interval."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.answers import DECLARED, MODEL, within
from dpsynth_cli.inference.cells import cell_ends
from dpsynth_cli.inference.language import parse_query
from dpsynth_cli.inference.query import CERTAIN, CUT, NARROW, Published
from dpsynth_cli.inference.simulate import Drawn, simulated
from dpsynth_cli.spec.spec import Spec
from tests.inference.people import released, spec, statistic

COLUMNS = {
    "sex": {"type": "nominal", "categories": ["f", "m"]},
    "gain": {"type": "integer", "bounds": [0, 100_000]},
    "price": {"type": "continuous", "bounds": [0, 20], "step": 0.01},
}
DAYS = [f"day {number}" for number in range(12)]  # with ages more than are solved for at once
OWN = spec("marginals", 3.0, strata="sex", **COLUMNS)
COARSE = spec("marginals", 0.3, **COLUMNS)  # a price has no cell of its own


def _codes(rows: int = 5000) -> dict[str, np.ndarray]:
    """Most gains are 0, 2 % are 99,999; one price in twenty is 4.99."""
    rng = np.random.default_rng(4)
    kind = rng.random(rows)
    gain = np.where(kind < 0.9, 0, np.where(kind < 0.98, rng.integers(1000, 15_000, rows), 99_999))
    price = np.where(rng.random(rows) < 0.05, 499, rng.integers(0, 2001, rows))
    return {"sex": rng.integers(2, size=rows), "gain": gain, "price": price}


CODES = _codes()


@cache
def _shown(coarse: bool, seed: int) -> Published:
    """A release; the rows of a fine one have none of the tail, as if its model had drawn none."""
    own = COARSE if coarse else OWN
    made = released(own, CODES, seed)
    shown = Published(own, made.outcome, made.known(), made.seed, 10)
    if not coarse:
        rows = shown.released
        kept = rows.table.take(np.flatnonzero(rows.table.codes["gain"] < 20_000))
        shown.__dict__["released"] = replace(rows, table=kept)
    return shown


def _answers(text: str, where: str | None = None, made: Spec = OWN) -> tuple:
    """What is true, and what five seeded releases say: always the same ones."""
    own = statistic(text, made, where)
    return own(CODES), [_shown(made is COARSE, seed).answer(own.query) for seed in range(5)]


@pytest.mark.parametrize("where", ["gain > 90000", "gain > 30000", "gain == 99999"])
def test_rows_that_no_released_row_stands_for_are_counted_from_their_cells(where):
    """84 rows of the tail, of which none was released."""
    real, answers = _answers("count()", where)
    for (one,) in answers:
        assert one.low is not None
        assert one.high > one.low
    assert np.mean([one.low <= real[0] <= one.high for (one,) in answers]) >= 0.8


@pytest.mark.parametrize("text", ["mean(gain)", "mean(gain) by sex", "sum(gain)"])
def test_a_mean_has_the_tail_that_was_measured_and_not_released(text):
    real, answers = _answers(text)
    held = [
        one.low is None or one.low <= x <= one.high
        for rows in answers
        for one, x in zip(rows, real, strict=True)
    ]
    assert np.mean(held) >= 0.8


@pytest.mark.parametrize("where", ["price == 4.99", "price > 4.985 and price < 4.995", "price * 2 == 9.98"])
def test_a_single_value_is_between_none_and_all_of_its_cell(where):
    real, answers = _answers("count()", where, COARSE)
    assert all(one.low <= real[0] <= one.high for (one,) in answers)
    assert all(one.note == CUT for (one,) in answers)


def test_a_mean_of_rows_inside_of_a_cell_has_no_interval():
    _, answers = _answers("mean(price)", "price == 4.99", COARSE)
    assert [(one.low, one.high, one.note) for (one,) in answers] == [(None, None, NARROW)] * 5


def test_an_answer_without_any_row_has_no_width_and_so_no_interval():
    _, answers = _answers("share(sex)", "gain > 90000 and price < 3")
    for rows in answers:
        assert all(one.low is None and one.note.startswith("no interval: ") for one in rows)


@pytest.mark.parametrize(
    "where", ["gain % 7 == 3", "gain + price * 100 == 4000", "gain % 1000 < 5 and price > 3"]
)
def test_a_condition_that_turns_again_and_again_is_no_certain_none(where):
    """No code at the ends of cells is so: of the rows inside of them some are."""
    _, answers = _answers("count()", where)
    assert all(one.low is None or one.high > one.low for (one,) in answers)


def test_a_group_of_one_value_among_many_has_a_width():
    """Of 100 ages not all are at the ends of cells; all of them are of somebody."""
    columns = {"age": {"type": "integer", "bounds": [0, 99]}, "day": {"type": "nominal", "categories": DAYS}}
    own, rng = spec("marginals", 3.0, strata="day", **columns), np.random.default_rng(1)
    codes = {"age": rng.integers(100, size=2000), "day": rng.integers(len(DAYS), size=2000)}
    truth = Drawn(Table(codes, 2000), own.domain, 2000)
    made = simulated(own, truth, np.random.default_rng(2))
    answers = Published(own, made.outcome, made.known(), made.seed).answer(parse_query("count() by age, day"))
    assert len(answers) == 100 * len(DAYS)
    assert all(one.low is None or one.high > one.low for one in answers)


@pytest.mark.parametrize("where", ["gain > 200000", "price == 4.995", "price % 1 > 1"])
def test_what_no_row_can_be_is_certain_and_says_so(where):
    _, answers = _answers("count()", where)
    assert {(one.low, one.high, one.source, one.note) for (one,) in answers} == {(0, 0, DECLARED, CERTAIN)}


@pytest.mark.parametrize("estimate", [-9.0, -2.0, 0.5, 7.0])
def test_an_interval_keeps_its_width_where_noise_puts_the_estimate_outside(estimate):
    one = within((), (0.0, 5.0), estimate, estimate - 3, estimate + 3, MODEL)
    assert 0 <= one.low <= one.estimate <= one.high <= 5
    assert one.high - one.low >= 3


def test_ends_of_cells_are_found_exactly():
    edges = np.array([3, 4, 700, 2**29, 2**30 - 1])
    found = cell_ends(2**30, [lambda codes: np.searchsorted(edges, codes, side="right")])
    assert set(edges) | set(edges - 1) | {0, 2**30 - 1} <= set(found.tolist())
