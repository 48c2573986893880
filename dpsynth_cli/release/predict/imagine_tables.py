"""A release of several tables imagined over generated ones: what would be asked, at what price, with which
error. Children are like each other as the tables of the family are, and do not depend on their parents."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.tables import Sample, Table
from dpsynth_cli.mechanisms.tables.families import of_parents, opened
from dpsynth_cli.questions import Ints, Progress, Question, no_progress
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.predict.costs import READ, START_BYTES, START_SECONDS, WRITE
from dpsynth_cli.release.predict.family import EXAMPLE, FEW, family
from dpsynth_cli.release.predict.imagine import DRAWN_ROWS, FAMILY_ROWS
from dpsynth_cli.release.predict.predict import (
    MARGIN,
    MARGINS,
    QUICK,
    Range,
    errors_of,
    ranges,
    told_once,
)
from dpsynth_cli.release.predict.recode import recoded
from dpsynth_cli.release.predict.scaled_up import ScaledUp
from dpsynth_cli.release.synthesis import Outcome, run
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.spec.tables import each_table
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.rows.unit_rows import TOGETHER

TRIED = ("even", EXAMPLE, "zipf", "spiky")  # of the family


class Generated:
    """Parents and their children, as if there were `rows` parents."""

    def __init__(self, spec: Spec, rows: int, name: str) -> None:
        assert spec.tables is not None
        few = max(1, min(rows, FAMILY_ROWS // 4))
        self.times, self.parents = rows / few, family(spec, few)[name]
        self.domains, self.tables = {spec.tables.parent: spec.domain}, {spec.tables.parent: self.parents}
        self.parent_of: dict[str, Ints] = {}
        for child in spec.tables.children:
            omega = child.of_child(child.spec.domain, spec.domain)
            given, place, parent = opened(self.parents.codes, omega, spec.domain)
            own = family(child.spec, max(1, len(place)))[name].codes if len(place) else {}
            for column in omega:
                if column.origin and column.origin[0] == "previous" and len(place):
                    before = np.roll(own[column.origin[1]], 1)
                    given[column.name] = np.where(place == 0, column.size, before)
            self.domains[child.name] = omega
            self.tables[child.name] = Table(own | given, len(place))
            self.parent_of[child.name] = parent
        self.passes, self._rows = 0, self._asked(spec.domain)

    def declare(self, omega: Domain) -> None:
        self._rows = self._asked(omega)

    def _asked(self, omega: Domain) -> ScaledUp:
        table, whole = self.tables[omega.table], self.domains[omega.table]
        if omega.table in self.parent_of:
            kept = of_parents(self.parent_of[omega.table], omega.unit_rows or 1)
            table = table.take(kept)
        columns = tuple(column for column in whole if column.name in {own.name for own in omega})
        few = Table({column.name: table.codes[column.name] for column in columns}, len(table))
        scaled = ScaledUp(few, replace(whole, columns=columns), round(self.times * len(table)))
        scaled.declare(omega)
        return scaled

    def sums(self, questions: Sequence[Question]) -> list[Ints]:
        self.passes += 1
        return self._rows.sums(questions)


@dataclass(frozen=True)
class ImaginedTables:
    """One imagined release: its bill, how long it took, and what came out."""

    outcome: Outcome
    seconds: float
    errors: dict[str, dict[str, float]]
    rows: dict[str, int]


def imagine_tables(spec: Spec, rows: int, name: str = EXAMPLE) -> ImaginedTables:
    """Run the mechanism as if there were so many parents."""
    generated = Generated(spec, rows, name)
    bill = Bill(spec.domain, accountant_of(spec))
    start = time.process_time()
    ask = open_curator(generated, bill, system_source(), InMemory())
    outcome = run(spec, ask, bill, 0, DRAWN_ROWS, generated.declare)
    seconds = time.process_time() - start
    models = dict(zip(each_table(spec), (outcome.model, *(one.model for one in outcome.tables)), strict=True))
    found = [outcome.found.domain, *(one.spec.domain for one in outcome.tables)]
    errors, counted = dict[str, dict[str, float]](), dict[str, int]()
    count = min(rows, DRAWN_ROWS // 4)
    for (table, own), domain in zip(each_table(spec).items(), found, strict=True):
        known = replace(domain, columns=tuple(column for column in domain if column.origin is None))
        made, real = Sample(None), generated.tables[table]
        for block in models[table].draw(count, np.random.default_rng(0)):
            made.add(block)
        counted[table] = round(made.rows * rows / count)
        few = Table({column.name: real.codes[column.name] for column in own.domain}, real.rows)
        if len(few) and made.rows:
            errors[table] = errors_of(few, recoded(made.table(known), known, own.domain), own)
    return ImaginedTables(outcome, seconds, errors, counted)


def predict_tables(
    spec: Spec, rows: int, runs: int = 1, progress: Progress = no_progress, quick: bool = False
) -> dict[str, Any]:
    """Errors of each table over some of the family, an example's bill, time and memory; a quick look takes as
    many of them as a second is enough for, one at least, and moves the ends of ranges further out."""
    measured: dict[str, dict[str, list[dict[str, float]]]] = {}
    tried = (FEW if quick else TRIED) if runs else (EXAMPLE,)
    start = time.process_time()
    progress("predicting", 0, len(tried) * max(1, runs))
    every: list[tuple[str, ImaginedTables]] = []
    for name in tried * max(1, runs):
        if quick and every and time.process_time() - start > QUICK:
            break
        one = imagine_tables(spec, rows, name)
        every.append((name, one))
        for table, errors in one.errors.items() if runs else ():
            measured.setdefault(table, {}).setdefault(name, []).append(errors)
        progress("predicting", 1, None)
    example = next(one for name, one in every if name == EXAMPLE)
    margin = MARGINS[len(every)] if quick else MARGIN
    found: dict[str, dict[str, Range]] = {table: ranges(own, margin) for table, own in measured.items()}
    return {
        "rows": rows,
        "margin": margin,
        "generated_tables": list(dict.fromkeys(name for name, _ in every)),
        "imagined_rows": dict(example.rows),
        "errors": {table: {name: asdict(one) for name, one in own.items()} for table, own in found.items()},
        "charges": [charge.as_json() for charge in example.outcome.charges],
        "notes": told_once([one.outcome.model.notes for _, one in every]),
        "cpu_seconds": max(one.seconds for _, one in every) + _reading(spec, example.rows),
        "memory_bytes": START_BYTES + 8 * TOGETHER,
    }


def _reading(spec: Spec, rows: dict[str, int]) -> float:
    """Seconds of reading every table in each of about three passes, joining, and writing."""
    whole = START_SECONDS
    for name, own in each_table(spec).items():
        cells = rows[name] * (len(own.domain.columns) + 1)
        whole += cells * (3 * 3 * READ[not own.input.endswith((".csv", ".csv.gz"))])
        whole += 2 * cells * WRITE[own.output.endswith(".parquet")]
    return whole
