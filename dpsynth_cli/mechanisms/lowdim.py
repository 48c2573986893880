"""Private PCA, then a measure in the subspace: Y. He, T. Strohmer, R. Vershynin and Y. Zhu, "Differentially
private low-dimensional synthetic data from high-dimensional datasets" (2023), Algorithms 1-5.

Rows X are y in [-1/2, 1/2]^d, M is their covariance (inside classes), tau the noise of its entries, V its
first d' eigenvectors, Lambda their eigenvalues, X' the synthetic points in the subspace.

Where this is not the printed algorithm (privacy.md):
- every question is priced under the spec's one relation, and n is private where that says so (E10);
- M and the mean come from the sums of y and y y^T about the public centre: 24 times less noise (E11), and
  the mean's noise is that of d columns (E13);
- X'' = X' + mean with the synthetic X' (E12), projected on the box and on the declared grid;
- sums are asked for by class, and the classes' sizes are paid for (E14);
- d' counts the eigenvalues above the noise edge 2 tau sqrt(d), shrunk; it may be 0 (E15);
- the ball of radius R is a box of four standard deviations inside the cube's image (E16; `inside.py`).

Beyond the paper: `inside: gaussian` is N(mean, V Lambda V^T + D), D what the columns have left; with classes,
means and covariances learn from each other (`numeric/classes.py`). Missing values are at the centre in all
sums; their rates are asked for, undone in the sums, and drawn independently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli import budget
from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.inside import Box, Measure, box, measures
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.sizes import Sizes, sizes_and_rest
from dpsynth_cli.numeric.classes import Spread, Sums, centred, fitted, fitted_alone
from dpsynth_cli.numeric.projection import finely, normals, rounded, to_codes
from dpsynth_cli.numeric.sampling import portions, shuffled, whole
from dpsynth_cli.numeric.spectrum import mirrored, noise_edge
from dpsynth_cli.questions import (
    Answer,
    Ask,
    Bins,
    Block,
    CellCounts,
    Cells,
    Floats,
    Model,
    Moments,
    Question,
)

BITS = 14  # of a coordinate in the sums; fewer where the noise would not fit
POOLED = (8, 7)  # how the share of the moments is divided: all rows together, and each class
WORTH = {False: 1.0, True: 0.05}  # by strata: the largest noise edge worth paying for, in d/12 (uniform rows)
LARGEST = 2**27  # integers of an answer
ROWS, NUMBERS = 2**17, 2**23  # of a block


@dataclass(frozen=True)
class Params:
    dimension: int | None = parameter(
        None,
        "axes of the subspace; auto: those that stand above the noise; 0: means only",
        low=0,
        high=10_000,
        auto=True,
    )
    inside: str = parameter(
        "gaussian", "what is fitted inside the subspace", choices=("gaussian", "pmm", "psmm")
    )
    basis: str = parameter(
        "pooled", "axes of all classes together, or of each by itself", choices=("pooled", "per_class")
    )
    clip: float | None = parameter(
        None,
        "public bound on a row's distance from the centre, half of every column's range being 1; auto: none",
        low=0.01,
        high=1000,
        whole=False,
        auto=True,
    )


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    # n, by class. Sums are divided by it, so a public guess would not do.
    sizes, rest = sizes_and_rest(ask, replace(omega, rows_hint=None), split)
    rows = np.maximum(1.0, sizes.rows)
    plan = _plan(ask, omega, params, split, rest, rows)

    # Sums of y and y y^T, by class or of all rows, and how many values are missing (Algorithm 2; E11, E13).
    answers = dict(zip(plan.asked, ask(list(plan.asked.values())), strict=True))
    present = _present(omega, answers, float(rows.sum()))
    sums = _sums(plan, answers, sizes, rows, present)

    # The subspace: eigenvectors of M above the noise edge (Algorithm 3; E15).
    found: list[Spread] = []
    if "moments" in answers:
        centres, found = fitted(sums, params.dimension)
    elif "class moments" in answers:
        centres, found = fitted_alone(sums, params.dimension)
    else:
        centres = centred(sums)

    # The measure inside it (Algorithms 4 and 5), or more of the mean if there is no subspace.
    if plan.counts is not None and any(len(spread.found) for spread in found):
        boxes = [box(s.found, centre, params.dimension) for s, centre in zip(found, centres, strict=True)]
        inside = measures(ask, omega, params.inside, plan.counts, sizes, boxes, BITS)
        pieces = [_counted(*each) for each in zip(inside, centres, found, boxes, strict=True)]
    else:
        if plan.counts is not None:
            again = replace(plan.asked["mean"], step="mean again", share=plan.counts)
            centres = _centres(sums, ask([again])[0], plan, present)
        spreads: Sequence[Spread | None] = found or [None] * len(rows)
        pieces = [_normal(*each) for each in zip(sizes.rows.tolist(), centres, spreads, strict=True)]

    # X'' = X' + mean, metric projection (Algorithm 1, E12).
    notes, facts = _account(plan, found, params)
    return Model(sizes.total, _drawing(omega, pieces, 1 - present), notes, facts)


def fits(omega: Domain, params: Params) -> list[str]:
    """Why these columns cannot be released so."""
    problems = []
    nominal = [column.name for column in omega.modelled if column.type == "nominal"]
    if nominal:
        problems.append(
            f"lowdim takes numbers, dates, ordinals and booleans; nominal are {', '.join(nominal)}: "
            "name one as mechanism.strata, leave the others out, or use marginals"
        )
    d = len(omega.modelled)
    if params.dimension is not None and params.dimension > d:
        problems.append(f"mechanism.dimension is {params.dimension}; there are only {d} columns")
    if params.dimension != 0 and omega.classes * d * (d + 1) // 2 > LARGEST:
        problems.append(
            f"lowdim would need {d * (d + 1) // 2:,} products in each of {omega.classes} classes; "
            "release fewer columns, or set mechanism.dimension to 0"
        )
    return problems


# --- what is asked ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The questions of one round by their steps, the share left for counts, and the edge to expect."""

    asked: dict[str, Question]
    counts: Fraction | None
    edge: float | None
    dropped: bool = field(default=False)


