"""What a statistic rests on that was not measured: then there is no interval, or a remark beside it."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, combinations_with_replacement

from dpsynth_cli.domain import Column
from dpsynth_cli.inference.language import REGRESSIONS
from dpsynth_cli.inference.relations import ASSUMED, LOOKED, SUMMED, Known
from dpsynth_cli.inference.statistics import Key, Statistic
from dpsynth_cli.relations.nodes import Name

SHOWN = 3  # pairs that are named
MOST_BY_PAIRS = 3  # columns of a logistic regression that pairs were seen to suffice for


def relations_by(statistic: Statistic, known: Known, kind: str) -> list[str]:
    """The pairs of its columns of which this is known."""
    return [
        f"{one} and {other}"
        for one, other in combinations(statistic.columns, 2)
        if known.relation(one, other) == kind
    ]


def why_not(statistic: Statistic, known: Known) -> str:
    """Why there is no interval: relations that the release assumes, or of which only the size is known; or
    sums that do not tell it."""
    if pairs := relations_by(statistic, known, ASSUMED):
        return f"no interval: assumed, never measured: {_shown(pairs)}"
    if pairs := relations_by(statistic, known, LOOKED):
        return f"no interval: looked at but not counted: {_shown(pairs)}"
    by_pairs = len(statistic.columns) <= MOST_BY_PAIRS or known.with_columns(statistic.columns)
    if statistic.query.kind == "logistic" and not by_pairs:
        return (
            f"no interval: it takes more than pairs, which were not counted: {', '.join(statistic.columns)}"
        )
    if counted(statistic, known) or summed(statistic, known):
        return ""
    return f"no interval: of {', '.join(statistic.columns)} sums were measured that do not tell this"


def counted(statistic: Statistic, known: Known) -> bool:
    """Whether the values of all its columns were counted, and all pairs of them."""
    return all(map(known.counts, statistic.columns)) and not relations_by(statistic, known, SUMMED)


def summed(statistic: Statistic, known: Known) -> bool:
    """Whether it is a function of sums and products that were measured, such as means, correlations and
    coefficients of least squares are: then neither cells nor a model have a part in it."""
    query, have = statistic.query, {frozenset(Counter(one.columns).items()) for one in known.signed}
    if query.kind not in ("mean", "sum", "sd", "corr", "linear") or query.where is not None:
        return False
    parts = [part.name for part in query.of if isinstance(part, Name) and part.name in statistic.columns]
    if len(parts) < len(query.of):
        return False
    categories = {name for name in (*parts, *query.by) if _indicators(known.domain[name])}
    if not set(query.by) <= categories or any(
        known.domain[name].nullable or known.domain[name].type == "ordinal"
        for name in parts
        if name not in categories
    ):
        return False
    needed: list[tuple[str, ...]] = [(name,) for name in parts]
    if query.kind not in ("mean", "sum"):
        needed += list(combinations_with_replacement(parts, 2))
    groups = [(*some, *query.by) for some in [(), *needed]]
    return all(_there(Counter(names), categories, have) for names in groups if names)


def _indicators(column: Column) -> bool:
    """Whether coordinates tell each category: their products with themselves are known then."""
    return column.type == "nominal" or column.codes == 2


def _there(needed: Counter[str], categories: set[str], have: set[frozenset[tuple[str, int]]]) -> bool:
    once = {name: 1 if name in categories else many for name, many in needed.items()}
    return frozenset(once.items()) in have


def remark(statistic: Statistic, known: Known) -> str:
    """What is assumed of more than two columns: a linear regression and a correlation need pairs alone."""
    pairs_suffice = statistic.query.kind == "linear" and statistic.query.where is None
    if len(statistic.columns) < 3 or pairs_suffice or known.with_columns(statistic.columns):
        return ""
    return f"assumes no interaction beyond pairs: {', '.join(statistic.columns)}"


def joined_with_others(statistic: Statistic, key: Key, known: Known) -> str:
    """Why a group has no interval: one of its categories was counted together with others."""
    labels = dict(key)
    for name in statistic.columns:
        column = known.domain[name]
        if not column.categorical:
            continue
        codes = list(range(column.codes))
        if name in labels and statistic.query.kind not in REGRESSIONS:
            codes = [statistic.labels(name).index(labels[name])]
        for partner in statistic.columns:
            if partner != name and not all(known.apart(name, code, partner) for code in codes):
                return f"no interval: categories of {name} were counted together, with {partner}"
    return ""


def _shown(pairs: list[str]) -> str:
    return ", ".join(pairs[:SHOWN]) + (f" and {len(pairs) - SHOWN} more" if len(pairs) > SHOWN else "")
