"""Quantiles of a distribution over codes: edges, masses and the way back."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.mechanisms.pmm.quantiles import Quantiles, uniform_ranks

SPIKE = Quantiles.of(np.arange(8), np.ones(8, int), np.array([1.0, 0, 0, 92, 0, 3, 4, 0]), 8, False)
MISSING = Quantiles.of(np.arange(5), np.ones(5, int), np.array([10.0, 20, 30, 20, 20]), 4, True)


@pytest.mark.parametrize("quantiles", [SPIKE, MISSING])
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_edges_rise_over_all_codes_and_coarser_ones_are_every_second(quantiles, bits):
    edges = quantiles.edges(bits)
    assert len(edges) == 2**bits + 1
    assert (edges[0], edges[-1]) == (0, quantiles.size + quantiles.nullable)
    assert list(edges) == sorted(edges)
    if bits > 1:
        assert quantiles.edges(bits - 1) == edges[::2]
    assert quantiles.masses(bits).sum() == pytest.approx(1)


def test_a_spike_keeps_a_cell_of_its_own_and_missing_has_its_branch():
    assert SPIKE.masses(3).max() == pytest.approx(0.92, abs=0.01)
    assert MISSING.edges(2)[2:] == (4, 5, 5)
    assert MISSING.masses(1)[1] == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("quantiles", [SPIKE, MISSING])
def test_uniform_ranks_give_the_distribution_back(quantiles):
    rng = np.random.default_rng(0)
    codes = quantiles.codes(uniform_ranks(np.zeros(100_000, int), rng))
    found = np.bincount(codes, minlength=quantiles.size + quantiles.nullable) / 100_000
    assert np.abs(found - np.diff(quantiles.reached)).max() < 1e-4


def test_ranks_follow_the_cells():
    ranks = uniform_ranks(np.array([2, 0, 1, 0]), np.random.default_rng(0))
    assert np.argsort(ranks)[2:].tolist() == [2, 0]
    assert ((np.sort(ranks) * 4).astype(int) == np.arange(4)).all()
