"""Runs of a stream of mixed tables (`algorithm: joint`), push by push: columns and tables are counted on, and
what tables were chosen by is asked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpsynth_cli.evidence.likelihood import Told
from dpsynth_cli.evidence.streams import PUSHES, StreamBench
from dpsynth_cli.question_json import of_json
from dpsynth_cli.questions import Answer, Ints, Misfit, Question
from dpsynth_cli.trusted.stream.coded_rows import CodedRows, Summed
from dpsynth_cli.trusted.stream.epoch import Epoch
from dpsynth_cli.trusted.stream.factorisation import factorisation
from dpsynth_cli.trusted.stream.state import StreamState
from dpsynth_cli.trusted.stream.table_counters import Counters
from dpsynth_cli.trusted.stream.table_prices import length_of, table_charge


@dataclass
class TablesBench(StreamBench):
    """A `StreamBench` whose pushes are rows."""

    known_sums: dict[Question, list[list[Ints]]] = field(default_factory=dict)

    @cached_property
    def pushes(self) -> Any:
        """What arrives, of each table: all but the row in question, then that, then nothing."""
        shared = min(self.rows(0), self.rows(1))
        cuts = [slice(0, shared), slice(shared, None)] + [slice(0, 0)] * (PUSHES - 2)
        return tuple([self._coded(table, cut) for cut in cuts] for table in (0, 1))

    def _coded(self, table: int, cut: slice) -> CodedRows:
        codes = {name: np.asarray(own[cut], np.int64) for name, own in self.pair.tables[table].items()}
        return CodedRows(codes, np.ones(len(next(iter(codes.values()))), np.int64))

    def arriving(self, state: StreamState, rows: Any) -> Any:
        """A batch as `push` would read it."""
        epoch = Epoch.of_parts(*state.counters) if state.counters else None
        if epoch is None or not epoch.questions:
            return rows
        return Summed(rows.rows, rows.sums(epoch.questions, self.pair.omega))

    def nothing(self) -> Any:
        return self._coded(0, slice(0, 0))

    def rows_told(self, state: StreamState) -> list[Told]:
        """The last row of C x of every question, with the exact ones of both tables; and what tables were
        chosen by, if that was now."""
        if state.counters is None:  # the epoch is over
            return []
        epoch, release, told = Epoch.of_parts(*state.counters), state.release["number"], []
        for group in (epoch.columns, epoch.tables):
            told += self._group(group, release, length_of(epoch.number))
        if epoch.tables.step == 1:
            for asked, answer in state.answers:
                if asked["statistic"]["kind"] == Misfit.__name__:
                    told.append(self._asked_once(of_json(asked), answer, release))
        return told

    def _group(self, group: Counters, release: int, length: int) -> list[Told]:
        method, told = factorisation(self.budget.currency), []
        if not group.starts:
            return []
        entries = np.array(method.rows(group.starts, group.step, length)[-1])
        first = release - group.step + 1  # everything until this release is in the first step
        steps = np.maximum(np.arange(1, 3) - first, 0)  # of the two pushes that have rows
        at = entries[np.searchsorted(group.starts, steps, side="right") - 1] * (np.arange(1, 3) <= release)
        for question, running in zip(group.questions, group.known, strict=True):
            charge = table_charge(question, self.pair.omega, self.budget, length)
            answer = Answer(entries @ running.blocks, charge.lengths, charge.price.noise, charge.price.sd)
            one, other = (
                np.sum([a * own[k] for k, a in enumerate(at)], axis=0) for own in self._sums(question)
            )
            told.append(Told(charge, answer, one, other))
        return told

    def _asked_once(self, question: Question, answer: Answer, release: int) -> Told:
        charge = table_charge(question, self.pair.omega, self.budget, 1)
        one, other = (
            sum(rows[1:release], rows[0]).sums([question], self.pair.omega)[0] for rows in self.pushes
        )
        return Told(charge, replace(answer, sd=charge.price.sd), one, other)

    def _sums(self, question: Question) -> Sequence[Sequence[Ints]]:
        """Of the two pushes that have rows, for each table."""
        if question not in self.known_sums:
            self.known_sums[question] = [
                [batch.sums([question], self.pair.omega)[0] for batch in rows[:2]] for rows in self.pushes
            ]
        return self.known_sums[question]
