"""What the processes of a schedule do: the real commands, on a simulated machine.

Not real are the rows (there are none to read), and the noise: it is a number that is never drawn twice, so
that two answers to one question cannot look the same.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import dpsynth_cli.release.stream.stream as streams
import dpsynth_cli.release.table as releases
from dpsynth_cli import disk
from dpsynth_cli.questions import Asking
from dpsynth_cli.release.record.unfinished import Request, left_in
from dpsynth_cli.spec.document import effective
from dpsynth_cli.spec.paths import DATE
from dpsynth_cli.spec.spec import Spec, load_spec
from dpsynth_cli.trusted.core import curator
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.stream.coded_rows import CodedRows, Summed
from dpsynth_cli.trusted.stream.epoch import Epoch
from dpsynth_cli.trusted.stream.leaves import Leaves
from dpsynth_cli.trusted.sums.tally import Tally
from tests.simulator.machine import NAMES, Machine
from tests.simulator.once import cheaper

HOME, OUT = "/home", "/home/out"
INPUT, LEDGER, MIRROR = f"{HOME}/people.csv", f"{HOME}/ledger.sqlite", f"{HOME}/mirror/copy.jsonl"
OUTPUTS = (f"{OUT}/a.csv", f"{OUT}/b.csv", f"{OUT}/{DATE}/c.csv")
STREAM = len(OUTPUTS)  # the number of the stream's spec
BY_HAND = "given back by hand"
Command = tuple[Any, ...]

TEXT = """\
dpsynth: 1
name: {name}
input: {input}
output: {output}
rows: 2
privacy: {{epsilon: 1, dataset: people}}
mechanism: {{name: {mechanism}}}
evaluate: {{metrics: []}}
columns:
  smoker: {{type: boolean}}
"""


@cache
def specs(stream: str = "online") -> tuple[Spec, ...]:
    """Two outputs in one folder, one in a folder of its day, and a stream."""
    wanted = [(Path(output).stem, output, "marginals") for output in OUTPUTS]
    wanted.append(("stream", f"{OUT}/s.csv", stream))
    made = []
    with TemporaryDirectory() as folder:
        for name, output, mechanism in wanted:
            path = Path(folder) / "spec.yaml"
            path.write_text(TEXT.format(name=name, input=INPUT, output=output, mechanism=mechanism))
            made.append(load_spec(str(path)))
    return tuple(made)


def spec_today(number: int) -> Spec:
    """A spec as it is read now: an output may name the day."""
    spec = specs()[number]
    if not spec.dated:
        return spec
    then = replace(spec, output=spec.dated.replace(DATE, disk.today()))
    return replace(then, effective=effective(then))


class NoRows:
    """A table that nobody reads."""

    def __init__(self, columns: Any) -> None:
        self.columns, self.size = columns, None

    def declared(self, columns: Any) -> NoRows:
        return self

    def close(self) -> None:
        """Nothing is open."""


def _no_sums(scan: Any, omega: Any, questions: Any, *more: Any) -> tuple[list[Any], int]:
    return Tally(questions, omega).sums(), 0


def _three_rows(scan: Any, spec: Spec, state: Any, *more: Any) -> Any:
    """What a push reads."""
    if spec.params.algorithm != "joint":
        return Leaves(np.array([1]), np.array([3]))
    rows = CodedRows({"smoker": np.ones(3, np.int64)}, np.ones(3, np.int64))
    questions = Epoch.of_parts(*state.counters).questions if state.counters else []
    return Summed(3, rows.sums(questions, spec.domain)) if questions else rows


class Seen:
    """What was done and shown, whatever the ledger and the disk say later."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.looked: set[str] = set()  # releases and streams for which rows were read
        self.wrong: list[str] = []
        self.shown: dict[tuple[str, int], bytes] = {}
        self.done: list[str] = []  # releases that said they are in place
        self.draws = count(1000)

    def looks(self, release_id: str) -> None:
        """Rows are read for a release: now. Asked of the entries themselves, which is no step."""
        kinds = [
            row[0]
            for row in self.ledger.place.db.execute(  # type: ignore[attr-defined]
                "SELECT kind FROM entries WHERE release = ? AND kind != 'note' ORDER BY number", (release_id,)
            )
        ]
        if kinds != ["reserve", "drawn"]:
            self.wrong.append(f"charged before rows are read: {release_id} is {kinds or 'unknown'}")
        self.looked.add(release_id)

    def answered(self, release_id: str, number: int, values: Any) -> None:
        """A mechanism, or everybody, sees an answer."""
        data = np.asarray(values).tobytes()
        if self.shown.setdefault((release_id, number), data) != data:
            self.wrong.append(f"no question is answered twice: number {number} of {release_id}")


