"""What a statistic rests on that was not measured: then there is no interval, or a remark beside it."""

from __future__ import annotations

from itertools import combinations

from dpsynth_cli.inference.language import REGRESSIONS
from dpsynth_cli.inference.relations import ASSUMED, LOOKED, SUMMED, Known
from dpsynth_cli.inference.statistics import Key, Statistic

SHOWN = 3  # pairs that are named


def relations_by(statistic: Statistic, known: Known, kind: str) -> list[str]:
    """The pairs of its columns of which this is known."""
    return [
        f"{one} and {other}"
        for one, other in combinations(statistic.columns, 2)
        if known.relation(one, other) == kind
    ]


def why_not(statistic: Statistic, known: Known) -> str:
    """Why there is no interval: relations that the release assumes, or of which only the size is known."""
    if pairs := relations_by(statistic, known, ASSUMED):
        return f"no interval: assumed, never measured: {_shown(pairs)}"
    if pairs := relations_by(statistic, known, LOOKED):
        return f"no interval: looked at but not counted: {_shown(pairs)}"
    return ""


def counted(statistic: Statistic, known: Known) -> bool:
    """Whether tables have all its columns, and all pairs of them."""
    names = statistic.columns
    return all(known.with_columns([name]) for name in names) and not relations_by(statistic, known, SUMMED)


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
