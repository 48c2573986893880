"""Processes that take turns, one step at a time, in an order that is fixed by a list of events."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Killed(BaseException):
    """The process is no more: whatever its handlers try reaches nothing."""


class Stuck(Exception):
    """Every process waits for another one."""


@dataclass(eq=False)
class Process:
    """One process: its thread runs only while it is its turn."""

    number: int
    work: Callable[[], Any]
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    dead: bool = False
    over: bool = False
    interrupted: bool = False
    waits: Callable[[], bool] | None = None  # until this is true
    files: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    result: Any = None

    @property
    def ready(self) -> bool:
        return not self.over and (self.dead or self.interrupted or self.waits is None or self.waits())


class Scheduler:
    """Runs processes; `step` is called before everything that reaches the machine.

    `events` are (step, what to do), in order. Without any, a process runs until it waits or ends.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.events: list[tuple[int, Callable[[], None]]] = []
        self.next = 1 << 60
        self.processes: list[Process] = []
        self.current: Process | None = None
        self._main = threading.Semaphore(0)
        self.stuck = False

    def run(self, works: list[Callable[[], Any]], events: list[tuple[int, Callable[[], None]]]) -> None:
        """All of them, until each is over."""
        self.steps, self.events = 0, sorted(events, key=lambda event: event[0], reverse=True)
        self.next = self.events[-1][0] if self.events else 1 << 60
        self.processes = [Process(i, work) for i, work in enumerate(works)]
        threads = [threading.Thread(target=self._live, args=(one,)) for one in self.processes[1:]]
        for thread in threads:
            thread.start()
        self.current = self.processes[0]
        self._life(self.processes[0])  # the first runs here
        self._leave(first=True)
        for thread in threads:
            thread.join()
        self.current, self.next = None, 1 << 60

    def _live(self, process: Process) -> None:
        process.gate.acquire()
        self._life(process)
        self._leave()

    def _life(self, process: Process) -> None:
        try:
            self._woken(process)
            process.result = process.work()
        except Killed:
            pass
        except BaseException as error:
            process.error = error
        process.over = True
        self.release(process)

    def _leave(self, first: bool = False) -> None:
        """This process is over: whose turn is it?"""
        ready = self._choose()
        if ready is not None:
            self.current = ready
            ready.gate.release()
        elif any(not one.over for one in self.processes):
            raise Stuck
        else:
            self._main.release()
        if first:
            self._main.acquire()

    def _choose(self) -> Process | None:
        ready = next((one for one in self.processes if one.ready), None)
        if ready is None and any(not one.over for one in self.processes):
            self.stuck = True
            for one in self.processes:
                self.kill(one)
            ready = next(one for one in self.processes if not one.over)
        return ready

    # --- called by processes -------------------------------------------------------------------------

    def step(self) -> None:
        """One step of the current process; whatever is due now happens before it."""
        me = self.current
        if me is None:
            return
        if me.dead:
            raise Killed
        self.steps += 1
        while self.steps >= self.next:
            _, happen = self.events.pop()
            self.next = self.events[-1][0] if self.events else 1 << 60
            happen()
            if self.current is not me:
                self._sleep(me)
            self._woken(me)

    def wait(self, until: Callable[[], bool]) -> None:
        """Others go on until this is true."""
        me = self.current
        if me is None:
            if not until():
                raise Stuck
            return
        while not until():
            me.waits = until
            other = self._choose()
            assert other is not None
            if other is not me:
                self.current = other
                self._sleep(me)
            self._woken(me)
        me.waits = None

    def pause(self) -> None:
        """Let somebody else go on, if anybody can."""
        me = self.current
        others = [one for one in self.processes if one.ready and one is not me]
        if me is not None and others:
            after = [one for one in others if one.number > me.number]
            self.current = (after or others)[0]
            self._sleep(me)
            self._woken(me)

    def _sleep(self, me: Process) -> None:
        assert self.current is not None
        self.current.gate.release()
        me.gate.acquire()

    def _woken(self, me: Process) -> None:
        if me.dead:
            raise Killed
        if me.interrupted:
            me.interrupted, me.waits = False, None
            raise KeyboardInterrupt

    # --- what events do ------------------------------------------------------------------------------

    def switch(self, number: int) -> None:
        other = self.processes[number % len(self.processes)]
        if other.ready:
            self.current = other

    def kill(self, process: Process) -> None:
        process.dead = True
        self.release(process)

    def interrupt(self, process: Process) -> None:
        if not process.over:
            process.interrupted = True

    def kill_all(self) -> None:
        for process in self.processes:
            self.kill(process)

    @staticmethod
    def release(process: Process) -> None:
        """The kernel closes the files of a process that ends, and so gives its locks free."""
        for file in process.files:
            file.unlock()
        process.files.clear()
