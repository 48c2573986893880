"""Runs of a mechanism that releases a stream: twelve pushes in memory, by the code of `dpsynth stream push`.

The rows that both tables have arrive first, the row in question (or the one instead of it, or all of a unit)
second, then nothing. Everything that twelve snapshots are made of is published, so all of it may tell the
tables apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpsynth_cli.evidence.likelihood import Told
from dpsynth_cli.evidence.runs import Bench, Released
from dpsynth_cli.questions import Answer, CellCounts, Cells, Ints, Question
from dpsynth_cli.release.stream.snapshot import header_of, model_of
from dpsynth_cli.release.stream.step import advance, stream_of
from dpsynth_cli.spec.spec import Privacy, Spec, from_document
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.stream.factorisation import FIRST, factorisation, rows_of
from dpsynth_cli.trusted.stream.leaves import Gathered, Leaves
from dpsynth_cli.trusted.stream.release_prices import release_charge
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
        params = replace(self.params, releases_per_doubling=10_000)  # each push is a release
        return replace(plain, privacy=privacy, params=params, split=self.split, domain=self.pair.omega)

    @cached_property
    def most(self) -> int | None:
        """How many releases there may be."""
        return stream_of(self.spec).most

    @cached_property
    def pushes(self) -> tuple[list[Leaves], list[Leaves]]:
        """What arrives, of each table."""
        instead = self.rows(0) == self.rows(1)  # of the last rows
        shared = min(self.rows(0), self.rows(1)) - (self.pair.omega.unit_rows or 1) * instead
        cuts = [slice(0, shared), slice(shared, None)] + [slice(0, 0)] * (PUSHES - 2)
        if self.most is not None and self.most < PUSHES:
            cuts = [slice(0, None)] if self.most == 1 else cuts[: self.most]
        return [self._leaves(0, cut) for cut in cuts], [self._leaves(1, cut) for cut in cuts]

    def release(self, table: int) -> Released:
        state, seen, asked = StreamState("", "", {}, 0), list[Told](), list[Any]()
        for number, rows in enumerate(self.pushes[table]):
            advance(state, self.spec, self.arriving(state, rows), str(number), DAY)
            seen += self.rows_told(state)
            asked += [(number, str(question)) for question, _ in state.answers]
        return seen, tuple(asked), model_of(self.spec, header_of(state), state.answers)[0]

    def transcript(self) -> list[Told]:
        """Of a whole phase, in which an event pays all that it ever does: the cells that move."""
        state, told = StreamState("", "", {}, 0), list[Told]()
        arrived = self.pushes[0]
        for number in range(self.most or FIRST):
            rows = arrived[number] if number < len(arrived) else self.nothing()
            advance(state, self.spec, self.arriving(state, rows), str(number), DAY)
            told += [_moved(each) for each in self.rows_told(state) if each.moved.any()]
        return told

    def arriving(self, state: StreamState, rows: Any) -> Any:
        """A batch as `push` would read it."""
        return rows

    def nothing(self) -> Any:
        """A batch without rows."""
        return Leaves()

    def rows_told(self, state: StreamState) -> list[Told]:
        """The last row of C x that a release has measured, level by level, with the exact rows of both
        tables. It follows from the answers of this release and of those before. Of sparse counting the
        answers themselves."""
        release, blocks, told = state.release["number"], state.blocks, []
        method = factorisation(self.budget.currency, self.most)
        row = rows_of(method, blocks.starts, release)[-1] if blocks.starts else [1]
        for question, answer in state.answers:
            share = Fraction(question["share"])
            if not share:
                continue
            # Any partition has the price of one: a stream asks for counts only.
            asked = Question(question["step"], CellCounts(Cells(())), share)
            if blocks.starts:
                charge = release_charge(asked, self.pair.omega, self.budget, release, self.most)
                noisy = np.array(row) @ blocks.known[_level(answer)].blocks
                answer = Answer(noisy, answer.lengths, charge.price.noise, charge.price.sd)
            else:
                charge = charge_for(asked, self.pair.omega, self.budget)
            exact = self._exact([*(blocks.starts or [0]), release], row, answer)
            told.append(Told(replace(charge, lengths=answer.lengths), answer, *exact))
        return told

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


def _moved(told: Told) -> Told:
    """Without the cells that are the same in both tables, which tell nothing."""
    at = np.flatnonzero(told.moved)
    answer = replace(told.answer, values=told.answer.values[at], lengths=(len(at),))
    return Told(replace(told.charge, lengths=(len(at),)), answer, told.first[at], told.second[at])


def _level(answer: Answer) -> int:
    """The level of the partition that was counted."""
    return (len(answer.values) - 1).bit_length()


def bench_of(mechanism: Any, *rest: Any) -> Bench:
    """The bench that fits the mechanism."""
    if not mechanism.stream:
        return Bench(mechanism, *rest)
    if rest[0].algorithm == "joint":
        from dpsynth_cli.evidence.table_streams import TablesBench

        return TablesBench(mechanism, *rest)
    return StreamBench(mechanism, *rest)
