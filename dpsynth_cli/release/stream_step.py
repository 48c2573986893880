"""When a stream is released: the public side of a push, whose raw counts are in the
trusted core (`trusted/stream/step.py`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpsynth_cli.mechanisms.online import online, schedule
from dpsynth_cli.mechanisms.online.guarantee import seen_depths
from dpsynth_cli.mechanisms.pmm.levels import deepest
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import Answer, Question, Total
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.stream_snapshot import SPARSE, sparse_bill, time_level
from dpsynth_cli.release.stream_window import marked
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.stream.state import StreamState
from dpsynth_cli.trusted.stream.step import Stream, add_batch, check_segments, measure_release


def stream_of(spec: Spec) -> Stream:
    """What the spec says about its stream."""
    columns = spec.domain.modelled
    depth = deepest(columns)
    return Stream(
        spec.domain,
        online.partition(columns, depth).cells(columns, depth),
        lambda level: online.partition(columns, level).volumes(columns),
        spec.params.arrivals == "public",
        partial(accountant_of, spec),
    )


def advance(state: StreamState, spec: Spec, rows: Leaves, batch_id: str, day: str) -> bool:
    """Take a batch into the state; whether that made a release. `day` is when the push began."""
    params, stream = spec.params, stream_of(spec)
    clock = add_batch(state, stream, rows, batch_id)
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
    else:
        _segments(state, spec, stream, clock)
    return True


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
