"""One query, answered the best way that there is: from counts, else from the model, else not at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.inference.answers import DECLARED, MEASURED, MODEL, Answered, within
from dpsynth_cli.inference.cells import rows_between
from dpsynth_cli.inference.honesty import counted, joined_with_others, remark, why_not
from dpsynth_cli.inference.language import Query, parse_query
from dpsynth_cli.inference.measured import Estimate, system
from dpsynth_cli.inference.relations import Known, known
from dpsynth_cli.inference.sampling import numbers, sampling_variance
from dpsynth_cli.inference.simulate import Drawn, drawn
from dpsynth_cli.inference.statistics import Key, Statistic
from dpsynth_cli.inference.weighted import FEWEST, weighted
from dpsynth_cli.questions import Floats, Progress, no_progress
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.release.replay import replay
from dpsynth_cli.release.stream.snapshot import measured
from dpsynth_cli.release.synthesis import Outcome, rows_of
from dpsynth_cli.spec.spec import Spec

T = TypeVar("T")

CUT = "the condition takes parts of cells: anything from none to all of their rows"
NARROW = "no interval: the condition takes parts of cells, and which of their rows was not counted"
MAY_BE_NONE = "no interval: there may be no such rows"
NO_ROWS = "no interval: no released row stands for such rows"
CERTAIN = "certain: what is declared leaves nothing else"
ANYTHING = "no interval: with this noise it can be anything"
NOTHING = 1e-12  # of a number: what is left of noise that cancels out
UNDEFINED = 0.1  # part of draws without a number, above which there is no interval


class Published:
    """A release as anybody sees it: what its transcript says, and what follows from that."""

    def __init__(
        self,
        spec: Spec,
        outcome: Outcome,
        known: Known,
        sampling_seed: int,
        seed: int = 0,
    ) -> None:
        self.domain: Domain = outcome.found.domain
        self.spec, self.model = spec.found(self.domain), outcome.model
        self.known, self.sampling_seed, self.seed = known, sampling_seed, seed

    @cached_property
    def released(self) -> Drawn:
        """The released rows again; of very many as many as are enough, drawn from the same model."""
        rows = rows_of(self.spec, self.model)
        return drawn(self.model, self.domain, max(1, rows), self.sampling_seed)

    def answer(self, query: Query, level: float = 0.95, population: bool = False) -> list[Answered]:
        """All numbers of a query with their intervals."""
        statistic = Statistic(query, self.domain, self.spec.stated.relations)
        rng, other = np.random.default_rng((self.seed, 1)), np.random.default_rng((self.seed, 2))
        sampling = sampling_variance(statistic, self.released, other) if population else None
        direct = self.measured(statistic)
        modelled: list[Answered] = []
        if any(one is None for one in direct):
            modelled = self._modelled(statistic, level, sampling, rng)
        answers = [
            modelled[k]
            if own is None
            else _from_counts(statistic, k, own, level, 0.0 if sampling is None else float(sampling[k]))
            for k, own in enumerate(direct)
        ]
        unit = self.spec.privacy.unit
        if unit is None:
            return answers
        kept = f"of at most {unit.rows:,} rows of each {unit.column}"
        if population:
            why = f"no interval: rows of one {unit.column} are not independent draws of a population"
            return [replace(one, low=None, high=None, note=f"{why}; {kept}") for one in answers]
        return [replace(one, note="; ".join(filter(None, (one.note, kept)))) for one in answers]

    def measured(self, statistic: Statistic) -> list[Estimate | None]:
        """What follows from counts alone; None for what does not."""
        none: list[Estimate | None] = [None] * len(statistic.keys)
        own = system(statistic.columns, self.domain, self.known.tables, self.known.signed)
        linear = None if own is None else statistic.linear(own.codes or {"": np.zeros(1)})
        if own is None or linear is None:
            return none
        top, bottom = linear
        if bottom is None:
            return [own.linear(row) for row in top]
        return [own.ratio(row, below) for row, below in zip(top, bottom, strict=True)]

    def _modelled(
        self, statistic: Statistic, level: float, sampling: Floats | None, rng: np.random.Generator
    ) -> list[Answered]:
        """From the released rows, weighted so that they have what was measured of their columns."""
        if why := why_not(statistic, self.known):
            estimates = numbers(statistic, self.released)
            return [
                Answered(key, float(x), None, None, MODEL, why)
                for key, x in zip(statistic.keys, estimates, strict=True)
            ]
        query = statistic.query
        found = weighted(statistic, self.released, self.known, level, sampling, rng)
        by_cells = counted(statistic, self.known)
        cells = rows_between(statistic, self.released, self.known) if query.kind == "count" else None
        inside = self._inside_of_cells(statistic)
        note, source = remark(statistic, self.known) if by_cells else "", MODEL if by_cells else MEASURED
        answers = []
        for k, key in enumerate(statistic.keys):
            centre, low, high = (float(ends[k]) for ends in (found.centre, found.low, found.high))
            said = (
                NARROW if inside[k] else found.why or (MAY_BE_NONE if found.undefined[k] > UNDEFINED else "")
            )
            if by_cells:
                said = said or joined_with_others(statistic, key, self.known)
            if cells is not None and cells[k].none:
                answers.append(_certain(key))
            elif not said and cells is not None:
                low, high = cells[k].interval(level, 0.0 if sampling is None else float(sampling[k]))
                own = (centre, MODEL, CUT) if cells[k].cut else (cells[k].least.value, MEASURED, "")
                answers.append(within(key, statistic.possible, own[0], low, high, *own[1:]))
            elif said or not math.isfinite(low + high):
                answers.append(Answered(key, centre, None, None, MODEL, said or NO_ROWS))
            else:
                answers.append(within(key, statistic.possible, centre, low, high, source, note))
        return [_unless_anything(statistic, one) for one in answers]

    def _inside_of_cells(self, statistic: Statistic) -> list[bool]:
        """Whether a number is about rows that are a part of cells: which of their rows, nothing tells."""
        query = statistic.query
        if query.where is None or query.kind == "count":
            return [False] * len(statistic.keys)
        rows = replace(query, kind="count", of=(), terms=())
        found = rows_between(Statistic(rows, self.domain, statistic.relations), self.released, self.known)
        if found is None:
            return [False] * len(statistic.keys)
        narrow = [one.cut and one.least.value <= FEWEST * one.least.sd for one in found]
        return list(np.repeat(narrow, len(statistic.keys) // len(narrow)))


def _unless_anything(statistic: Statistic, one: Answered) -> Answered:
    """Without its interval, where that is all that there is."""
    if (one.low, one.high) != statistic.possible:
        return one
    return replace(one, low=None, high=None, note=ANYTHING)


def _certain(key: Key, value: float = 0.0) -> Answered:
    return Answered(key, value, value, value, DECLARED, CERTAIN)


def _from_counts(statistic: Statistic, k: int, own: Estimate, level: float, more: float) -> Answered:
    if own.sd <= NOTHING * max(1.0, abs(own.value)):
        return _certain(statistic.keys[k], own.value)
    whole = Estimate(own.value, math.hypot(own.sd, math.sqrt(more)), own.kurtosis)
    half = whole.width(level)
    ends = own.value - half, own.value + half
    return within(statistic.keys[k], statistic.possible, own.value, *ends, MEASURED)


def published(path: Path, seed: int = 0, progress: Progress = no_progress) -> Published:
    """The release of a transcript."""
    transcript, _ = load(path)
    spec, outcome = replay(transcript, progress)
    if spec.tables is not None:
        raise UsageError(
            "this release has several tables; queries and replicates are about one.",
            "",
            "Count in the synthetic tables; intervals of such releases are not known yet.",
        )
    if spec.mechanism.stream:
        if spec.params.algorithm == "sparse":
            raise UsageError(
                "this snapshot is of sparse counting, whose counts wait for enough events: their error has "
                "no known distribution.",
                "",
                "Streams of running counts (mechanism.algorithm: blocks or joint) can be queried.",
            )
        asked = measured(spec, transcript, outcome)
    else:
        answers = [answer for _, answer in transcript.answers]
        asked = [(one.question, answer) for one, answer in zip(outcome.charges, answers, strict=True)]
    told = known(asked, outcome.found.domain, outcome.model.total)
    return Published(spec, outcome, told, transcript.header["sampling_seed"], seed)


def answer_each(
    path: Path,
    queries: Sequence[str],
    where: str | None = None,
    level: float = 0.95,
    population: bool = False,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[list[Answered] | UsageError]:
    """Queries about a release, from its transcript alone; what is wrong with those that have no answer."""
    if not 0 < level < 1:
        raise UsageError(f"--level is {level}; it must be between 0 and 1.", "")
    parsed = [_or_error(partial(parse_query, text, where)) for text in queries]
    if all(isinstance(one, UsageError) for one in parsed):
        return [one for one in parsed if isinstance(one, UsageError)]
    release = published(path, seed, progress)
    return [
        one if isinstance(one, UsageError) else _or_error(partial(release.answer, one, level, population))
        for one in parsed
    ]


def _or_error(found: Callable[[], T]) -> T | UsageError:
    try:
        return found()
    except UsageError as error:
        return error
