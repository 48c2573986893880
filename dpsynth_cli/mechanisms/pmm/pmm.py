"""Private measure mechanism: Y. He, R. Vershynin and Y. Zhu, "Algorithmically effective differentially
private synthetic data", COLT 2023, Algorithms 3 and 4.

Omega is the product of the columns' codes, Omega_theta its binary partition (columns halved in turn),
n_theta the counts, r the depth, sigma_j the noise of level j, m_theta the consistent counts; all in rows.

Where this is not the printed algorithm (docs/privacy.md):
- the shares of the levels add up to the whole (E1), and the core doubles the noise under replace_one (E2);
- r follows a noisy n where n is private (E4); the upper bound belongs to the last cell (E9);
- by default only every fourth level is measured, all levels are combined by weighted least squares from the
  leaves up, and from the root down a cell is split as its counts say where they tell more than the noise,
  and in proportion to the volumes where they do not. `printed: true` is the paper's algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from dpsynth_cli.bounds import Bound, no_bound
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.pmm import guarantee
from dpsynth_cli.mechanisms.pmm.levels import DEEPEST, deepest, depth_for, measured_levels, paper_bound
from dpsynth_cli.mechanisms.pmm.quantiles import Quantiles, ask_quantiles, uniform_ranks
from dpsynth_cli.mechanisms.pmm.tails import tails
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.shared.focus import ask_scales, axis_of, surely
from dpsynth_cli.mechanisms.shared.sizes import Sizes, sizes_and_rest
from dpsynth_cli.mechanisms.shared.weights import STRUCTURE as WEIGHTS
from dpsynth_cli.mechanisms.shared.weights import faults, lengths
from dpsynth_cli.numeric import consistency
from dpsynth_cli.numeric.histogram import best_total, best_variance
from dpsynth_cli.numeric.partition import along, longest_first, turns
from dpsynth_cli.numeric.sampling import whole
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Ask, Axis, Bins, Block, CellCounts, Cells, Floats, Model, Question
from dpsynth_cli.shares import divide

BLOCK_ROWS = 2**18  # of a block


@dataclass(frozen=True)
class Params:
    depth: int | None = parameter(
        None, "r, how often Omega is halved; auto: log2 of epsilon n, and -4, -1, 2, 4, 4 by columns",
        low=1, high=DEEPEST, auto=True,
    )  # fmt: skip
    fanout: int | None = parameter(
        None, "cells of a measured level in one of the level above, a power of two; auto: 16 or 32",
        low=2, high=256, auto=True,
    )  # fmt: skip
    consistency: str = parameter(
        "wls", "how levels are made to agree: least squares, or the paper's rule, or in proportion",
        choices=("wls", "uniform", "proportional"),
    )  # fmt: skip
    levels: str = parameter("every", "measure every level of the fanout, or all", choices=("every", "all"))
    transform: str = parameter(
        "none", "copula: halve ranks instead of values, for tables judged by their marginals",
        choices=("none", "copula"),
    )  # fmt: skip
    weights: Mapping[str, float] | None = parameter(
        None, "how much columns count in W1: heavier ones are halved more often", structure=WEIGHTS
    )
    wide: str = parameter("refused", "more than 5 columns, to compare", choices=("refused", "allowed"))


@dataclass(frozen=True)
class Tree:
    """One class's partition: which column each level halves, and how each column is cut."""

    order: tuple[int, ...]
    scales: list[Scale]
    quantiles: list[Quantiles] | None = None

    def cells(self, columns: tuple[Column, ...], level: int) -> Cells:
        order = self.order[:level]
        return Cells(tuple(self._axis(a, column, order.count(a)) for a, column in enumerate(columns)), order)

    def _axis(self, a: int, column: Column, bits: int) -> Axis:
        if self.quantiles is None:
            return axis_of(column, self.scales[a], bits)
        return Bins(column.name, self.quantiles[a].edges(bits))

    def volumes(self, columns: tuple[Column, ...]) -> Floats:
        """The part of Omega in each leaf: of its scales, or of its private product measure."""
        volume = np.ones(1 << len(self.order))
        for a, column in enumerate(columns):
            bits = self.order.count(a)
            parts = (
                self.scales[a].room(bits) / column.codes
                if self.quantiles is None
                else self.quantiles[a].masses(bits)
            )
            even = (parts == parts[0]).all()
            volume *= parts[0] if even else parts[along(self.order, a)]
        return volume


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    columns = omega.modelled
    sizes, rest = sizes_and_rest(ask, omega, split)
    quantiles: list[list[Quantiles]] | None = None
    if params.transform == "copula":
        own, rest = divide(rest, [split["marginals"], split["counts"]])
        quantiles = ask_quantiles(ask, omega, sizes, own)

    # Where rows are in loose bounds; the paper's own algorithm takes bounds as they are.
    scales = [Scale.even(column.size, column.nullable) for column in columns]
    if quantiles is None and params.consistency == "wls":
        even = divide(rest, [1.0] * len(columns))
        scales, rest = ask_scales(ask, "counts", columns, even, surely(sizes))

    # The partition: r = log2(epsilon n), a little less, in each class.
    sides = [(c.size, c.nullable) for c in columns]
    long = lengths(params.weights, columns)
    trees = [
        Tree(
            longest_first(sides, long, depth) if params.weights else turns(sides, depth),
            scales,
            quantiles[k] if quantiles else None,
        )
        for k, depth in enumerate(_depths(ask, omega, params, sizes, rest, scales))
    ]

    # Counts: n_theta + noise on the measured levels, with the shares of eq. 3.7 where all are.
    deep = max((tree.order for tree in trees), key=len)
    fractions, weights = measured_levels(
        columns, deep, omega.neighbours, params.levels == "all", params.fanout
    )
    questions = []
    for fraction, share in zip(fractions, divide(rest, weights), strict=True):
        cells = tuple(tree.cells(columns, round(fraction * len(tree.order))) for tree in trees)
        counts = CellCounts(cells if omega.strata else cells[0])
        questions.append(Question("counts", counts, share, omega.strata))
    answers = ask(questions)

    # Consistency: m_theta, children add up to their parent (Algorithm 3, or least squares).
    masses, totals, counted = [], [], []
    for k, tree in enumerate(trees):
        r = len(tree.order)
        measured = [
            (round(fraction * r), answer.blocks[k], answer.sd**2)
            for fraction, answer in zip(fractions, answers, strict=True)
        ]
        asked = [(float(sizes.rows[k]), sizes.variance)] if math.isfinite(sizes.variance) else []
        sums = [(float(counts.sum()), variance * len(counts)) for _, counts, variance in measured]
        totals.append(max(0.0, best_total(asked + sums)))
        room = np.where(tails(tree.order, tree.scales, measured), 0.0, tree.volumes(columns))
        by_level = _by_level(measured)
        masses.append(_consistent(*by_level, room, totals[k], params.consistency))
        doubt = None if omega.strata else math.sqrt(best_variance([v for _, v in asked + sums]))
        counted.append(
            guarantee.Counted(tree.order, tree.scales, *by_level, masses[k], totals[k], doubt, long)
        )

    # Synthetic data: m_theta points in each leaf, uniform inside.
    draw = points(trees, masses, totals, columns, omega.strata)
    facts = {"depth": [len(tree.order) for tree in trees], "measured_levels": len(fractions)}
    known = no_bound if quantiles else partial(guarantee.expected_w1, counted, columns)
    return Model(round(sum(totals)), draw, facts=facts, bound=known)


