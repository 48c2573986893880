"""`privacy.unit`: whose rows belong together, and how many of each are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth_cli.domain import Column
from dpsynth_cli.fillers import Filler
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.spec.keys import Key, Kind
from dpsynth_cli.spec.kinds import LINE, SCALARS, text, whole
from dpsynth_cli.spec.reader import Wrong, usable
from dpsynth_cli.spec.yaml_nodes import Keys, Node

MOST_ROWS = 10_000
_COLUMN = text("the name of a column of the input, such as person_id")
_ROWS = whole(f"a whole number from 1 to {MOST_ROWS}", 1, MOST_ROWS)
_SUCH_AS = "keys such as {column: person_id, rows: 5}"


@dataclass(frozen=True)
class ProtectedUnit:
    """The column of the input that says whose a row is, and how many rows of one unit are kept at most."""

    column: str
    rows: int


def _read(node: Node) -> ProtectedUnit:
    usable(node)
    if not isinstance(node, Keys) or set(node.entries) != {"column", "rows"}:
        raise Wrong(_SUCH_AS)
    values = {}
    for name, kind in (("column", _COLUMN), ("rows", _ROWS)):
        try:
            values[name] = kind.read(node.entries[name].node)
        except Wrong as wrong:
            raise Wrong(f"{_SUCH_AS}, where {name} is {wrong.allowed}") from None
    return ProtectedUnit(**values)


def _write(unit: ProtectedUnit | None) -> Any:
    return None if unit is None else {"column": unit.column, "rows": unit.rows}


UNIT = Key(
    "unit",
    Kind(
        _read,
        {
            "type": "object",
            "properties": {
                "column": {"type": SCALARS, "pattern": LINE},
                "rows": dict(_ROWS.schema),
            },
            "required": ["column", "rows"],
            "additionalProperties": False,
        },
        _write,
    ),
    "who is protected where a person has several rows: `{column: person_id, rows: 5}`. Neighbours then "
    "differ in all rows of one unit, that is all rows with the same cell in that column of the input. At "
    "most `rows` rows of each are kept, chosen by a secret key and by the unit's own rows; noise is for "
    "that many. The column is read, and never released. Without it one row is protected",
    brief=True,
)


def unit_faults(
    unit: ProtectedUnit, columns: Sequence[Column], fillers: Sequence[Filler], mechanism: Mechanism | None
) -> list[str]:
    """What a unit does not go with, in words."""
    faults = []
    taken = {column.name for column in columns} | {one.name for one in fillers if not one.key}
    if unit.column in taken:
        faults.append(
            f"names {unit.column}, which is declared in columns: an identifier is never modelled or "
            "released; leave it out there, or make it a fresh key: {key: sequence}"
        )
    if mechanism is not None and mechanism.stream:
        faults.append(
            f"is stated, but {mechanism.name} releases a stream, whose pushes are not searched for rows of "
            "the same unit: it protects one row of one push. Leave it out, or release a table"
        )
    return faults
