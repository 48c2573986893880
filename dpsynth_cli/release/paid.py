"""The part of a release's budget that pays for errors which may be published, and what it is worth."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.paid import priced_questions, table_counts
from dpsynth_cli.numbers import exact
from dpsynth_cli.questions import Ask, Asking
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.bill import Bill

SHOWN = 0.05  # an error that twice its noise should not drown


def share_of(spec: Spec, ask: Ask) -> Fraction:
    """The evaluation's share of the budget: what its epsilon, with the same delta, would cost by itself.

    Refuses now what could not be answered later, when the mechanism has spent its own part.
    """
    assert spec.evaluation.epsilon is not None
    try:
        alone = accountant_of(replace(spec, privacy=replace(spec.privacy, epsilon=spec.evaluation.epsilon)))
        share = alone.total / accountant_of(spec).total
        for question in priced_questions(spec.domain, share):
            ask.sd(question)
    except (UsageError, ValueError):
        at = spec.places.get("evaluate.epsilon", "evaluate.epsilon")
        raise UsageError(
            f"{at}: this evaluation cannot be paid for: it has too little epsilon or too many cells.",
            next_step="Raise evaluate.epsilon, release fewer columns, or leave it out.",
        ) from None
    return share


def worth(spec: Spec, rows: int) -> dict[str, Any]:
    """What a paid evaluation costs the release, and how far its figures are known with so many rows: from the
    spec and a public number of rows alone."""
    bill = Bill(spec.domain, accountant_of(spec))
    ask = Asking(lambda questions: [], bill.sd)
    share = share_of(spec, ask)
    counts = table_counts(spec.domain)
    in_rows = dict(zip(counts, map(ask.sd, priced_questions(spec.domain, share)), strict=False))
    gaussian = spec.privacy.delta is not None
    found: dict[str, Any] = {
        "epsilon": exact(spec.evaluation.epsilon or Fraction(0)),
        "share": str(share),
        "more_noise": float(1 / (1 - share)) ** (0.5 if gaussian else 1.0) - 1,
        "rows": rows,
    }
    for ways, sd in in_rows.items():
        found[f"tvd{ways}"] = {
            "tables": counts[ways],
            "noise": sd / (2 * rows),
            "noise_of_mean": sd / (2 * rows) / counts[ways] ** 0.5,
            "rows_needed": math.ceil(sd / SHOWN),
        }
    return found


def advice(found: dict[str, Any]) -> str:
    """The same in a sentence: whether 2-way errors stand above their noise, and what the share costs."""
    key = "tvd2" if "tvd2" in found else "tvd1"
    kind, own = ("2-way" if key == "tvd2" else "1-way"), found[key]
    share = 100 * float(Fraction(found["share"]))
    verdict = (
        f"enough for an error of {SHOWN:g} to stand above twice its noise"
        if found["rows"] >= own["rows_needed"]
        else f"too few for an error of {SHOWN:g} to stand above twice its noise: that takes about "
        f"{own['rows_needed']:,} rows, or more epsilon"
    )
    return (
        f"paid errors: epsilon {found['epsilon']}, {share:.3g} % of the budget, so that the release's own "
        f"answers have {100 * found['more_noise']:.2g} % more noise. With {found['rows']:,} rows a {kind} "
        f"error has noise of sd {own['noise']:.2g}, the mean of {own['tables']} of them "
        f"{own['noise_of_mean']:.2g}: {verdict}."
    )
