"""The `evaluate` section of the spec: what the steward's audit measures, and what evaluation may cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsynth_cli.domain import Column
from dpsynth_cli.evaluate.names import NAMES, QUICK
from dpsynth_cli.spec.reader import Section, Wrong, choice, did_you_mean, items, listed, positive, text
from dpsynth_cli.spec.yaml_nodes import Items, Node, shortened

WORDS = {"all": NAMES, "quick": QUICK, "none": ()}


@dataclass(frozen=True)
class Evaluation:
    """Metrics for the steward's audit; the epsilon of a paid evaluation; the column classifiers predict."""

    metrics: tuple[str, ...] = QUICK
    epsilon: Fraction | None = None
    target: str | None = None


def read_evaluation(
    document: Section, columns: tuple[Column, ...], strata: str | None, whole: Fraction | None
) -> Evaluation:
    """The section, or its defaults; a paid evaluation is a part of `whole`, the release's epsilon, if any."""
    section = document.section("evaluate", "{metrics: all}", needed=False)
    metrics = section.optional("metrics", _metrics, QUICK)
    epsilon = section.optional(
        "epsilon", positive("a positive number, at most half of privacy.epsilon"), None
    )
    target = section.optional("target", text("the name of a declared column"), None)
    if epsilon is not None and whole is None:
        section.note("epsilon", "is stated, but a release by groups has no budget to pay from; leave it out")
    elif epsilon is not None and 2 * epsilon > (whole or 0):
        section.note("epsilon", "is more than half of privacy.epsilon, of which it is a part")
    classes = [column.name for column in columns if column.categorical]
    if target is not None and target not in classes:
        known = listed(classes) + did_you_mean(target, classes) if classes else "there is none"
        section.note(
            "target",
            f"is {shortened(target)}; it must be a declared ordinal, nominal or boolean column: {known}",
        )
    section.finish()
    return Evaluation(metrics, epsilon, target or strata)


def evaluation_document(evaluation: Evaluation, exact: Any, budget: bool) -> dict[str, Any]:
    """The section with its defaults filled in; without a budget there is no epsilon to speak of."""
    epsilon = evaluation.epsilon
    paid = {"epsilon": None if epsilon is None else exact(epsilon)} if budget else {}
    return {"metrics": list(evaluation.metrics), **paid, "target": evaluation.target}


def _metrics(node: Node) -> tuple[str, ...]:
    if not isinstance(node, Items):
        return WORDS[choice(WORDS, f"a list of {', '.join(NAMES)}, or one of ")(node)]
    names = [choice(NAMES)(one) for one in items(node, "a list of metrics")]
    if len(set(names)) < len(names):
        raise Wrong("a list that names each metric once")
    return tuple(name for name in NAMES if name in names)
