"""The state's file: whole and small."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsynth_cli.hashing import canonical
from dpsynth_cli.numeric.running import Running
from dpsynth_cli.questions import Answer
from dpsynth_cli.trusted.stream.blocks import Blocks
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.stream.state import WORDS, StreamState


def a_state(values: np.ndarray) -> StreamState:
    """Open counts, one block and counters, all of these values."""
    state = StreamState("a" * 32, "b" * 64, {"name": "visits"}, 7, 3, {"charged": "1"}, ["one", "two"], 9)
    state.release = {"number": 2, "clock": 2}
    codes = np.unique(np.abs(values // 2))
    state.open = Leaves(codes, np.arange(1, len(codes) + 1))
    errors = np.array([[2.0, -0.5], [-0.5, 1.25]])
    state.blocks = Blocks(
        [0, 1], [Leaves(), state.open], {3: Running(np.array([values, values[::-1]]), errors)}
    )
    state.answers = [({"step": "counts"}, Answer(values, (len(values),), "branched_laplace", 1.5))]
    state.counters = {"level": 4}, [values[::-1], np.zeros(0, np.int64)]
    return state


def told(state: StreamState) -> tuple:
    """All that a state says, to compare."""
    assert state.counters is not None
    return (
        [getattr(state, name) for name in WORDS],
        [(part.codes.tolist(), part.counts.tolist()) for part in (state.open, *state.blocks.raw)],
        state.blocks.starts,
        [(j, r.blocks.tolist(), r.errors.tolist()) for j, r in state.blocks.known.items()],
        [(q, a.values.tolist(), a.lengths, a.noise, a.sd) for q, a in state.answers],
        (state.counters[0], [array.tolist() for array in state.counters[1]]),
    )


@settings(deadline=None)
@given(values=arrays(np.int64, st.integers(0, 40), elements=st.integers(-(2**63), 2**63 - 1)))
def test_a_state_comes_back_as_it_was(values):
    state = a_state(values)
    assert told(StreamState.of_bytes(state.as_bytes())) == told(state)


@pytest.mark.parametrize("most", [0, 2**7 - 1, 2**7, 2**15, 2**31, -(2**7), -(2**7) - 1, -(2**63)])
def test_numbers_at_the_edge_of_a_width_come_back(most):
    state = a_state(np.array([0, most, 1, -1]))
    assert told(StreamState.of_bytes(state.as_bytes())) == told(state)


def test_a_state_of_before_kinds_of_batches_were_kept_is_read():
    state = a_state(np.arange(9))
    state.deletions = ["two"]
    data = state.as_bytes()
    assert StreamState.of_bytes(data).deletions == ["two"]
    text = zlib.decompressobj()
    said = json.loads(text.decompress(data))
    del said["deletions"]
    old = StreamState.of_bytes(zlib.compress(canonical(said)) + text.unused_data)
    assert (told(old), old.deletions) == (told(state), [])


def test_noisy_counts_take_about_their_entropy():
    noisy = np.rint(np.random.default_rng(1).laplace(0, 5, 2**16)).astype(np.int64)
    state = StreamState("a" * 32, "b" * 64, {}, 7)
    state.answers = [({}, Answer(noisy, (len(noisy),), "branched_laplace", 7.0))]
    assert len(state.as_bytes()) < 0.65 * len(noisy)  # 4.8 bits each
