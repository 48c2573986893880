"""A number of a query with its interval, or why it has none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_cli.inference.statistics import Key

FIELDS = ("query", "estimate", "low", "high", "from", "note")
MEASURED, MODEL, DECLARED = "measured", "model", "declared"


@dataclass(frozen=True)
class Answered:
    """One number: of which group or coefficient, where it is from, its interval (None: there is no honest
    one), and why."""

    key: Key
    estimate: float
    low: float | None
    high: float | None
    source: str
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """As `query --json` prints it. A column that is called as one of these fields has a _ behind it."""
        labels = {f"{name}_" if name in FIELDS else name: label for name, label in self.key}
        return labels | {
            "estimate": self.estimate if math.isfinite(self.estimate) else None,
            "low": self.low,
            "high": self.high,
            "from": self.source,
            "note": self.note,
        }


def within(
    key: Key,
    possible: tuple[float, float],
    estimate: float,
    low: float,
    high: float,
    source: str,
    note: str = "",
) -> Answered:
    """An answer inside of what it can be. Where noise puts the estimate outside, what it can be is nearest to
    it: the interval then reaches as far beyond that, so that noise makes none without a width."""
    least, most = possible
    moved = float(np.clip(estimate, least, most)) - estimate
    low, high = low + min(0.0, moved), high + max(0.0, moved)
    low, high = float(np.clip(low, least, most)), float(np.clip(high, least, most))
    return Answered(key, float(np.clip(estimate, low, high)), low, high, source, note)
