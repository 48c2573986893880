"""Releases and streams on a machine that fails: whatever happens, the invariants hold; and each mistake that
is put into the code is seen."""

from __future__ import annotations

from itertools import product

import pytest

from dpsynth_cli.trusted.ledger import chain
from tests.simulator import commands, once
from tests.simulator.commands import simulated
from tests.simulator.faults import FAULTS
from tests.simulator.invariants import INVARIANTS
from tests.simulator.recovery import recovered
from tests.simulator.schedules import Event, Schedule, drawn
from tests.simulator.simulate import findings, first_failure
from tests.simulator.world import World

PIECES = 20
QUICK, MANY = 10_000, 1_000_000  # schedules: about 13 ms of processor time each, on a busy machine
TABLES = 100  # schedules with streams of tables, which take longer


@pytest.mark.parametrize("piece", range(PIECES))
def test_no_schedule_breaks_an_invariant(piece):
    failure = first_failure(range(piece, QUICK, PIECES))
    assert failure is None, f"\n{failure}"


def test_no_schedule_of_a_stream_of_tables_breaks_an_invariant(monkeypatch):
    """Whose state has counters of its own, and whose pushes choose tables."""
    tables = commands.specs("online, algorithm: joint")
    monkeypatch.setattr(commands, "specs", lambda: tables)
    failure = first_failure(range(TABLES))
    assert failure is None, f"\n{failure}"


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(100))
def test_no_schedule_of_a_million_breaks_an_invariant(piece):
    first = piece * MANY // 100
    failure = first_failure(range(first, first + MANY // 100))
    assert failure is None, f"\n{failure}"


ONCE_FAILED = {
    # A process is killed after an answer is written and before it is synced; the next one shows it to the
    # mechanism; a power cut undoes it; and the third draws another one.
    "an answer that was not durable was gone on with": Schedule(
        3,
        ((("release", 0, ("replace",)),), (("release", 0, ()),), (("release", 0, ()),)),
        (Event(0, 31, "kill"), Event(1, 39, "interrupt"), Event(2, 0, "power cut", 740797330)),
    ),
    # The ledger is restored to before rows were read; the release cannot be committed, and was given back.
    "a charge was given back by an older ledger": Schedule(
        2,
        ((("release", 0, ("replace",)),), (("release", 2, ()),)),
        (Event(0, 15, "backup"), Event(0, 35, "interrupt"), Event(1, 0, "restore ledger")),
    ),
    "a folder was lost with the state of a stream": Schedule(
        2,
        ((("publish",),), (("init", False),)),
        (Event(0, 0, "sync fails", 1), Event(1, 18, "power cut", 908499936)),
    ),
    # The same, but it is durable and not in the ledger, and an older copy of the files is put back.
    "an answer that was not noted was gone on with": Schedule(
        2,
        ((("release", 0, ()),), (("release", 0, ()),)),
        (Event(0, 28, "backup"), Event(0, 34, "kill"), Event(1, 0, "restore files"), Event(1, 46, "kill")),
    ),
    "a folder that could not be synced had no words": Schedule(
        1, ((("init", False),), (("push", "1"),)), (Event(1, 17, "sync fails", 3),)
    ),
    "a stream was given up while its snapshot was half in place": Schedule(
        3,
        ((("init", False), ("push", "1"), ("publish",)), (("init", True),)),
        (Event(0, 106, "sync fails", 1),),
    ),
}


@pytest.mark.parametrize("name", ONCE_FAILED)
def test_what_once_failed_does_not_fail_again(name):
    schedule = ONCE_FAILED[name]
    for later in range(-8, 9):  # the code may take a step more or less than it did
        events = tuple(
            Event(one.round, max(0, one.step + later), one.kind, one.number) if one.step else one
            for one in schedule.events
        )
        assert findings(Schedule(schedule.grants, schedule.rounds, events)) == []


def test_a_generation_is_not_lost_beside_the_next_one():
    """It was renamed, and that was not synced, when its process died; the next one is written; a power cut
    keeps its name and not the renaming."""
    for killed, step, seed in product((31, 32, 33), range(20, 25), range(12)):
        events = (Event(0, killed, "kill"), Event(1, step, "power cut", 100 * step + seed))
        assert findings(Schedule(1, ((("init", False),), (("push", "1"),)), events)) == [], events


@pytest.mark.parametrize("name", FAULTS)
def test_every_mistake_is_seen(name):
    expected, planted = FAULTS[name]
    failure = first_failure(range(600), planted)
    assert failure is not None
    assert failure.wrong[0].split(":")[0] in expected, failure
    assert failure.schedule.size <= 8, failure  # made small


def test_every_invariant_is_the_only_one_that_sees_some_mistake():
    assert {expected[0] for expected, _ in FAULTS.values() if len(expected) == 1} == set(INVARIANTS)


def test_what_is_kept_is_what_would_be_computed_again():
    """Nothing changes an entry that others read, too."""
    kept = {(place, name): new for place, name, new in once.cheaper()}[chain, "entry_of"]
    read = 0
    for seed in range(20):
        world = World(drawn(seed))
        with simulated(world.machine, world.seen, seed):
            world.ledger().grant("people", "1", "add_remove")
            world.run_round(0)
            recovered(world)
        for row in chain.rows(world.book.db):
            before = kept.cache_info().hits
            assert kept(row) == chain.entry_of(row)
            read += kept.cache_info().hits - before
    assert read > 100


def test_a_schedule_is_the_same_again():
    """To the last byte of the disk and of the ledger."""

    def ends(seed: int) -> tuple[object, ...]:
        world = World(drawn(seed))
        with simulated(world.machine, world.seen, seed):
            for _ in range(world.schedule.grants):
                world.ledger().grant("people", "1", "add_remove")
            for number in range(len(world.schedule.rounds)):
                world.run_round(number)
            steps = world.scheduler.steps
            recovered(world)
        files = {path: bytes(node.data) for path, node in world.machine.found.items()}
        return steps, files, [entry.hash for entry in world.book.history]

    for seed in range(40):
        assert ends(seed) == ends(seed), seed
