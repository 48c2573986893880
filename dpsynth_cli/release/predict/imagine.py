"""A release imagined over a public reference table: which questions would be asked, at what price, and what
rows would come out.

References are the generated tables of `family.py`, or a public table; nothing here depends on private data.
The noise is the real one, because mechanisms choose by noisy numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.tables import Sample, Table
from dpsynth_cli.questions import Model
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.predict.family import FAMILY, family
from dpsynth_cli.release.predict.recode import recoded
from dpsynth_cli.release.predict.scaled_up import ScaledUp
from dpsynth_cli.release.synthesis import run
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.noise.words import system_source

LIKE_ROWS = 100_000  # of a public table
FAMILY_ROWS = 20_000  # of each generated one
DRAWN_ROWS = 50_000  # that are compared with a reference, at most, if it has no more itself
LIKE = "like"  # what a public table is called among references


@dataclass(frozen=True)
class Imagined:
    """What a release of `rows` rows like the reference did. Seconds are of this machine's processor: of the
    mechanism by itself, and of one row drawn; `passes` is how often rows were read.
    """

    model: Model
    accountant: Accountant
    bill: list[Charge]
    passes: int
    seconds: float
    seconds_a_row: float


def references(
    spec: Spec, rows: int, like: Table | None = None, names: Iterable[str] = tuple(FAMILY)
) -> dict[str, Table]:
    """The public table, or these of the family, each of a size that a moment suffices for."""
    if like is None:
        return family(spec, max(1, min(rows, FAMILY_ROWS)), names)
    if not len(like):
        raise UsageError("the reference table has no rows.", next_step="Give one that has, or none.")
    return {LIKE: like.at_most(LIKE_ROWS)}


def imagine(spec: Spec, rows: int, table: Table) -> tuple[Imagined, Table]:
    """Run the mechanism as if there were `rows` rows like those of the table, and draw from its model."""
    scaled_up = ScaledUp(table, spec.domain, rows)
    bill = Bill(spec.domain, accountant_of(spec))
    start = time.process_time()
    ask = open_curator(scaled_up, bill, system_source(), InMemory(), scaled_up.labels)
    outcome = run(spec, ask, bill, 0, DRAWN_ROWS, scaled_up.declare)
    model = outcome.model
    seconds = time.process_time() - start - scaled_up.seconds
    start = time.process_time()
    made = Sample(None)
    count = min(rows, max(len(table), DRAWN_ROWS))
    for block in model.draw(count, np.random.default_rng(0)):
        made.add(block)
    a_row = (time.process_time() - start) / max(1, count)
    found = Imagined(model, bill.accountant, bill.charges, scaled_up.passes, seconds, a_row)
    domain = outcome.found.domain
    return found, recoded(made.table(domain), domain, spec.domain)
