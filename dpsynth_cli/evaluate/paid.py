"""Evaluation that is paid for: noisy tables and means of the real rows, compared with the synthetic ones.

The answers cost a part of the release's own budget and are in its transcript; the rest is post-processing, so
the errors may be published, and `verify` makes them again without the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.marginals import Columns, axes, errors, pair_tables, paired
from dpsynth_cli.evaluate.moments import BITS, means, moments_question
from dpsynth_cli.evaluate.scales import ordered
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, CellCounts, Cells, Gram, Ints, Question
from dpsynth_cli.shares import divide

ONE, TWO, MEANS = 0.4, 0.4, 0.2  # weights in the evaluation's share
ABSOLUTE = {
    "discrete_laplace": math.sqrt(1 / 2),
    "discrete_gaussian": math.sqrt(2 / math.pi),
}  # mean |z| / sd


def paid_questions(domain: Domain, share: Fraction) -> list[Question]:
    """A histogram of each column, the tables of two `paired` columns, and the means of the ordered ones."""
    weights = {"one": ONE, **({"two": TWO} if len(domain.columns) > 1 else {})}
    weights |= {"means": MEANS} if ordered(domain) else {}
    shares = dict(zip(weights, divide(share, list(weights.values())), strict=True))
    cut = axes(domain)
    each = divide(shares["one"], [1.0] * len(cut))
    asked = [
        Question("evaluate", CellCounts(Cells((axis,))), own) for axis, own in zip(cut, each, strict=True)
    ]
    if "two" in shares:
        asked.append(Question("evaluate", Gram(axes(paired(domain))), shares["two"]))
    return [*asked, moments_question(domain, 1, shares["means"])] if "means" in shares else asked


def paid_errors(
    domain: Domain, answers: Sequence[Answer], made: Sequence[Ints], rows: int, total: int
) -> dict[str, Any]:
    """Errors of the synthetic table's 1- and 2-way marginals and means, each with what noise alone may give.

    `made` are the exact answers for the synthetic rows, `total` the private number of real ones. Noisy tables
    are projected on the simplex first; `noise` is the mean distance that the noise has before that.
    """
    n, m, d = max(1, total), max(1, rows), len(domain.columns)
    tables: dict[Columns, tuple[Answer, Ints, Ints]] = {
        (column.name,): (answers[i], answers[i].values, made[i]) for i, column in enumerate(domain)
    }
    if d > 1:
        pairs = [pair_tables(values, domain, diagonal=False) for values in (answers[d].values, made[d])]
        tables |= {names: (answers[d], noisy, pairs[1][names]) for names, noisy in pairs[0].items()}
    found = {
        names: (
            errors(on_simplex(noisy, n) / n, exact / m)[0],
            min(1.0, noisy.size * ABSOLUTE.get(answer.noise, 0.0) * answer.sd / (2 * n)),
        )
        for names, (answer, noisy, exact) in tables.items()
    }
    result: dict[str, Any] = {
        "tvd1": _ways(found, 1),
        "tvd2": _ways(found, 2),
        "columns": {names[0]: _pair(*v) for names, v in found.items() if len(names) == 1},
    }
    names = [column.name for column in ordered(domain)]
    if names:
        gap = means(made[-1], m) - means(answers[-1].values, n)
        sd = answers[-1].sd / (2 * (2**BITS - 1) * n)
        result["means"] = {
            name: {"error": _round(value), "standard_deviation": _round(sd)}
            for name, value in zip(names, gap.tolist(), strict=True)
        }
    return {key: value for key, value in result.items() if value}


def _ways(found: dict[Columns, tuple[float, float]], ways: int) -> dict[str, float]:
    own = [values for names, values in found.items() if len(names) == ways]
    if not own:
        return {}
    errors_of, noise = np.mean(own, axis=0)
    return {"mean": _round(errors_of), "worst": _round(max(tvd for tvd, _ in own)), "noise": _round(noise)}


def _pair(tvd: float, noise: float) -> dict[str, float]:
    return {"tvd": _round(tvd), "noise": _round(noise)}


def _round(value: float) -> float:
    """Six decimals: another machine may add floats up in another order."""
    return round(float(value), 6)
