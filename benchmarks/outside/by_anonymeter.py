"""anonymeter: attacks that single rows out, link their halves, or guess a column from the others.

Each figure is the judge's risk: by how much an attack does better on released rows than on as many held-out
ones, as a part of what was left to gain, cut at 0. "to": the upper end of its 95 % interval. "guess" is the
largest risk over all columns, so with many columns some luck is in it. "of released" is the rate of success
itself, unadjusted.
"""

from __future__ import annotations

from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
from three_tables import filled, given, say

ATTACKS = 500
FEWER = 200  # for each column that is guessed


def figures() -> dict[str, float]:
    tables = given()
    released, held_out, made = (
        filled(t, tables.numeric) for t in (tables.released, tables.held_out, tables.made)
    )
    names = list(tables.kinds)
    attacks = min(ATTACKS, len(released) // 2)
    found: dict[str, float] = {}

    def note(what: str, evaluator: object) -> None:
        risk = evaluator.risk(confidence_level=0.95)
        found[what] = risk.value
        found[f"{what}, to"] = risk.ci[1]
        found[f"{what}, of released"] = evaluator.results(confidence_level=0.95).attack_rate.value

    for what, mode, columns in (
        ("single out, 1 column", "univariate", 1),
        ("single out, 3 columns", "multivariate", 3),
    ):
        evaluator = SinglingOutEvaluator(
            released, made, attacks, n_cols=min(columns, len(names)), control=held_out, seed=0
        )
        try:
            note(what, evaluator.evaluate(mode=mode))
        except RuntimeError:  # it found no guess to make: nobody is singled out
            found[what] = 0.0
    if len(names) > 1:
        halves = (names[::2], names[1::2])
        link = LinkabilityEvaluator(released, made, halves, attacks, n_neighbors=10, control=held_out)
        note("link", link.evaluate(n_jobs=1))
        found |= guessed(released, held_out, made, names, tables.numeric, min(FEWER, attacks))
    return found


def guessed(
    released: object, held_out: object, made: object, names: list[str], numeric: list[str], attacks: int
) -> dict[str, float]:
    """Each column from all others: the largest risk, its upper end, and the mean."""
    risks = []
    for secret in names:
        known = [name for name in names if name != secret]
        judge = InferenceEvaluator(
            released, made, known, secret, regression=secret in numeric, n_attacks=attacks, control=held_out
        )
        risks.append(judge.evaluate(n_jobs=1).risk(confidence_level=0.95))
    worst = max(risks, key=lambda risk: risk.value)
    return {
        "guess, worst column": worst.value,
        "guess, to": worst.ci[1],
        "guess, mean": sum(risk.value for risk in risks) / len(risks),
    }


if __name__ == "__main__":
    say(figures())
