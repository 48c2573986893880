"""The closest measure: four ways to the same integer, and what it does with ties, size and interruption."""

from __future__ import annotations

import _thread
import threading
import time
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_cli.numeric.isotonic import isotonic_l1
from dpsynth_cli.numeric.lattice import Axis, Lattice, Scale, divided
from dpsynth_cli.numeric.star import UNITS
from dpsynth_cli.numeric.transport import (
    closest,
    closest_by_flow,
    closest_on_a_line,
    debiased,
    effort,
    evenly,
    levelled,
    rescaled,
)
from tests.numeric.transport_lp import _run, _solved, closest_by_dense_lp, closest_by_lp


def instances(count: int, seed: int):
    """Lattices of 4 to 64 cells in one to three dimensions, signed counts on them, and a total."""
    rng = np.random.default_rng(seed)
    while count:
        d = int(rng.integers(1, 4))
        equal, mixed = rng.random() < 0.5, rng.random() < 0.4
        axes = tuple(
            Axis(
                int(rng.integers(1, 33 if d == 1 else 9 if d == 2 else 5)),
                1 if equal else int(rng.integers(1, 4)),
                int(rng.integers(0, 3)) if mixed else 0,
            )
            for _ in range(d)
        )
        side = max(axis.cells * axis.step for axis in axes)
        lattice = Lattice(axes, side, "linf" if rng.random() < 0.6 else "l1")
        if 4 <= lattice.size <= 64:
            nu = rng.integers(-6, 9, lattice.size) - int(rng.integers(0, 3))
            total = max(0, int(nu.sum())) if rng.random() < 0.4 else int(rng.integers(0, 60))
            yield lattice, nu, total
            count -= 1


def printed_lp(nu: np.ndarray, total: int, lattice: Lattice) -> float:
    """Algorithm 2 as printed, in the unit cube: what u_ij takes from cell i arrives nowhere."""
    m, distances = len(nu), lattice.distances() / lattice.side
    i, j = np.nonzero(~np.eye(m, dtype=bool))
    arcs, one = np.arange(len(i)), np.arange(m)
    rows = np.concatenate([i, i, one, one, np.full(m, m)])
    last = 2 * len(i) + m + one
    columns = np.concatenate([arcs, len(i) + arcs, 2 * len(i) + one, last, last])
    entries = np.concatenate([np.ones(len(i)), -np.ones(len(i)), np.ones(3 * m)])
    cost = np.concatenate([distances[i, j], distances[i, j], np.full(m, 2), np.zeros(m)])
    _, value = _solved(
        cost, rows, columns, entries, np.append(nu, total), np.append(np.full(m, np.inf), total)
    )
    return (value - (nu.sum() - total)) * lattice.side


def distance_between(nu: np.ndarray, tau: np.ndarray, lattice: Lattice) -> int:
    """d_BL of two signed measures, by the dense program alone: the closest to their difference is nothing."""
    return closest_by_dense_lp(nu - tau, 0, lattice.distances(), lattice.diameter).distance


def straight_lines(lattice: Lattice) -> np.ndarray:
    """Euclidean distances between all pairs of cells, in units and not rounded."""
    squares = np.zeros((lattice.size, lattice.size))
    for axis, place in zip(
        lattice.axes, np.indices(lattice.shape).reshape(len(lattice.shape), -1), strict=True
    ):
        far = axis.step * np.abs(place[:, None] - place)
        discrete = (place[:, None] >= axis.cells) | (place >= axis.cells)
        squares += np.where(discrete & (far > 0), lattice.side, far) ** 2.0
    return np.sqrt(squares)


def lattice_of(*shape: int, metric: str = "linf") -> Lattice:
    return Lattice(tuple(Axis(k) for k in shape), max(shape), metric)


