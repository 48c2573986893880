"""How often intervals of simulated releases held: added up in a file, one release at a time.

Numbers of one release miss together more often than by chance, so sums of squares are kept by release, and the
range that chance leaves to a share is that of as many independent numbers as tell as much.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
QUERY, REPLICATES, MARKED = "query", "replicates", "marked"
Z = 1.96
AIM = 93.0, 97.0  # percent; of what is not measured the least alone
SOURCES = {"measured": ("measured", "declared"), "model": ("model",)}


@dataclass(frozen=True)
class Held:
    """One number: of which statistic, by what, from where, whether its interval holds, and how wide it is
    beside the one that real rows give of their population (not a number where nobody looked)."""

    statistic: str
    by: str
    source: str
    holds: bool = False
    width: float = math.nan


@dataclass
class Cell:
    """Numbers of one kind in all releases: how many have an interval, hold and miss, by release, and the
    logarithms of their widths."""

    mechanism: str
    epsilon: float
    population: str
    statistic: str
    by: str
    source: str
    releases: int = 0
    numbers: int = 0
    missed: int = 0
    missed_squared: int = 0
    missed_numbers: int = 0
    numbers_squared: int = 0
    widths: int = 0
    log_widths: float = 0.0

    def add(self, found: list[Held]) -> None:
        """What one release has of these."""
        n, missed = len(found), sum(not one.holds for one in found)
        wide = [math.log(one.width) for one in found if one.width > 0]
        self.releases += 1
        self.numbers, self.missed = self.numbers + n, self.missed + missed
        self.missed_squared, self.numbers_squared = (
            self.missed_squared + missed**2,
            self.numbers_squared + n * n,
        )
        self.missed_numbers += missed * n
        self.widths, self.log_widths = self.widths + len(wide), round(self.log_widths + sum(wide), 4)


@dataclass(frozen=True)
class Share:
    """How many of so many intervals hold, in percent, with the range that chance leaves (95 %), their width
    beside that on real rows, and the part of all numbers that has none."""

    numbers: int
    held: float
    low: float
    high: float
    width: float


def share(cells: Iterable[Cell]) -> Share | None:
    """Of all these together; None where there is no interval."""
    own = list(cells)
    n, missed = sum(one.numbers for one in own), sum(one.missed for one in own)
    if not n:
        return None
    part = missed / n
    by_release = sum(
        one.missed_squared - 2 * part * one.missed_numbers + part**2 * one.numbers_squared for one in own
    )
    alone = n * part * (1 - part)
    many = n / max(1.0, by_release / alone if alone > 0 else 1.0)
    middle, half = (
        (1 - part + Z**2 / (2 * many)),
        Z * math.sqrt(part * (1 - part) / many + (Z / (2 * many)) ** 2),
    )
    ends = ((middle + sign * half) / (1 + Z**2 / many) for sign in (-1, 1))
    low, high = (100 * min(1.0, max(0.0, end)) for end in ends)
    widths = sum(one.widths for one in own)
    width = math.exp(sum(one.log_widths for one in own) / widths) if widths else math.nan
    return Share(n, 100 * (1 - part), low, high, width)


@dataclass
class Results:
    """What was found, in a file that more releases can be added to."""

    path: Path
    rows: int
    replicates: int
    code: str
    done: dict[str, int] = field(default_factory=dict)  # releases of each mechanism and epsilon
    cells: dict[tuple[Any, ...], Cell] = field(default_factory=dict)

    @classmethod
    def at(cls, path: Path, rows: int = 0, replicates: int = 0) -> Results:
        """Those of a file, or none yet."""
        if not path.exists():
            return cls(path, rows, replicates, code())
        said = json.loads(path.read_text())
        cells = [Cell(*one) for one in said.pop("cells")]
        return cls(path, **said, cells={_key(one): one for one in cells})

    def add(self, mechanism: str, epsilon: float, population: str, found: list[Held]) -> None:
        """One release."""
        groups: dict[tuple[str, str, str], list[Held]] = {}
        for one in found:
            groups.setdefault((one.statistic, one.by, one.source), []).append(one)
        for group, own in groups.items():
            empty = Cell(mechanism, epsilon, population, *group)
            self.cells.setdefault(_key(empty), empty).add(own)
        name = f"{mechanism} {epsilon:g}"
        self.done[name] = self.done.get(name, 0) + 1
        self._write()

    def _write(self) -> None:
        said = {"rows": self.rows, "replicates": self.replicates, "code": self.code, "done": self.done}
        lines = ",\n".join(json.dumps(astuple(one)) for _, one in sorted(self.cells.items()))
        aside = self.path.with_suffix(".new")
        aside.write_text(f'{json.dumps(said)[:-1]}, "cells": [\n{lines}\n]}}\n')
        aside.replace(self.path)


def _key(one: Cell) -> tuple[Any, ...]:
    return one.mechanism, one.epsilon, one.population, one.statistic, one.by, one.source


def code() -> str:
    """Which code answers: releases of another one are not added up with these."""
    files = sorted((ROOT / "dpsynth_cli" / "inference").glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


# --- the table ---------------------------------------------------------------------------------------


def table(results: Results, kinds: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A line for each mechanism, kind of statistic and source: how often intervals of query hold at each
    epsilon, and those of replicates at all of them. Of what is always marked there is none."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for one in results.cells.values():
        groups.setdefault((one.mechanism, kinds.get(one.statistic, one.statistic)), []).append(one)
    mechanisms = list(dict.fromkeys(name.split()[0] for name in results.done))
    names = list(dict.fromkeys(kinds.values()))
    for mechanism, kind in sorted(groups, key=lambda one: (mechanisms.index(one[0]), names.index(one[1]))):
        own = groups[mechanism, kind]
        there = [source for source in SOURCES if any(one.source in SOURCES[source] for one in own)]
        for source in there:
            line = {"mechanism": f"`{mechanism}`", "statistic": kind, "from": source}
            told = [one for one in own if one.source in SOURCES[source]]
            for epsilon in sorted({one.epsilon for one in results.cells.values()}):
                here = [one for one in own if (one.epsilon, one.by) == (epsilon, QUERY)]
                said = in_words(share(one for one in here if one in told), source)
                marks = _marked(here) if source == there[-1] else ""
                line[f"query, {epsilon:g}"] = "; ".join(filter(None, (said, marks)))
            line["replicates"] = in_words(share(one for one in told if one.by == REPLICATES), source)
            yield line


def _marked(cells: list[Cell]) -> str:
    """Which part of the numbers has no interval."""
    marked = sum(one.numbers for one in cells if one.source == MARKED)
    part = marked / max(1, sum(one.numbers for one in cells))
    return "marked" if part == 1 else f"{part:.0%} marked" if part >= 0.005 else ""


def in_words(one: Share | None, source: str) -> str:
    """The share that holds, the range that chance leaves, of how many, and the width; in bold what chance does not
    explain."""
    if one is None:
        return ""
    width = "" if math.isnan(one.width) else f", ×{one.width:.2g}"
    low, high = AIM if source == "measured" else (AIM[0], 100.0)
    text = f"{one.held:.1f} ({one.low:.0f}–{one.high:.0f} of {one.numbers:,})"
    return (f"**{text}**" if one.high < low or one.low > high else text) + width
