"""Others' tools against ours: every one is pinned and has its script, and a difference would be seen."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction

import numpy as np
import pytest

from benchmarks import oracles
from benchmarks.__main__ import benchmark, parser_of
from dpsynth_cli.trusted.core import gaussian
from dpsynth_cli.trusted.noise.samplers import discrete_laplace
from tests.trusted.seeded import SeededSource


def options(tmp_path) -> argparse.Namespace:
    given = parser_of("oracles", benchmark("oracles")).parse_args(
        ["accounting", "--environments", str(tmp_path)]
    )
    given.folder = tmp_path
    return given


def test_every_oracle_has_a_script_and_is_pinned():
    scripts = {path.stem for path in (oracles.ROOT / "benchmarks" / "outside").glob("oracle_*.py")}
    assert scripts == {f"oracle_{name}" for name in oracles.ORACLES}
    for first, *_ in oracles.ORACLES.values():
        assert "==" in first or len(first.rsplit("@", 1)[-1]) == 40


def test_an_oracle_without_an_environment_is_left_out(tmp_path):
    given = options(tmp_path)
    for part in ("recorder", "accounting", "opendp"):
        assert list(oracles.PARTS[part](given)) == []


def test_the_same_distribution_is_accepted_and_another_scale_rejected():
    draws = {
        scale: discrete_laplace(scale, 50_000, SeededSource(7)) for scale in (Fraction(20), Fraction(22))
    }
    again = discrete_laplace(Fraction(20), 50_000, SeededSource(8))
    assert oracles.same_distribution(draws[Fraction(20)], again) > oracles.ALARM
    assert oracles.same_distribution(draws[Fraction(22)], again) < oracles.ALARM


@pytest.mark.parametrize(("factor", "seen"), [(1, "0.0e+00 of it apart"), (1.01, "1.0e-02 of it apart")])
def test_a_conversion_that_is_wrong_by_a_hundredth_would_be_seen(tmp_path, monkeypatch, factor, seen):
    """With an oracle that gives what our functions give, in its own process's words."""

    def answers(given, name, cases):
        found = [
            float(gaussian.epsilon_of_rho(*(Fraction(str(case[key])) for key in ("rho", "delta")))) * factor
            if case["kind"] == "epsilon_of_rho"
            else 1.0
            for case in json.loads(json.dumps(cases))
        ]
        return "an oracle", found

    monkeypatch.setattr(oracles, "about_cases", answers)
    _, first, *_ = oracles.accounting(options(tmp_path))
    assert first == {"conversion": "epsilon_of_rho", "cases": 15, "largest difference": seen}


def test_draws_are_compared_with_those_of_the_oracle(tmp_path, monkeypatch):
    given = options(tmp_path)
    given.draws = 20_000

    def answers(given, name, cases):
        found = []
        for case in cases:
            scale = 1.5 * case["scale"]  # a library that draws too much noise, and asks the price of it
            drawn = np.rint(np.random.default_rng(1).laplace(0, scale, case["count"])).astype(int)
            values, counts = np.unique(drawn, return_counts=True)
            found.append({"counts": np.column_stack([values, counts]).tolist(), "price": 1 / scale})
        return "an oracle", found

    monkeypatch.setattr(oracles, "about_cases", answers)
    _, *lines = oracles.opendp(given)
    assert len(lines) == 10
    assert not any(line["agree"] for line in lines)
