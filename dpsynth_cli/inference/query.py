"""One query, answered the best way that there is: from counts, else from the model, else not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Domain
from dpsynth_cli.errors import UsageError
from dpsynth_cli.inference.bootstrap import SIMULATIONS, errors, numbers, sampling_variance, simulations
from dpsynth_cli.inference.calibration import Calibration
from dpsynth_cli.inference.cells import rows_between
from dpsynth_cli.inference.empty import with_empty_cells
from dpsynth_cli.inference.honesty import counted, joined_with_others, remark, why_not
from dpsynth_cli.inference.language import Query, parse_query
from dpsynth_cli.inference.measured import Estimate, normal_quantile, system
from dpsynth_cli.inference.relations import Known, known
from dpsynth_cli.inference.simulate import Drawn, drawn
from dpsynth_cli.inference.statistics import Key, Statistic
from dpsynth_cli.inference.unknown import unknown_variance
from dpsynth_cli.questions import Floats, Progress, no_progress
from dpsynth_cli.release.replay import replay
from dpsynth_cli.release.stream_snapshot import measured
from dpsynth_cli.release.synthesis import Outcome, rows_of
from dpsynth_cli.release.transcript import load
from dpsynth_cli.spec.spec import Spec

FIELDS = ("query", "estimate", "low", "high", "from", "note")
Bools: TypeAlias = NDArray[np.bool_]
MEASURED, MODEL = "measured", "model"
NOISES = 64  # times that other noise is drawn
SIMULATED = "from simulated releases, which see less of what noise hides: intervals may be too narrow"
FEWEST = 3  # standard deviations of noise that the rows of a group must have
NARROW = "no interval: the condition takes parts of cells, and which of their rows was not counted"
CUT = "the condition takes parts of cells: anything from none to all of their rows"
IN_ONE_CELL = 2.0  # times the variance of where values lie: a quantile is in one cell, nothing evens out
MAY_BE_NONE = "no interval: there may be no such rows"
NO_ROWS = "no interval: no released row stands for such rows"
UNDEFINED = 0.1  # part of simulations without a number, above which there is no interval


@dataclass(frozen=True)
class Answered:
    """One number: of which group or coefficient, where it is from, its interval (None: there is no honest
    one), and why."""

    key: Key
    estimate: float
    low: float | None
    high: float | None
    source: str
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """As `query --json` prints it. A column that is called as one of these fields has a _ behind it."""
        labels = {f"{name}_" if name in FIELDS else name: label for name, label in self.key}
        return labels | {
            "estimate": self.estimate if math.isfinite(self.estimate) else None,
            "low": self.low,
            "high": self.high,
            "from": self.source,
            "note": self.note,
        }


class Published:
    """A release as anybody sees it: what its transcript says, and what follows from that."""

    def __init__(
        self,
        spec: Spec,
        outcome: Outcome,
        known: Known,
        sampling_seed: int,
        simulated: int = SIMULATIONS,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> None:
        self.domain: Domain = outcome.found.domain
        self.declared, self.spec, self.model = spec, spec.found(self.domain), outcome.model
        self.known = known
        self.sampling_seed, self.count, self.seed, self.progress = sampling_seed, simulated, seed, progress

    @cached_property
    def released(self) -> Drawn:
        """The released rows again; of very many as many as are enough, drawn from the same model."""
        rows = rows_of(self.spec, self.model)
        return drawn(self.model, self.domain, max(1, rows), self.sampling_seed)

    @cached_property
    def simulations(self) -> list[Drawn]:
        return simulations(self.declared, self.released, self.count, self.seed, self.progress)

    def answer(self, query: Query, level: float = 0.95, population: bool = False) -> list[Answered]:
        """All numbers of a query with their intervals."""
        statistic = Statistic(query, self.domain, self.spec.stated.relations)
        rng = np.random.default_rng((self.seed, 1))
        more = np.zeros(len(statistic.keys))
        if population:
            more = sampling_variance(statistic, self.released, rng)
        direct = self.measured(statistic)
        modelled: list[Answered] = []
        if any(one is None for one in direct):
            modelled = self._modelled(statistic, level, more, rng)
        answers = [
            modelled[k] if own is None else _from_counts(statistic, k, own, level, float(more[k]))
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
        self, statistic: Statistic, level: float, more: Floats, rng: np.random.Generator
    ) -> list[Answered]:
        """From the released rows: weighted so that they have the measured counts, where their columns were
        counted; else as they are, with the errors of simulated releases."""
        why, by_simulation = why_not(statistic, self.known), not counted(statistic, self.known)
        if by_simulation and self.spec.mechanism.stream:
            why = why or "no interval: a stream is not simulated, and these columns were not counted"
        if why:
            estimates = numbers(statistic, self.released)
            return [
                Answered(key, float(x), None, None, MODEL, why)
                for key, x in zip(statistic.keys, estimates, strict=True)
            ]
        if by_simulation:
            found = errors(statistic, self.released, self.simulations)
            centre, undefined = numbers(statistic, self.released) - found.bias, found.undefined
            variance, note = found.variance * (1 + 1 / found.count) + found.bias**2, SIMULATED
            width = _student(level, found.count)
        else:
            centre, variance, undefined = self._weighted(statistic, rng)
            width, note = normal_quantile((1 + level) / 2), remark(statistic, self.known)
        half = width * np.sqrt(variance + more)
        cells = (
            rows_between(statistic, self.released, self.known) if statistic.query.kind == "count" else None
        )
        inside = self._inside_of_cells(statistic)
        answers = []
        for k, key in enumerate(statistic.keys):
            said = NARROW if inside[k] else MAY_BE_NONE if undefined[k] > UNDEFINED else ""
            said = said or joined_with_others(statistic, key, self.known)
            if not said and cells is not None:
                low, high = _possible(statistic, *cells[k].interval(level, float(more[k])))
                own = (centre[k], MODEL, CUT) if cells[k].cut else (cells[k].least.value, MEASURED, "")
                answers.append(Answered(key, float(np.clip(own[0], low, high)), low, high, *own[1:]))
                continue
            if not said and not variance[k] > 0:
                said = NO_ROWS
            if said or not np.isfinite(centre[k] + half[k]):
                answers.append(
                    Answered(key, float(centre[k]), None, None, MODEL, said or "no interval: no such rows")
                )
                continue
            low, high = _possible(statistic, centre[k] - half[k], centre[k] + half[k])
            answers.append(Answered(key, float(np.clip(centre[k], low, high)), low, high, MODEL, note))
        return answers

    def _weighted(self, statistic: Statistic, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """From weighted rows: the numbers, their variances, and in which part of draws there is none."""
        rows = with_empty_cells(statistic.columns, self.released, self.known, rng)
        own = Calibration(statistic.columns, rows, self.known)
        answer, weight = statistic.prepared(rows.table.codes), own.weights()
        centre = answer(weight)
        moved = np.stack([answer(own.weights(rng)) - centre for _ in range(NOISES)])
        undefined = 1 - np.isfinite(moved).mean(axis=0)
        undefined[self._hardly_there(statistic, rows, own, rng)] = 1.0
        moved = np.where(np.isfinite(moved), moved, 0.0)
        unknown = unknown_variance(statistic, rows, self.known, weight, rng)
        if statistic.query.kind == "quantile":
            unknown = IN_ONE_CELL * unknown
        return centre, (moved**2).mean(axis=0) + unknown, undefined

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

    def _hardly_there(
        self, statistic: Statistic, drawn: Drawn, own: Calibration, rng: np.random.Generator
    ) -> Bools:
        """Groups that may be noise alone: a mean of them is a quotient by noise."""
        if statistic.query.kind not in ("mean", "sd", "quantile", "corr"):
            return np.zeros(len(statistic.keys), bool)
        rows = Statistic(replace(statistic.query, kind="count", of=()), self.domain, statistic.relations)
        count = rows.prepared(drawn.table.codes)
        moved = np.stack([count(own.weights(rng)) for _ in range(NOISES)])
        return np.asarray(count(own.weights()) <= FEWEST * moved.std(axis=0))


def _from_counts(statistic: Statistic, k: int, own: Estimate, level: float, more: float) -> Answered:
    whole = Estimate(own.value, math.hypot(own.sd, math.sqrt(more)), own.kurtosis)
    half = whole.width(level)
    low, high = _possible(statistic, own.value - half, own.value + half)
    return Answered(statistic.keys[k], float(np.clip(own.value, low, high)), low, high, MEASURED)


def _possible(statistic: Statistic, low: float, high: float) -> tuple[float, float]:
    """The interval inside of what the number can be."""
    kind = statistic.query.kind
    least = {"count": 0.0, "share": 0.0, "sd": 0.0, "corr": -1.0}.get(kind, -math.inf)
    most = {"share": 1.0, "corr": 1.0}.get(kind, math.inf)
    return float(np.clip(low, least, most)), float(np.clip(high, least, most))


def _student(level: float, count: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(1, count - 1), (1 + level) / 2))


def published(
    path: Path, simulated: int = SIMULATIONS, seed: int = 0, progress: Progress = no_progress
) -> Published:
    """The release of a transcript."""
    transcript, _ = load(path)
    spec, outcome = replay(transcript, progress)
    if spec.tables is not None:
        raise UsageError(
            "this release has several tables, and questions are answered about one.",
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
    return Published(spec, outcome, told, transcript.header["sampling_seed"], simulated, seed, progress)


def answer(
    path: Path,
    queries: Sequence[str],
    where: str | None = None,
    level: float = 0.95,
    population: bool = False,
    simulated: int = SIMULATIONS,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[list[Answered]]:
    """Queries about a release, from its transcript alone."""
    if not 0 < level < 1:
        raise UsageError(f"--level is {level}; it must be between 0 and 1.", "")
    parsed = [parse_query(text, where) for text in queries]
    release = published(path, simulated, seed, progress)
    return [release.answer(query, level, population) for query in parsed]
