"""How much columns count in the distance between rows: `weights: {income: 2}`, 1 where it is not said.

Only proportions matter: the heaviest column has length 1 in the unit cube of W1, the others their part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth_cli.domain import Column
from dpsynth_cli.mechanisms.registry import Structure

ALLOWED = "a positive number, at most 1000 times the others, for columns by name, such as {income: 2}"
MOST = 1000.0


def _read(value: Any) -> dict[str, float]:
    try:
        found = {str(name): float(weight) for name, weight in value.items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError(ALLOWED) from None
    every = [*found.values(), 1.0]
    if not all(0 < weight < float("inf") for weight in every) or max(every) > MOST * min(every):
        raise ValueError(ALLOWED)
    return found


STRUCTURE = Structure(
    ALLOWED, {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}}, _read
)


def lengths(weights: Mapping[str, float] | None, columns: Sequence[Column]) -> tuple[float, ...]:
    """The length of each column.

    >>> x, y = (Column(name, "continuous", lower=0.0, upper=1.0) for name in "xy")
    >>> lengths({"x": 4.0}, [x, y]), lengths(None, [x, y])
    ((1.0, 0.25), (1.0, 1.0))
    """
    own = [(weights or {}).get(column.name, 1.0) for column in columns]
    return tuple(weight / max(own) for weight in own)


def faults(weights: Mapping[str, float] | None, columns: Sequence[Column]) -> list[str]:
    """Columns that are not there."""
    known = [column.name for column in columns]
    unknown = [name for name in weights or {} if name not in known]
    return [f"mechanism.weights names {name}, which is no column of the model" for name in unknown]
