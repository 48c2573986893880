"""Which releases cannot find bounds or categories of their own, in words."""

from __future__ import annotations

from typing import Any

from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.spec.reader import listed
from dpsynth_cli.spec.relations import Stated


def unsearchable(mechanism: Mechanism, params: Any, stated: Stated, strata: str | None) -> list[str]:
    """Why private columns cannot be looked for here, if there are any."""
    determined = [other for _, other in stated.looked_up]
    if strata in determined:
        return [f"{strata}: another column determines it by a private table, and it is strata; leave one out"]
    if determined and mechanism.stream:
        return [
            f"{listed(determined)}: a stream looks for no table by which a column determines others; state it"
        ]
    private = [column.name for column in stated.columns if column.private or column.sought]
    if not private:
        return []
    columns = f"{listed(private)}: bounds, categories or step are private, but"
    if not mechanism.private(params):
        return [f"{columns} a release by groups has no budget to find them with; state them"]
    if mechanism.stream:
        return [
            f"{columns} the cells of a stream are fixed before its first row comes, and a block can not be "
            "counted again when others are found; state them, or release a first table with private bounds "
            "and copy what its audit found"
        ]
    if named := needs_stated(stated, strata):
        return [
            f"{listed(named)}: a rule or a derived column depends on a column whose bounds, categories or "
            "step are private; state them, or leave that out"
        ]
    return []


def needs_stated(stated: Stated, strata: str | None) -> list[str]:
    """The private columns that a rule or a derived column depends on."""
    named = depended_on(stated, strata)
    return [c.name for c in stated.columns if (c.private or c.sought) and c.name in named]


def depended_on(stated: Stated, strata: str | None) -> set[str]:
    """The columns that what is computed or ruled depends on, and those that are computed."""
    relations = stated.relations
    found = {one.column.name for one in relations.computed}
    expressions = [one.expression for one in relations.computed] + [
        rule.expression for rule in relations.kept
    ]
    return found.union(*map(relations.modelled, expressions), [strata] if strata and relations.kept else [])
