"""Releases of a stream in blocks: their raw counts as far as they are measured again, and what is known of
them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_cli.numeric.running import Running, nothing
from dpsynth_cli.questions import Floats
from dpsynth_cli.trusted.stream.factorisation import Factorisation, needed_from, next_starts, rows_of
from dpsynth_cli.trusted.stream.leaves import Leaves


@dataclass
class Blocks:
    """What a stream remembers of its releases, in blocks of them: where each begins, its raw counts as far
    as they are measured again, and what is known of it, by levels of the partition."""

    starts: list[int]
    raw: list[Leaves]
    known: dict[int, Running]

    @property
    def release(self) -> int:
        """The number of the last release."""
        return self.starts[-1] + 1 if self.starts else 0


def open_release(method: Factorisation, before: Blocks, rows: Leaves) -> Blocks:
    """The blocks of the next release; `rows` are what arrived for it."""
    starts = next_starts(method, before.starts, before.release + 1)
    groups = [sum(start <= old for start in starts) - 1 for old in before.starts]
    raw = [Leaves()] * (len(starts) - 1) + [rows]
    for group, leaves in zip(groups, before.raw, strict=True):
        raw[group] = raw[group] + leaves
    known = {level: running.merged(groups).opened() for level, running in before.known.items()}
    return Blocks(starts, raw, known)


def close_release(method: Factorisation, blocks: Blocks, asked: set[int]) -> Blocks:
    """Forget raw counts that are never measured again, and levels that were not asked for."""
    first = needed_from(method, blocks.release)
    raw = [
        leaves if start >= first else Leaves()
        for start, leaves in zip(blocks.starts, blocks.raw, strict=True)
    ]
    return Blocks(blocks.starts, raw, {level: blocks.known[level] for level in asked})


def outside(blocks: Blocks, method: Factorisation) -> int:
    """How many events are not in the rows of C that are measured now, as far as it is known."""
    if not blocks.known:
        return 0
    entries = rows_of(method, blocks.starts, blocks.release)[-1]
    left = np.array(entries[: len(blocks.starts)]) == 0
    return int(blocks.known[min(blocks.known)].blocks[left].sum())


def derived(blocks: Blocks, level: int, guide: Floats, doubt: float, room: Floats) -> Running:
    """What is known of the blocks at a level that was not measured before: of the next level below, or of the
    next above and a `guide`, the newest counts."""
    below = min((j for j in blocks.known if j > level), default=None)
    if below is not None:
        return blocks.known[below].coarser(below - level)
    above = max((j for j in blocks.known if j < level), default=None)
    if above is not None:
        return blocks.known[above].finer(guide, doubt, room)
    running = nothing(1 << level)
    for _ in blocks.starts:
        running = running.opened()
    return running
