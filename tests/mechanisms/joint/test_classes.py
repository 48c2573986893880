"""Tables by class where classes differ, else of all classes together; and laws between numbers."""

from __future__ import annotations

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import joint
from tests.asking import asking, drawn

KINDS = tuple("abcdef")
CLASS = Column("class", "nominal", categories=tuple("pqrs"))
NUMBER = Column("number", "integer", lower=0, upper=99)  # too many values for one model of every cell
OMEGA = Domain(
    (*(Column(name, "nominal", categories=KINDS) for name in "ABC"), NUMBER, CLASS), strata="class"
)


def release(codes, omega, epsilon):
    ask, accountant, bill, _ = asking(codes, omega, epsilon, 1e-9)
    model = joint.run(ask, omega, joint.Params(), dict(joint.MECHANISM.stages))
    assert accountant.spent == accountant.total
    return model, drawn(model, 20_000), bill


def linked(shift):
    """B follows A, moved on by `shift` for each class; C follows B. So do the classes follow A."""
    rng = np.random.default_rng(7)
    a, own = rng.integers(0, 6, (2, 20_000)) % [[6], [4]]
    b = np.where(rng.random(20_000) < 0.85, (a + shift * own) % 6, rng.integers(0, 6, 20_000))
    c = np.where(rng.random(20_000) < 0.6, b, rng.integers(0, 6, 20_000))
    return {"A": a, "B": b, "C": c, "number": rng.integers(0, 100, 20_000), "class": own}


def follows(made, shift):
    return float(((made["A"] + shift * made["class"]) % 6 == made["B"]).mean())


def test_links_that_classes_share_are_counted_of_all_classes_together():
    codes = linked(0)
    model, made, bill = release(codes, OMEGA, 0.5)
    assert model.facts["tables_by_class"] is False
    counted = [charge for charge in bill if charge.question.step == "links"]
    assert counted
    axes = [axis for charge in counted for axis in charge.question.statistic.cells.axes]
    assert "class" not in {getattr(axis, "column", None) for axis in axes}
    assert abs(follows(made, 0) - follows(codes, 0)) < 0.04


def test_links_that_differ_from_class_to_class_are_counted_by_class():
    codes = linked(1)
    model, made, _ = release(codes, OMEGA, 3.0)
    assert model.facts["tables_by_class"] is True
    assert abs(follows(made, 1) - follows(codes, 1)) < 0.04


def test_noise_far_from_all_rows_does_not_break_a_law_between_numbers():
    """Most values are near 0, few far out: there a row at the wrong place weighs much."""
    rng = np.random.default_rng(8)
    x = np.where(rng.random(60_000) < 0.85, rng.normal(0, 2, 60_000), rng.exponential(30, 60_000))
    y = 0.95 * x + rng.normal(0, 4, 60_000)
    columns = tuple(Column(name, "integer", lower=-50, upper=449) for name in "xy")
    codes = {name: np.clip(v + 50, 0, 499).astype(int) for name, v in (("x", x), ("y", y))}
    real = np.corrcoef(codes["x"], codes["y"])[0, 1] ** 2
    for epsilon, most in ((3.0, 0.07), (20.0, 0.035)):
        _, made, _ = release(codes, Domain(columns), epsilon)
        assert abs(np.corrcoef(made["x"], made["y"])[0, 1] ** 2 - real) < most