def noisy_clusters(lattice: Lattice, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of five clusters in the cube, and the same with discrete Laplace noise of scale 2."""
    rng = np.random.default_rng(seed)
    d = len(lattice.shape)
    centres = 0.1 + 0.8 * rng.random((5, d))
    points = np.clip(centres[rng.integers(5, size=n)] + rng.normal(0, 0.05, (n, d)), 0, 1 - 1e-9)
    counts = np.zeros(lattice.shape, np.int64)
    np.add.at(counts, tuple((points * lattice.shape).astype(int).T), 1)
    p = -np.expm1(-1 / 2)
    return counts.ravel(), counts.ravel() + rng.geometric(p, counts.size) - rng.geometric(p, counts.size)


# --- the same optimum ----------------------------------------------------------------------------------


def test_dense_program_sparse_program_flow_and_regression_have_the_same_optimum():
    lines = 0
    for lattice, nu, total in instances(200, seed=1):
        graph, diameter = lattice.graph(), lattice.diameter
        dense = closest_by_dense_lp(nu, total, lattice.distances(), diameter)
        sparse = closest_by_lp(nu, total, graph, diameter)
        flow = closest_by_flow(nu, total, graph, diameter)
        assert dense.distance == sparse.distance == flow.distance
        for found in (dense, sparse, flow):
            assert found.counts.min() >= 0
            assert found.counts.sum() == total
        if len(lattice.axes) == 1 and not lattice.axes[0].apart:
            level = debiased(nu, total)
            line = closest_on_a_line(level, lattice.axes[0].step)
            assert line.distance == closest_by_lp(level, total, graph, diameter).distance
            assert line.distance == closest_by_dense_lp(level, total, lattice.distances(), diameter).distance
            lines += 1
    assert lines > 20


def test_the_quickest_way_is_as_close_as_the_dense_program_and_says_how_close():
    for lattice, nu, total in instances(40, seed=2):
        level = debiased(nu, total)
        found = closest(nu, total, lattice)
        assert found.counts.min() >= 0
        assert found.counts.sum() == total
        assert found.distance == distance_between(level, found.counts, lattice)
        best = closest_by_dense_lp(level, total, lattice.distances(), lattice.diameter)
        assert found.distance == best.distance


def test_a_line_is_an_isotonic_regression():
    rng = np.random.default_rng(3)
    for _ in range(30):
        m = int(rng.integers(4, 65))
        nu = rng.integers(-4, 6, m)
        nu[0] += max(0, -nu.sum())
        lattice = lattice_of(m)
        found = closest_on_a_line(nu)
        dense = closest_by_dense_lp(nu, int(nu.sum()), lattice.distances(), lattice.diameter)
        assert found.distance == dense.distance
        assert found.counts.min() >= 0
        assert found.counts.sum() == nu.sum()


def test_all_cells_are_reported_as_settled_once():
    for lattice, nu, total in instances(40, seed=2):
        told = []
        closest(nu, total, lattice, told.append)
        assert min(told) >= 0
        assert sum(told) == lattice.size
    lattice = lattice_of(30, 30)
    told = []
    closest(noisy_clusters(lattice, 900, seed=3)[1], 900, lattice, told.append)
    assert sum(told) == 900
    assert len(told) > 3  # not all at the end


def test_flow_and_interior_point_agree_on_three_thousand_cells():
    lattice = lattice_of(55, 55)
    _, nu = noisy_clusters(lattice, 4000, seed=4)
    nu = debiased(nu, 4000)
    sparse = closest_by_lp(nu, 4000, lattice.graph(), lattice.diameter)
    assert closest(nu, 4000, lattice).distance == sparse.distance


def test_the_printed_program_is_wrong_and_its_optimum_can_be_negative():
    """E5. The corrected one is a distance: never negative, and 0 only for the measure itself."""
    lattice = lattice_of(4)
    nu = np.array([3, 0, 0, -2])
    right = closest_by_dense_lp(nu, 1, lattice.distances(), lattice.diameter)
    assert right.distance == 6  # two units, three cells each
    assert printed_lp(nu, 1, lattice) == pytest.approx(2)  # they leave their cell, and are gone
    wrong = negative = 0
    for lattice, nu, total in instances(50, seed=1):  # the first of those above
        value = printed_lp(nu, total, lattice)
        right = closest_by_dense_lp(nu, total, lattice.distances(), lattice.diameter).distance
        assert right >= 0
        wrong += value < right - 0.5
        negative += value < -0.5
    assert wrong > 10
    assert negative > 0


def test_the_slack_costs_a_diameter():
    """E5: one unit too many costs the diameter of the domain, whatever its side is."""
    for side in (1, 3, 10):
        lattice = Lattice((Axis(2),), side)
        for total in (5, 7):
            assert closest_by_lp(np.array([3, 3]), total, lattice.graph(), lattice.diameter).distance == side
            found = closest_by_dense_lp(np.array([3, 3]), total, lattice.distances(), lattice.diameter)
            assert found.distance == side


# --- which of many best ones ---------------------------------------------------------------------------


def test_mass_that_noise_took_in_all_comes_back_everywhere():
    """E6. By the distance alone, all of it in one corner is as good."""
    lattice = lattice_of(4, 4)
    nu = np.full(16, -1)
    corner = np.zeros(16, np.int64)
    corner[0] = 16
    even = closest(nu, 16, lattice).counts
    assert distance_between(nu, corner, lattice) == distance_between(nu, even, lattice)
    assert even.tolist() == [1] * 16


def test_what_is_fetched_comes_from_no_preferred_side():
    """A maximum flow prefers low numbers: unshuffled, the mean moves by 0.8 of all that is moved."""
    lattice = lattice_of(12, 12, 12)
    place = np.indices(lattice.shape).reshape(3, -1)
    rng = np.random.default_rng(4)
    shift, moved = np.zeros(3), 0
    for _ in range(4):
        nu = debiased(rng.geometric(0.4, lattice.size) - rng.geometric(0.4, lattice.size), lattice.size)
        found = closest(nu, lattice.size, lattice)
        shift += place @ (found.counts - nu)
        moved += found.distance
    assert np.abs(shift).max() < 0.06 * moved


def test_a_category_with_less_than_nothing_is_filled_evenly_from_the_others():
    lattice = Lattice((Axis(4), Axis(1, apart=1)), side=4)
    nu = np.array([[25, -4], [25, 0], [25, 0], [25, 0]]).ravel()
    found = closest(nu, 96, lattice)
    assert found.counts.reshape(4, 2).tolist() == [[24, 0]] * 4
    assert found.distance == 4 * 4


def test_categories_give_up_the_same_amount_to_what_noise_made_negative():
    found = closest(np.array([40, 3, -6]), 37, Lattice((Axis(1, apart=2),), side=5))
    assert found.counts.tolist() == [37, 0, 0]
    assert found.distance == 6 * 5
    found = closest(np.array([20, 2, -3, 20, 2, -3]), 38, Lattice((Axis(2), Axis(1, apart=2)), side=5))
    assert found.counts.reshape(2, 3).sum(axis=0).tolist() == [37, 1, 0]


def test_ties_of_a_regression_lean_neither_way():
    assert isotonic_l1(np.array([4, -4]), -9, 9).tolist() == [0, 0]


def test_closest_is_never_worse_than_clip_and_renormalise_on_clusters():
    for shape in ((22, 22), (8, 8, 8)):
        lattice = lattice_of(*shape)
        graph, ratios = lattice.graph(), []
        for seed in range(4):
            true, nu = noisy_clusters(lattice, 4000, seed)
            clipped = rescaled(np.maximum(nu, 0), 4000)
            ours, theirs = (
                closest_by_flow(true - counts, 0, graph, lattice.diameter).distance
                for counts in (closest(nu, 4000, lattice).counts, clipped)
            )
            ratios.append(ours / theirs)
        assert max(ratios) < 1
        assert np.mean(ratios) < 0.5


# --- the graph is as the metric --------------------------------------------------------------------------


def test_paths_are_as_long_as_distances():
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    seen = 0
    for lattice, _, _ in instances(60, seed=6):
        graph = lattice.graph()
        ways = coo_array((graph.cost, (graph.tail, graph.head)), shape=(graph.nodes, graph.nodes)).tocsr()
        far = dijkstra(ways)[: lattice.size, : lattice.size]
        assert np.array_equal(far, 2 * lattice.distances())
        assert lattice.arcs() == len(graph.tail)
        seen += any(axis.apart for axis in lattice.axes)
    assert seen > 10


def test_under_l2_paths_are_no_shorter_than_straight_lines_and_hardly_longer():
    """Between all pairs of cells: what `stretch` says is never exceeded, and is reached where nothing is
    apart; without categories it is below 1.1."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    seen = 0
    for lattice, _, _ in instances(150, seed=6):
        axes = tuple(Axis(a.cells, UNITS * a.step, a.apart) for a in lattice.axes)
        euclid = Lattice(axes, UNITS * lattice.side, "l2")
        graph = euclid.graph()
        ways = coo_array((graph.cost, (graph.tail, graph.head)), shape=(graph.nodes, graph.nodes)).tocsr()
        path = dijkstra(ways)[: euclid.size, : euclid.size] / 2
        straight = straight_lines(euclid)
        apart = straight > 0
        longer = float((path[apart] / straight[apart]).max(initial=1.0))
        assert (path >= straight * (1 - 1e-12)).all()
        assert np.array_equal(np.ceil(straight - 1e-9), euclid.distances())
        assert straight.max() <= euclid.diameter
        assert euclid.arcs() == len(graph.tail)
        assert longer <= euclid.stretch * (1 + 1e-12)
        if not any(axis.apart for axis in axes):
            assert longer == pytest.approx(euclid.stretch)
            assert longer < 1.1
            seen += longer > 1.02
    assert seen > 10


def test_a_king_alone_would_go_longer_ways():
    king = [((0, 1), 12), ((1, 0), 12), ((1, 1), 17)]
    assert lattice_of_steps(12, 20, 20).stretch == pytest.approx(1.031, abs=1e-3)
    with patch("dpsynth_cli.numeric.star.star", lambda cells, steps: king):
        assert lattice_of_steps(12, 20, 20).stretch == pytest.approx(1.083, abs=1e-3)
    assert lattice_of_steps(12, 9, 9, 9).stretch == pytest.approx(1.061, abs=1e-3)
    assert lattice_of_steps(12, 5, 5, 5, 5).stretch == pytest.approx(1.083, abs=1e-3)


def lattice_of_steps(step: int, *shape: int) -> Lattice:
    return Lattice(tuple(Axis(k, step) for k in shape), step * max(shape), "l2")


def test_equal_axes_have_the_moves_of_a_king_and_those_of_a_rook():
    assert len(lattice_of(9, 9, 9).moves) == 26
    assert len(lattice_of(9, 9, 9, metric="l1").moves) == 6


@given(
    st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.booleans()), min_size=1, max_size=4),
    st.integers(1, 3000),
    st.booleans(),
)
def test_a_divided_domain_has_at_most_so_many_cells_and_no_axis_longer_than_its_side(scales, cells, nearest):
    scales = [Scale(*each) for each in scales]
    lattice = divided(scales, cells, nearest=nearest)
    least = np.prod([1 + scale.nullable for scale in scales])
    assert lattice.size <= max(cells, least) or nearest
    for axis, scale in zip(lattice.axes, scales, strict=True):
        assert axis.length - scale.nullable <= scale.values
        assert (axis.cells - 1) * axis.step <= lattice.side
        assert axis.cells == 1 or not scale.nominal


