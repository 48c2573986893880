"""Online release: Y. He, R. Vershynin and Y. Zhu, "Online differentially private synthetic data generation",
IEEE Transactions on Privacy 2024. One epsilon protects each event over the whole life of a stream.

`algorithm: blocks` (default). At public release times the counts of everything so far are measured, on
levels of the paper's tree, as running sums: with a delta by a factorisation of the counting matrix with
Gaussian noise, else by blocks of releases with Laplace noise (`trusted/stream/factorisation.py`). Both go
on for ever. The tree is as deep as the events so far allow, and a snapshot is made of its levels by the
rules of pmm.

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
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsynth_cli.bounds import Bound, no_bound
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms.online import guarantee, schedule
from dpsynth_cli.mechanisms.online.fits import fits
from dpsynth_cli.mechanisms.pmm import levels, pmm
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.numeric import consistency
from dpsynth_cli.numeric.partition import turns
from dpsynth_cli.numeric.scale import Scale
from dpsynth_cli.questions import Answer, Ask, CellCounts, Cells, Floats, Ints, Model, Question, Total
from dpsynth_cli.shares import divide

if TYPE_CHECKING:
    from dpsynth_cli.mechanisms.online.tables import Plan

FLATTEST = 4  # halvings of the tree of a stream with hardly an event
SLACK = 2  # a level may be so much deeper than the events that are new would have it, and has a share
FEW = 4  # splits of a level
DEEPEST = 20  # of sparse counting, which keeps counters for every node


@dataclass(frozen=True)
class Params:
    algorithm: str = parameter(
        "blocks", "running counts of a tree (up to five columns) or of the tables of `joint` (any number), "
        "or the paper's sparse counting",
        choices=("blocks", "joint", "sparse"),
    )  # fmt: skip
    releases_per_doubling: int = parameter(
        8, "R, releases while the clock doubles (it counts events if arrivals are public, else pushes); with "
        "10000 each of the first 6931 pushes is one",
        low=1, high=10_000,
    )  # fmt: skip
    horizon: int | None = parameter(
        None, "where the stream ends, by its clock (blocks only): less noise, and no push beyond",
        low=1, high=2**40, auto="infinite",
    )  # fmt: skip
    arrivals: str = parameter(
        "private", "whether the number of rows of each push is public (replace_one only)",
        choices=("private", "public"),
    )  # fmt: skip


def partition(columns: tuple[Column, ...], depth: int) -> pmm.Tree:
    """The binary partition of Omega, columns halved in turn: that of depth r begins every deeper one."""
    sizes = [(c.size, c.nullable) for c in columns]
    return pmm.Tree(turns(sizes, depth), [Scale.even(*size) for size in sizes])


# --- running counts ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counted:
    """A tree of everything so far: its depth r, and by level the noisy counts (None: not measured) and their
    variance."""

    r: int
    counts: list[Floats | None]
    variances: list[float]


def ask_release(
    ask: Ask, omega: Domain, params: Params, split: Mapping[str, float], at_least: int = 0, before: int = 0
) -> Counted:
    """Measure a release: the number of events so far, then levels of a tree as deep as that allows, and at
    least as deep as before. Where `before` of the events are not measured now, a level that is too deep for
    the others has no share.
    """
    columns = omega.modelled
    if params.arrivals == "public":
        root, rest = Question("n", Total(), Fraction(0)), Fraction(1)
    elif levels.deepest(columns):
        own, rest = divide(Fraction(1), (split["total"], split["counts"]))
        root = Question("total", CellCounts(Cells(())), own)
    else:
        root, rest = Question("total", CellCounts(Cells(())), Fraction(1)), Fraction(1)
    (total,) = ask([root])
    if not levels.deepest(columns):  # one cell
        return counted_of([total])
    n = float(total.values[0])
    epsilon = math.sqrt(2) / max(ask.sd(Question("counts", CellCounts(Cells(())), rest)), 0.1)

    def deep(rows: float) -> int:
        return min(levels.deepest(columns), max(FLATTEST, levels.depth_for(epsilon, rows, columns)))

    r = max(min(at_least, levels.deepest(columns)), deep(n))
    new = deep(abs(n - before))  # rows may also be taken away
    return counted_of([total, *ask(_tree_questions(columns, r, rest, r if r > at_least else new))])


def counted_of(answers: Sequence[Answer]) -> Counted:
    """The answers by their levels."""
    measured = {(len(answer.values) - 1).bit_length(): answer for answer in answers}
    r = max(measured)
    counts = [measured[j].values.astype(np.float64) if j in measured else None for j in range(r + 1)]
    return Counted(r, counts, [measured[j].sd ** 2 if j in measured else 0.0 for j in range(r + 1)])


def depth_of(answers: Sequence[tuple[Any, Answer]]) -> int:
    """The depth of the tree that was measured."""
    return max(((len(answer.values) - 1).bit_length() for _, answer in answers), default=0)


@lru_cache(maxsize=64)
def _tree_questions(columns: tuple[Column, ...], r: int, share: Fraction, new: int) -> tuple[Question, ...]:
    """As many levels as pmm measures, with its weights. All but the leaves stay where they are as the tree
    gets deeper: what is known of them goes on. Those that are too deep for a tree of depth `new` have no
    share.
    """
    tree = partition(columns, r)
    step = 4 if len(columns) < 3 else 5
    measured = [step * (i + 1) for i in range(max(1, round(r / step)) - 1)] + [r]
    told = max(1, sum(j <= new + SLACK for j in measured))
    ratio = 0.8 if len(columns) == 1 else 1.0
    shares = divide(share, [ratio**i for i in range(told)]) + [Fraction(0)] * (len(measured) - told)
    return tuple(
        Question("counts", CellCounts(tree.cells(columns, j)), part)
        for j, part in zip(measured, shares, strict=True)
    )


def snapshot(counted: Counted, omega: Domain, seen: Mapping[int, float] | None = None) -> Model:
    """A synthetic table of everything so far: the levels of the tree made consistent. `seen`: how many events
    were seen how deep when they came, if it is known."""
    columns = omega.modelled
    tree = partition(columns, counted.r)
    room = tree.volumes(columns)
    estimates, spreads = consistency.combined(counted.counts, counted.variances, room)
    total = max(0.0, float(estimates[0][0]))
    mass = room
    if round(total):
        mass = consistency.descend(total, estimates, spreads, room, _divided)
    draw = pmm.points([tree], [mass], [total], columns)
    noise = {
        str(j): round(v**0.5, 3) for j, v in enumerate(counted.variances) if counted.counts[j] is not None
    }
    facts = {"depth": len(tree.order), "noise_by_level": noise}
    known = partial(
        guarantee.running_by_answers, columns, counted.counts, counted.variances, mass, total, seen
    )
    return Model(round(total), draw, facts=facts, bound=known)


def _divided(pair: consistency.Siblings) -> Floats:
    """As pmm divides, but as counted at the top.

    The few splits of the top levels teach pmm's rule nothing, and its prior takes a side with few rows for an
    empty one until it stands well above the noise: here that of many blocks, and many rows would move far.
    """
    return consistency.clipped(pair) if len(pair.parent) < FEW else consistency.posterior(pair)


# --- tables of mixed columns ---------------------------------------------------------------------------


def epoch_plan(omega: Domain, split: Mapping[str, float]) -> Plan:
    """What is public of an epoch of `algorithm: joint`."""
    from dpsynth_cli.mechanisms.online.tables import plan_for  # takes long to import

    return plan_for(omega, split["total"], split["counts"])


# --- sparse counting ---------------------------------------------------------------------------------


def sparse_snapshot(
    n: Mapping[int, Ints], total: int | None, omega: Domain, params: Params, epsilon: Fraction
) -> Model:
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
    known = no_bound
    if total is not None and whole:
        errors = _node_errors(whole, omega, params, epsilon)
        known = partial(guarantee.sparse_by_answers, columns, whole, errors, n, mass)
    draw = pmm.points([tree], [mass], [float(whole)], columns)
    return Model(whole, draw, facts={"depth": len(tree.order)}, bound=known)


def _node_errors(t: int, omega: Domain, params: Params, epsilon: Fraction) -> dict[int, guarantee.NodeError]:
    columns, replaced = omega.modelled, omega.neighbours == "replace_one"
    return guarantee.node_errors(
        t, len(columns), sparse_depth(columns), epsilon, replaced, params.releases_per_doubling
    )


def bound(
    omega: Domain, params: Params, split: Mapping[str, float], epsilon: float, n: float
) -> Bound | None:
    """Theorem 5.1, of sparse counting after n events where their number is public."""
    if params.algorithm != "sparse" or params.arrivals != "public":
        return None
    errors = _node_errors(round(n), omega, params, Fraction(str(epsilon)))
    return guarantee.sparse_theorem(omega.modelled, round(n), errors)


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
    if params.algorithm == "joint":
        from dpsynth_cli.mechanisms.online import tables

        return tables.first_release(ask, epoch_plan(omega, split))
    if params.algorithm == "blocks":
        model = snapshot(ask_release(ask, omega, params, split), omega, {})  # nothing came before
        notes = (
            "This is the first release. Every event costs the whole, once for all releases; later releases "
            "have more noise.",
        )
    else:
        r = (omega.rows_hint or 1).bit_length() - 1
        answers = ask(sparse_questions(r, omega, replace(params, arrivals="private")))
        levels = {(len(answer.values) - 1).bit_length(): answer.values for answer in answers}
        model = sparse_snapshot(levels, None, omega, params, Fraction(1))
        notes = ("This is what an event pays; half of it goes into sparse counting, half into level ends.",)
    return replace(model, notes=notes)


MECHANISM = Mechanism(
    name="online",
    summary="snapshots of a stream for ever on one budget: running counts of a tree, or of tables",
    suits=(
        "a table that grows: `dpsynth stream`, not `dpsynth release`; 1 to 5 columns by a tree, more with "
        "`algorithm: joint`"
    ),
    citation=(
        "Y. He, R. Vershynin, Y. Zhu: Online Differentially Private Synthetic Data Generation. "
        "IEEE Transactions on Privacy 2024, Algorithms 10 to 12"
    ),
    run=run,
    params=Params,
    stages={"total": 0.02, "counts": 0.98},
    fits=fits,
    printed={"algorithm": "sparse"},
    bound=bound,
    stream=True,
)
