"""The `evaluate` section of the spec: what the steward's audit measures, and what evaluation may cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter

from dpsynth_cli.domain import Column
from dpsynth_cli.evaluate.metrics.names import NAMES, QUICK
from dpsynth_cli.spec.keys import Key, Kind, Section
from dpsynth_cli.spec.kinds import Percent, items, one_of, positive_or_percent, text
from dpsynth_cli.spec.reader import Reader, Wrong, did_you_mean, listed
from dpsynth_cli.spec.yaml_nodes import Items, Node, shortened

WORDS = {"all": NAMES, "quick": QUICK, "none": ()}


def _metrics(node: Node) -> tuple[str, ...]:
    if not isinstance(node, Items):
        return WORDS[one_of(WORDS, f"a list of {', '.join(NAMES)}, or one of ")(node)]
    names = [one_of(NAMES)(one) for one in items(node, "a list of metrics")]
    if len(set(names)) < len(names):
        raise Wrong("a list that names each metric once")
    return tuple(name for name in NAMES if name in names)


METRICS = Key(
    "metrics",
    Kind(
        _metrics,
        {
            "anyOf": [
                {"enum": list(WORDS)},
                {"type": "array", "items": {"enum": list(NAMES)}, "uniqueItems": True},
            ]
        },
        list,
    ),
    "what the steward's audit measures against the real rows: `quick` (the default), `all`, `none`, or a "
    "list of names",
    default=QUICK,
)
EPSILON = Key(
    "epsilon",
    positive_or_percent("a positive number, or a percentage such as 5%, at most half of privacy.epsilon"),
    "a part of `privacy.epsilon`, at most half, for errors that may be published: an exact decimal, or a "
    "percentage of it (`5%` of 1.0 is 0.05, exactly). Without it no error is measured publicly and nothing "
    "is spent on one",
)
MOST_BESIDE = Fraction(3, 4)  # of the budget, for all but the mechanism
TARGET = Key(
    "target",
    text("the name of a declared column"),
    "the column that classifiers predict; default: the strata",
)
EVALUATE = Section(
    "evaluate",
    (METRICS, EPSILON, TARGET),
    "what is measured afterwards",
    such_as="{metrics: all}",
    of=attrgetter("evaluation"),
)


@dataclass(frozen=True)
class Evaluation:
    """Metrics for the steward's audit; the epsilon of a paid evaluation; the column classifiers predict."""

    metrics: tuple[str, ...] = QUICK
    epsilon: Fraction | None = None
    target: str | None = None


def read_evaluation(
    document: Reader,
    columns: tuple[Column, ...],
    strata: str | None,
    whole: Fraction | None,
    search: Fraction,
) -> Evaluation:
    """The section, or its defaults; a paid evaluation is a part of `whole`, the release's epsilon, if any.
    `search` is the share that finds private columns, where there are any."""
    section = document.section(EVALUATE)
    values = section.values(EVALUATE.keys)
    epsilon, target = values["epsilon"], values["target"]
    searched = any(column.private for column in columns)
    if isinstance(epsilon, Percent):
        epsilon = values["epsilon"] = epsilon.part * (1 if whole is None else whole)
    if epsilon is not None and whole is None:
        section.note("epsilon", "is stated, but a release by groups has no budget to pay from; leave it out")
    elif epsilon is not None and 2 * epsilon > (whole or 0):
        section.note("epsilon", "is more than half of privacy.epsilon, of which it is a part")
    elif epsilon and whole and searched and epsilon / whole + search > MOST_BESIDE:
        section.note(
            "epsilon",
            "and privacy.search together are more than three quarters of the budget; the rest would be "
            "too little to release with",
        )
    classes = [column.name for column in columns if column.categorical]
    if target is not None and target not in classes:
        known = listed(classes) + did_you_mean(target, classes) if classes else "there is none"
        section.note(
            "target",
            f"is {shortened(target)}; it must be a declared ordinal, nominal or boolean column: {known}",
        )
    section.finish()
    return Evaluation(**values | {"target": target or strata})
