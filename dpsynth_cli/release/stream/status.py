"""Where a stream stands, in public words."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth_cli.mechanisms.online import schedule
from dpsynth_cli.release.stream.step import stream_of
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.stream.state import Store, StreamState


@dataclass(frozen=True)
class Status:
    """Where a stream stands: public facts only. `events` is None where arrivals are private."""

    stream: str
    name: str
    dataset: str
    pushes: int
    events: int | None
    releases: int
    clock: str  # what is counted until the next release
    now: int
    next_release: int | None  # None where the stream ends before
    generation: int
    state_file: str
    last_release_day: str | None  # None before the first
    last_release_at: int  # the clock then
    counted: bool = True  # false: this batch had been pushed before
    released: bool = False  # whether this push made a release


def status_of(spec: Spec, store: Store, state: StreamState) -> Status:
    """Pushes, events if they are public, releases, and when the next one is due."""
    stream = stream_of(spec)
    public, clock = stream.public_arrivals, stream.clock(state)
    R, now = spec.params.releases_per_doubling, state.release.get("due", 0)
    low, high = clock, max(1, 2 * clock)  # the next release is due in (low, high]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if schedule.due(middle, R) > now else (middle, high)
    return Status(
        stream=state.stream_id,
        name=spec.name,
        dataset=spec.privacy.dataset,
        pushes=state.pushes,
        events=clock if public else None,
        releases=state.release.get("number", 0),
        clock="events" if public else "pushes",
        now=clock,
        next_release=None if high > (spec.params.horizon or high) else high,
        generation=state.generation,
        state_file=str(store.path),
        last_release_day=state.release.get("day"),
        last_release_at=state.release.get("clock", 0),
    )
