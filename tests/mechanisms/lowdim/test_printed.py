"""The paper's own algorithms of low-dimensional release, corrected where they would not be private."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.lowdim import inside, lowdim, printed
from dpsynth_cli.mechanisms.lowdim.lowdim import Params
from tests.asking import asking, drawn

D = 6
COLUMNS = tuple(Column(f"x{i}", "continuous", lower=0.0, upper=1.0) for i in range(D))
CLASS = Column("k", "nominal", categories=("a", "b"))


def rows(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Near a plane; the second class is elsewhere on it."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(D, 2)))[0]
    k = rng.integers(2, size=n)
    place = np.stack([0.3 * np.where(k, 1, -1) + 0.1 * rng.normal(size=n), 0.3 * rng.normal(size=n)])
    x = np.clip(0.5 + place.T @ axes.T, 0, 1)
    return {c.name: (x[:, i] * (c.size - 1)).astype(np.int64) for i, c in enumerate(COLUMNS)} | {"k": k}


def matrix(codes: dict[str, np.ndarray]) -> np.ndarray:
    return np.stack([codes[c.name] / (c.size - 1) for c in COLUMNS], axis=1)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("strata", [None, "k"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_budget_is_spent_exactly_in_thirds_and_the_plane_comes_out(dimension, neighbours, strata, delta):
    omega = Domain(COLUMNS + ((CLASS,) if strata else ()), neighbours, strata=strata)
    n = 4000 if dimension < 3 else 300
    codes = rows(n)
    ask, accountant, bill, _ = asking(codes, omega, 500.0, delta)
    model = lowdim.run(ask, omega, Params(algorithm="printed", dimension=dimension), lowdim.MECHANISM.stages)
    assert accountant.spent == accountant.total
    shares = {
        step: sum(c.question.share for c in bill if c.question.step == step)
        for step in ("moments", "mean", "counts")
    }
    assert max(shares.values()) - min(shares.values()) < 1e-9
    made = drawn(model, n)
    if dimension == 2:
        assert np.abs(matrix(made).mean(axis=0) - matrix(codes).mean(axis=0)).max() < 0.03
        real, synthetic = np.cov(matrix(codes).T), np.cov(matrix(made).T)
        assert np.linalg.norm(real - synthetic) < 0.2 * np.linalg.norm(real)
        if strata:
            parts = [matrix(made)[made["k"] == k].mean(axis=0) for k in (0, 1)]
            assert np.linalg.norm(parts[1] - parts[0]) > 0.4


def test_rows_are_in_the_subspace_unless_the_cube_ends_there():
    omega = Domain(COLUMNS, "replace_one")
    ask, *_ = asking(rows(2000), omega, 200.0)
    x = matrix(drawn(lowdim.run(ask, omega, Params(algorithm="printed", dimension=2), {}), 2000))
    inside = ((x > 0.001) & (x < 0.999)).all(axis=1)
    spectrum = np.linalg.eigvalsh(np.cov(x[inside].T))[::-1]
    assert spectrum[2] < 1e-6 * spectrum[1]


def test_the_region_is_as_wide_as_printed():
    box = printed._region(np.eye(4)[:, :2], np.full(4, 0.25))  # the mean is 3/4 of [0, 1]
    assert box.widths.tolist() == pytest.approx([2 * (2 + 1.5)] * 2, abs=1e-4)
    assert (box.low + box.high).tolist() == pytest.approx([0.5, 0.5], abs=1e-4)


def test_a_lattice_that_cannot_be_solved_is_coarser_and_says_so(monkeypatch):
    monkeypatch.setattr(inside, "SECONDS", 0.05)
    omega = Domain(COLUMNS, "replace_one")
    ask, *_ = asking(rows(3000), omega, 50.0)
    model = lowdim.run(ask, omega, Params(algorithm="printed"), {})
    assert model.facts["dimension"] == 4
    (note,) = model.notes
    assert note.startswith("PSMM's lattice is coarser than printed: ")


def test_what_it_does_not_take_is_said():
    nominal = Domain((*COLUMNS, CLASS), "replace_one")
    assert lowdim.fits(nominal, Params(algorithm="printed")) == [
        "algorithm: printed takes numbers that are never missing, besides the strata"
    ]
    assert "of 1 or more" in lowdim.fits(Domain(COLUMNS), Params(algorithm="printed", dimension=0))[0]
