"""Audits that choose their tables by few runs."""

import pytest

from dpsynth_cli.evidence import empirical, neighbours, worst


@pytest.fixture
def quick(monkeypatch):
    """Few runs choose the pair of tables."""
    monkeypatch.setattr(empirical, "LEAST_PILOT", 30)


@pytest.fixture
def one_pair(quick, monkeypatch):
    """Only the pair of this number is tried."""

    def take(number):
        for module in (empirical, worst):
            monkeypatch.setattr(module, "pairs", lambda *which: every(*which)[number : number + 1])

    every = neighbours.pairs
    return take
