"""`privacy.unit`: whose rows belong together, and how many of each are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpsynth_cli.domain import GRID, Column
from dpsynth_cli.fillers import Filler
from dpsynth_cli.spec.keys import Key, Kind
from dpsynth_cli.spec.kinds import LINE, SCALARS, choice, text, whole
from dpsynth_cli.spec.reader import Wrong, usable
from dpsynth_cli.spec.yaml_nodes import Keys, Node

MOST_ROWS = 10_000
LIFE = "life"  # of a stream
_COLUMN = text("the name of a column of the input, such as person_id")
_ROWS = whole(f"a whole number from 1 to {MOST_ROWS}", 1, MOST_ROWS)
_SUCH_AS = "keys such as {column: person_id, rows: 5}, and order: year where rows follow one another"
_ORDER = text("the name of a column of time that is declared in columns, such as year")
_PER = choice((LIFE, "day"))
_KINDS = {"column": _COLUMN, "rows": _ROWS, "order": _ORDER, "per": _PER}


@dataclass(frozen=True)
class ProtectedUnit:
    """The column of the input that says whose a row is, how many rows of one unit are kept at most, and the
    column that says how they follow one another, if that is to be kept."""

    column: str
    rows: int
    order: str | None = None
    per: str = LIFE

    @property
    def protects(self) -> str:
        """What is protected, as the ledger counts it."""
        return self.column if self.per == LIFE else f"{self.column} per {self.per}"


def _read(node: Node) -> ProtectedUnit:
    usable(node)
    if not isinstance(node, Keys) or not {"column", "rows"} <= set(node.entries) <= set(_KINDS):
        raise Wrong(_SUCH_AS)
    values = {}
    for name, kind in _KINDS.items():
        if name not in node.entries:
            continue
        try:
            values[name] = kind.read(node.entries[name].node)
        except Wrong as wrong:
            raise Wrong(f"{_SUCH_AS}, where {name} is {wrong.allowed}") from None
    return ProtectedUnit(**values)


def _write(unit: ProtectedUnit | None) -> Any:
    if unit is None:
        return None
    order = {} if unit.order is None else {"order": unit.order}
    per = {} if unit.per == LIFE else {"per": unit.per}
    return {"column": unit.column, "rows": unit.rows} | order | per


UNIT = Key(
    "unit",
    Kind(
        _read,
        {
            "type": "object",
            "properties": {
                "column": {"type": SCALARS, "pattern": LINE},
                "rows": dict(_ROWS.schema),
                "order": {"type": SCALARS, "pattern": LINE},
                "per": dict(_PER.schema),
            },
            "required": ["column", "rows"],
            "additionalProperties": False,
        },
        _write,
    ),
    "who is protected where a person has several rows: `{column: person_id, rows: 5}`. Neighbours then "
    "differ in all rows of one unit, that is all rows with the same cell in that column of the input. At "
    "most `rows` rows of each are kept, chosen by a secret key and by the unit's own rows; noise is for "
    "that many. The column is read, and never released. With `order: year`, a column of `columns`, rows that "
    "follow one another are kept, and units of the release have rising years, gaps and values that go on. "
    "In a stream at most `rows` of a unit are counted over its whole life, or with `per: day` of each day's "
    "pushes, and then a unit's rows of one day are protected together. "
    "Without a unit one row is protected",
    brief=True,
)


def restored_unit(unit: ProtectedUnit | None, fillers: Sequence[Filler]) -> Filler | None:
    """The fresh key that has the name of the unit's column: the release has units again."""
    return next((one for one in fillers if unit is not None and one.name == unit.column), None)


def with_unit_key(
    columns: Sequence[Column], fillers: Sequence[Filler], key: Filler | None
) -> tuple[tuple[Column, ...], tuple[Filler, ...]]:
    """The columns with that of the units' numbers among them, where it was declared, and the other
    fillers."""
    if key is None:
        return tuple(columns), tuple(fillers)
    at = min(key.after, len(columns))
    numbers = Column(key.name, "integer", lower=1, upper=GRID)
    before = fillers[: fillers.index(key)]
    others = [one if one in before else replace(one, after=one.after + 1) for one in fillers if one != key]
    return (*columns[:at], numbers, *columns[at:]), tuple(others)
