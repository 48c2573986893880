"""Somebody comes back to the machine and finishes what there is, by the commands that the messages name."""

from __future__ import annotations

from pathlib import Path

from dpsynth_cli.errors import DpsynthError, UsageError
from dpsynth_cli.release.record.unfinished import left_in
from tests.simulator import commands
from tests.simulator.commands import spec_today
from tests.simulator.invariants import GOES_ON, ONE_CHARGE
from tests.simulator.world import World


def recovered(world: World) -> list[str]:
    """What went wrong: a bug instead of words, a refusal without a reason, a second charge."""
    wrong: list[str] = []
    commands_run = [command for works in world.schedule.rounds for command in works]
    for number in sorted({command[1] for command in commands_run if command[0] == "release"}):
        for _ in range(6):
            if not _resumed(world, number, wrong):
                break
        else:
            wrong.append(f"{GOES_ON}: there is always one more to resume")
    if world.ledger().streams():
        for command in (("init", False), ("push", "the last"), ("publish",)):
            _tried(world, command, wrong, charges=0)
    return wrong


def _resumed(world: World, number: int, wrong: list[str]) -> bool:
    """Finish one, by the same command again where that is enough; whether there was one."""
    spec = spec_today(number)
    folder, stem = Path(spec.output).parent, Path(spec.output).stem
    left = [one for one in left_in(folder, world.ledger(), stem) if one.state in ("reserved", "drawn")]
    plain = bool(left) and not world.touched and not world.restored
    return _tried(world, ("release", number, ("replace",) if plain else ("resume",)), wrong, charges=0)


def _tried(world: World, command: commands.Command, wrong: list[str], charges: int) -> bool:
    """Run it; whether it did something."""
    before = _reserves(world)
    try:
        commands.run(command, world.ledger(), world.seen)
    except DpsynthError as error:
        if isinstance(error, UsageError) and "nothing to resume" in error.happened:
            return False
        if not _with_reason(world, error):
            wrong.append(f"{GOES_ON}: {command} was refused: {error}")
        return False
    except Exception as error:
        wrong.append(f"{GOES_ON}: {command} ended with {type(error).__name__}: {error}")
        return False
    if _reserves(world) - before > charges:
        wrong.append(f"{ONE_CHARGE}: {command} charged what was paid for")
    return True


def _with_reason(world: World, error: DpsynthError) -> bool:
    """After a restored backup, and where a torn mirror must be looked at, it may be refused; nor does a
    stream that was started over replace the snapshots of the one before."""
    torn_mirror = world.schedule.mirror and world.cuts > 0
    started_over = any(command == ("init", True) for works in world.schedule.rounds for command in works)
    return bool(world.restored or torn_mirror or (started_over and "something else" in error.happened))


def _reserves(world: World) -> int:
    return sum(entry.kind == "reserve" for entry in world.book.history)
