"""What follows from counts alone: unbiased, with the exact variance of the noise, or not at all."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.inference.measured import Estimate, system
from dpsynth_cli.inference.relations import known as all_known
from dpsynth_cli.inference.tables import counted_tables
from dpsynth_cli.mechanisms.joint.characters import character
from dpsynth_cli.mechanisms.search.find import STEP
from dpsynth_cli.questions import Answer, Bins, CellCounts, Cells, Gram, Halves, Moments, Question, Total
from dpsynth_cli.trusted.core.shapes import lengths_of
from dpsynth_cli.trusted.sums.tally import Tally
from tests.inference.people import people, published, spec, statistic, table

A, B = Column("a", "boolean", categories=("false", "true")), Column("b", "integer", lower=0, upper=4)
C = Column("c", "nominal", categories=("x", "y", "z"), nullable=True)
OMEGA = Domain((A, B, C))
ROWS = {
    name: np.random.default_rng(1).integers(size, size=400) for name, size in (("a", 2), ("b", 5), ("c", 4))
}
SHARE = Fraction(1)
EVERY = {"a": Bins("a", (0, 1, 2)), "b": Bins("b", tuple(range(6))), "c": Bins("c", tuple(range(5)))}


def asked(*questions: tuple[Question, float], noise: str = "discrete_laplace"):
    """Exact answers that claim to have this noise."""
    tally = Tally([question for question, _ in questions], OMEGA)
    tally.add(ROWS, 400)
    return [
        (question, Answer(values, lengths_of(question, OMEGA), noise, sd))
        for (question, sd), values in zip(questions, tally.sums(), strict=True)
    ]


def counts(*names: str, by: str | None = None) -> Question:
    return Question("columns", CellCounts(Cells(tuple(EVERY[name] for name in names))), SHARE, by)


def known(columns, *questions, noise="discrete_laplace"):
    return system(columns, OMEGA, *counted_tables(asked(*questions, noise=noise), OMEGA))


@pytest.mark.parametrize(
    "question",
    [
        counts("a", "b"),
        counts("b", by="a"),
        Question("t", CellCounts(Cells((Halves("a", 1), Halves("b", 3)), (1, 0, 1, 1))), SHARE),
        Question("t", CellCounts((Cells((EVERY["b"],)), Cells((Halves("b", 3),)))), SHARE, "a"),
        Question("t", Gram((EVERY["a"], EVERY["b"]), diagonal=True), SHARE),
        counts("a", "b", "c"),
    ],
)
def test_a_table_is_read_as_it_was_counted(question):
    found = known(["a", "b"], (question, 1.0))
    for a in range(2):
        for b in range(5):
            cell = (found.codes["a"] == a) & (found.codes["b"] == b)
            estimate = found.linear(cell.astype(float))
            assert estimate.value == pytest.approx(((ROWS["a"] == a) & (ROWS["b"] == b)).sum())


def test_characters_and_differences_are_read_as_sums_of_signs():
    both = [character("links", [A, A], SHARE, None), character("columns", [A], SHARE, None)]
    total = Question("total", Total(), SHARE)
    halves = Question("columns", Moments(("b",), 1, 1), SHARE)
    found = known(["a"], (total, 1.0), (both[1], 1.0))
    assert found.linear((found.codes["a"] == 1).astype(float)).value == pytest.approx(ROWS["a"].sum())
    found = known(["b"], (total, 1.0), (halves, 1.0))
    upper = (found.codes["b"] * 2 >= 4).astype(float)
    assert found.linear(upper).value == pytest.approx((ROWS["b"] >= 2).sum())
    assert found.linear((found.codes["b"] == 4).astype(float)) is None


def test_tables_that_say_the_same_are_weighted_by_their_variances():
    one, two = counts("a"), counts("a", "b")  # the second adds up five cells
    found = known(["a"], (one, 3.0), (two, 2.0))
    first = found.linear((found.codes["a"] == 0).astype(float))
    assert first.sd == pytest.approx((1 / (1 / 9 + 1 / 20)) ** 0.5)


def test_a_sum_of_noisy_counts_is_nearer_to_normal_than_one():
    one, five = known(["a"], (counts("a"), 1.0)), known(["a"], (counts("a", "b"), 1.0))
    first = (one.codes["a"] == 0).astype(float)
    assert [found.linear(first).kurtosis for found in (one, five)] == pytest.approx([3.0, 0.6])


def test_what_counts_leave_open_is_no_estimate():
    found = known(["a", "c"], (counts("a"), 1.0), (counts("c"), 1.0))
    assert found.linear(((found.codes["a"] == 1) & (found.codes["c"] == 1)).astype(float)) is None
    assert found.linear((found.codes["c"] == 1).astype(float)) is not None


def test_classes_are_added_up_for_whoever_does_not_ask_about_them():
    found = known(["b"], (counts("b", by="a"), 2.0))
    estimate = found.linear((found.codes["b"] == 3).astype(float))
    assert (estimate.value, estimate.sd) == (pytest.approx((ROWS["b"] == 3).sum()), pytest.approx(8**0.5))


def test_questions_that_looked_for_bounds_are_left_out():
    """They are about other codes: this one would not fit the column."""
    other = Question(STEP, CellCounts(Cells((Bins("b", (0, 1, 2)),))), SHARE)
    answer = Answer(np.array([5, 6]), (2,), "discrete_laplace", 1.0)
    told = all_known([*asked((counts("b"), 1.0)), (other, answer)], OMEGA, 400)
    assert [table.values.shape for table in told.tables] == [(5,)]


def test_a_quotient_by_what_may_be_noise_is_no_estimate():
    found = known(["a", "b"], (counts("a", "b"), 60.0))
    top = (found.codes["a"] == 1).astype(float) * found.codes["b"]
    assert found.ratio(top, (found.codes["b"] == 4).astype(float)) is None


def test_the_width_of_laplace_noise_is_wider_than_that_of_normal_noise():
    normal, laplace = Estimate(0.0, 1.0, 0.0), Estimate(0.0, 1.0, 3.0)
    assert normal.width(0.95) == pytest.approx(1.96, abs=0.001)
    assert 1 - np.exp(-np.sqrt(2) * laplace.width(0.95)) == pytest.approx(0.95, abs=0.005)


def test_measured_intervals_hold_as_often_as_they_say():
    """200 seeded releases: always the same ones, so this cannot fail by chance."""
    own, codes = spec(), people(1000)
    asked_about = [
        statistic("count() by sex", own),
        statistic("count()", own),
        statistic("share(level)", own),
    ]
    inside: dict[str, list[bool]] = {}
    for seed in range(200):
        shown = published(own, codes, seed)
        for one in asked_about:
            for answer, real in zip(shown.answer(one.query), one(table(own, codes).table.codes), strict=True):
                assert answer.source == "measured"
                inside.setdefault(one.query.text, []).append(answer.low <= real <= answer.high)
    assert {text: 0.92 <= np.mean(held) <= 0.98 for text, held in inside.items()} == dict.fromkeys(
        inside, True
    )
