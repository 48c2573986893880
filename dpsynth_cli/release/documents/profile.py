"""What a guarantee means to an attacker: other epsilons for other deltas, and error rates."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpsynth_cli.numbers import exact
from dpsynth_cli.spec.privacy import Privacy
from dpsynth_cli.trusted.core import gaussian

DELTAS = tuple(f"1e-{digits}" for digits in (3, 4, 5, 6, 7, 8, 9, 12))
FALSE_POSITIVES = (0.001, 0.01, 0.05)
MEANING = (
    "the most often that anybody who suspects one {protected} in the table, and knows all the others, can be "
    "right about it when it is there, with a test that is wrong this often when it is not"
)


def protected(privacy: Privacy) -> str:
    """What the guarantee is about, in a word."""
    return "row" if privacy.unit is None else "unit"


def profile(privacy: Privacy) -> dict[str, Any]:
    """The whole guarantee, from the spec alone; every epsilon rounded up."""
    attack: list[dict[str, Any]] = [{"false_positives": rate} for rate in FALSE_POSITIVES]
    meaning = MEANING.format(protected=protected(privacy))
    if privacy.delta is None:
        for line in attack:
            line["true_positives"] = _rounded_up(pure_power(float(privacy.budget), line["false_positives"]))
        return {"attack": attack, "meaning": meaning}
    apart = privacy.apart  # a part of delta that no epsilon makes smaller
    rho = gaussian.rho_of_epsilon(privacy.budget, privacy.delta - apart)
    for line in attack:
        line["true_positives"] = _rounded_up(gaussian.power(rho, line["false_positives"]) + float(apart))
    at_delta = {at: Fraction(at) - apart for at in DELTAS}
    return {
        "mu": exact(gaussian.mu_of_rho(rho)),
        "epsilon_at_delta": {
            at: exact(gaussian.epsilon_of_rho(rho, left)) for at, left in at_delta.items() if left > 0
        },
        "attack": attack,
        "meaning": meaning,
    }


def allows(privacy: Privacy) -> str:
    """What it allows an attacker, in a sentence: odds, and error rates.

    >>> from dpsynth_cli.spec.privacy import Privacy
    >>> allows(Privacy(Fraction(1), None, "add_remove", "people")).split(";")[0]
    'odds of 1 to 1 about one row become at most 2.72 to 1'
    """
    odds = math.exp(privacy.budget) if privacy.budget < 20 else math.inf
    factor = f"{odds:.3g}" if math.isfinite(odds) else f"e^{exact(privacy.budget)}"
    slack = "" if privacy.delta is None else f", but for a chance of {exact(privacy.delta)}"
    line = next(line for line in profile(privacy)["attack"] if line["false_positives"] == 0.01)
    change = {
        "add_remove": f"about a {protected(privacy)} that is not there finds one that is there",
        "replace_one": f"about what a {protected(privacy)} says finds what it says",
    }[privacy.neighbours]
    return (
        f"odds of 1 to 1 about one {protected(privacy)} become at most {factor} to 1{slack}; a test that "
        f"is wrong 1 % of the time {change} at most {100 * line['true_positives']:.3g} % of the time."
    )


def pure_power(epsilon: float, false_positives: float) -> float:
    """The most true positives that epsilon-differential privacy allows with so many false ones.

    >>> round(pure_power(1.0, 0.01), 4)
    0.0272
    """
    odds = math.exp(min(epsilon, 700.0))
    return min(odds * false_positives, 1 - (1 - false_positives) / odds)


def _rounded_up(rate: float) -> float:
    return min(math.ceil(rate * 10**4) / 10**4, 1.0)
