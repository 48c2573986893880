"""The state's file: whole, small, and readable in its older form."""

from __future__ import annotations

import io
import zlib
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsynth_cli.questions import Answer
from dpsynth_cli.release.transcript import about, canonical
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.stream.state import WORDS, StreamState


def a_state(values: np.ndarray) -> StreamState:
    """Open counts, one block and counters, all of these values."""
    state = StreamState("a" * 32, "b" * 64, {"name": "visits"}, 7, 3, {"charged": "1"}, ["one", "two"], 9)
    state.release = {"number": 2, "clock": 2}
    codes = np.unique(np.abs(values // 2))
    state.open = [Leaves(), Leaves(codes, np.arange(1, len(codes) + 1), Fraction(1, 3))]
    state.blocks = [(1, 2, [({"step": "counts"}, Answer(values, (len(values),), "discrete_laplace", 1.5))])]
    state.counters = {"level": 4}, [values[::-1], np.zeros(0, np.int64)]
    return state


def as_version_1(state: StreamState) -> bytes:
    """The form of before: one Arrow column of int64, everything else as compressed JSON in its schema."""
    numbers: list[int] = []

    def kept(array: np.ndarray) -> list[int]:
        numbers.extend(array.tolist())
        return [len(numbers) - len(array), len(numbers)]

    said = {
        "dpsynth_stream": 1,
        **{name: getattr(state, name) for name in WORDS},
        "open": [[str(part.paid), kept(part.codes), kept(part.counts)] for part in state.open],
        "blocks": [
            [first, last, [about(q, a) | {"values": kept(a.values)} for q, a in answers]]
            for first, last, answers in state.blocks
        ],
        "counters": state.counters and [state.counters[0], [kept(array) for array in state.counters[1]]],
    }
    schema = pa.schema([pa.field("value", pa.int64(), False)], {b"dpsynth": zlib.compress(canonical(said))})
    sink = io.BytesIO()
    with ipc.new_file(sink, schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch([pa.array(numbers, pa.int64())], schema=schema.remove_metadata()))
    return sink.getvalue()


def told(state: StreamState) -> tuple:
    """All that a state says, to compare."""
    assert state.counters is not None
    return (
        [getattr(state, name) for name in WORDS],
        [(part.codes.tolist(), part.counts.tolist(), part.paid) for part in state.open],
        [
            (first, last, [(q, a.values.tolist(), a.lengths, a.noise, a.sd) for q, a in answers])
            for first, last, answers in state.blocks
        ],
        (state.counters[0], [array.tolist() for array in state.counters[1]]),
    )


@pytest.mark.parametrize("form", [StreamState.as_bytes, as_version_1])
@settings(deadline=None)  # the first one imports pandas
@given(values=arrays(np.int64, st.integers(0, 40), elements=st.integers(-(2**63), 2**63 - 1)))
def test_a_state_comes_back_as_it_was_from_both_forms(form, values):
    state = a_state(values)
    assert told(StreamState.of_bytes(form(state))) == told(state)


@pytest.mark.parametrize("most", [0, 2**7 - 1, 2**7, 2**15, 2**31, -(2**7), -(2**7) - 1, -(2**63)])
def test_numbers_at_the_edge_of_a_width_come_back(most):
    state = a_state(np.array([0, most, 1, -1]))
    assert told(StreamState.of_bytes(state.as_bytes())) == told(state)


def test_noisy_counts_take_about_their_entropy():
    noisy = np.rint(np.random.default_rng(1).laplace(0, 5, 2**16)).astype(np.int64)
    state = StreamState("a" * 32, "b" * 64, {}, 7)
    state.blocks = [(1, 1, [({}, Answer(noisy, (len(noisy),), "discrete_laplace", 7.0))])]
    assert len(state.as_bytes()) < 0.65 * len(noisy)  # 4.8 bits each
