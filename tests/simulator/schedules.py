"""A schedule as data: what processes do, in rounds, and what happens to them at which step."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.simulator.commands import STREAM, Command

DAY = 24 * 3600
STEPS = 80  # of one command, about
FLAVOURS = ("at once", *["releases"] * 4, *["stream"] * 3, "both", "both", "restored")


@dataclass(frozen=True)
class Event:
    """Before the so-many-th step of a round; `number` is a process, a count, seconds or a seed."""

    round: int
    step: int
    kind: str
    number: int = 0


@dataclass(frozen=True)
class Schedule:
    """Between two rounds the machine is started again; afterwards somebody comes and finishes everything."""

    grants: int
    rounds: tuple[tuple[Command, ...], ...]
    events: tuple[Event, ...]
    mirror: bool = False
    hard_links: bool = True
    seed: int = 0  # of the names of releases

    @property
    def size(self) -> int:
        return sum(map(len, self.rounds)) + len(self.events) + self.mirror + (not self.hard_links)


def drawn(seed: int) -> Schedule:
    """The schedule of a seed: two to six processes in one to three rounds, and up to a dozen accidents."""
    luck = random.Random(seed)
    flavour = luck.choice(FLAVOURS)
    if flavour == "at once":
        rounds, events = _at_once(luck)
    elif flavour == "restored":
        rounds, events = _restored(luck)
    else:
        rounds = _rounds(luck, flavour)
        events = [event for i, works in enumerate(rounds) for event in _events(luck, i, len(works))]
        if luck.random() < (
            0.4 if flavour == "stream" else 0.2
        ):  # a backup is taken, and later put back: of the files or of the ledger
            kind = luck.choice(("restore files", "restore files", "restore ledger"))
            events.append(Event(0, luck.randrange(STEPS * len(rounds[0])), "backup"))
            events.append(Event(luck.randrange(len(rounds)), 0, kind))
    return Schedule(
        luck.choice((1, 1, 2, 2, 3)),
        tuple(map(tuple, rounds)),
        tuple(sorted(events, key=lambda event: (event.round, event.step))),
        luck.random() < 0.1,
        luck.random() < 0.9,
        seed,
    )


def _at_once(luck: random.Random) -> tuple[list[list[Command]], list[Event]]:
    """The same command in two or three processes, which take turns; nothing else happens."""
    count = luck.choice((2, 2, 3))
    turns = luck.choice((1, 2, 4, 8))
    events = [Event(0, luck.randrange(1, 40 * count), "switch", luck.randrange(count)) for _ in range(turns)]
    return [[("release", 0, ())] * count], events


def _restored(luck: random.Random) -> tuple[list[list[Command]], list[Event]]:
    """A release is cut off after a backup, which is put back; somebody else has begun meanwhile, or not."""
    at = luck.randrange(20, 60)
    cut = luck.choice(("kill", "power cut", "interrupt"))
    kind = luck.choice(("restore files", "restore files", "restore ledger"))
    events = [Event(0, at, "backup"), Event(0, luck.randrange(at, STEPS + 10), cut, 0), Event(0, 0, kind)]
    return [[("release", 0, ())], [_command(luck, "both") for _ in range(luck.choice((1, 1, 2)))]], events


def _rounds(luck: random.Random, flavour: str) -> list[list[Command]]:
    count = luck.choice((2, 2, 2, 3, 3, 3, 4, 4, 5, 6))
    commands = [_command(luck, flavour) for _ in range(count)]
    if flavour == "stream" and luck.random() < 0.8:  # in a sensible order, mostly
        sensible: list[Command] = [("init", False), ("push", "1"), ("publish",), ("push", "2"), ("publish",)]
        commands = (sensible + commands)[: max(3, count)]
    cuts = sorted({luck.randrange(1, len(commands)) for _ in range(luck.choice((0, 1, 1, 2)))})
    return [commands[a:b] for a, b in zip([0, *cuts], [*cuts, len(commands)], strict=True)]


def _command(luck: random.Random, flavour: str) -> Command:
    if flavour == "stream" or (flavour == "both" and luck.random() < 0.4):
        return luck.choice(
            (
                ("init", False), ("push", "1"), ("push", "1"), ("push", "2"), ("push", "3"), ("publish",),
                ("publish",), ("init", luck.random() < 0.3), ("undo", "1"), ("undo", "2"),
            )
        )  # fmt: skip
    if luck.random() < 0.1:
        return luck.choice((("grant",), ("refund",), ("look",)))
    number = luck.choice((0, 0, 0, 0, 1, STREAM - 1))
    flags = luck.choice(((), (), (), ("replace",), ("replace",), ("again", "replace"), ("resume",)))
    return ("release", number, flags)


def _events(luck: random.Random, number: int, processes: int) -> Iterator[Event]:
    steps = STEPS * processes

    def at() -> int:
        return luck.randrange(1, steps)

    for _ in range(luck.choice((0, 1, 2, 4, 8)) if processes > 1 else 0):
        yield Event(number, at(), "switch", luck.randrange(processes))
    for kind, chance in (("kill", 0.5), ("kill", 0.2), ("interrupt", 0.15)):
        if luck.random() < chance:
            yield Event(number, at(), kind, luck.randrange(processes))
    if luck.random() < 0.35:
        yield Event(number, at(), "power cut", luck.randrange(1 << 30))
    if luck.random() < 0.12:
        yield Event(number, at(), "full", luck.choice((1, 1, 2, 5, 20)))
    if luck.random() < 0.08:
        yield Event(number, at(), "sync fails", luck.choice((1, 1, 3)))
    if luck.random() < 0.1:
        yield Event(number, at(), "ledger fails", luck.choice((0, 1, 1)))
    if luck.random() < 0.2:
        yield Event(number, at(), "clock", luck.choice((900, DAY, -DAY, 4000 * DAY, -4000 * DAY)))
    if luck.random() < 0.04:
        yield Event(number, at(), "input changes")


def shrunk(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """A schedule that fails too, and from which nothing can be left out; steps about as early as may be."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(schedule):
            if fails(candidate):
                schedule, smaller = candidate, True
                break
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    for i in range(len(schedule.events)):
        yield replace(schedule, events=schedule.events[:i] + schedule.events[i + 1 :])
    for r, works in enumerate(schedule.rounds):
        for i in range(len(works)):
            rounds = list(schedule.rounds)
            rounds[r] = works[:i] + works[i + 1 :]
            yield replace(schedule, rounds=tuple(rounds))
    if schedule.mirror:
        yield replace(schedule, mirror=False)
    if not schedule.hard_links:
        yield replace(schedule, hard_links=True)
    for i, event in enumerate(schedule.events):
        for step in (0, event.step // 2, event.step * 7 // 8):
            if step < event.step:
                earlier = replace(event, step=step)
                yield replace(schedule, events=(*schedule.events[:i], earlier, *schedule.events[i + 1 :]))
