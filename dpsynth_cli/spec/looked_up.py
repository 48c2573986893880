"""Columns that others determine by a table that is to be found: which can be, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dpsynth_cli.domain import Column, Impossible
from dpsynth_cli.mechanisms.determined import MOST_CELLS, Pair
from dpsynth_cli.relations.relations import Relations
from dpsynth_cli.spec.yaml_nodes import Place, dotted


def unfit(
    wanted: Sequence[tuple[Pair, Place]],
    modelled: Mapping[str, Column],
    relations: Relations,
    impossible: Sequence[Impossible],
) -> Iterator[tuple[Place, str, str]]:
    """Every mistake, with its place and its path."""
    determined = Counter(pair[1] for pair, _ in wanted)
    ruled = {name for rule in relations.kept for name in relations.modelled(rule.expression)}
    ruled = ruled.union(*(one.columns for one in impossible))
    for (one, other), place in wanted:
        path = dotted(dotted("rules.determines", one), other)
        if one not in modelled or other not in modelled:
            yield place, path, "is private, which is for two declared columns that are not computed"
        elif one in determined:
            yield (
                place,
                path,
                f"is private, but {one} is determined itself; name the column that it comes from",
            )
        elif determined[other] > 1:
            yield place, path, f"is private, but {other} is determined twice; leave one out"
        elif other in ruled:
            yield place, path, f"is private, but a rule names {other}; leave one out, or state the table"
        elif modelled[other].of and not modelled[one].of:
            yield place, path, f"is private, and {other} is of: unit, but {one} is not; declare both so"
        elif wide := [name for name in (one, other) if _unknown(modelled[name])]:
            yield place, path, f"is private, but so are the bounds of {wide[0]}; state them"
        elif (cells := modelled[one].codes * modelled[other].codes) > MOST_CELLS:
            yield (
                place,
                path,
                f"is private, but its table would have {cells:,} cells, and at most {MOST_CELLS:,} are "
                "counted; state a step, fewer categories or narrower bounds",
            )


def _unknown(column: Column) -> bool:
    return column.private and not column.categorical
