"""When a stream is released: the public side of a push, whose raw counts are in the
trusted core (`trusted/stream/step.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dpsynth_cli.mechanisms.online import online, schedule
from dpsynth_cli.mechanisms.online.guarantee import seen_depths
from dpsynth_cli.mechanisms.pmm.levels import deepest
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import Answer, Ask, Question, Total
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.stream.snapshot import SPARSE, sparse_bill, time_level
from dpsynth_cli.release.stream.window import marked
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.engines.local import Pieces
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.stream.coded_rows import CodedRows, Summed
from dpsynth_cli.trusted.stream.epoch import Epoch
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.stream.state import StreamState
from dpsynth_cli.trusted.stream.step import (
    Stream,
    add_batch,
    add_mixed,
    check_segments,
    epoch_of,
    measure_mixed,
    measure_release,
    read_leaves,
    read_mixed,
)

Batch: TypeAlias = Leaves | CodedRows | Summed


def stream_of(spec: Spec) -> Stream:
    """What the spec says about its stream."""
    columns = spec.domain.modelled
    depth = deepest(columns) if spec.params.algorithm != "joint" else 0
    return Stream(
        spec.domain,
        online.partition(columns, depth).cells(columns, depth),
        lambda level: online.partition(columns, level).volumes(columns),
        spec.params.arrivals == "public",
        partial(accountant_of, spec),
        schedule.most_releases(spec.params.horizon, spec.params.releases_per_doubling),
    )


def read_batch(
    scan: Pieces, spec: Spec, state: StreamState, progress: Callable[[int], None], counted: Problems | None
) -> Batch:
    """The raw counts of a batch, or its rows."""
    stream = stream_of(spec)
    if spec.params.algorithm == "joint":
        return read_mixed(scan, stream, _epoch(state, spec, stream), progress, counted)
    return read_leaves(scan, stream, progress, counted)


def advance(state: StreamState, spec: Spec, rows: Batch, batch_id: str, day: str) -> bool:
    """Take a batch into the state; whether that made a release. `day` is when the push began."""
    params, stream = spec.params, stream_of(spec)
    if isinstance(rows, Leaves):
        clock = add_batch(state, stream, rows, batch_id)
    else:
        clock = add_mixed(state, stream, _epoch(state, spec, stream), rows, batch_id)
    now = schedule.due(clock, params.releases_per_doubling)
    if now <= state.release.get("due", 0):
        return False
    before, past = state.release, state.answers
    release, at_least = state.release.get("number", 0) + 1, online.depth_of(state.answers)
    state.release = {
        "number": release,
        "clock": clock,
        "due": now,
        "generation": state.generation + 1,
        "day": day,
    }
    if params.algorithm == "blocks":
        measure_release(
            state,
            stream,
            lambda ask, before: online.ask_release(ask, spec.domain, params, spec.split, at_least, before),
        )
        seen = seen_depths(before.get("seen"), past, state.answers)
        state.release |= {"at_least": at_least, "marks": marked(state, before), "seen": seen}
    elif params.algorithm == "joint":
        state.release["epochs"] = before.get("epochs", [])
        _tables(state, spec, stream)
    else:
        _segments(state, spec, stream, clock)
    return True


def _epoch(state: StreamState, spec: Spec, stream: Stream) -> Epoch:
    return epoch_of(state, stream, online.epoch_plan(spec.domain, spec.split).first)


def _tables(state: StreamState, spec: Spec, stream: Stream) -> None:
    from dpsynth_cli.mechanisms.online import tables

    plan = online.epoch_plan(spec.domain, spec.split)

    def choose(epoch: int, ask: Ask, answers: list[Answer]) -> float:
        rows = tables.rows_in(answers)
        if not tables.is_ready(ask, plan, rows, epoch):
            return 0.0
        tables.choose(ask, plan, answers)
        return rows

    measure_mixed(state, stream, choose, lambda then, now: tables.is_over(then, tables.rows_in(now)))


def _segments(state: StreamState, spec: Spec, stream: Stream, clock: int) -> None:
    params, r = spec.params, time_level(spec, clock)
    checks = schedule.checks(r, spec.privacy.budget, params.releases_per_doubling)
    shares = online.sparse_shares(r, spec.domain, params)
    levels = check_segments(state, stream, r, checks, shares, len(spec.domain.modelled) == 1)
    answers: list[tuple[Any, Answer]] = []
    if stream.public_arrivals:
        n = Answer(np.array([clock]), (1,), "none", 0.0)
        answers.append((as_json(Question("n", Total(), Fraction(0))), n))
    questions = online.sparse_questions(r, spec.domain, params)
    for charge, counts in zip(sparse_bill(spec, questions), levels, strict=True):
        answers.append((charge.asked, Answer(counts, (len(counts),), SPARSE, charge.price.sd)))
    state.answers = answers