class Watched:
    """Rows, for one release."""

    def __init__(self, rows: Any, release_id: str, seen: Seen) -> None:
        self._rows, self._release, self._seen = rows, release_id, seen

    def sums(self, questions: Sequence[Any]) -> list[Any]:
        self._seen.looks(self._release)
        return list(self._rows.sums(questions))


@contextmanager
def simulated(machine: Machine, seen: Seen, seed: int) -> Iterator[None]:
    """The package on this machine. Names and keys are drawn from a seed; noise counts up."""
    luck = random.Random(seed)
    open_curator, advance = releases.open_curator, streams.advance

    def watched(rows: Any, bill: Any, source: Any, journal: Any, *more: Any) -> Asking:
        ask = open_curator(Watched(rows, journal.release_id, seen), bill, source, journal, *more)
        numbers = count()

        def answer(questions: Sequence[Any]) -> list[Any]:
            given = ask(questions)
            for one in given:
                seen.answered(journal.release_id, next(numbers), one.values)
            return given

        return Asking(answer, ask.sd)

    def advanced(state: Any, *more: Any) -> bool:
        seen.looks(state.stream_id)
        return advance(state, *more)

    def noise(charge: Any, omega: Any, source: Any) -> Any:
        return np.full(sum(charge.lengths), next(seen.draws))

    places = [
        *((disk, name, getattr(machine, name)) for name in NAMES),
        (releases, "open_scan", lambda path, columns, csv: NoRows(columns)),
        (releases, "open_curator", watched),
        (streams, "open_scan", lambda batch, columns, csv: NoRows(columns)),
        (streams, "read_batch", _three_rows),
        (streams, "declared_dataset", lambda batch: None),
        (streams, "advance", advanced),
        (curator, "noise_for", noise),
        (secrets, "token_hex", lambda size: f"{luck.getrandbits(8 * size):0{2 * size}x}"),
        (secrets, "randbits", luck.getrandbits),
        *cheaper(),
    ]
    kept = [(place, name, getattr(place, name)) for place, name, _ in places]
    try:
        for place, name, new in places:
            setattr(place, name, new)
        yield
    finally:
        for place, name, old in kept:
            setattr(place, name, old)


ENGINE = Engine(_no_sums)


def run(command: Command, ledger: Ledger, seen: Seen) -> Any:
    """One command, as a process of its own would run it."""
    kind, *words = command
    if kind == "release":
        number, flags = words
        receipt = releases.release(
            spec_today(number), ledger, engine=ENGINE, request=Request(**dict.fromkeys(flags, True))
        )
        seen.done.append(receipt.release_id)
        return receipt
    spec = specs()[STREAM]
    if kind == "init":
        return streams.init(spec, ledger, start_over=words[0])
    if kind == "push":
        return streams.push(spec, ledger, INPUT, words[0])
    if kind == "publish":
        return streams.publish(spec, ledger)
    if kind == "undo":
        return streams.undo(spec, ledger, words[0])
    if kind == "grant":
        return ledger.grant("people", "1", "add_remove")
    if kind == "refund":  # by hand: dpsynth budget refund
        for entry in ledger.unfinished()[:1]:
            ledger.refund(entry.release, BY_HAND)
        return None
    assert kind == "look", kind
    return left_in(Path(OUT), ledger)
