"""One push of a stream, in memory: raw counts go in, and what ends now gets its noise.

When a release is due is a function of the public clock. The state then holds the noise that was drawn;
whoever calls this makes it durable before anything of it is shown.
"""

from __future__ import annotations

from datetime import datetime, timezone
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.compose import accountant_of
from dpsynth_cli.mechanisms import online
from dpsynth_cli.mechanisms import online_schedule as schedule
from dpsynth_cli.mechanisms.pmm import deepest
from dpsynth_cli.questions import Answer, Cells, Question, Total, as_json
from dpsynth_cli.spec import Spec
from dpsynth_cli.stream_snapshot import SPARSE, sparse_bill, time_level
from dpsynth_cli.trusted.dynamic_partition import DynamicPartition
from dpsynth_cli.trusted.leaves import Leaves, measured
from dpsynth_cli.trusted.source import system_source
from dpsynth_cli.trusted.stream_state import StreamState


def partition_of(spec: Spec) -> Cells:
    """The finest partition that raw counts are kept in."""
    columns = spec.domain.modelled
    depth = deepest(columns)
    return online.partition(columns, depth).cells(columns, depth)


def advance(state: StreamState, spec: Spec, rows: Leaves, batch_id: str) -> bool:
    """Take a batch into the state; whether that made a release."""
    params = spec.params
    state.batches.append(batch_id)
    state.events += rows.rows
    state.open = [(state.open[0] if state.open else Leaves()) + rows, *state.open[1:]]
    clock = state.events if params.arrivals == "public" else state.pushes
    now = schedule.due(clock, params.releases_per_doubling)
    if now <= state.release.get("due", 0):
        return False
    release = state.release.get("number", 0) + 1
    state.release = {
        "number": release,
        "clock": clock,
        "due": now,
        "generation": state.generation + 1,
        "day": datetime.now(timezone.utc).date().isoformat(),
    }
    if params.algorithm == "blocks":
        _close_blocks(state, spec, release)
    else:
        _check_segments(state, spec, release, clock)
    return True


def _close_blocks(state: StreamState, spec: Spec, release: int) -> None:
    """Measure the blocks that end now, smallest first; what a block has had goes into the next larger one."""
    sizes = schedule.sizes(schedule.epoch(release))
    ending = {block.size: block for block in schedule.ending(release)}
    state.open += [Leaves()] * (len(sizes) - len(state.open))
    carried = Leaves()
    for i, size in enumerate(sizes):
        carried, state.open[i] = carried + state.open[i], Leaves()
        if size not in ending:
            state.open[i] = carried
            break
        public = spec.params.arrivals == "public"
        ask, paid, given = measured(
            carried, partition_of(spec), spec.domain, accountant_of(spec), system_source(), public
        )
        online.ask_block(ask, spec.domain, spec.params, spec.split, schedule.share(release))
        carried = paid()
        answers = [(as_json(question), answer) for question, answer in given]
        state.blocks.append((ending[size].first, ending[size].last, answers))
    needed = {(block.first, block.last) for block in schedule.covering(release)}
    state.blocks = sorted((b for b in state.blocks if b[:2] in needed), key=lambda block: block[0])


def _check_segments(state: StreamState, spec: Spec, release: int, clock: int) -> None:
    """One step of Algorithm 12: a new time level if it is time, then add, check, close."""
    columns, params, epsilon = spec.domain.modelled, spec.params, spec.privacy.budget
    source = system_source()
    per_path = epsilon if spec.privacy.neighbours == "add_remove" else epsilon / 2
    counters = DynamicPartition(len(partition_of(spec).order or ()), per_path, len(columns) == 1)
    if state.counters is not None:
        counters.restore(*state.counters)
    r = time_level(spec, clock)
    if counters.level is None or r > counters.level:
        checks = schedule.checks(r, epsilon, params.releases_per_doubling)
        counters.enter(r, checks, online.sparse_shares(r, spec.domain, params), source)
    counters.step(state.open[0], source)
    state.open = [Leaves()]
    state.counters = counters.as_parts()
    answers: list[tuple[Any, Answer]] = []
    if params.arrivals == "public":
        n = Answer(np.array([clock]), (1,), "none", 0.0)
        answers.append((as_json(Question("n", Total(), Fraction(0))), n))
    questions = online.sparse_questions(r, spec.domain, params)
    for charge, counts in zip(sparse_bill(spec, questions), counters.output().values(), strict=True):
        answer = Answer(counts, (len(counts),), SPARSE, charge.price.sd)
        answers.append((charge.asked, answer))
    state.blocks = [(1, release, answers)]
