"""One table of all columns: only where noise hardly changes it, and then with the rows that were counted."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import joint
from dpsynth_cli.relations.impossible import in_codes
from tests.asking import asking, drawn

COLUMNS = (
    Column("kind", "nominal", categories=tuple("pqrs"), nullable=True),
    Column("age", "integer", lower=0, upper=30),
    Column("b", "nominal", categories=("no", "yes")),
)
OMEGA = Domain(COLUMNS)


def table(rows=3000):
    rng = np.random.default_rng(1)
    kind = np.minimum(rng.geometric(0.5, rows) - 1, 4)
    return {"kind": kind, "age": rng.binomial(30, 0.1 + 0.2 * kind / 4), "b": rng.integers(0, 2, rows)}


def release(omega, epsilon, delta=None, rows=None, codes=None):
    ask, accountant, bill, _ = asking(codes or table(), omega, epsilon, delta)
    model = joint.run(ask, omega, joint.Params(), dict(joint.MECHANISM.stages))
    assert accountant.spent == accountant.total
    return model, drawn(model, rows or max(1, model.total)), {charge.question.step for charge in bill}


def counts(codes):
    return np.bincount(
        np.ravel_multi_index([codes[c.name] for c in COLUMNS], [c.codes for c in COLUMNS]), minlength=310
    )


@pytest.mark.parametrize("delta", [None, 1e-9])
@pytest.mark.parametrize("strata", [None, "kind"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_at_a_very_large_epsilon_all_rows_are_those_of_the_table(delta, strata, neighbours):
    model, made, steps = release(Domain(COLUMNS, neighbours, strata=strata), 200.0, delta)
    assert "whole" in steps
    assert model.total == 3000
    assert np.array_equal(counts(made), counts(table()))
    assert "nearly the same rows" in model.notes[0]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, None), (3.0, 1e-9), (20.0, 1e-9)])
def test_where_noise_would_show_it_is_not_asked(epsilon, delta):
    model, _, steps = release(OMEGA, epsilon, delta)
    assert "whole" not in steps
    assert not model.notes


def test_noise_changes_few_rows_as_soon_as_it_is_asked():
    """The smallest epsilon at which it is: errors there are below one part in a hundred, by the rule."""
    for epsilon in (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0):
        _, made, steps = release(OMEGA, epsilon)
        if "whole" in steps:
            assert np.abs(counts(made) - counts(table())).sum() < 0.03 * 3000
            return
    raise AssertionError("never asked")


def test_rules_and_a_table_without_rows():
    rule = in_codes({"kind": "p", "age": ["0", "1"]}, {column.name: column for column in COLUMNS})
    omega = Domain(COLUMNS, impossible=(rule,))
    _, made, steps = release(omega, 100.0, rows=500)
    assert "whole" in steps
    assert not ((made["kind"] == 0) & (made["age"] < 2)).any()
    empty = {name: column[:0] for name, column in table().items()}
    model, made, _ = release(OMEGA, 100.0, rows=40, codes=empty)
    assert model.total == 0
    assert len(made["age"]) == 40
