"""Online release: Y. He, R. Vershynin and Y. Zhu, "Online differentially private synthetic data generation",
IEEE Transactions on Privacy 2024. One epsilon protects each event over the whole life of a stream.

`algorithm: blocks` (default). The stream is cut at public release times. Blocks of releases (see
`schedule.py`) get a tree of noisy counts each, when they end, by the rules of pmm; an event is in
one block of each size of its epoch, and the shares of these add up to the whole. A snapshot adds up the trees
of the fewest blocks that cover everything so far. That is the paper's binary mechanism with larger branches,
for trees instead of counts, and for ever.

`algorithm: sparse`. Algorithms 10 to 12, with checks at the release times (docs/privacy.md, E17 to E19). The
counters hold raw numbers, so they are in the trusted core (`trusted/stream/counting.py` and
`dynamic_partition.py`); here is the consistency step (Algorithm 3) only.

Here everything is post-processing of noisy counts: a snapshot follows from its transcript.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.online import schedule
from dpsynth_cli.mechanisms.pmm import levels, pmm
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.numeric import consistency
from dpsynth_cli.numeric.partition import turns
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Ask, CellCounts, Cells, Floats, Ints, Model, Question, Total
from dpsynth_cli.shares import divide

FLATTEST = 4  # halvings of the tree of a block with hardly an event
FEW = 4  # splits of a level
DEEPEST = 20  # of sparse counting, which keeps counters for every node


@dataclass(frozen=True)
class Params:
    algorithm: str = parameter(
        "blocks", "noisy trees of public blocks of the stream, or the paper's sparse counting",
        choices=("blocks", "sparse"),
    )  # fmt: skip
    releases_per_doubling: int = parameter(
        8, "R, releases while the clock doubles (it counts events if arrivals are public, else pushes); with "
        "10000 each of the first 6931 pushes is one",
        low=1, high=10_000,
    )  # fmt: skip
    horizon: str = parameter("infinite", "how long the stream may go on", choices=("infinite",))
    arrivals: str = parameter(
        "private", "whether the number of rows of each push is public (replace_one only)",
        choices=("private", "public"),
    )  # fmt: skip


def partition(columns: tuple[Column, ...], depth: int) -> pmm.Tree:
    """The binary partition of Omega, columns halved in turn: that of depth r begins every deeper one."""
    sizes = [(c.size, c.nullable) for c in columns]
    return pmm.Tree(turns(sizes, depth), [Scale.even(*size) for size in sizes])


# --- blocks ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counted:
    """A block's tree: its depth r, and by level the noisy counts (None: not measured) and their variance."""

    r: int
    counts: list[Floats | None]
    variances: list[float]


def ask_block(
    ask: Ask, omega: Domain, params: Params, split: Mapping[str, float], share: Fraction
) -> Counted:
    """Measure the events of one block: their number, then pmm's levels of a tree as deep as that allows."""
    columns = omega.modelled
    if params.arrivals == "public":
        root, lone = Question("n", Total(), Fraction(0)), _lone("counts", share)
    else:
        own, rest = _split(share, (split["total"], split["counts"]))
        root, lone = _lone("total", own), _lone("counts", rest)
    (total,) = ask([root])
    n = float(total.values[0])
    epsilon = math.sqrt(2) / max(ask.sd(lone), 0.1)
    # Measured: a small block that has one level has the same noise on 16 cells as on 2, and is one of many.
    r = min(levels.deepest(columns), max(FLATTEST, levels.depth_for(epsilon, n, columns)))
    questions = _tree_questions(columns, r, lone.share, omega.neighbours)
    counts: list[Floats | None] = [None] * (r + 1)
    variances = [0.0] * (r + 1)
    for answer in [total, *ask(questions)]:
        j = (len(answer.values) - 1).bit_length()
        counts[j], variances[j] = answer.values.astype(np.float64), answer.sd**2
    return Counted(r, counts, variances)


