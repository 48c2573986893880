"""The mechanisms that could release a table, side by side on the same references."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.lines import TARGETS
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.mechanisms.auto import choice_of
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.questions import Progress
from dpsynth_cli.release.predict.family import EXAMPLE
from dpsynth_cli.release.predict.imagine import imagine, references
from dpsynth_cli.release.predict.predict import Prediction, Range, errors_of, means, ranges
from dpsynth_cli.spec.spec import Spec, from_document

JUDGED_BY = ("tvd2", "tvd1")  # the first that a table has decides which mechanism is the better one
MUCH = 0.9  # another one is named where its errors are below this part


@dataclass(frozen=True)
class Candidate:
    """A mechanism with its own defaults (the spec's own one as it is), its errors, and processor seconds of
    one simulated release. `tables` is how many references were simulated before its time was over.
    """

    name: str
    errors: dict[str, Range]
    by_table: dict[str, dict[str, float]]
    seconds: float
    tables: int

    @classmethod
    def of(cls, spec: Spec, prediction: Prediction) -> Candidate:
        """The spec's own mechanism, as it was predicted."""
        tables = prediction.by_table
        return cls(spec.mechanism.name, prediction.errors, tables, prediction.run_seconds, len(tables))

    def ratio(self, own: Candidate) -> float:
        """Its errors by those of another one, on the tables that both were simulated on."""
        found = self.compared(own)
        return float(found["mean"] / found["own_mean"]) if found["own_mean"] else 1.0

    def compared(self, own: Candidate) -> dict[str, Any]:
        """The error that it was judged by beside that of another one: means over the tables of both."""
        by = judged_by(own)
        shared = [table for table in self.by_table if table in own.by_table]
        many = max(1, len(shared))
        mine, theirs = (sum(one.by_table[table][by] for table in shared) / many for one in (self, own))
        return {"by": by, "shared_tables": len(shared), "mean": mine, "own_mean": theirs}

    def as_json(self) -> dict[str, Any]:
        return {
            "mechanism": self.name,
            "errors": {name: asdict(found) for name, found in self.errors.items()},
            "by_table": self.by_table,
            "cpu_seconds_a_run": self.seconds,
            "tables": self.tables,
        }


def candidates(spec: Spec) -> dict[str, Spec]:
    """The same spec with each mechanism that can take it: private ones that release a table at once."""
    found = {spec.mechanism.name: spec}
    section = {"strata": spec.domain.strata} if spec.domain.strata else {}
    for name, mechanism in mechanisms().items():
        if name in (*found, "auto") or mechanism.stream or not mechanism.private(mechanism.params()):
            continue  # auto is one of the others
        try:
            found[name] = from_document(spec.effective | {"mechanism": {"name": name} | section})
        except UsageError:  # it does not take these columns, this relation, these strata
            continue
    return found


def recommended(spec: Spec) -> dict[str, Spec]:
    """The candidate that `auto` would take for these columns, unless that is what the spec has."""
    name = choice_of(spec.domain).mechanism.name
    if spec.mechanism.name in ("auto", name):
        return {}
    return {one: found for one, found in candidates(spec).items() if one == name}


def others(
    spec: Spec,
    rows: int,
    like: Table | None,
    runs: int,
    limit: float,
    progress: Progress,
    own: Candidate,
    wanted: Mapping[str, Spec],
    only: Collection[str] = tuple(TARGETS),
) -> list[Candidate]:
    """These candidates on the same references, the one with the least error first; `own` is the spec's own
    one, simulated already. Once one has taken `limit` processor seconds, no further table is begun for it.
    """
    wanted = {name: one for name, one in wanted.items() if name != own.name}
    tables = references(spec, rows, like, tuple(own.by_table)) if wanted else {}
    progress("comparing", 0, len(wanted) * len(tables))
    found = [own]
    for one in wanted.values():
        with suppress(
            UsageError
        ):  # what only shows when it is asked, such as too little budget for its cells
            found.append(_simulated(one, rows, tables, runs, limit, progress, only))
    return sorted(found, key=lambda one: one.ratio(own))


def _simulated(
    spec: Spec,
    rows: int,
    tables: dict[str, Table],
    runs: int,
    limit: float,
    progress: Progress,
    only: Collection[str],
) -> Candidate:
    start, done = time.process_time(), 0
    measured: dict[str, list[dict[str, float]]] = {}
    for name in sorted(tables, key=lambda name: name != EXAMPLE):  # the most usual one first
        table = tables[name]
        progress("comparing", 1, None)
        if measured and time.process_time() - start > limit:
            continue
        made = [imagine(spec, rows, table)[1] for _ in range(max(1, runs))]
        measured[name] = [errors_of(table, one, spec, only) for one in made]
        done += len(made)
    seconds = (time.process_time() - start) / done
    by_table = {name: means(each) for name, each in measured.items()}
    return Candidate(spec.mechanism.name, ranges(measured), by_table, seconds, len(measured))


def judged_by(one: Candidate) -> str:
    return next(name for name in JUDGED_BY if name in one.errors)


def better(found: Sequence[Candidate], own: Candidate) -> Candidate | None:
    """Of candidates in order, the one to take instead, if it is better by much."""
    return found[0] if found[0].ratio(own) < MUCH else None
