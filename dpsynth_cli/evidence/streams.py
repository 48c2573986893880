"""Runs of a mechanism that releases a stream: twelve pushes in memory, by the code of `dpsynth stream push`.

The rows that both tables have arrive first, the row in question (or the one instead of it) second, then
nothing. Everything that twelve snapshots are made of is published, so all of it may tell the tables apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpsynth_cli.evidence.runs import Bench, Released
from dpsynth_cli.questions import Answer, CellCounts, Cells, Ints, Question
from dpsynth_cli.release.stream_snapshot import header_of, model_of
from dpsynth_cli.release.stream_step import advance, stream_of
from dpsynth_cli.spec.spec import Privacy, Spec, from_document
from dpsynth_cli.trusted.stream.factorisation import factorisation, rows_of
from dpsynth_cli.trusted.stream.leaves import Gathered, Leaves
from dpsynth_cli.trusted.stream.release_prices import release_bill
from dpsynth_cli.trusted.stream.state import StreamState

DAY = "2026-01-01"
PUSHES = (
    12  # until then an event has been in all its rows of `Branches`, and in most of those of `SquareRoot`
)
DOCUMENT: dict[str, Any] = {
    "dpsynth": 1,
    "name": "audit",
    "output": "audit.csv",
    "privacy": {"epsilon": "1"},
    "columns": {"x": {"type": "integer", "bounds": [0, 3]}},
}


@dataclass
class StreamBench(Bench):
    """A `Bench` for streams; what counts is what any snapshot was made of."""

    @cached_property
    def spec(self) -> Spec:
        plain = from_document(DOCUMENT | {"mechanism": {"name": self.mechanism.name}})
        delta = self.budget.delta or None
        privacy: Privacy = replace(
            plain.privacy, epsilon=self.budget.epsilon, delta=delta, neighbours=self.pair.omega.neighbours
        )
        return replace(plain, privacy=privacy, params=self.params, domain=self.pair.omega)

    @cached_property
    def pushes(self) -> tuple[list[Leaves], list[Leaves]]:
        """What arrives, of each table."""
        shared = min(self.rows(0), self.rows(1)) - (self.pair.omega.neighbours == "replace_one")
        cuts = [slice(0, shared), slice(shared, None)] + [slice(0, 0)] * (PUSHES - 2)
        return [self._leaves(0, cut) for cut in cuts], [self._leaves(1, cut) for cut in cuts]

    def release(self, table: int) -> Released:
        state = StreamState("", "", {}, 0)
        seen: list[tuple[Answer, Ints, Ints]] = []
        asked: list[Any] = []
        for number, rows in enumerate(self.pushes[table]):
            advance(state, self.spec, rows, str(number), DAY)
            seen += self._rows(state)
            asked += [(number, str(question)) for question, _ in state.answers]
        return seen, tuple(asked), model_of(self.spec, header_of(state), state.answers)[0]

    def _rows(self, state: StreamState) -> list[tuple[Answer, Ints, Ints]]:
        """The last row of C x that a release has measured, level by level, and the exact rows of both
        tables. It follows from the answers of this release and of those before. Of sparse counting the
        answers themselves."""
        release, blocks = state.release["number"], state.blocks
        if not blocks.starts:
            return [(answer, *self._exact([0, release], [1], answer)) for _, answer in state.answers]
        method, bill = (
            factorisation(self.budget.currency),
            release_bill(self.pair.omega, self.budget, release),
        )
        row = rows_of(method, blocks.starts, release)[-1]
        noise = "rounded_gaussian" if self.budget.currency == "rho" else "discrete_laplace"
        rows = []
        for question, answer in state.answers:
            if share := Fraction(question["share"]):
                noisy = np.array(row) @ blocks.known[_level(answer)].blocks
                sd = bill.sd(Question("", CellCounts(Cells(())), share))
                exact = self._exact([*blocks.starts, release], row, answer)
                rows.append((Answer(noisy, answer.lengths, noise, sd), *exact))
        return rows

    def _exact(self, ends: Sequence[int], row: Sequence[int], answer: Answer) -> tuple[Ints, Ints]:
        """A row of C x, for the pushes of both tables: each of them is a release."""
        depth = len(stream_of(self.spec).partition.order or ())
        entries = np.repeat(row, np.diff(ends))
        one, other = (
            np.sum(
                [
                    entry * rows.level(depth, _level(answer))
                    for entry, rows in zip(entries, arrived, strict=False)
                ],
                axis=0,
            )
            for arrived in self.pushes
        )
        return one, other

    def _leaves(self, table: int, cut: slice) -> Leaves:
        gathered = Gathered(stream_of(self.spec).partition, self.pair.omega)
        codes = {name: column[cut] for name, column in self.pair.tables[table].items()}
        gathered.add(codes, len(next(iter(codes.values()))))
        return gathered.leaves()


def _level(answer: Answer) -> int:
    """The level of the partition that was counted."""
    return (len(answer.values) - 1).bit_length()


def bench_of(mechanism: Any, *rest: Any) -> Bench:
    """The bench that fits the mechanism."""
    return (StreamBench if mechanism.stream else Bench)(mechanism, *rest)
