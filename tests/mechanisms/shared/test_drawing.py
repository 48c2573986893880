"""Rows of a model: classes and codes as often as is due, in short tables and in long ones."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.microaggregation.mixture import Mixture
from dpsynth_cli.mechanisms.shared import drawing
from dpsynth_cli.mechanisms.shared.attributes import Attribute, attribute
from dpsynth_cli.mechanisms.shared.drawing import by_class, pooled
from dpsynth_cli.mechanisms.shared.oneway import Marginal
from dpsynth_cli.numeric import decks
from dpsynth_cli.questions import Model
from tests.asking import drawn

LABEL = Column("label", "nominal", categories=("a", "b", "c"))
WEIGHT = Column("weight", "integer", lower=0, upper=99_999)
OMEGA = Domain((LABEL, WEIGHT), strata="label")


def weights(runs: int = 1000) -> Attribute:
    """Codes in runs of 100, ever fewer rows: 16 cells."""
    first = np.arange(runs) * 100
    mass = 1 / (1 + np.arange(runs))
    return attribute(WEIGHT, Marginal(first, np.full(runs, 100), [mass, mass[::-1].copy()]), 16)


@pytest.mark.parametrize("rows", [1, 7, 3000, 50_000])
def test_classes_are_as_large_as_is_due_and_each_has_its_own_rows(monkeypatch, rows):
    monkeypatch.setattr(drawing, "ROWS", 1000)
    began = []

    def begin(k, count, rng):
        began.append((k, count))
        return lambda some: {"weight": np.full(some, 10 * k)}

    totals = np.array([0.0, 5.0, 1.0])
    made = drawn(Model(0, by_class(OMEGA, totals, begin)), rows)
    assert (made["weight"] == 10 * made["label"]).all()
    counts = np.bincount(made["label"], minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] - rows * 5 / 6) < 1
    assert began == [(k, count) for k, count in enumerate(counts) if count]


def test_a_long_table_has_its_classes_in_proportion(monkeypatch):
    monkeypatch.setattr(decks, "MOST", 4096)
    monkeypatch.setattr(drawing.cards_for, "__defaults__", (4096,))
    begin = lambda k, count, rng: lambda some: {"weight": np.zeros(some, np.int64)}  # noqa: E731
    made = drawn(Model(0, by_class(OMEGA, np.array([1.0, 2.0, 7.0]), begin)), 100_000)
    assert np.abs(np.bincount(made["label"]) / 100_000 - [0.1, 0.2, 0.7]).max() < 0.005


def test_rows_of_a_pool_keep_their_cells_and_get_other_codes_each_time():
    own = weights()
    rng = np.random.default_rng(0)
    cells = rng.integers(own.cells, size=500)
    deal = pooled(0, [own], [cells], 2000, rng)
    made = [deal(count)["weight"] for count in (500, 1, 999, 500)]
    edges = np.array(own.axis.edges)
    found = np.searchsorted(edges, np.concatenate(made), side="right") - 1
    assert (np.bincount(found) == 4 * np.bincount(cells)).all()
    # A pass starts anywhere in the pool and goes round.
    start = next(s for s in range(500) if (np.roll(cells, -s) == found[:500]).all())
    assert sorted(made[0]) != sorted(made[3])
    assert 0 <= start < 500


def test_codes_of_a_pool_follow_the_marginal_of_their_class():
    own = weights()
    for k in range(2):
        rng = np.random.default_rng(k)
        rows = np.rint(own.masses(k) / own.masses(k).sum() * 40_000).astype(int)
        cells = np.repeat(np.arange(own.cells), rows)
        made = pooled(k, [own], [cells], 3 * len(cells), rng)(3 * len(cells))["weight"]
        counts = np.bincount(made // 100, minlength=1000) / len(made)
        due = own.marginal.masses[k] / own.marginal.masses[k].sum()
        assert np.abs(counts - due).max() < 1e-4


@pytest.mark.parametrize("rows", [5000, 300_000])
def test_a_mixture_has_its_parts_and_attributes_are_independent_in_each(rows):
    flag = Column("flag", "boolean", categories=("false", "true"))
    flags = attribute(flag, Marginal(np.arange(2), np.ones(2, int), [np.ones(2)]), 2)
    wide = weights()
    tables = (np.array([[9.0, 1.0], [1.0, 9.0]]), np.array([[3.0] * 8 + [1.0] * 8, [1.0] * 8 + [3.0] * 8]))
    deal = Mixture(np.array([1.0, 3.0]), tables).deal(0, [flags, wide], rows, np.random.default_rng(0))
    blocks = [deal(count) for count in (rows // 3, rows - rows // 3)]
    made = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    cells = np.searchsorted(wide.axis.edges, made["weight"], side="right") - 1
    counts = np.bincount(made["flag"] * 16 + cells, minlength=32).reshape(2, 16) / rows
    due = sum(
        weight * np.outer(one / one.sum(), other / other.sum())
        for weight, one, other in zip((0.25, 0.75), *tables, strict=True)
    )
    assert np.abs(counts.sum(axis=1) - due.sum(axis=1)).max() < 3 / 5000
    assert np.abs(counts.sum(axis=0) - due.sum(axis=0)).max() < 3 / 5000
    assert np.abs(counts - due).max() < 5 * np.sqrt(0.1 / rows)