def test_the_number_of_cells_is_the_largest_or_the_nearest_there_is():
    assert divided([Scale(99), Scale(99), Scale(99)], 500).shape == (7, 7, 7)
    assert divided([Scale(99), Scale(99), Scale(99)], 500, nearest=True).shape == (8, 8, 8)
    assert divided([Scale(99), Scale(99), Scale(99)], 400, nearest=True).shape == (7, 7, 7)


def test_a_short_axis_is_as_long_as_the_others_but_not_longer():
    assert divided([Scale(20), Scale(5)], 100).axes == (Axis(20, 1), Axis(5, 4))
    assert divided([Scale(11), Scale(7)], 77).axes == (Axis(11, 1), Axis(7, 1))  # with steps of 2, 12 of 11


# --- small parts -----------------------------------------------------------------------------------------

whole = st.integers(-(2**40), 2**40)


@given(st.integers(-(2**62), 2**62), st.integers(1, 50))
def test_evenly_divided_parts_differ_by_at_most_one_and_add_up(amount, cells):
    parts = evenly(amount, cells)
    assert sum(parts.tolist()) == amount
    assert parts.max() - parts.min() <= 1


@given(st.lists(st.integers(0, 2**40), min_size=1), st.integers(0, 2**40))
def test_rescaled_counts_have_the_total_and_are_within_one_of_their_share(counts, total):
    counts = np.array(counts)
    total = total if counts.sum() else 0
    found = rescaled(counts, total)
    assert found.sum() == total
    share = counts * (total / max(1, counts.sum()))
    assert (np.abs(found - share) < 1 + 1e-9 * total).all()