def _plan(
    ask: Ask, omega: Domain, params: Params, split: Mapping[str, float], rest: Fraction, rows: Floats
) -> Plan:
    """Shares by the split; what is not asked for is spent on the rest.

    A public rule: moments are left out where even the noise edge would be too large for anything to stand
    above it. Without classes means alone are little, so that is never unless hopeless.
    """
    by, d = omega.strata, len(omega.modelled)
    alone = params.basis == "per_class" and by is not None
    stages = ["mean"]
    if params.dimension != 0:
        stages += ["moments"] if params.inside == "gaussian" else ["moments", "counts"]
    shares = dict(zip(stages, budget.split(rest, [split[stage] for stage in stages]), strict=True))
    asked = {}
    edge = None
    if "moments" in shares:
        own = params.inside == "gaussian" and by is not None and not alone
        parts = budget.split(shares["moments"], POOLED) if own else [shares["moments"]]
        if not alone:
            asked["moments"] = _moments(ask, omega, params, "moments", 2, parts[0], None)
        if alone or own:
            asked["class moments"] = _moments(ask, omega, params, "class moments", 2, parts[-1], by)
        first = next(iter(asked.values()))
        tau = ask.sd(first) / _unit(first) ** 2 / float(rows.mean() if alone else rows.sum())
        edge = noise_edge(tau, d)
        if params.dimension is None and edge > WORTH[by is not None] * d / 12:
            plain = replace(params, dimension=0)
            return replace(_plan(ask, omega, plain, split, rest, rows), edge=edge, dropped=True)
    nullable = [column for column in omega.modelled if column.nullable]
    mean, *missing = budget.split(shares["mean"], [4 * d] + [1] * len(nullable))
    asked["mean"] = _moments(ask, omega, params, "mean", 1, mean, by)
    for column, share in zip(nullable, missing, strict=True):
        cells = Cells((Bins(column.name, (0, column.size, column.codes)),))
        asked[f"missing {column.name}"] = Question(f"missing {column.name}", CellCounts(cells), share)
    return Plan(asked, shares.get("counts"), edge)


