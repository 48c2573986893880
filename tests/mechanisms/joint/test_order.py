"""What a late column leaves early ones, and which column comes first."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.joint import chain as module
from dpsynth_cli.mechanisms.joint.chain import Chain
from dpsynth_cli.mechanisms.joint.dead_ends import dead_ends
from dpsynth_cli.mechanisms.joint.frame import Frame, Table
from dpsynth_cli.mechanisms.joint.ladder import ladder
from dpsynth_cli.mechanisms.joint.model import ASTRAY, TRIES, Evidence
from dpsynth_cli.mechanisms.shared.oneway import Marginal

ROWS, PORTS = 20_000, 12
ORIGIN, DISTANCE, DEST = 0, 1, 2
SERVED = np.random.default_rng(4).random((3, PORTS)) < 0.6


def flights() -> tuple[Frame, dict[tuple[int, int], Table]]:
    """Three origins fly to some of twelve destinations each; each route has a distance of its own."""
    rng = np.random.default_rng(0)
    routes = np.argwhere(SERVED)[rng.integers(0, SERVED.sum(), ROWS)]
    codes = [routes[:, 0], 3 * routes[:, 1] + routes[:, 0], routes[:, 1]]
    ladders, masses = [], []
    for name, own, size in zip(("origin", "distance", "dest"), codes, (3, 3 * PORTS, PORTS), strict=True):
        mass = np.bincount(own, minlength=size)[None, :].astype(float)
        column = Column(name, "ordinal", categories=tuple(f"{name}{k}" for k in range(size)))
        ladders.append(ladder(column, Marginal(np.arange(size), np.ones(size, np.int64), [mass[0]]), 512))
        masses.append(mass)
    frame = Frame(ladders, masses, [own.level(3) for own in ladders])
    tables = {}
    for i, j in ((ORIGIN, DEST), (DISTANCE, DEST)):
        counts = np.zeros((1, ladders[i].cells, ladders[j].cells))
        np.add.at(counts[0], (codes[i], codes[j]), 1.0)
        tables[i, j] = Table((i, j), (ladders[i].top, ladders[j].top), counts)
    return frame, tables


def drawn_by(order: tuple[int, ...]) -> tuple[Chain, np.ndarray]:
    frame, tables = flights()
    link = tables[DISTANCE, DEST]
    last = max((DISTANCE, DEST), key=order.index)
    rng = np.random.default_rng(1)
    chain = Chain(
        frame,
        [*tables.values()],
        [(j, link if j == last else None) for j in order],
        np.zeros(8192, np.int64),
        rng,
    )
    return chain, chain.draw(np.zeros(5_000, np.int64), chain.feedback(), rng)


def test_values_that_leave_a_later_column_nothing_are_told():
    frame, tables = flights()
    order = [(ORIGIN, None), (DISTANCE, None), (DEST, tables[DISTANCE, DEST])]
    (found,) = dead_ends(frame, [*tables.values()], order)[DISTANCE]
    assert found.other == ORIGIN
    known = np.bincount(np.ravel_multi_index(SERVED.nonzero(), SERVED.shape), minlength=SERVED.size) > 0
    code = np.arange(3 * PORTS)  # of a distance that is flown: who serves its destination
    flown = known.reshape(SERVED.shape)[code % 3, code // 3]
    assert (found.there[:, flown] == SERVED[:, (code // 3)[flown]]).all()
    assert not found.there[:, ~flown].any()


def test_no_row_is_on_a_route_that_there_is_not(monkeypatch):
    _, cells = drawn_by((ORIGIN, DISTANCE, DEST))
    assert SERVED[cells[ORIGIN], cells[DEST]].all()
    monkeypatch.setattr(module, "dead_ends", lambda frame, tables, order: {j: [] for j, _ in order})
    _, cells = drawn_by((ORIGIN, DISTANCE, DEST))
    assert SERVED[cells[ORIGIN], cells[DEST]].mean() < 0.9


def test_a_column_that_is_drawn_too_late_is_told_by_its_tables(monkeypatch):
    first, _ = drawn_by((DEST, DISTANCE, ORIGIN))
    assert max(first.astray.values()) < 0.02
    monkeypatch.setattr(module, "dead_ends", lambda frame, tables, order: {j: [] for j, _ in order})
    late, _ = drawn_by((ORIGIN, DISTANCE, DEST))
    assert max(late.astray, key=lambda j: late.astray[j]) == DEST
    assert late.astray[DEST] > 0.2


@pytest.mark.parametrize(
    ("away", "roots", "best"),
    [
        ([{0: ASTRAY / 2, 1: 0.0}], [], 0),
        ([{0: 0.1, 1: 0.9}, {0: 0.0, 1: 0.05}], [1], 1),
        ([{0: 0.1, 1: 0.9}, {0: 2.0, 1: 0.0}], [1], 0),
        ([{0: 0.4, 1: 0.9}, {0: 2.0, 1: 0.0}, {0: 0.0, 1: 0.4}], [1, 0], 2),
        ([{0: 0.1, 1: 0.9}, {0: 0.5, 1: 0.0}, {0: 0.0, 1: 0.2}], [1, 0], 2),
        ([{0: 3.0, 1: 3.1, 2: 0.0}, {0: 3.0, 1: 0.0, 2: 2.0}, {0: 0.0, 1: 0.0, 2: 1.0}, {}], [1, 0], 2),
    ],
)
def test_the_chain_begins_where_its_rows_are_nearest_to_the_tables(monkeypatch, away, roots, best):
    frame, _ = flights()
    made = [SimpleNamespace(astray=one) for one in away]
    asked = []

    def chain(self, tables, links, rng, wanted, root=None):
        asked.append(root)
        return made[len(asked) - 1]

    monkeypatch.setattr(Evidence, "_chain", chain)
    found, _ = Evidence(frame, [1.0] * 3).fit()
    assert asked == [None, *roots]
    assert len(roots) <= TRIES
    assert found is made[best]
