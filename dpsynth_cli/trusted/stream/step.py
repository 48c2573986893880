"""One push of a stream: a batch becomes raw counts, and a release that is due gets its noise.

Raw counts are in a `StreamState`, which whoever calls this holds and never looks into. When a release is
made the caller says by public numbers alone: the clock is all that comes back.
Whoever calls this makes the state durable before anything of it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from dpsynth_cli.domain import Domain
from dpsynth_cli.question_json import as_json
from dpsynth_cli.questions import Answer, Ask, Asking, Cells, Floats, Ints, Question
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.engines.local import Pieces, added_up
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.stream.blocks import close_release, open_release, outside
from dpsynth_cli.trusted.stream.coded_rows import CodedRows, Summed, none_yet, read_rows, read_sums
from dpsynth_cli.trusted.stream.dynamic_partition import DynamicPartition
from dpsynth_cli.trusted.stream.epoch import Epoch
from dpsynth_cli.trusted.stream.factorisation import factorisation, rows_of
from dpsynth_cli.trusted.stream.leaves import Gathered, Leaves
from dpsynth_cli.trusted.stream.prefix_counts import prefix_counts
from dpsynth_cli.trusted.stream.state import StreamState
from dpsynth_cli.trusted.stream.table_counters import Counters


@dataclass(frozen=True)
class Stream:
    """What is public about a stream, for its whole life. `budget` gives the whole of it, unspent."""

    omega: Domain
    partition: Cells  # the finest that raw counts are kept in
    room: Callable[[int], Floats]  # the part of Omega that each cell of a level has
    public_arrivals: bool
    budget: Callable[[], Accountant]
    most: int | None = None  # releases that it may have; None: any number

    def __post_init__(self) -> None:
        # Under add_remove a row that is not there changes how many arrive.
        if self.public_arrivals and self.omega.neighbours != "replace_one":
            raise ValueError("the number of rows of a push is public under replace_one only")

    def clock(self, state: StreamState) -> int:
        """What time it is: the events so far where arrivals are public, else the pushes."""
        return state.events if self.public_arrivals else state.pushes


def read_leaves(
    scan: Pieces,
    stream: Stream,
    progress: Callable[[int], None] = lambda done: None,
    counted: Problems | None = None,
) -> Leaves:
    """The raw counts of a batch. Cells that are not as declared are `counted`."""
    tallies = added_up(scan, lambda: Gathered(stream.partition, stream.omega), progress, counted=counted)
    first, *rest = tallies
    for tally in rest:
        first.merge(tally)
    return first.leaves()


def add_batch(state: StreamState, stream: Stream, rows: Leaves, batch_id: str) -> int:
    """Take a batch into the state, and give the clock after it."""
    state.batches.append(batch_id)
    state.events += rows.rows
    state.open = state.open + rows
    return stream.clock(state)


def measure_release(state: StreamState, stream: Stream, ask_release: Callable[[Ask, int], object]) -> None:
    """Measure what the next release has to: counts of everything so far. `ask_release` is told how many
    events are not measured now, as far as it is known.
    """
    budget = stream.budget()
    method = factorisation(budget.currency, stream.most)
    blocks = open_release(method, state.blocks, state.open)
    accountants = [stream.budget() for _ in rows_of(method, blocks.starts, blocks.release)]
    events = state.events if stream.public_arrivals else None
    ask, asked = prefix_counts(
        method, blocks, stream.partition, stream.room, stream.omega, accountants, system_source(), events
    )
    state.answers = []

    def recorded(questions: Sequence[Question]) -> list[Answer]:
        answers = ask(questions)
        state.answers += zip(map(as_json, questions), answers, strict=True)
        return answers

    before = outside(blocks, method)
    ask_release(Asking(recorded, ask.sd), before)
    state.release["before"] = before
    state.blocks, state.open = close_release(method, blocks, asked), Leaves()


def epoch_of(state: StreamState, stream: Stream, first: Sequence[Question]) -> Epoch:
    """The epoch under way of a stream of mixed tables, or a new one, which begins with these questions."""
    if state.counters is not None:
        return Epoch.of_parts(*state.counters)
    return Epoch(len(state.release.get("epochs", [])), none_yet(stream.omega), Counters(list(first)))


def read_mixed(
    scan: Pieces,
    stream: Stream,
    epoch: Epoch,
    progress: Callable[[int], None] = lambda done: None,
    counted: Problems | None = None,
) -> CodedRows | Summed:
    """A batch of mixed columns: as it is until tables are chosen, then as sums."""
    if epoch.questions:
        return read_sums(scan, stream.omega, epoch.questions, progress, counted)
    return read_rows(scan, stream.omega, progress, counted)


def add_mixed(
    state: StreamState, stream: Stream, epoch: Epoch, batch: CodedRows | Summed, batch_id: str
) -> int:
    """Take such a batch into the state, and give the clock after it."""
    state.batches.append(batch_id)
    state.events += batch.rows
    epoch.arrive(batch)
    state.counters = epoch.as_parts()
    return stream.clock(state)


def measure_mixed(
    state: StreamState,
    stream: Stream,
    choose: Callable[[int, Ask, list[Answer]], float],
    is_over: Callable[[float, Sequence[Answer]], bool],
) -> None:
    """Measure the next release of the epoch under way: its answers follow those of the epochs before, and
    what its tables were chosen by. `choose` is told the number of the epoch; `is_over` says by answers alone
    whether another one begins then."""
    assert state.counters is not None
    epoch = Epoch.of_parts(*state.counters)
    own = partial(choose, epoch.number)
    choice, now = epoch.measure(stream.omega, stream.budget, system_source(), own)
    finished, under_way = state.release["epochs"][: epoch.number], state.release["epochs"][epoch.number :]
    before = sum(map(sum, finished))
    choice = choice or state.answers[before : before + (under_way[0][0] if under_way else 0)]
    state.answers = [*state.answers[:before], *choice, *now]
    state.release["epochs"] = [*finished, [len(choice), len(now)]]
    over = epoch.is_full or (epoch.chosen_for and is_over(epoch.chosen_for, [a for _, a in now]))
    state.counters = None if over else epoch.as_parts()


def check_segments(
    state: StreamState,
    stream: Stream,
    level: int,
    checks: int,
    shares: Mapping[int, Fraction],
    keeps_history: bool,
) -> list[Ints]:
    """One step of Algorithm 12: a new time level if it is time, then add, check, close. The private counts
    of every level of the partition that is there, from the root down.

    A time `level` has at most so many `checks`, and `shares` of the levels of the partition.
    """
    epsilon, source = stream.budget().epsilon, system_source()
    per_path = epsilon if stream.omega.neighbours == "add_remove" else epsilon / 2
    counters = DynamicPartition(len(stream.partition.order or ()), per_path, keeps_history)
    if state.counters is not None:
        counters.restore(*state.counters)
    if counters.level is None or level > counters.level:
        counters.enter(level, checks, shares, source)
    counters.step(state.open, source)
    state.open = Leaves()
    state.counters = counters.as_parts()
    return list(counters.output().values())
