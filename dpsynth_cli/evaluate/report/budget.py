"""Where the budget went."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpsynth_cli.evaluate.report.markup import divided_bar, paragraph, percent, section, table
from dpsynth_cli.evaluate.report.units import number

CURRENCIES = {
    "epsilon": "Costs are parts of epsilon, and add up.",
    "rho": "With a delta, costs are counted in rho, the currency of Gaussian noise, in which they add up; "
    "all of it together is the epsilon and delta of the guarantee.",
}
NOT_ROWS = (
    "Moments",
    "CellSums",
    "RowScores",
    "UnitSizes",
    "UnitPairs",
)  # questions whose noise is in units of their own


def budget(audit: Mapping[str, Any]) -> str:
    """Each step with what it asked, its noise and its part; nothing for a release that has no charges."""
    spent = audit["budget"]
    if "charges" not in spent:
        return ""
    steps: dict[str, list[Mapping[str, Any]]] = {}
    for line in spent["charges"]:
        steps.setdefault(line["step"], []).append(line)
    costs = {step: float(sum(Fraction(line["cost"]) for line in own)) for step, own in steps.items()}
    paid = {step: cost for step, cost in costs.items() if cost > 0}
    total = sum(paid.values()) or 1.0
    words = "Where the budget went: " + ", ".join(f"{s} {percent(c / total)}" for s, c in paid.items())
    rows = [_line(i + 1, step, steps[step], cost, total) for i, (step, cost) in enumerate(paid.items())]
    head = ("", "step", "asked", "numbers", "noise (standard deviation, rows)", spent["currency"], "part")
    ledger, remaining = (
        spent["ledger"],
        audit.get("ledger", {}).get("remaining"),
    )  # the latter: steward's audit only
    left = "" if remaining is None else f"; {number(float(Fraction(remaining)))} is left there"
    return section(
        "budget",
        "Where the budget went",
        divided_bar(list(paid.items()), words),
        table(head, rows, (3, 4, 5, 6), names=()),
        paragraph(
            f"Spent {number(spent['spent_float'])} of {number(spent['total_float'])} ({spent['currency']}), "
            f"charged to {ledger['dataset']}{left}. {CURRENCIES.get(spent['currency'], '')}",
            "small",
        ),
    )


def _line(
    place: int, step: str, own: list[Mapping[str, Any]], cost: float, total: float
) -> tuple[object, ...]:
    counted = [line for line in own if line["question"] not in NOT_ROWS] or own
    noises = sorted(line["standard_deviation"] for line in counted if "standard_deviation" in line) or [0.0]
    sd = " to ".join(dict.fromkeys(number(float(f"{noise:.3g}")) for noise in (noises[0], noises[-1])))
    kinds = ", ".join(sorted({line["question"] for line in own}))
    numbers = f"{sum(line['cells'] for line in own):,}"
    return place, step, kinds, numbers, sd, number(cost), percent(cost / total)
