"""Private PCA, then a measure in the subspace: Y. He, T. Strohmer, R. Vershynin and Y. Zhu, "Differentially
private low-dimensional synthetic data from high-dimensional datasets" (2023), Algorithms 1-5.

Rows X are y in [-1/2, 1/2]^d, M is their covariance (inside classes), tau the noise of its entries, V its
first d' eigenvectors, Lambda their eigenvalues, X' the synthetic points in the subspace.

Where this is not the printed algorithm (docs/privacy.md):
- every question is priced under the spec's one relation, and n is private where that says so (E10);
- M and the mean come from the sums of y and y y^T about the public centre: 24 times less noise (E11), and
  the mean's noise is that of d columns (E13);
- X'' = X' + mean with the synthetic X' (E12), projected on the box and on the declared grid;
- sums are asked for by class, and the classes' sizes are paid for (E14);
- with `inside: gaussian` sums are about private means, of rows that are pulled in (`near.py`);
- d' counts the eigenvalues above the noise edge 2 tau sqrt(d), shrunk; it may be 0 (E15);
- the ball of radius R is a box of four standard deviations inside the cube's image (E16; `inside.py`).

Beyond the paper: `inside: gaussian` is N(mean, V Lambda V^T + D), D what the columns have left; with classes,
means and covariances learn from each other (`classes.py`). Missing values are at the centre in all
sums; their rates are asked for, undone in the sums, and drawn independently. A nominal column is the strata,
or one-hot among the coordinates (`noisy_sums.py`), and one category is drawn by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpsynth_cli.bounds import Bound, no_bound
from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.lowdim import guarantee, noisy_sums, pieces, printed
from dpsynth_cli.mechanisms.lowdim.classes import Spread, centred, fitted, fitted_alone
from dpsynth_cli.mechanisms.lowdim.inside import Box, box, measures, strength
from dpsynth_cli.mechanisms.lowdim.moments import moments
from dpsynth_cli.mechanisms.lowdim.sums import Learnt, asked_for, coordinates
from dpsynth_cli.mechanisms.lowdim.tail import Noises
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.shared.sizes import sizes_and_rest
from dpsynth_cli.questions import Ask, Model

LARGEST = 2**27  # integers of an answer


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
        "public bound on a row's distance from its mean, half of a column's range being 1; auto: see about",
        low=0.01,
        high=1000,
        whole=False,
        auto=True,
    )
    about: str = parameter(
        "means",
        "means: rows are added up about private means, pulled in to where most are; middle: as they are",
        choices=("means", "middle"),
    )
    algorithm: str = parameter(
        "practical",
        "printed: the paper's own, in thirds, class by class, PMM or PSMM by its dimension (auto: 4)",
        choices=("practical", "printed"),
    )


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    if params.algorithm == "printed":
        return printed.run(ask, omega, params.dimension)
    # n, by class. Sums are divided by it, so a public guess would not do.
    sizes, rest = sizes_and_rest(ask, replace(omega, rows_hint=None), split)

    # Sums of y and y y^T, by class or of all rows, and how many values are missing (Algorithm 2; E11, E13).
    learnt = asked_for(ask, omega, params, split, rest, sizes)
    sums, present = learnt.sums, learnt.present

    # The subspace: eigenvectors of M above the noise edge (Algorithm 3; E15).
    found: list[Spread] = []
    if "moments" in learnt.answers:
        centres, found = fitted(sums, params.dimension)
    elif "class moments" in learnt.answers:
        centres, found = fitted_alone(sums, params.dimension)
    if not found or sums.about is not None:
        centres = centred(learnt.means)

    # The measure inside it (Algorithms 4 and 5), or more of the mean if there is no subspace.
    boxes: list[Box] = []
    bound: Callable[[int], Bound | None] = no_bound
    counts = learnt.counts
    if counts is not None and any(len(spread.found) for spread in found):
        epsilon = strength(ask, omega, counts, len(found))
        boxes = [
            box(s.found, centre, params.dimension, epsilon * n)
            for s, centre, n in zip(found, centres, sizes.rows.tolist(), strict=True)
        ]
        inside = measures(ask, omega, params.inside, counts, sizes, boxes, noisy_sums.BITS)
        parts = [pieces.counted(omega, *each) for each in zip(inside, centres, found, boxes, strict=True)]
        if guarantee.known(omega, params.clip) and noisy_sums.finest(learnt.asked.values()):
            second = learnt.answers.get("moments", learnt.answers.get("class moments"))
            noises = Noises(second.noise if second else "none", learnt.answers["mean"].noise, sizes.noise)
            by_counts = guarantee.Counted(
                omega, sums, "moments" in learnt.answers, noises, centres, boxes, inside, parts
            )
            bound = partial(guarantee.expected_w1, by_counts)
    else:
        if counts is not None:
            mean = noisy_sums.question(ask, omega, None, "mean again", 1, counts, omega.strata)
            again = ask([mean])[0]
            centres = noisy_sums.means_of_two(learnt.means, again, noisy_sums.unit(mean), omega, present)
        spreads: Sequence[Spread | None] = found or [None] * len(centres)
        of_class = zip(sizes.rows.tolist(), centres, spreads, strict=True)
        parts = [pieces.normal(omega, *each) for each in of_class]

    # X'' = X' + mean, metric projection (Algorithm 1, E12).
    notes, facts = _account(learnt, found, boxes, params)
    also = {"moments": partial(moments, omega, sizes.rows, centres, found)}
    return Model(sizes.total, pieces.drawing(omega, parts, 1 - present), notes, facts, also, bound)


def fits(omega: Domain, params: Params) -> list[str]:
    """Why these columns cannot be released so."""
    problems = printed.fits(omega, params.dimension) if params.algorithm == "printed" else []
    columns, d = len(omega.modelled), coordinates(omega)
    if params.dimension is not None and params.dimension > d:
        also = f" ({d} coordinates)" if d > columns else ""
        problems.append(
            f"mechanism.dimension is {params.dimension}; there are only {columns} columns{also} in the model"
        )
    if params.clip is not None and params.about == "middle":
        problems.append("mechanism.about: middle leaves rows as they are; leave out mechanism.clip")
    if params.dimension != 0 and omega.classes * d * (d + 1) // 2 > LARGEST:
        problems.append(
            f"lowdim would need {d * (d + 1) // 2:,} products in each of {omega.classes} classes; "
            "release fewer columns or categories, or set mechanism.dimension to 0"
        )
    return problems


def _account(
    learnt: Learnt, spreads: Sequence[Spread], boxes: Sequence[Box], params: Params
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """What was chosen and why, from private numbers and public rules only."""
    facts: dict[str, Any] = {"dimension": 0, "inside": params.inside if spreads else "means only"}
    if learnt.edge is not None:
        facts["noise_edge_expected"] = learnt.edge
    if learnt.bounds:
        facts["clip"] = learnt.bounds
    if learnt.dropped:
        return (
            f"Means only: an axis would need a variance above {learnt.edge:.2g} (the box has sides 1) to "
            "stand above the noise of second moments, so their share was spent on the means.",
        ), facts
    if not spreads:
        return ("Means only, as the spec says: rows of a class differ by rounding alone.",), facts
    found = [len(spread.found) for spread in spreads]
    above = [int((spread.found.values > 0).sum()) for spread in spreads]
    explained = [float(spread.explained) for spread in spreads]
    edge = max(float(spread.found.edge) for spread in spreads)
    facts |= {
        "dimension": _same(found),
        "above_noise": _same(above),
        "noise_edge": edge,
        "explained_variance": _same(explained),
    }
    if boxes:
        facts["counted_axes"] = _same([len(own.widths) for own in boxes])
    if not any(found):
        rest = "the columns vary independently" if any(s.left.any() for s in spreads) else "means only"
        return (f"No axis has a variance above {edge:.2g}, the most that noise alone gives: {rest}.",), facts
    if params.dimension is None:
        why = f"the axes whose variance is above {edge:.2g}, the most that noise alone gives"
    else:
        why = f"as the spec says; {_range(above)} of them above the noise"
    notes = [
        f"The subspace has dimension {_range(found)}: {why}. By private estimates it has "
        f"{100 * float(np.mean(explained)):.0f} % of the variance."
    ]
    if boxes and (most := max(len(own.widths) for own in boxes)) < max(found):
        notes.append(f"Rows were counted along the first {most} axes, and are normal along the others.")
    return tuple(notes), facts


def _same(values: Sequence[Any]) -> Any:
    """The one value that all classes have, else one a class."""
    return values[0] if len(set(values)) == 1 else list(values)


def _range(values: Sequence[int]) -> str:
    return f"{values[0]}" if len(set(values)) == 1 else f"{min(values)} to {max(values)}"


MECHANISM = Mechanism(
    name="lowdim",
    summary="private PCA, then a normal or counted measure in the subspace",
    suits="wide tables, mostly numbers (tens to hundreds of columns), with strata if there is a label",
    citation=(
        "Y. He, T. Strohmer, R. Vershynin, Y. Zhu: Differentially Private Low-Dimensional Synthetic Data "
        "from High-Dimensional Datasets (2023), Algorithms 1-5"
    ),
    run=run,
    params=Params,
    stages={"total": 0.05, "mean": 0.16, "moments": 0.39, "counts": 0.4},
    fits=fits,
    printed={"algorithm": "printed"},
)
