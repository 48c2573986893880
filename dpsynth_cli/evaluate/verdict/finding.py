"""What an analyst would rely on in the real table, one finding each, from the figures of the metrics: how far
it is off, what sampling alone does, and the sentence that says it. `verdict.py` weighs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

Figures: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[str, ...]


WORST = 100.0  # weight of what is measured; columns that were not read at all are worse


@dataclass(frozen=True)
class Finding:
    """One thing to rely on. `weight`: its error beyond that of half of the real rows against the other half,
    in parts of what counts as broken."""

    kind: str
    columns: Key
    weight: float
    words: str
    error: float
    real: float | None = None
    synthetic: float | None = None
    real_split: float | None = None
    independent: float | None = None
    rows: float | None = None

    def as_json(self, state: str) -> dict[str, Any]:
        own = {key: value for key, value in asdict(self).items() if value is not None}
        words = own.pop("words")
        return {"kind": self.kind, "columns": list(self.columns), "state": state, "words": words} | {
            key: round(value, 6) for key, value in own.items() if isinstance(value, float)
        }


def weighed(error: float, floor: float | None, bad: float, chance: float = 0.0) -> float:
    """How bad an error is: 0 up to what sampling does, 1 where it is `bad` beyond that. What sampling does is
    the larger of what it did between two halves of the real rows, and 2.5 times its standard deviation,
    `chance`.

    >>> weighed(0.3, 0.1, 0.2), weighed(0.3, 0.1, 0.2, chance=0.12)
    (1.0, 0.0)
    """
    return round(min(WORST, max(0.0, error - max(floor or 0.0, 2.5 * chance)) / bad), 9)


class Side:
    """The figures of one metric, of the synthetic table and its references."""

    def __init__(self, metrics: Figures, name: str) -> None:
        self.line = metrics.get(name, {})

    def __bool__(self) -> bool:
        return "synthetic" in self.line

    def by(self, pick: Callable[[Figures], dict[Key, float]]) -> tuple[dict[Key, float], dict[Key, float]]:
        """The errors of half of the real rows and of independent columns, by columns."""
        half, apart = (self.line.get(key) for key in ("real_split", "independent"))
        return (pick(half) if half else {}), (pick(apart) if apart else {})

    @property
    def chance(self) -> float:
        """The standard deviation of a difference of means of both tables, of something with variance 1."""
        rows = self.line.get("compared_rows", {})
        return math.sqrt(sum(1 / max(1, rows.get(key, 1)) for key in ("real", "synthetic")))

    @property
    def made(self) -> Figures:
        found: Figures = self.line["synthetic"]
        return found


def percent(part: float) -> str:
    """
    >>> percent(0.1304), percent(0.0004), percent(0.999)
    ('13 %', '0.04 %', '99.9 %')
    """
    if part > 0.99 and part < 1:
        return f"{100 * part:.3g} %"
    return f"{100 * part:.2g} %" if part < 0.0995 else f"{100 * part:.0f} %"


def amount(value: float | str) -> str:
    """A value of a column as a sentence has it.

    >>> amount(0.465661), amount(3875680.0), amount("2019-07-23")
    ('0.465661', '3,875,680', '2019-07-23')
    """
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e15 else f"{value:.6g}"
