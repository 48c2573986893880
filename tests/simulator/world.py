"""One schedule, run: rounds of processes, and accidents between their steps."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from datetime import timedelta
from pathlib import Path

from dpsynth_cli.trusted.ledger.ledger import Ledger
from tests.simulator import commands
from tests.simulator.book import Book
from tests.simulator.commands import HOME, INPUT, LEDGER, MIRROR, OUT, Command, Seen
from tests.simulator.files import Node
from tests.simulator.machine import Machine
from tests.simulator.scheduler import Scheduler
from tests.simulator.schedules import Event, Schedule

_LEDGER = Ledger(LEDGER)


class World:
    """The machine, its ledger and what was seen."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.scheduler = schedule, Scheduler()
        self.machine = Machine(self.scheduler, ["/", HOME, OUT])
        self.machine.hard_links = schedule.hard_links
        self.book = Book(self.machine, LEDGER)
        self.seen = Seen(self.ledger())
        self.restored: set[str] = set()  # what is older than it was: files, ledger
        self.touched = False  # the input was changed
        self.cuts = 0  # power cuts
        self.outcomes: list[BaseException | None] = []
        self._backup: tuple[dict[str, bytes], object] | None = None
        self._restore: list[str] = []
        self.machine.found[INPUT] = self.machine.durable[INPUT] = Node(b"smoker\n", 1)

    def ledger(self) -> Ledger:
        """As a process opens it."""
        ledger = copy(_LEDGER)
        ledger.place = self.book  # type: ignore[assignment]
        ledger.mirror = Path(MIRROR) if self.schedule.mirror else None
        return ledger

    def run_round(self, number: int) -> None:
        """All processes of a round, until they are over; then what was to be restored is."""
        works = [self._process(command) for command in self.schedule.rounds[number]]
        events = [(one.step, self._event(one)) for one in self.schedule.events if one.round == number]
        if works:
            self.scheduler.run(works, events)
        self.outcomes += [one.error for one in self.scheduler.processes]
        self.machine.full = self.machine.failing = 0
        self.book.fails = ""
        for kind in self._restore:
            self._put_back(kind)
        self._restore.clear()

    def _process(self, command: Command) -> Callable[[], object]:
        return lambda: commands.run(command, self.ledger(), self.seen)

    def _event(self, event: Event) -> Callable[[], None]:
        def happen() -> None:
            scheduler, machine = self.scheduler, self.machine
            process = scheduler.processes[event.number % len(scheduler.processes)]
            if event.kind == "switch":
                scheduler.switch(event.number)
            elif event.kind == "kill":
                scheduler.kill(process)
            elif event.kind == "interrupt":
                scheduler.interrupt(process)
            elif event.kind == "power cut":
                self.cuts += 1
                machine.power_cut(event.number)
            elif event.kind == "full":
                machine.full = event.number
            elif event.kind == "sync fails":
                machine.failing = event.number
            elif event.kind == "ledger fails":
                self.book.fails = ("before", "after")[event.number]
            elif event.kind == "clock":
                machine.clock += timedelta(seconds=event.number)
            elif event.kind == "input changes":
                self.touched = True
                machine.found[INPUT].modified += 1
            elif event.kind == "backup":
                files = {path: bytes(node.data) for path, node in machine.found.items()}
                self._backup = (files, self.book.backup())
            else:
                self._restore.append(event.kind)

        return happen

    def _put_back(self, kind: str) -> None:
        if self._backup is None:
            return
        files, ledger = self._backup
        if kind == "restore ledger":
            self.book.restore(ledger)  # type: ignore[arg-type]
            self.restored.add("ledger")
            return
        self.restored.add("files")
        machine = self.machine
        for path in [path for path in machine.found if path != INPUT]:
            del machine.found[path]
        for path, data in files.items():
            if path != INPUT:
                machine.found[path] = Node(data, machine.tick())
                machine.folders.setdefault(os.path.dirname(path), Node())
        machine.changes.clear()
        machine.durable = machine.folders | machine.found
