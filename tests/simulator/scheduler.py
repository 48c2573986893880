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
    gate: threading.Lock = field(default_factory=lambda: _closed())
    begun: bool = False
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


def _closed() -> threading.Lock:
    """A gate that somebody else opens."""
    gate = threading.Lock()
    gate.acquire()
    return gate


_idle: list[
    tuple[threading.Lock, list[Callable[[], None]]]
] = []  # threads without work: to start one is slow


def _on_a_thread(work: Callable[[], None]) -> None:
    if _idle:
        gate, jobs = _idle.pop()
        jobs.append(work)
        gate.release()
    else:
        threading.Thread(target=_works, args=(work,), daemon=True).start()


def _works(work: Callable[[], None]) -> None:
    gate, jobs = _closed(), [work]
    while True:
        jobs.pop()()
        _idle.append((gate, jobs))
        gate.acquire()


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
        self._ended = _closed()
        self.stuck = False

    def run(self, works: list[Callable[[], Any]], events: list[tuple[int, Callable[[], None]]]) -> None:
        """All of them, until each is over."""
        self.steps, self.events = 0, sorted(events, key=lambda event: event[0], reverse=True)
        self.next = self.events[-1][0] if self.events else 1 << 60
        self.processes = [Process(i, work) for i, work in enumerate(works)]
        self.current = self.processes[0]
        self._lives(self.processes[0])
        self._ended.acquire()
        self.current, self.next = None, 1 << 60

    def _lives(self, process: Process) -> None:
        """This one, and on the same thread those that begin when it is over."""
        while True:
            self._life(process)
            ready = self._choose()
            if ready is None:
                self._ended.release()
                return
            self.current = ready
            if ready.begun:
                ready.gate.release()
                return
            process = ready

    def _life(self, process: Process) -> None:
        process.begun = True
        try:
            self._woken(process)
            process.result = process.work()
        except Killed:
            pass
        except BaseException as error:
            process.error = error
        process.over = True
        self.release(process)

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
        other = self.current
        assert other is not None
        if other.begun:
            other.gate.release()
        else:
            _on_a_thread(lambda: self._lives(other))
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