@given(st.lists(st.tuples(whole, st.integers(1, 9)), min_size=1), st.integers(0, 2**40))
def test_levelled_values_have_the_total_and_fall_or_rise_together(parts, total):
    values, weights = np.array(parts).T
    found = levelled(values, weights, total)
    assert found.min() >= 0
    assert found.sum() == total
    if values.sum() >= total:
        assert (found <= np.maximum(values, 0)).all()


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=6), st.integers(0, 5))
def test_isotonic_regression_is_the_best_of_all_rising_sequences(values, high):
    from itertools import combinations_with_replacement

    found = isotonic_l1(np.array(values), 0, high)
    assert (np.diff(found, prepend=0, append=high) >= 0).all()
    rising = combinations_with_replacement(range(high + 1), len(values))
    least = min(sum(abs(a - b) for a, b in zip(each, values, strict=True)) for each in rising)
    assert np.abs(found - values).sum() == least


def test_counts_beyond_32_bits_are_exact():
    rng = np.random.default_rng(7)
    for bits in (33, 45, 55):
        nu = rng.integers(-(2**bits), 2**bits, 40)
        nu[0] += max(0, -nu.sum())
        total = int(nu.sum())
        flow = closest_by_flow(nu, total, lattice_of(40).graph(), 40)
        assert flow.distance == closest_on_a_line(nu).distance
        assert flow.counts.sum() == total
        assert flow.counts.min() >= 0


