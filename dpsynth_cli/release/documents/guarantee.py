"""What a release promises, in numbers and in words: the audit's `guarantee`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth_cli.numbers import exact
from dpsynth_cli.release.documents.gone_again import gone_again
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.spec.unit import LIFE

MULTILINE = (
    " The input was declared as CSV with line breaks inside quotes: the guarantee assumes that no record of "
    "it has a quotation mark out of place, which could take the records after it into its own."
)
TABLE = {
    "add_remove": "adding or removing any one row of the input table",
    "replace_one": "replacing any one row of the input table by another (the number of rows is public)",
}
UNITS = {
    "add_remove": "adding or removing all rows of any one {column}, however many there are,",
    "replace_one": "replacing all rows of any one {column} by any others, of any number,",
}
FAMILIES = {
    "add_remove": "adding or removing any one row of {parent} with all rows of {children} that belong to it, "
    "however many there are,",
    "replace_one": "replacing any one row of {parent} with all rows of {children} that belong to it by any "
    "others, of any number,",
}
ONE_FAMILY = (
    " A unit is all rows, of all tables, that have the same {key}; rows without one are one unit together. "
    "Of a unit one row of {parent} was used, and at most {most}, chosen by a secret key and the unit's own "
    "rows; rows without one of {parent} were left out."
)
ONE_UNIT = (
    " A unit is all rows with the same {column}; rows without one are one unit together. At most {rows} "
    "rows of a unit were used, chosen by a secret key and the unit's own rows."
)
STREAM_UNIT = {
    LIFE: " A unit is all rows with the same {column}, over the whole life of the stream; rows without one "
    "are one unit together. At most {rows} rows of a unit are ever counted, chosen by a secret key and the "
    "unit's own rows.",
    "day": " A unit is all rows with the same {column} that were pushed on the same day; rows without one "
    "are one unit together. At most {rows} of them are counted, chosen by a secret key and the unit's own "
    "rows. Somebody with rows on several days is protected for each day by itself: for m days epsilon is up "
    "to m times as large (and a delta grows too).",
}
IN_ORDER = " They follow one another in the order of {order}."
STREAM = {
    "add_remove": "adding or removing any one row of any push",
    "replace_one": "replacing any one row of any push by another, of the same or of another push,",
}
PUBLIC_ARRIVALS = (
    "replacing any one row of any push by another of the same push (how many rows each has is public)"
)


def guarantee(spec: Spec) -> dict[str, Any]:
    """The promise in numbers and in one sentence a lawyer can read."""
    privacy = spec.privacy
    if privacy.epsilon is None:
        return _groups_guarantee(spec)
    epsilon = exact(privacy.epsilon)
    delta = None if privacy.delta is None else exact(privacy.delta)
    what, unit, changes = "This release is", "one row", TABLE
    if spec.mechanism.stream:
        what, unit = "All snapshots of this stream together, however long it goes on, are", "one event, a row"
        changes = STREAM | ({"replace_one": PUBLIC_ARRIVALS} if spec.params.arrivals == "public" else {})
    change, explained, about = changes[privacy.neighbours], "", dict[str, Any]()
    if spec.mechanism.stream:
        explained = gone_again(spec)
    if privacy.unit is not None:
        column, rows = privacy.unit.column, privacy.unit.rows
        unit = f"one unit, all rows of one {column}"
        change = UNITS[privacy.neighbours].format(column=column)
        explained = ONE_UNIT.format(column=column, rows=rows)
        if spec.mechanism.stream:
            own = "in all pushes" if privacy.unit.per == LIFE else "in the pushes of one day"
            unit, change = f"{unit} {own}", UNITS[privacy.neighbours].format(column=f"{column} {own}")
            explained = STREAM_UNIT[privacy.unit.per].format(column=column, rows=rows)
        if privacy.unit.order is not None:
            explained += IN_ORDER.format(order=privacy.unit.order)
        about = {"unit_column": column, "unit_rows": rows}
        about |= {} if privacy.unit.per == LIFE else {"unit_per": privacy.unit.per}
    if spec.tables is not None:
        parent, key = spec.tables.parent, spec.tables.key
        children = " and ".join(child.name for child in spec.tables.children)
        unit = f"one unit, a row of {parent} with all its rows of {children}"
        change = FAMILIES[privacy.neighbours].format(parent=parent, children=children)
        most = " and ".join(f"{child.rows} rows of {child.name}" for child in spec.tables.children)
        explained = ONE_FAMILY.format(parent=parent, key=key, most=most)
        about = {"unit_column": key, "unit_tables": {parent: 1}}
        about["unit_tables"] |= {child.name: child.rows for child in spec.tables.children}
    kind = (
        f"{epsilon}-differentially private"
        if delta is None
        else f"({epsilon}, {delta})-differentially private"
    )
    slack = "" if delta is None else f", but for a part of probability at most {delta}"
    return {
        "model": "pure differential privacy"
        if delta is None
        else "approximate differential privacy (by Gaussian differential privacy)",
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": privacy.neighbours,
        "unit": unit,
        **about,
        "statement": (
            f"{what} {kind}: {change} changes the probability of any outcome by a factor of at "
            f"most e^{epsilon}{slack}. The unit of protection is {unit}; the guarantee assumes that "
            f"AES-256 cannot be told from random bits.{explained}{MULTILINE if spec.csv.multiline else ''}"
        ),
    }


def kept_of_a_unit(promised: Mapping[str, Any]) -> str:
    """How many rows of a unit were used at most, in words.

    >>> kept_of_a_unit({"unit_rows": 5}), kept_of_a_unit({"unit_tables": {"households": 1, "members": 6}})
    ('5 rows', '1 row of households and 6 rows of members')
    """
    tables = promised.get("unit_tables")
    if tables is None:
        return f"{promised['unit_rows']} rows"
    return " and ".join(f"{rows} row{'s' * (rows != 1)} of {name}" for name, rows in tables.items())


def _groups_guarantee(spec: Spec) -> dict[str, Any]:
    g, centroids = spec.params.group_size, spec.params.output == "centroids"
    made = (
        f"Every row of the input was replaced by the centre of a group of at least {g} similar rows, so that "
        f"each released row is the same, in all its columns, as at least {g - 1} others."
        if centroids
        else f"Rows were drawn from groups of at least {g} similar rows of the input: each category is that "
        "of some row of the group, drawn column by column, and each number is the mean of more than half of "
        "the group's rows."
    )
    if spec.params.convex:
        made += " Rows that broke a declared constraint were then moved to the nearest values that keep all."
    return {
        "model": "microaggregation",
        "group_size": g,
        "unit": "a group of rows",
        "statement": (
            "This release is not differentially private: it is microaggregation with a minimum group size "
            f"of {g}. {made} Nothing limits what it may tell about a row to somebody who knows others, and "
            "such releases of the same data can be compared with each other."
        ),
    }
