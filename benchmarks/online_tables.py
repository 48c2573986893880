"""Streams of mixed tables against one release of everything: `online tables`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.harness import Finding, progress, released
from benchmarks.tables import Real, real
from dpsynth_cli.domain import Domain
from dpsynth_cli.release.stream.snapshot import header_of, model_of
from dpsynth_cli.release.stream.step import advance
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.stream.coded_rows import CodedRows, Summed, read_rows
from dpsynth_cli.trusted.stream.epoch import Epoch
from dpsynth_cli.trusted.stream.state import StreamState
from tests.asking import drawn

BINS = 16  # cells of a number
PUSHES = 100


def two_way(one: Any, other: Any, omega: Domain) -> float:
    """The total variation distance of tables of two columns, the mean of all pairs."""
    sizes = [c.codes if c.categorical else BINS + c.nullable for c in omega]
    distances = []
    for i, j in combinations(range(len(sizes)), 2):
        parts = []
        for table in (one, other):
            a, b = (_cells(table, omega.columns[k]) for k in (i, j))
            parts.append(np.bincount(a * sizes[j] + b, minlength=sizes[i] * sizes[j]) / len(a))
        distances.append(float(np.abs(parts[0] - parts[1]).sum()) / 2)
    return float(np.mean(distances))


def _cells(table: Any, column: Any) -> np.ndarray:
    codes = np.asarray(table[column.name], np.int64)
    return codes if column.categorical else np.where(codes < column.size, codes * BINS // column.size, BINS)


def rows_of(table: Real) -> CodedRows:
    spec = table.spec("marginals", 1.0)
    with closing(open_scan(str(table.train), spec.domain.columns, spec.csv)) as scan:
        return read_rows(scan, spec.domain, lambda done: None, None)


def last_snapshot(table: Real, rows: CodedRows, epsilon: float, delta: float | None, each: int) -> Any:
    """The rows of the last snapshot, in 100 pushes in random order, and the state."""
    spec = table.spec("online", epsilon, delta, params={"algorithm": "joint", "releases_per_doubling": each})
    state, order = StreamState("", "", {}, 0), np.random.default_rng().permutation(len(rows.signs))
    for number, at in enumerate(np.array_split(order, PUSHES)):
        batch = CodedRows({name: own[at] for name, own in rows.codes.items()}, rows.signs[at])
        asked = Epoch.of_parts(*state.counters).questions if state.counters else []
        arrived = Summed(batch.rows, batch.sums(asked, spec.domain)) if asked else batch
        advance(state, spec, arrived, str(number), "2026-01-01")
    model, _ = model_of(spec, header_of(state), state.answers)
    return drawn(model, max(1, model.total)), state, model.facts


def tables(given: argparse.Namespace) -> Iterator[Finding]:
    """The last snapshot of 100 pushes against one release of `joint` of all rows."""
    for name in given.table:
        table = real(given, name)
        rows, omega = rows_of(table), table.domain
        for epsilon in given.epsilon:
            for delta in (1e-9, None):
                offline, online, chosen = [], [], []
                for run in range(given.runs):
                    progress(f"{name}, epsilon {epsilon:g}, delta {delta}, run {run + 1}")
                    made = released("joint", omega, rows.codes, epsilon, delta)
                    offline.append(two_way(rows.codes, made.rows, omega))
                    snapshot, state, facts = last_snapshot(table, rows, epsilon, delta, given.each)
                    online.append(two_way(rows.codes, snapshot, omega))
                    chosen.append(len(facts["links"]) + len(facts["pairs"]))
                yield {
                    "table": name,
                    "columns": len(omega.columns),
                    "rows": len(rows.signs),
                    "epsilon": epsilon,
                    "delta": delta or "",
                    "joint, one release": float(np.mean(offline)),
                    "last snapshot": float(np.mean(online)),
                    "ratio": float(np.mean(online) / np.mean(offline)),
                    "tables": float(np.mean(chosen)),
                    "state, bytes": len(state.as_bytes()),
                }