@pytest.mark.parametrize("metric", ["linf", "l1"])
def test_lattices_of_one_cell_one_value_or_only_categories_are_lattices(metric):
    assert closest(np.array([-7]), 3, Lattice((Axis(1),), 1, metric)).counts.tolist() == [3]
    assert closest(np.array([-7]), 0, Lattice((), 1, metric)).counts.tolist() == [0]
    lone = Lattice((Axis(1), Axis(3)), 3, metric)
    assert closest(np.array([1, -1, 3]), 3, lone).counts.tolist() == [0, 0, 3]
    labels = Lattice((Axis(1, apart=2),), 1, metric)
    assert closest(np.array([2, -1, 2]), 3, labels).counts.sum() == 3
    assert closest(np.array([-5, -1, -2]), 0, labels).counts.tolist() == [0, 0, 0]


# --- size, time, interruption ----------------------------------------------------------------------------


def test_a_hundred_thousand_cells_on_a_line_take_less_than_a_second():
    rng = np.random.default_rng(8)
    nu = rng.geometric(0.4, 100_000) - rng.geometric(0.4, 100_000)
    start = time.process_time()
    found = closest(nu, 100_000, lattice_of(100_000))
    assert time.process_time() - start < 1
    assert found.counts.sum() == 100_000


@pytest.mark.parametrize(("rows", "noise"), [(80_000, 1), (4000, 25)])
@pytest.mark.parametrize("shape", [(100, 100), (22, 22, 22)])
def test_ten_thousand_cells_take_less_than_predicted(shape, rows, noise):
    lattice = lattice_of(*shape)
    true, nu = noisy_clusters(lattice, rows, seed=9)
    nu = true + noise * (nu - true)
    start = time.process_time()
    closest(nu, rows, lattice)
    taken = time.process_time() - start
    seconds, size = effort(lattice)
    assert taken < seconds < 60
    assert size < 2e9


def interrupted_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    return timer


def test_ctrl_c_stops_the_solver_which_says_nothing_and_can_be_used_again(capfd):
    lattice = lattice_of(24, 24)
    _, nu = noisy_clusters(lattice, 4000, seed=10)
    distances = lattice.distances()
    timer = interrupted_after(0.7)
    with pytest.raises(KeyboardInterrupt):
        closest_by_dense_lp(nu, 4000, distances, lattice.diameter)
    timer.join()
    assert capfd.readouterr() == ("", "")
    assert closest_by_lp(nu, 4000, lattice.graph(), lattice.diameter).counts.sum() == 4000


def test_ctrl_c_is_raised_when_the_solver_has_stopped():
    class Solver:
        waits, said = 0, ""

        def startSolve(self):
            self.said += "start "

        def cancelSolve(self):
            self.said += "cancel "

        def wait(self, seconds):
            self.waits += 1
            if self.waits == 2:
                raise KeyboardInterrupt
            self.said += "wait "
            return self.waits > 3, None

    solver = Solver()
    with pytest.raises(KeyboardInterrupt):
        _run(solver)
    assert solver.said == "start wait cancel wait wait "
    assert solver.HandleKeyboardInterrupt


def test_ctrl_c_stops_the_flow():
    lattice = lattice_of(150, 150)
    nu = np.full(lattice.size, -1)
    nu[0] = 2 * lattice.size
    timer = interrupted_after(0.3)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        closest(nu, lattice.size + 1, lattice)
    timer.join()
    assert time.monotonic() - start < 20
