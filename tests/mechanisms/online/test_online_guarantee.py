"""Bounds on W1 of snapshots: never exceeded on average by hostile streams, and saying something at last."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_cli.domain import GRID
from dpsynth_cli.mechanisms.online import guarantee, online, schedule
from dpsynth_cli.release.stream.snapshot import header_of, model_of
from dpsynth_cli.release.stream.step import advance, stream_of
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.stream.counting import BinaryMechanism, SparseCounting
from dpsynth_cli.trusted.stream.leaves import Gathered
from dpsynth_cli.trusted.stream.state import StreamState
from tests.asking import asking, drawn

PUBLIC = {"algorithm": "sparse", "arrivals": "public"}
WAYS = {
    "sparse": ({"neighbours": "replace_one"}, PUBLIC),
    "blocks": ({}, {}),
    "blocks, delta": ({"delta": "1e-9"}, {}),
}


def spec_of(d: int, way: str) -> Spec:
    privacy, params = WAYS[way]
    columns = [{"name": f"x{i}", "type": "continuous", "bounds": [0, 1]} for i in range(d)]
    return from_document(
        {"dpsynth": 1, "name": "s", "output": "-", "privacy": {"epsilon": "4"} | privacy,
         "mechanism": {"name": "online"} | params, "columns": columns}
    )  # fmt: skip


def streamed(codes: dict[str, np.ndarray], spec: Spec, sizes: list[int]) -> StreamState:
    """The state after batches of these sizes, each a release."""
    state, cells, start = StreamState("0" * 32, "0" * 64, {}, 0), stream_of(spec).partition, 0
    for number, size in enumerate(sizes):
        batch = Gathered(cells, spec.domain)
        batch.add({name: column[start : start + size] for name, column in codes.items()}, size)
        advance(state, spec, batch.leaves(), str(number), "2026-01-01")
        start += size
    return state


def hostile(d: int, n: int) -> dict[str, dict[str, np.ndarray]]:
    """One place; first one end, then the other; everywhere."""
    rng, names = np.random.default_rng(0), [f"x{i}" for i in range(d)]
    return {
        "point": {name: np.full(n, GRID - 1) for name in names},
        "moving": {name: np.where(np.arange(n) < n // 2, 0, GRID - 1) for name in names},
        "even": {name: rng.integers(GRID, size=n) for name in names},
    }


def w1(one: dict[str, np.ndarray], other: dict[str, np.ndarray], cells: int = 16) -> float:
    """At most this, l_inf: exact on a line; else rows at the centres of cells, and half a cell for each."""
    if len(one) == 1:
        (a,), (b,) = one.values(), other.values()
        at = (np.arange(400) + 0.5) / 400
        return float(np.abs(np.quantile(a, at) - np.quantile(b, at)).mean() / GRID)
    from dpsynth_cli.numeric.lattice import Axis, Lattice
    from dpsynth_cli.numeric.transport import closest

    tables = []
    for rows in (one, other):
        place = [column * cells // GRID for column in rows.values()]
        n = len(place[0])
        counts = np.bincount(place[0] * cells + place[1], minlength=cells**2)
        tables.append(np.rint(counts * (10**6 / n)).astype(np.int64))
    tables[1][-1] += tables[0].sum() - tables[1].sum()
    moved = closest(tables[0] - tables[1], 0, Lattice((Axis(cells), Axis(cells)), cells)).distance
    return float(moved / cells / 10**6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("d", [1, 2])
def test_no_snapshot_is_on_average_further_than_its_counts_say(d, way):
    """0.02 to 0.5 of it was seen."""
    spec, sizes = spec_of(d, way), [1, 3, 12, 48, 192, 256, 512, 1024]
    n = sum(sizes)
    for codes in hostile(d, n).values():
        apart, most = [], []
        for seed in range(2):
            state = streamed(codes, spec, sizes)
            model, _ = model_of(spec, header_of(state), state.answers)
            apart.append(w1(codes, drawn(model, max(1, model.total), seed)))
            most.append(model.bound(max(1, model.total)).w1)
        theorem = online.bound(spec.domain, spec.params, spec.split, 4.0, n)
        assert np.mean(apart) <= np.mean(most) <= 1.5
        if way == "sparse":
            assert np.mean(most) <= theorem.w1
        else:
            assert theorem is None


@pytest.mark.parametrize("d", [1, 2])
def test_nodes_of_sparse_counting_are_off_by_no_more_than_the_theorem_takes_them_to_be(d):
    spec, sizes = spec_of(d, "sparse"), [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    n = sum(sizes)
    errors = guarantee.node_errors(n, d, online.sparse_depth(spec.domain.modelled), Fraction(4), True, 8)
    for codes in hostile(d, n).values():
        off: dict[int, list[float]] = {j: [] for j in errors}
        for _ in range(4):
            state = streamed(codes, spec, sizes)
            for _, answer in state.answers[1:]:
                j = (len(answer.values) - 1).bit_length()
                cells = Gathered(stream_of(spec).partition, spec.domain)
                cells.add(codes, n)
                exact = cells.leaves().level(len(stream_of(spec).partition.order), j)
                off[j].append(float(np.abs(exact - answer.values).sum()))
        for j, own in errors.items():
            assert np.mean(off[j]) <= 2**j * (guarantee.ABSOLUTE * own.sd + own.lacks) + own.before
        assert np.mean(off[1]) > 0


def test_the_theorem_says_something_from_some_events_on_and_more_with_more():
    line = spec_of(1, "sparse")
    said = [online.bound(line.domain, line.params, line.split, 1.0, 10**k).w1 for k in (2, 4, 6, 8)]
    assert said[0] == 1.0
    assert said[3] < 0.01 < said[2] < 0.1 < said[1]
    plane = spec_of(2, "sparse")
    assert online.bound(plane.domain, plane.params, plane.split, 1.0, 10**8).w1 < 0.6


def test_a_stream_whose_past_depths_are_not_known_has_no_bound():
    spec = spec_of(1, "blocks")
    state = streamed(hostile(1, 90)["even"], spec, [30, 60])
    header = header_of(state)
    assert sum(header["seen"].values()) == pytest.approx(float(state.answers[0][1].values[0]))
    assert model_of(spec, header, state.answers)[0].bound(90) is not None
    assert model_of(spec, header | {"seen": None}, state.answers)[0].bound(90) is None
    del state.release["seen"]
    batch = Gathered(stream_of(spec).partition, spec.domain)
    batch.add({"x0": np.zeros(9, np.int64)}, 9)
    advance(state, spec, batch.leaves(), "another", "2026-01-01")
    assert header_of(state)["seen"] is None


def test_an_open_segment_lacks_nearly_what_is_said():
    """One node that gets a few rows at every check, until its segment is closed for the first time."""
    T, epsilon = 12, Fraction(1)
    own = guarantee.node_errors(2**20, 1, 20, epsilon, False, T - 1)[3]
    share = schedule.shares(20, 1, 20, False)[3] * epsilon
    nodes = 500
    counting = SparseCounting.start(nodes, T, share / 2, system_source())
    few, most = int(counting.T_0 / 4), 0.0
    for _ in range(T):
        counting.step(np.full(nodes, few), system_source())
        most = max(most, float(counting.N.mean()))
    assert most <= own.lacks < 2.5 * most


def test_the_noise_of_a_node_is_that_of_finished_levels_and_of_the_binary_mechanism():
    t, epsilon, T = 4, Fraction(1), 9  # time level 2; shares of 1/4, 1/9, 1/16 of the levels 1, 2, 3
    share = [float(part) for part in schedule.shares(2, 1, 3, False).values()]
    own = guarantee.node_errors(t, 1, 3, epsilon, False, T - 1)[1]
    H = 4
    finished = 1 * (2 / share[0]) ** 2  # time level 1; level 0 has no nodes yet
    assert own.sd == pytest.approx((2 * (finished + H * (4 * H / share[0]) ** 2 + share[0] ** -2)) ** 0.5)
    binary = BinaryMechanism.start(2000, 2**H - 1, Fraction(1))
    for _ in range(2**H - 1):  # so that H sums stand
        binary.feed(np.arange(2000), np.zeros(2000, np.int64), system_source())
    assert binary.output.std() == pytest.approx((2 * H) ** 0.5 * H, rel=0.15)


def test_rows_from_before_a_node_are_those_up_to_its_time_level():
    errors = guarantee.node_errors(5000, 2, 20, Fraction(1, 2), True, 8)
    for j, own in errors.items():
        assert schedule.time_level(int(own.before), Fraction(1, 2)) < j
        assert schedule.time_level(int(own.before) + 1, Fraction(1, 2)) == j


def test_events_that_were_seen_less_deep_are_moved_inside_the_cell_they_were_seen_in():
    columns = spec_of(1, "blocks").domain.columns
    counts = [np.array([200.0]), np.array([100.0, 100.0]), np.full(4, 50.0)]
    told = [
        guarantee.running_by_answers(columns, counts, [0.0] * 3, counts[2], 200.0, seen, 200).terms
        for seen in ({2: 200.0}, {1: 100.0, 2: 100.0}, {0: 50.0, 1: 50.0, 2: 100.0})
    ]
    assert [one["early_events"] for one in told] == [0.0, 0.25, 0.375]
    assert {(one["noise"], one["cells"]) for one in told} == {(0.0, 0.25)}


def test_check_has_a_bound_of_the_first_release():
    spec = spec_of(1, "blocks")
    ask, *_ = asking(hostile(1, 2000)["even"], spec.domain, 4.0)
    bound = online.run(ask, spec.domain, spec.params, spec.split).bound(2000)
    assert bound.terms["early_events"] == 0
    assert 0.005 < bound.w1 < 0.3
