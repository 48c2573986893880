"""Algorithm 12's counters: every node of a partition that gets deeper as time goes on, counted privately.

Claim: with the shares that `enter` is given, no row ever pays more than the whole. A row of time level s pays
share[j] once for each level j of the partition that counts it: those that are there at its time, and, with
`history`, each deeper one when it comes. What the rows of the level under way and of the past have paid is
kept, and a share that would make it more than 1 is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpsynth_cli.questions import Ints
from dpsynth_cli.trusted.noise.words import SystemSource
from dpsynth_cli.trusted.stream.counting import InhomogeneousCounting
from dpsynth_cli.trusted.stream.leaves import Leaves


@dataclass(eq=False)
class DynamicPartition:
    """`nodes[j]` counts the nodes of level j. Leaves are paths of `depth` halvings.

    `epsilon` is what one row may cost in one node of each level together: the stream's epsilon, or half of it
    under replace_one. `history`, where it is kept, has the rows of all finished time levels.
    """

    depth: int
    epsilon: Fraction
    keeps_history: bool
    level: int | None = None  # the time level under way
    nodes: dict[int, InhomogeneousCounting] = field(default_factory=dict)
    history: Leaves = field(default_factory=Leaves)
    current: Leaves = field(default_factory=Leaves)

    def enter(self, level: int, T: int, shares: Mapping[int, Fraction], source: SystemSource) -> None:
        """Start a time level of at most T release times.

        `shares` has the share of each level of the partition that is to be counted in it.
        """
        if self.level is not None and level <= self.level:
            raise ValueError("time levels follow each other")
        if not set(self.nodes) <= set(shares) or any(share <= 0 for share in shares.values()):
            raise ValueError("every level of the partition needs a share in every time level")
        if self.level is not None and self.keeps_history:
            self.history = self.history + self.current
        new = [j for j in sorted(shares) if j not in self.nodes]
        past = self.history.paid + (sum(shares[j] for j in new) if self.history.rows else 0)
        now = sum(shares.values(), Fraction(0))
        if max(past, now) > 1:
            raise ValueError("the shares of the levels add up to more than the whole")
        for j, counting in self.nodes.items():
            counting.next_level(T, shares[j] * self.epsilon, source)
        for j in new:
            counting = InhomogeneousCounting.start(1 << j, T, shares[j] * self.epsilon, source)
            if self.keeps_history and self.level is not None:
                counting.remember(self.history.level(self.depth, j), source)
            self.nodes[j] = counting
        self.history = Leaves(self.history.codes, self.history.counts, past)
        self.current = Leaves(paid=now)
        self.level = level

    def step(self, rows: Leaves, source: SystemSource) -> None:
        """One public release time: the rows since the last one are added, then all nodes are checked."""
        if self.level is None:
            raise ValueError("no time level is under way")
        for j, counting in self.nodes.items():
            counting.step(rows.level(self.depth, j), source)
        if self.keeps_history:
            self.current = self.current + rows

    def output(self) -> dict[int, Ints]:
        """The private counts of every level that is there."""
        return {j: counting.output for j, counting in sorted(self.nodes.items())}

    def as_parts(self) -> tuple[dict[str, Any], list[Ints]]:
        said: dict[str, Any] = {"level": self.level, "nodes": []}
        arrays: list[Ints] = []
        for name, leaves in (("history", self.history), ("current", self.current)):
            said[name] = str(leaves.paid)
            arrays += [leaves.codes, leaves.counts]
        for j, counting in self.nodes.items():
            words, own = counting.as_parts()
            said["nodes"].append(words | {"j": j, "arrays": len(own)})
            arrays += own
        return said, arrays

    def restore(self, said: dict[str, Any], arrays: list[Ints]) -> None:
        """Become what `as_parts` told."""
        left = list(arrays)
        self.level = said["level"]
        self.history, self.current = (
            Leaves(left.pop(0), left.pop(0), Fraction(said[name])) for name in ("history", "current")
        )
        for words in said["nodes"]:
            own = [left.pop(0) for _ in range(words["arrays"])]
            self.nodes[words["j"]] = InhomogeneousCounting.of_parts(words, own)