@lru_cache(maxsize=256)  # a snapshot has many blocks, and most are asked the same
def _tree_questions(
    columns: tuple[Column, ...], r: int, share: Fraction, neighbours: str
) -> tuple[Question, ...]:
    tree = partition(columns, r)
    fractions, weights = levels.measured_levels(columns, tree.order, neighbours)
    return tuple(
        Question("counts", CellCounts(tree.cells(columns, round(fraction * r))), part)
        for fraction, part in zip(fractions, _split(share, tuple(weights)), strict=True)
    )


@lru_cache(maxsize=256)
def _lone(step: str, share: Fraction) -> Question:
    """The events, without a partition."""
    return Question(step, CellCounts(Cells(())), share)


@lru_cache(maxsize=256)
def _split(share: Fraction, weights: tuple[float, ...]) -> list[Fraction]:
    return divide(share, weights)


def add_up(blocks: Sequence[Counted], columns: tuple[Column, ...]) -> tuple[list[Floats], list[Floats]]:
    """The counts of all blocks together, level by level, and their variances.

    Each block's tree by least squares from its leaves up. A block that was not cut as deep as another is
    cut as the others are, where they have more than noise there, and else in proportion to the room.
    """
    r = max(block.r for block in blocks)
    rooms = consistency.pyramid(partition(columns, r).volumes(columns))
    solved = [consistency.combined(block.counts, block.variances, rooms[block.r]) for block in blocks]
    estimates, spreads = [], []
    shallow, doubt = np.zeros(1), np.zeros(1)  # of the blocks that end above this level
    for j in range(r + 1):
        counted, variance = np.zeros(1 << j), np.zeros(1 << j)
        for block, (estimate, spread) in zip(blocks, solved, strict=True):
            if block.r >= j:
                counted += estimate[j]
                variance += spread[j]
        if j:
            known = np.maximum(counted, 0.0).reshape(-1, 2)
            weight = 2 * np.sqrt(variance.reshape(-1, 2).sum(axis=1, keepdims=True)) + 1e-9
            room = rooms[j].reshape(-1, 2)
            even = room / np.maximum(room.sum(axis=1, keepdims=True), 1e-300)
            part = ((known + weight * even) / (known.sum(axis=1, keepdims=True) + weight)).ravel()
            shallow, doubt = np.repeat(shallow, 2) * part, np.repeat(doubt, 2) * part**2
        estimates.append(counted + shallow)
        spreads.append(variance + doubt)
        for block, (estimate, spread) in zip(blocks, solved, strict=True):
            if block.r == j:
                shallow, doubt = shallow + estimate[j], doubt + spread[j]
    return estimates, spreads


def snapshot(blocks: Sequence[Counted], omega: Domain) -> Model:
    """A synthetic table of everything so far: the trees of the blocks that cover it, made consistent."""
    columns = omega.modelled
    estimates, spreads = add_up(blocks, columns)
    tree = partition(columns, len(estimates) - 1)
    room, total = tree.volumes(columns), max(0.0, float(estimates[0][0]))
    mass = room
    if round(total):
        mass = consistency.descend(total, estimates, spreads, room, _divided)
    facts = {"depth": len(tree.order), "blocks": len(blocks)}
    return Model(round(total), pmm.points([tree], [mass], [total], columns), facts=facts)


def _divided(pair: consistency.Siblings) -> Floats:
    """As pmm divides, but as counted at the top.

    The few splits of the top levels teach pmm's rule nothing, and its prior takes a side with few rows for an
    empty one until it stands well above the noise: here that of many blocks, and many rows would move far.
    """
    return consistency.clipped(pair) if len(pair.parent) < FEW else consistency.posterior(pair)


# --- sparse counting ---------------------------------------------------------------------------------


