"""Runs of a mechanism that releases a stream: three pushes in memory, by the code of `dpsynth stream push`.

The rows that both tables have arrive first, the row in question (or the one instead of it) second, nothing
third. Everything that three snapshots are made of is published, so all of it may tell the tables apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpsynth_cli.evidence.likelihood import Told
from dpsynth_cli.evidence.runs import Bench, Released
from dpsynth_cli.questions import Answer, CellCounts, Cells, Question
from dpsynth_cli.release.stream_snapshot import model_of
from dpsynth_cli.release.stream_step import advance, stream_of
from dpsynth_cli.spec.spec import Privacy, Spec, from_document
from dpsynth_cli.trusted.core.prices import charge_for
from dpsynth_cli.trusted.stream.leaves import Gathered, Leaves
from dpsynth_cli.trusted.stream.state import StreamState

DAY = "2026-01-01"
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
        return replace(plain, privacy=privacy, params=self.params, split=self.split, domain=self.pair.omega)

    @cached_property
    def pushes(self) -> tuple[list[Leaves], list[Leaves]]:
        """What arrives, of each table."""
        shared = min(self.rows(0), self.rows(1)) - (self.pair.omega.neighbours == "replace_one")
        cuts = (slice(0, shared), slice(shared, None), slice(0, 0))
        return [self._leaves(0, cut) for cut in cuts], [self._leaves(1, cut) for cut in cuts]

    def release(self, table: int) -> Released:
        state = StreamState("", "", {}, 0)
        seen: list[Told] = []
        asked: list[Any] = []
        for number, rows in enumerate(self.pushes[table]):
            known = {block[:2] for block in state.blocks}
            advance(state, self.spec, rows, str(number), DAY)
            for first, last, answers in state.blocks:
                if (first, last) not in known:
                    seen += [self._told(first, last, question, answer) for question, answer in answers]
                    asked += [(first, last, str(question)) for question, _ in answers]
        number, clock = state.release["number"], state.release["clock"]
        return seen, tuple(asked), model_of(self.spec, number, clock, state.blocks)[0]

    def _told(self, first: int, last: int, question: Any, answer: Answer) -> Told:
        """An answer with the exact counts of both tables, for the pushes of a block: each of them is a
        release."""
        level = (len(answer.values) - 1).bit_length()
        depth = len(stream_of(self.spec).partition.order or ())
        one, other = (
            np.sum([rows.level(depth, level) for rows in pushes[first - 1 : last]], axis=0)
            for pushes in self.pushes
        )
        # Any partition has the price of one: a stream asks for counts only.
        asked = Question(question["step"], CellCounts(Cells(())), Fraction(question["share"]))
        charge = charge_for(asked, self.pair.omega, self.budget)
        return Told(replace(charge, lengths=answer.lengths), answer, one, other)

    def _leaves(self, table: int, cut: slice) -> Leaves:
        gathered = Gathered(stream_of(self.spec).partition, self.pair.omega)
        codes = {name: column[cut] for name, column in self.pair.tables[table].items()}
        gathered.add(codes, len(next(iter(codes.values()))))
        return gathered.leaves()


def bench_of(mechanism: Any, *rest: Any) -> Bench:
    """The bench that fits the mechanism."""
    return (StreamBench if mechanism.stream else Bench)(mechanism, *rest)
