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

from dpsynth_cli import budget
from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.marginals import errors, pair_question, pair_tables
from dpsynth_cli.evaluate.moments import BITS, means, moments_question
from dpsynth_cli.evaluate.scales import ordered
from dpsynth_cli.numeric.histogram import on_simplex
from dpsynth_cli.questions import Answer, Ints, Question

TABLES, MEANS = 0.75, 0.25  # of the evaluation's share
ABSOLUTE = {
    "discrete_laplace": math.sqrt(1 / 2),
    "discrete_gaussian": math.sqrt(2 / math.pi),
}  # mean |z| / sd


def paid_questions(domain: Domain, share: Fraction) -> list[Question]:
    """All 1- and 2-way tables, and the means of the ordered columns where there are some."""
    if not ordered(domain):
        return [pair_question(domain, share)]
    tables, middle = budget.split(share, [TABLES, MEANS])
    return [pair_question(domain, tables), moments_question(domain, 1, middle)]


def paid_errors(
    domain: Domain, answers: Sequence[Answer], made: Sequence[Ints], rows: int, total: int
) -> dict[str, Any]:
    """Errors of the synthetic table's 1- and 2-way marginals and means, each with what noise alone may give.

    `made` are the exact answers for the synthetic rows, `total` the private number of real ones. Noisy tables
    are projected on the simplex first; `noise` is the mean distance that the noise has before that.
    """
    n, m = max(1, total), max(1, rows)
    noisy, exact = (pair_tables(values, domain) for values in (answers[0].values, made[0]))
    cell = ABSOLUTE.get(answers[0].noise, 0.0) * answers[0].sd / (2 * n)
    found = {
        names: (errors(on_simplex(counts, n) / n, exact[names] / m)[0], min(1.0, counts.size * cell))
        for names, counts in noisy.items()
    }
    result: dict[str, Any] = {
        "tvd1": _ways(found, 1),
        "tvd2": _ways(found, 2),
        "columns": {names[0]: _pair(*v) for names, v in found.items() if len(names) == 1},
    }
    if len(answers) > 1:
        gap = means(made[1], m) - means(answers[1].values, n)
        sd = answers[1].sd / (2 * (2**BITS - 1) * n)
        names = [column.name for column in ordered(domain)]
        result["means"] = {
            name: {"error": _round(value), "standard_deviation": _round(sd)}
            for name, value in zip(names, gap.tolist(), strict=True)
        }
    return {key: value for key, value in result.items() if value}


def _ways(found: dict[tuple[str, ...], tuple[float, float]], ways: int) -> dict[str, float]:
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
