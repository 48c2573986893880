"""Values that are missing together: found from one count of patterns, then kept in every row."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import joint
from dpsynth_cli.mechanisms.joint.chain import Chain
from dpsynth_cli.mechanisms.joint.frame import Frame, Table
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.joint.missing import implications, kept
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from tests.asking import asking, drawn

COLUMNS = (
    Column("left", "integer", lower=0, upper=999, nullable=True),
    Column("arrived", "integer", lower=0, upper=999, nullable=True),
    Column("delay", "integer", lower=0, upper=499, nullable=True),
    Column("note", "nominal", categories=("u", "v", "w"), nullable=True),
    Column("distance", "integer", lower=0, upper=99),
    Column("kind", "nominal", categories=("x", "y")),
)
STAGES = dict(joint.MECHANISM.stages)


def flights(rows: int) -> dict[str, np.ndarray]:
    """Nobody arrives who has not left; who has not arrived has no delay. Notes are missing as they like."""
    rng = np.random.default_rng(0)
    distance = rng.integers(0, 100, rows)
    cancelled = rng.random(rows) < 0.04 + 0.06 * (distance < 30)
    lost = cancelled | (rng.random(rows) < 0.05)
    left = rng.integers(0, 1000, rows)
    arrived = np.minimum(left + 3 * distance, 999)
    return {
        "left": np.where(cancelled, 1000, left),
        "arrived": np.where(lost, 1000, arrived),
        "delay": np.where(lost, 500, 4 * distance + rng.integers(0, 100, rows)),
        "note": np.where(rng.random(rows) < 0.2, 3, rng.integers(0, 3, rows)),
        "distance": distance,
        "kind": (distance > 50).astype(int),
    }


@pytest.mark.parametrize("strata", [None, "kind"])
def test_what_is_missing_together_is_found_and_kept_in_every_row(strata):
    omega, codes = Domain(COLUMNS, strata=strata), flights(12_000)
    ask, accountant, bill, _ = asking(codes, omega, 8.0, None)
    model = joint.run(ask, omega, joint.Params(), STAGES)
    assert accountant.spent == accountant.total
    assert sorted(model.facts["missing_with"]) == [
        ["arrived", "delay"],
        ["delay", "arrived"],
        ["left", "arrived"],
        ["left", "delay"],
    ]
    assert sum(charge.question.step == "missing" for charge in bill) == 1
    made = drawn(model, 12_000, 0)
    left, arrived, delay, note = (made[c.name] == c.size for c in COLUMNS[:4])
    assert np.array_equal(arrived, delay)
    assert not (left & ~arrived).any()
    assert (arrived & ~left).any()
    assert 0.1 < note[arrived].mean() < 0.3
    for name, now in (("left", left), ("arrived", arrived), ("note", note)):
        assert abs(now.mean() - (codes[name] == omega[name].size).mean()) < 0.02


def test_nothing_is_asked_where_few_rows_are_missing_for_the_noise():
    omega = Domain(COLUMNS)
    ask, accountant, bill, _ = asking(flights(3000), omega, 1.0, None)
    model = joint.run(ask, omega, joint.Params(), STAGES)
    assert accountant.spent == accountant.total
    assert "missing" not in {charge.question.step for charge in bill}
    assert model.facts["missing_with"] == []


def test_what_is_missing_with_another_is_so_even_where_its_link_has_seen_none():
    """The second column follows the third, in a table where it is never missing."""
    columns = [Column(name, "ordinal", categories=("u", "v", "w"), nullable=name != "c") for name in "abc"]
    masses = [np.array([[300.0, 300.0, 300.0, 100.0]])] * 2 + [np.array([[400.0, 300.0, 300.0]])]
    runs = [Marginal(np.arange(len(m[0])), np.ones(len(m[0]), np.int64), [m[0]]) for m in masses]
    ladders = [ladder(column, run, 512) for column, run in zip(columns, runs, strict=True)]
    frame = kept(Frame(ladders, masses, [own.top for own in ladders]), [(0, 1), (1, 0)])
    link = Table(
        (1, 2),
        (ladders[1].top, ladders[2].top),
        np.array([[[400.0, 0, 0], [0, 300, 0], [0, 0, 300], [0, 0, 0]]]),
    )
    order = [(0, None), (2, None), (1, link)]
    classes = np.zeros(4000, np.int64)
    chain = Chain(frame, [link], order, classes, np.random.default_rng(0))
    cells = chain.draw(classes, chain.feedback(), np.random.default_rng(1))
    assert np.array_equal(cells[0] == 3, cells[1] == 3)
    assert abs((cells[1] == 3).mean() - 0.1) < 0.01
    assert np.array_equal(cells[1][cells[0] < 3], cells[2][cells[0] < 3])


def test_an_implication_needs_rows_and_no_exception():
    patterns = np.zeros((2, 2, 2))
    patterns[0, 0, 0], patterns[1, 1, 0], patterns[0, 1, 0] = 1000, 50, 20
    assert implications(patterns, 9.0) == [(0, 1)]  # of the third nothing is known
    patterns[1, 0, 0] = 10
    assert implications(patterns, 9.0) == []
