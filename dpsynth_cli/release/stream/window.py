"""What arrived in the last days: the difference of everything so far and everything until then.

Both are known from the same noisy rows, so a window costs nothing; its error is that of the difference, and
is in the answers. A window begins where a block of releases does: it has all of the days asked for, and may
have more.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np

from dpsynth_cli.errors import UsageError
from dpsynth_cli.questions import Answer
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.stream.state import StreamState

Answers = list[tuple[Any, Answer]]


def marked(state: StreamState, before: dict[str, Any]) -> dict[str, list[Any]]:
    """For each block, as far as it is kept: the day and the clock of the last release before it."""
    known = before.get("marks", {}) | {
        str(before.get("number", 0)): [before.get("day"), before.get("clock", 0)]
    }
    return {str(start): known[str(start)] for start in state.blocks.starts}


def window_of(spec: Spec, state: StreamState, days: int) -> tuple[dict[str, Any], Answers]:
    """Where the window begins, and the counts since then, for each answer of the last release."""
    if spec.params.algorithm != "blocks":
        raise UsageError(
            f"a stream by {spec.params.algorithm} has snapshots of everything so far only.",
            "Nothing was published.",
            "Leave out --last-days, or start a stream with mechanism.algorithm blocks.",
        )
    first = date.fromisoformat(state.release["day"]) - timedelta(days=days - 1)
    starts, marks = state.blocks.starts, state.release["marks"]
    older = [
        place
        for place, start in enumerate(starts)
        if marks[str(start)][0] is None or date.fromisoformat(marks[str(start)][0]) < first
    ]
    place = older[-1]
    day, clock = marks[str(starts[place])]
    answers: Answers = []
    for question, answer in state.answers:
        if answer.noise == "none":
            since = Answer(answer.values - clock, answer.lengths, answer.noise, answer.sd)
        else:
            running = state.blocks.known[(len(answer.values) - 1).bit_length()]
            variance = max(0.0, float(running.errors[place:, place:].sum()))
            since = Answer(
                np.asarray(running.blocks[place:].sum(axis=0)), answer.lengths, answer.noise, variance**0.5
            )
        answers.append((question, since))
    return {"since_release": starts[place], "since_day": day, "since_clock": clock}, answers