def _moments(
    ask: Ask, omega: Domain, params: Params, step: str, degree: int, share: Fraction, by: str | None
) -> Question:
    """Sums of coordinates or products, with as many bits as their noise leaves room for in 64."""
    names = tuple(column.name for column in omega.modelled)
    clip = None if params.clip is None else Fraction(str(params.clip))
    for bits in range(BITS, 2, -2):
        question = Question(step, Moments(names, bits, degree, clip), share, by)
        try:
            ask.sd(question)
        except UsageError:
            continue
        break
    return question


def _unit(question: Question) -> int:
    """z = unit y."""
    assert isinstance(question.statistic, Moments)
    return int(2 * (2**question.statistic.bits - 1))


# --- what the answers say ---------------------------------------------------------------------------------


def _present(omega: Domain, answers: Mapping[str, Answer], n: float) -> Floats:
    """The part of each column that is not missing, by private estimate."""
    rates = [float(answers[f"missing {c.name}"].values[1]) / n if c.nullable else 0.0 for c in omega.modelled]
    return 1 - np.clip(rates, 0.0, 1.0)


def _sums(plan: Plan, answers: Mapping[str, Answer], sizes: Sizes, rows: Floats, present: Floats) -> Sums:
    """The answers in units of y, as if nothing were missing."""
    d, there = len(present), np.maximum(present, 0.05)
    both = np.outer(there, there)
    np.fill_diagonal(both, there)

    def second(step: str) -> tuple[list[Floats], float]:
        if step not in answers:
            return [np.zeros((d, d))], 0.0
        answer, question = answers[step], plan.asked[step]
        assert isinstance(question.statistic, Moments)
        # Where rows are clipped, Gaussian noise has half the variance above the diagonal (recipe F).
        half = answer.noise == "discrete_gaussian" and question.statistic.clip is not None
        unit = _unit(question) ** 2
        noise = (answer.sd / unit) ** 2 / (2 if half else 1)
        return [mirrored(block / unit, d) / both for block in answer.blocks], noise

    mean, unit = answers["mean"], _unit(plan.asked["mean"])
    of_all, noise = second("moments")
    of_class, class_noise = second("class moments")
    return Sums(
        rows,
        sizes.variance,
        np.stack(mean.blocks) / unit / there,
        (mean.sd / unit) ** 2,
        of_all[0],
        noise,
        np.stack(of_class) if "class moments" in answers else None,
        class_noise,
    )


def _centres(sums: Sums, again: Answer, plan: Plan, present: Floats) -> Floats:
    """The means from two answers, by their noise."""
    unit = _unit(plan.asked["mean"])
    second, noise = np.stack(again.blocks) / unit / np.maximum(present, 0.05), (again.sd / unit) ** 2
    trust = sums.first_noise / (sums.first_noise + noise)
    first = sums.first + trust * (second - sums.first)
    return centred(replace(sums, first=first, first_noise=trust * noise))


# --- the model --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Piece:
    """A class: y = mean + V x' + F g + s e, with x' uniform in a cell of the measure and g, e normal."""

    measure: Measure
    mean: Floats
    vectors: Floats
    factor: Floats
    sd: Floats


def _normal(n: float, mean: Floats, spread: Spread | None) -> Piece:
    one = Measure(np.array([n]), np.zeros((1, 0)), np.zeros(0))
    none = np.zeros((len(mean), 0))
    if spread is None:
        return Piece(one, rounded(mean), none, none, np.zeros(len(mean)))
    return Piece(one, rounded(mean), none, rounded(spread.factor), rounded(np.sqrt(spread.left)))


def _counted(inside: Measure, mean: Floats, spread: Spread, box: Box) -> Piece:
    """Counted along the first axes, normal along the others; what is left is left out, as in the paper."""
    found, vectors, c = spread.found, box.vectors, len(box.widths)
    factor = found.vectors[:, c:] * np.sqrt(found.values[c:])
    beside = mean - vectors @ (mean @ vectors)
    return Piece(inside, rounded(beside), vectors, rounded(factor), np.zeros(len(mean)))