def sparse_snapshot(n: Mapping[int, Ints], total: int | None, omega: Domain) -> Model:
    """Algorithm 12, consistency and output: n[j] are the private counts of level j.

    `total` is the public number of events; None where arrivals are private and level 0 is counted.
    """
    columns = omega.modelled
    r = max(n, default=0)
    tree = partition(columns, r)
    counts: list[Floats | None] = [n[j].astype(np.float64) if j in n else None for j in range(r + 1)]
    room = tree.volumes(columns)
    whole = max(0, int(n[0][0]) if total is None else total)
    mass = room
    if whole and r:
        estimates = consistency.as_counted(counts, room)
        mass = consistency.descend(whole, estimates, None, room, consistency.uniform)
    return Model(whole, pmm.points([tree], [mass], [float(whole)], columns), facts={"depth": len(tree.order)})


def sparse_depth(columns: tuple[Column, ...]) -> int:
    """How deep the dynamic partition may get."""
    return min(DEEPEST, levels.deepest(columns))


def sparse_shares(r: int, omega: Domain, params: Params) -> dict[int, Fraction]:
    """epsilon_{j,r}, as parts of the whole."""
    columns = omega.modelled
    return schedule.shares(r, len(columns), sparse_depth(columns), params.arrivals == "private")


def sparse_questions(r: int, omega: Domain, params: Params) -> list[Question]:
    """What the answers of a snapshot are to: the counts of every level of the partition that is there."""
    columns = omega.modelled
    shares = sparse_shares(r, omega, params)
    tree = partition(columns, max(shares, default=0))
    return [Question("counts", CellCounts(tree.cells(columns, j)), part) for j, part in shares.items()]


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    """What the first release asks: for `dpsynth check`. A stream is released by `dpsynth stream`."""
    if params.algorithm == "blocks":
        model = snapshot([ask_block(ask, omega, params, split, Fraction(1))], omega)
        sizes = "; ".join(
            f"of releases {2**L} to {2 ** (L + 1) - 1} in blocks of {', '.join(map(str, schedule.sizes(L)))}"
            for L in (3, 6, 9)
        )
        notes = (f"This is the first release. Every event costs the whole, in equal parts: {sizes}.",)
    else:
        r = (omega.rows_hint or 1).bit_length() - 1
        answers = ask(sparse_questions(r, omega, replace(params, arrivals="private")))
        levels = {(len(answer.values) - 1).bit_length(): answer.values for answer in answers}
        model = sparse_snapshot(levels, None, omega)
        notes = ("This is what an event pays; half of it goes into sparse counting, half into level ends.",)
    return Model(model.total, model.draw, notes, model.facts)


def fits(omega: Domain, params: Params) -> list[str]:
    problems = []
    if not 1 <= len(omega.columns) <= 5:
        problems.append(f"online takes 1 to 5 columns, not {len(omega.columns)}")
    if omega.strata:
        problems.append("online takes no strata: its tree has the label like any other column")
    if params.arrivals == "public" and omega.neighbours != "replace_one":
        problems.append(
            "mechanism.arrivals is public, but adding or removing a row changes how many arrive; set "
            "privacy.neighbours to replace_one, or arrivals to private"
        )
    if (params.algorithm, params.arrivals) == ("sparse", "private") and not omega.rows_hint:
        problems.append(
            "mechanism.algorithm is sparse and arrivals are private: its partition follows a public guess; "
            "set rows_hint to the number of rows that a push usually has"
        )
    return problems


MECHANISM = Mechanism(
    name="online",
    summary="snapshots of a stream for ever on one budget: noisy trees of its blocks, added up",
    suits="1 to 5 columns that arrive over time: `dpsynth stream`, not `dpsynth release`",
    citation=(
        "Y. He, R. Vershynin, Y. Zhu: Online Differentially Private Synthetic Data Generation. "
        "IEEE Transactions on Privacy 2024, Algorithms 10 to 12"
    ),
    run=run,
    params=Params,
    stages={"total": 0.02, "counts": 0.98},
    fits=fits,
    stream=True,
)
