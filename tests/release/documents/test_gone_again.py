"""The audit of a stream says what a row costs that is pushed and later taken away."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsynth_cli.release.documents.guarantee import guarantee
from dpsynth_cli.spec.spec import from_document
from dpsynth_cli.trusted.core.gaussian import implies, rho_of_epsilon


def statement(privacy: dict, **mechanism: str) -> str:
    spec = from_document(
        {
            "dpsynth": 1,
            "name": "s",
            "output": "s.csv",
            "rows_hint": 9,
            "privacy": privacy,
            "mechanism": {"name": "online"} | mechanism,
            "columns": {"x": {"type": "integer", "bounds": [0, 3]}},
        }
    )
    return guarantee(spec)["statement"]


@pytest.mark.parametrize("algorithm", ["blocks", "joint"])
def test_two_events_cost_twice_epsilon(algorithm):
    assert statement({"epsilon": "0.5"}, algorithm=algorithm).endswith(
        " A row that is pushed and later taken away (stream push --delete) is in two events, and both "
        "together are protected at epsilon 1."
    )


def test_with_a_delta_they_cost_twice_rho():
    said = statement({"epsilon": "1", "delta": "1e-9"})
    at = Fraction(said.split("protected at epsilon ")[1].split(" and delta ")[0])
    twice = 2 * rho_of_epsilon(Fraction(1), Fraction(1, 10**9))
    assert implies(twice, at, Fraction(1, 10**9))
    assert not implies(twice, at - Fraction(2, 1000), Fraction(1, 10**9))


def test_nothing_is_said_where_rows_cannot_be_taken_away():
    assert "taken away" not in statement({"epsilon": "1", "neighbours": "replace_one"})
    assert "taken away" not in statement({"epsilon": "1"}, algorithm="sparse")