def _drawing(
    omega: Domain, pieces: Sequence[Piece], missing: Floats
) -> Callable[[int, np.random.Generator], Iterator[Block]]:
    mass = np.concatenate([piece.measure.mass for piece in pieces])
    mass = mass if mass.any() else np.ones(len(mass))
    start = np.cumsum([0] + [len(piece.measure.mass) for piece in pieces])
    owner = np.repeat(np.arange(len(pieces)), np.diff(start))
    d, block = len(omega.modelled), max(1, min(ROWS, NUMBERS // len(omega.modelled)))

    def points(piece: Piece, cell: np.ndarray, rng: np.random.Generator) -> Floats:
        y = piece.factor @ normals((piece.factor.shape[1], len(cell)), rng)
        y += piece.mean[:, None]
        if piece.vectors.shape[1]:
            inside = rng.random((len(cell), len(piece.measure.width)))
            y += piece.vectors @ finely(piece.measure.corner[cell] + piece.measure.width * inside).T
        if piece.sd.any():
            y += normals((d, len(cell)), rng, piece.sd)
        return y

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        counts = whole(mass, rows, rng)
        for part in portions(counts, rng, block) if rows else ():
            cell = shuffled(part, rng)
            label = owner[cell]
            y = np.empty((d, len(cell)))
            for k, piece in enumerate(pieces):
                own = np.flatnonzero(label == k) if len(pieces) > 1 else slice(None)
                y[:, own] = points(piece, cell[own] - start[k], rng)
            codes = to_codes(y, [column.size for column in omega.modelled], rng)
            for column, code, rate in zip(omega.modelled, codes, missing, strict=True):
                if rate > 0:
                    code[rng.random(len(code)) < rate] = column.size
            made = dict(zip([column.name for column in omega.modelled], codes, strict=True))
            yield {c.name: label if c.name == omega.strata else made[c.name] for c in omega}

    return draw


def _account(plan: Plan, spreads: Sequence[Spread], params: Params) -> tuple[tuple[str, ...], dict[str, Any]]:
    """What was chosen and why, from private numbers and public rules only."""
    facts: dict[str, Any] = {"dimension": 0, "inside": params.inside if spreads else "means only"}
    if plan.edge is not None:
        facts["noise_edge_expected"] = plan.edge
    if plan.dropped:
        return (
            f"Means only: an axis would need a variance above {plan.edge:.2g} (the box has sides 1) to stand "
            "above the noise of second moments, so their share was spent on the means.",
        ), facts
    if not spreads:
        return ("Means only, as the spec says: rows of a class differ by rounding alone.",), facts
    found = [len(spread.found) for spread in spreads]
    explained = [float(spread.explained) for spread in spreads]
    facts["dimension"] = found[0] if len(set(found)) == 1 else found
    facts["noise_edge"] = max(float(spread.found.edge) for spread in spreads)
    facts["explained_variance"] = explained[0] if len(set(explained)) == 1 else explained
    if not any(found):
        rest = "the columns vary independently" if any(s.left.any() for s in spreads) else "means only"
        return (f"No axis stands above the noise of the second moments: {rest}.",), facts
    why = "as the spec says" if params.dimension is not None else "the axes that stand above the noise"
    many = f"{found[0]}" if len(set(found)) == 1 else f"{min(found)} to {max(found)}"
    return (
        f"The subspace has dimension {many}: {why}. By private estimates it has "
        f"{100 * float(np.mean(explained)):.0f} % of the variance.",
    ), facts


MECHANISM = Mechanism(
    name="lowdim",
    summary="private PCA, then a normal or counted measure in the subspace",
    suits="wide tables of numbers (tens to hundreds of columns), with strata if there is a label",
    citation=(
        "Y. He, T. Strohmer, R. Vershynin, Y. Zhu: Differentially Private Low-Dimensional Synthetic Data "
        "from High-Dimensional Datasets (2023), Algorithms 1-5"
    ),
    run=run,
    params=Params,
    stages={"total": 0.05, "mean": 0.16, "moments": 0.39, "counts": 0.4},
    fits=fits,
)
