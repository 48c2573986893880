"""The empirical audit of one mechanism: which pair of tables and which event show most, and what they prove.

Whole releases: first every pair is run a few hundred times, to find the pair, and for each statistic the
event, that tells the tables apart best. Then that pair is run afresh, and only these runs count: each event
gives a lower bound on epsilon. They see whatever a release shows, meant or not, but there are never many of
them.

Transcripts: of the worst run that was found (`worst.py`) the privacy loss is known exactly, and its
questions are answered again many thousand times (`transcripts.py`). They see far into the tail, where the
claim is nearly reached. All bounds of a line hold together with the stated confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evidence import transcripts
from dpsynth_cli.evidence.bounds import Event, best_event, epsilon_bound, epsilon_of_mu, mu_bound
from dpsynth_cli.evidence.neighbours import pairs
from dpsynth_cli.evidence.runs import LEARNT, STATISTICS, Runs, scored
from dpsynth_cli.evidence.streams import bench_of
from dpsynth_cli.evidence.worst import Worst, within_claim, worst
from dpsynth_cli.mechanisms.registry import Mechanism
from dpsynth_cli.questions import Floats
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.gaussian import mu_of_rho
from dpsynth_cli.trusted.noise.words import system_source

RELATIONS = ("add_remove", "replace_one")
LEAST_PILOT = 300  # runs of each table
TRANSCRIPTS = 200_000  # of each of the two worst tables
Advance = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Finding:
    """What an audit proved, about one mechanism under one relation in one currency.

    `lower` is the bound on epsilon that needs no assumption; `gaussian`, where there is a delta, the one
    that takes the noise for Gaussian. Both are by whole releases; `transcripts` is by those of the worst
    run alone, with its mu where there is a delta, and `loss` the most that these can tell, exactly: of
    epsilon, or of mu squared. `curve` is, for every threshold of the likelihood, how often the table
    without the row and the one with it passed.
    """

    mechanism: str
    neighbours: str
    epsilon: float
    delta: float
    pair: str
    statistic: str
    lower: float
    gaussian: float | None
    runs: int
    confidence: float
    curve: tuple[Floats, Floats]
    worst: Worst
    count: int
    transcripts: float
    mu: float | None

    @property
    def audited(self) -> float:
        """The best lower bound on epsilon."""
        return max(self.lower, self.gaussian or 0.0, self.transcripts)

    @property
    def of_claim(self) -> float:
        """How near the claim it is: of epsilon, or of mu where the noise is Gaussian."""
        if self.mu is None:
            return self.audited / self.epsilon
        return self.mu / float(mu_of_rho(self.worst.bench.budget.total))

    @property
    def holds(self) -> bool:
        within = within_claim(self.worst.loss, self.worst.bench.budget)
        return within and self.audited <= self.epsilon and self.of_claim <= 1

    def as_json(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "neighbours": self.neighbours,
            "claimed": {"epsilon": self.epsilon, "delta": self.delta},
            "audited_lower_bound": self.audited,
            "clopper_pearson": self.lower,
            "gaussian_fit": self.gaussian,
            "transcripts": {
                "at_least": self.transcripts,
                "mu_at_least": self.mu,
                "exactly": self.worst.part,
                "tables": self.worst.bench.pair.name,
                "split": self.worst.bench.split,
                "count": self.count,
            },
            "of_claim": self.of_claim,
            "holds": self.holds,
            "tables": self.pair,
            "statistic": self.statistic,
            "runs": self.runs,
            "confidence": self.confidence,
        }


def audit(
    mechanism: Mechanism,
    neighbours: str,
    epsilon: Fraction,
    delta: Fraction | None,
    runs: int,
    confidence: float,
    progress: Advance = lambda done: None,
    count: int = TRANSCRIPTS,
    unit_rows: int | None = None,
    params: Any = None,
) -> Finding:
    """Search for evidence against the claim; `runs` releases and `count` transcripts of each of two tables
    count. With `unit_rows` the claim is about units of so many rows; with `params` it is about the mechanism
    with other parameters than its defaults."""
    budget = Accountant.pure(epsilon) if delta is None else Accountant.gaussian(epsilon, delta)
    small, gaussian = float(delta or 0), delta is not None
    # One part for each statistic of releases, and one for transcripts; each bounds mu, too, if that is
    # asked for.
    alpha = (1 - confidence) / ((len(STATISTICS) + 1) * (2 if gaussian else 1))
    params = mechanism.params() if params is None else params

    # The pair of tables, and of each statistic the event, that show most.
    tried = pairs(mechanism, params, neighbours, unit_rows)
    if not tried:
        raise UsageError(f"{mechanism.name} takes none of the tables of the audit.", next_step="")
    pilot = pilot_runs(runs)
    best, found = -1.0, None
    for pair in tried:
        bench = bench_of(mechanism, params, pair, budget, dict(mechanism.stages))
        before = bench.runs(0, pilot, progress), bench.runs(1, pilot, progress)
        numbers = [_numbers(each, before, pilot // 2) for each in before]
        events = {
            name: [
                best_event(name, numbers[0][name], numbers[1][name], small, alpha, fit)
                for fit in ((False, True) if gaussian else (False,))
            ]
            for name in STATISTICS
        }
        shown = max(_epsilon(each, small) for each in events.values())
        if shown > best:
            best, found = shown, (bench, before, events)
    assert found is not None
    bench, before, events = found

    # Fresh runs: what the chosen events prove.
    again = bench.runs(0, runs, progress), bench.runs(1, runs, progress)
    fresh = [_numbers(each, before, pilot) for each in again]
    proved = {
        name: [_bound(event, fresh, runs, small, alpha, fit) for fit, (_, event) in enumerate(events[name])]
        for name in STATISTICS
    }
    statistic = max(STATISTICS, key=lambda name: max(proved[name]))

    # Transcripts of the worst run, again and again.
    found_worst = worst(mechanism, params, neighbours, budget, unit_rows)
    by_transcripts, mu = transcripts.proved(
        found_worst.told,
        found_worst.bench.pair.omega,
        count,
        small,
        alpha * (2 if gaussian else 1),
        gaussian,
        system_source(),
    )
    if gaussian:
        by_transcripts = max(by_transcripts, epsilon_of_mu(mu, small))
    return Finding(
        mechanism.name,
        neighbours,
        float(epsilon),
        small,
        bench.pair.name,
        statistic,
        max(each[0] for each in proved.values()),
        max(each[1] for each in proved.values()) if gaussian else None,
        runs,
        confidence,
        _curve(*(each["likelihood"] for each in fresh)),
        found_worst,
        count,
        by_transcripts,
        mu if gaussian else None,
    )


def pilot_runs(runs: int) -> int:
    """Runs of each table of each pair that only choose."""
    return max(LEAST_PILOT, runs // 8)


def releases(
    mechanism: Mechanism, params: Any, neighbours: str, runs: int, unit_rows: int | None = None
) -> int:
    """How many releases an audit makes."""
    tried = pairs(mechanism, params, neighbours, unit_rows)
    return 2 * runs + 2 * pilot_runs(runs) * len(tried)


def _numbers(runs: Runs, before: tuple[Runs, Runs], learnt: int) -> dict[str, Floats]:
    """The statistics of runs; marks are scored by the first so many of the earlier runs."""
    found = dict(runs.numbers)
    for name in LEARNT:
        found[name] = scored(runs.marks[name], before[0].marks[name][:learnt], before[1].marks[name][:learnt])
        if runs in before:  # those that taught the score must not be judged by it
            found[name][:learnt] = 0.0
    return found


def _epsilon(shown: list[tuple[float, Event]], delta: float) -> float:
    direct, *fitted = (proof for proof, _ in shown)
    return max([direct, *(epsilon_of_mu(mu, delta) for mu in fitted)])


def _bound(
    event: Event, fresh: list[dict[str, Floats]], runs: int, delta: float, alpha: float, fit: int
) -> float:
    hits, others = (np.array([float(n)]) for n in event.counts(*(each[event.statistic] for each in fresh)))
    if fit:
        return epsilon_of_mu(float(mu_bound(hits, others, runs, alpha)[0]), delta)
    return float(epsilon_bound(hits, others, runs, delta, alpha)[0])


def _curve(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    thresholds = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 60)))
    return (
        np.array([(second >= t).mean() for t in thresholds]),
        np.array([(first >= t).mean() for t in thresholds]),
    )
