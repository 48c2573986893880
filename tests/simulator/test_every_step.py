"""Small worlds, without chance: one accident before every single step, and every single turn that two
processes can take."""

from __future__ import annotations

import pytest

from dpsynth_cli.release.stream import stream as streams
from tests.simulator.commands import Command, simulated
from tests.simulator.invariants import ONE_ANSWER
from tests.simulator.schedules import Event, Schedule
from tests.simulator.simulate import findings
from tests.simulator.world import World

RELEASE: Command = ("release", 0, ())
REPLACE: Command = ("release", 0, ("again", "replace"))
STREAM: tuple[Command, ...] = (("init", False), ("push", "1"), ("publish",))
UNDONE: tuple[Command, ...] = (("undo", "1"), ("push", "1"), ("publish",))
ACCIDENTS = (
    ("kill", 0), ("interrupt", 0), ("power cut", 1), ("power cut", 2), ("power cut", 5), ("full", 1),
    ("sync fails", 1), ("ledger fails", 0), ("ledger fails", 1),
)  # fmt: skip


def steps_of(*commands: Command) -> int:
    """How many steps they take, one after the other, when nothing happens."""
    world = World(Schedule(3, (commands,), ()))
    with simulated(world.machine, world.seen, 0):
        for _ in range(3):
            world.ledger().grant("people", "1", "add_remove")
        world.run_round(0)
    assert world.outcomes == [None] * len(commands)
    return world.scheduler.steps


@pytest.mark.parametrize(("kind", "number"), [("kill", 0), ("power cut", 1), ("ledger fails", 1)])
def test_an_accident_before_every_step_of_a_release(kind, number):
    for step in range(1, steps_of(RELEASE) + 1):
        schedule = Schedule(2, ((RELEASE,), (RELEASE,)), (Event(0, step, kind, number),))
        assert findings(schedule) == [], schedule


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number"), ACCIDENTS)
@pytest.mark.parametrize("commands", [(RELEASE, REPLACE), STREAM], ids=["replaced", "stream"])
def test_an_accident_before_every_step_of_more(commands, kind, number):
    for step in range(1, steps_of(*commands) + 1):
        for process in range(len(commands)) if kind in ("kill", "interrupt") else (number,):
            schedule = Schedule(3, (commands,), (Event(0, step, kind, process),))
            assert findings(schedule) == [], schedule


def test_no_noise_is_drawn_anew_by_an_undo_after_a_kill_before_any_step_of_publishing():
    for step in range(steps_of(*STREAM[:2]) + 1, steps_of(*STREAM) + 2):
        schedule = Schedule(3, (STREAM, UNDONE), (Event(0, step, "kill", 2),))
        assert findings(schedule) == [], schedule


def test_a_second_noise_after_an_undo_is_seen(monkeypatch):
    monkeypatch.setattr(streams, "check_unpublished", lambda *words: None)
    assert any(one.startswith(ONE_ANSWER) for one in findings(Schedule(3, (STREAM, UNDONE), ())))


def test_every_turn_that_two_processes_can_take_once():
    """Both want to go on with a release that was cut off; the second runs at one step of the first."""
    for step in range(1, steps_of(RELEASE) + 20):
        events = (Event(0, 40, "kill"), Event(1, step, "switch", 1))
        schedule = Schedule(2, ((RELEASE,), (RELEASE, RELEASE)), events)
        assert findings(schedule) == [], schedule


@pytest.mark.slow
def test_every_two_turns_that_two_processes_can_take():
    most = steps_of(RELEASE)
    for first in range(1, most):
        for second in range(first + 1, first + most, 3):
            events = (Event(0, first, "switch", 1), Event(0, second, "switch", 0))
            schedule = Schedule(2, ((RELEASE, RELEASE),), events)
            assert findings(schedule) == [], schedule
