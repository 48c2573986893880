"""The linear programs for the closest measure, by HiGHS: the paper's dense one and one on a sparse graph.

They are the yardsticks for `transport`, which finds the same optimum faster and without tolerances.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.numeric.lattice import Graph
from dpsynth_cli.numeric.transport import Closest

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


def closest_by_dense_lp(nu: Ints, total: int, distances: Ints, diameter: int) -> Closest:
    """Algorithm 2, corrected: minimise sum rho_ij u_ij + 2 diam sum v_i subject to
    sum_j (u_ij - u_ji) + v_i + tau_i >= nu_i and sum tau_i = n.

    As printed, nothing arrives at j that left i, and the diameter is 1 (docs/privacy.md, E5). The constant
    that the paper drops is put back, so that the optimum is the distance.
    """
    m = len(nu)
    i, j = np.nonzero(~np.eye(m, dtype=bool))
    arcs = np.arange(len(i))
    one = np.arange(m)
    rows = np.concatenate([i, j, one, one, np.full(m, m)])
    columns = np.concatenate([arcs, arcs, len(i) + one, len(i) + m + one, len(i) + m + one])
    entries = np.concatenate([np.ones(len(i)), -np.ones(len(i)), np.ones(3 * m)])
    cost = np.concatenate([distances[i, j], np.full(m, 2 * diameter), np.zeros(m)])
    lower = np.append(nu, total)
    upper = np.append(np.full(m, np.inf), total)
    solution, value = _solved(cost, rows, columns, entries, lower, upper)
    distance = int(_whole(np.array(value))) - diameter * (int(nu.sum()) - total)
    return Closest(_whole(solution[-m:]), distance)


def closest_by_lp(nu: Ints, total: int, graph: Graph, diameter: int) -> Closest:
    """The same optimum on a graph whose paths are as long as distances, with one slack node at a diameter
    from every cell, which has what nu lacks in all or takes what it has too much."""
    m, slack = len(nu), graph.nodes
    one, other = np.arange(m), np.full(m, slack)
    tail = np.concatenate([graph.tail, one, other])
    head = np.concatenate([graph.head, other, one])
    cost = np.concatenate([graph.cost, np.full(2 * m, 2 * diameter), np.zeros(m)])
    arcs = np.arange(len(tail))
    rows = np.concatenate([tail, head, one])
    columns = np.concatenate([arcs, arcs, len(tail) + one])
    entries = np.concatenate([np.ones(len(tail)), -np.ones(len(tail)), np.ones(m)])
    supply = np.zeros(slack + 1)
    supply[:m], supply[slack] = nu, total - int(nu.sum())
    solution, value = _solved(cost, rows, columns, entries, supply, supply)
    return Closest(_whole(solution[-m:]), int(_whole(np.array(value / 2))))


def _solved(
    cost: Floats, rows: Ints, columns: Ints, entries: Floats, lower: Floats, upper: Floats
) -> tuple[Floats, float]:
    """Non-negative x with the least cost and lower <= A x <= upper, at a vertex: an interior point, then
    crossover. Ctrl-C stops the solver, and is raised when it has stopped."""
    import highspy
    from scipy.sparse import csc_array

    matrix = csc_array((entries, (rows, columns)), shape=(len(lower), len(cost)))
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(cost), len(lower)
    program.col_cost_ = cost.astype(np.float64)
    program.col_lower_, program.col_upper_ = np.zeros(len(cost)), np.full(len(cost), np.inf)
    program.row_lower_, program.row_upper_ = lower.astype(np.float64), upper.astype(np.float64)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    for option, value in (("solver", "ipm"), ("run_crossover", "on"), ("threads", 1)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    _run(solver)
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise ArithmeticError(f"no optimum: {solver.modelStatusToString(solver.getModelStatus())}")
    return np.array(solver.getSolution().col_value), float(solver.getInfo().objective_function_value)


def _run(solver: Any) -> None:
    solver.HandleKeyboardInterrupt = True
    solver.startSolve()
    try:
        while not solver.wait(0.05)[0]:
            pass
    except KeyboardInterrupt:
        solver.cancelSolve()
        while not solver.wait(0.05)[0]:
            pass
        raise


def _whole(values: Floats) -> Ints:
    whole = np.rint(values).astype(np.int64)
    if np.abs(values - whole).max(initial=0.0) > 1e-4:
        raise ArithmeticError("the optimum is not integral")
    return whole
