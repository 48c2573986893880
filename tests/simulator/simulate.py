"""Many schedules: run, checked, and made small where they fail."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from tests.simulator.commands import simulated
from tests.simulator.invariants import after_a_round, after_all
from tests.simulator.recovery import recovered
from tests.simulator.schedules import Schedule, drawn, shrunk
from tests.simulator.world import World

Planted = Callable[[], AbstractContextManager[object]]
TOGETHER = 50  # schedules, after which what is left of them is collected: to look all the time takes a tenth


@dataclass(frozen=True)
class Failure:
    """A schedule that fails, the smallest that was found, and what is wrong there."""

    seed: int
    schedule: Schedule
    wrong: list[str]

    def __str__(self) -> str:
        return (
            f"schedule {self.seed}: {self.wrong[0]}\n  {self.schedule}\n"
            f"again: python -m tests.simulator --seed {self.seed} --schedules 1"
        )


def findings(schedule: Schedule, planted: Planted = nullcontext) -> list[str]:
    """What is wrong after a schedule; nothing, as it should be."""
    world = World(schedule)
    with simulated(world.machine, world.seen, schedule.seed), planted():
        for _ in range(schedule.grants):
            world.ledger().grant("people", "1", "add_remove")
        for number in range(len(schedule.rounds)):
            world.run_round(number)
            if wrong := after_a_round(world):
                return wrong
        return recovered(world) or after_all(world)


def first_failure(
    seeds: Iterable[int], planted: Planted = nullcontext, told: Callable[[int], object] = lambda done: None
) -> Failure | None:
    """The first schedule that fails, made as small as it can be while the same invariant fails.

    `told` hears after some schedules how many were run.
    """
    with _collected_by_hand() as collect:
        for done, seed in enumerate(seeds):
            if done % TOGETHER == 0:
                collect()
                told(done)
            if failure := _failure(seed, planted):
                return failure
    return None


def _failure(seed: int, planted: Planted) -> Failure | None:
    schedule = drawn(seed)
    wrong = findings(schedule, planted)
    if not wrong:
        return None
    name = wrong[0].split(":")[0]

    def fails(candidate: Schedule) -> bool:
        return any(one.startswith(name) for one in findings(candidate, planted))

    small = shrunk(schedule, fails)
    return Failure(seed, small, findings(small, planted))


@contextmanager
def _collected_by_hand() -> Iterator[Callable[[], object]]:
    """No garbage is looked for but when asked, and none among what is there now."""
    was = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield gc.collect
    finally:
        gc.unfreeze()
        if was:
            gc.enable()
