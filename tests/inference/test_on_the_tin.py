"""What a release says of its relations: each pair is of one kind, and noise is that of the bill."""

import numpy as np
import pytest

from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.inference.on_the_tin import what_is_known
from dpsynth_cli.inference.simulate import Drawn, simulated
from tests.inference.people import COLUMNS, people, released, spec

NAMES = list(COLUMNS)


def known(own):
    made = released(own, people()).outcome
    return what_is_known(made.charges, NAMES, made.model.total), made


def test_columns_that_only_classes_connect_follow():
    found, made = known(spec(strata="sex"))
    assert [line["columns"] for line in found["measured"]] == [["sex", name] for name in NAMES[1:]]
    assert found["follows"] == [["level", "age"], ["level", "pay"], ["age", "pay"]]
    assert found["assumed"] == found["looked_at"] == []
    noises = {charge.price.sd for charge in made.charges}
    assert {line["standard_deviation"] for line in found["measured"]} <= noises
    best = found["best_known"][0]
    assert best["part_of_rows"] == pytest.approx(best["standard_deviation"] / made.model.total)


def test_columns_that_nothing_connects_are_assumed():
    found, _ = known(spec())
    assert found["numbers"] == {"measured": 0, "looked_at": 0, "follows": 0, "assumed": 6}


def test_pairs_that_were_only_compared_with_the_model_are_looked_at():
    """Columns that have nothing to do with each other, and seeded noise: few of the pairs are counted."""
    rng = np.random.default_rng(0)
    columns = {f"c{i}": {"type": "nominal", "categories": list("abcdefgh")} for i in range(6)}
    codes = {name: rng.integers(8, size=2000) for name in columns}
    own = spec("joint", 1.0, **columns)
    made = simulated(own, Drawn(Table(codes, 2000), own.domain, 2000), rng).outcome
    found = what_is_known(made.charges, list(columns), made.model.total)
    numbers = found["numbers"]
    assert numbers["measured"] + numbers["looked_at"] == found["pairs"] == 15
    assert numbers["measured"] > 0 < numbers["looked_at"]
    counted = {tuple(line["columns"]) for line in found["measured"]}
    assert counted.isdisjoint(map(tuple, found["looked_at"]))


def test_the_least_known_are_not_known_better_by_a_larger_table():
    found, _ = known(spec("joint", 5.0))
    tables = found["best_known"] + found["least_known"]
    worth = {tuple(line["columns"]): line["standard_deviation"] * line["cells"] ** 0.5 for line in tables}
    for columns, own in worth.items():
        assert not any(set(columns) < set(other) and more < own for other, more in worth.items())