def points(
    trees: Sequence[Tree],
    masses: Sequence[Floats],
    totals: Sequence[float],
    columns: tuple[Column, ...],
    strata: str | None = None,
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    """Rows in the leaves of each class's tree, as many in each as its mass says, uniform inside."""

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        # The leaves in order; every block takes each so-many-th of them, so that all blocks look alike, and
        # is mixed at last, in the cache.
        counts = [
            whole(mass, count, rng)
            for mass, count in zip(masses, whole(np.array(totals), rows, rng), strict=True)
        ]
        leaves = np.concatenate([np.repeat(np.arange(len(part), dtype=np.uint32), part) for part in counts])
        ends = np.cumsum([0] + [int(part.sum()) for part in counts])
        picks = [[_inside(tree, a, column) for tree in trees] for a, column in enumerate(columns)]
        blocks = -(-rows // BLOCK_ROWS)
        for b in range(blocks):
            own = leaves[b::blocks].astype(np.intp)
            parts = np.split(own, [-(-(end - b) // blocks) for end in ends[1:-1]])
            mixed = rng.permutation(len(own))
            block = {
                column.name: np.concatenate(
                    [pick(part, rng) for pick, part in zip(picks[a], parts, strict=True)]
                ).take(mixed)
                for a, column in enumerate(columns)
            }
            if strata:
                block[strata] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[mixed]
            yield block

    return draw


def _by_level(measured: list[tuple[int, np.ndarray, float]]) -> tuple[list[Floats | None], list[float]]:
    """Counts and variances of each level; one that was measured twice (in a shallow class) is averaged."""
    depth = measured[-1][0]
    counts: list[Floats | None] = [None] * (depth + 1)
    variances = [0.0] * (depth + 1)
    for level, answer, variance in measured:
        before, known = counts[level], variances[level]
        if before is None:
            counts[level], variances[level] = answer.astype(np.float64), variance
        else:
            weight = known / max(known + variance, 1e-300)
            counts[level], variances[level] = before + weight * (answer - before), known * (1 - weight)
    return counts, variances


def _consistent(
    counts: Sequence[Floats | None], variances: Sequence[float], room: Floats, total: float, rule: str
) -> Floats:
    """The masses of the leaves."""
    if round(total) == 0:
        return room  # nobody there: rows that are asked for all the same go where rows can be
    if rule == "wls":
        estimates, spread = consistency.combined(counts, variances, room)
        return consistency.descend(total, estimates, spread, room, consistency.posterior)
    divide = consistency.uniform if rule == "uniform" else consistency.proportional
    return consistency.descend(round(total), consistency.as_counted(counts, room), None, room, divide)


def _inside(tree: Tree, a: int, column: Column) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    """For leaves of a tree, codes of one column inside them."""
    cells = along(tree.order, a)
    bits, scale = tree.order.count(a), tree.scales[a]
    first, width = scale.ranges(bits)

    def codes(leaf: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        cell = cells.take(leaf)
        if tree.quantiles is not None:
            return tree.quantiles[a].codes(uniform_ranks(cell, rng))
        if not scale.plain:
            return scale.draw(cell, bits, rng)
        step = rng.random(len(cell))
        step *= width.take(cell)
        code = step.astype(np.int64)
        code += first.take(cell)
        return code

    return codes


def _depths(
    ask: Ask, omega: Domain, params: Params, sizes: Sizes, rest: Fraction, scales: Sequence[Scale]
) -> list[int]:
    lone = Question("counts", CellCounts(Cells(())), rest, omega.strata)
    epsilon = math.sqrt(2) / max(ask.sd(lone), 1e-9)
    columns, rule = omega.modelled, params.consistency
    more = sum(not scale.plain for scale in scales)  # half of a scale is for what is outside of its focus
    chosen = [params.depth or depth_for(epsilon, rows, columns, rule) + more for rows in sizes.rows]
    return [min(deepest(columns), depth) for depth in chosen]


def bound(
    omega: Domain, params: Params, split: Mapping[str, float], epsilon: float, n: float
) -> Bound | None:
    """The paper's bound for all columns together; it does not speak of strata or copulas."""
    if omega.strata or params.transform != "none" or params.weights:
        return None
    return Bound(paper_bound(omega.columns, epsilon, n, omega.neighbours), guarantee.PRINTED)


def fits(omega: Domain, params: Params) -> list[str]:
    problems = []
    count = len(omega.modelled)
    if not 1 <= count <= 5 and (params.wide == "refused" or not count):
        more = "; for more, use another mechanism, or state wide: allowed to compare" * (count > 5)
        problems.append(f"pmm takes 1 to 5 columns besides the strata, not {count}{more}")
    if params.fanout and params.fanout & (params.fanout - 1):
        problems.append(f"mechanism.fanout is {params.fanout}; it must be a power of two")
    return problems + faults(params.weights, omega.modelled)


MECHANISM = Mechanism(
    name="pmm",
    summary="a tree of counts over all columns at once, optimal in Wasserstein distance",
    suits="1 to 5 columns, mostly numeric: places, times, measurements",
    citation=(
        "Y. He, R. Vershynin, Y. Zhu: Algorithmically Effective Differentially Private Synthetic Data. "
        "COLT 2023, Algorithms 3 and 4"
    ),
    run=run,
    params=Params,
    stages={"total": 0.02, "marginals": 0.4, "counts": 0.6},
    fits=fits,
    printed={"consistency": "uniform", "levels": "all"},
    bound=bound,
)
