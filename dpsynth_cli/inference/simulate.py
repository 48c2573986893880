"""The mechanism again on a given table: what a release of it might have answered and drawn.

The table is public (rows drawn from a model), so the noise here protects nobody: it has the distribution of
privacy noise, comes from a seeded generator, and no release can reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.tables import Sample, Table
from dpsynth_cli.inference.relations import Known, known
from dpsynth_cli.questions import Answer, Asking, Floats, Ints, Model, OpenLabels, Question
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.predict.scaled_up import ScaledUp
from dpsynth_cli.release.synthesis import Outcome, rows_of, run
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.open_labels import labels_above
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.core.shapes import columns_of

MOST_ROWS = 50_000  # of a simulated table; sums are scaled up to the rows that it stands for


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows of a model, in the codes of its domain, and how many rows they stand for; the last `added` of
    them for none."""

    table: Table
    domain: Domain
    total: int
    added: int = 0

    @property
    def scale(self) -> float:
        """How many rows each row stands for."""
        return self.total / max(1, len(self.table) - self.added)

    @property
    def weight(self) -> Floats:
        return np.repeat([self.scale, 0.0], [len(self.table) - self.added, self.added])


def drawn(model: Model, domain: Domain, rows: int, seed: int) -> Drawn:
    """Rows of a model: `rows` of them, or an even part of those where they are very many."""
    made = Sample(None)
    for block in model.draw(min(rows, MOST_ROWS), np.random.default_rng(seed)):
        made.add(block)
    return Drawn(made.table(domain), domain, rows)


@dataclass(frozen=True, eq=False)
class Simulated:
    """A release that might have been: its outcome, what was asked and answered, and the seed of its rows."""

    spec: Spec
    outcome: Outcome
    asked: list[tuple[Question, Answer]]
    seed: int

    def known(self) -> Known:
        """What its answers tell."""
        return known(self.asked, self.outcome.found.domain, self.outcome.model.total)

    def rows(self) -> Drawn:
        """Its synthetic rows."""
        model = self.outcome.model
        return drawn(model, self.outcome.found.domain, max(1, rows_of(self.spec, model)), self.seed)


def simulated(spec: Spec, truth: Drawn, rng: np.random.Generator) -> Simulated:
    """A release of rows like these, as the spec makes one: other noise, other choices, other rows."""
    scaled_up = ScaledUp(truth.table, truth.domain, truth.total)
    scaled_up.declare(spec.domain)
    bill = Bill(spec.domain, accountant_of(spec))
    asked: list[tuple[Question, Answer]] = []

    def counted(charges: Sequence[Charge]) -> list[Answer]:
        exact = scaled_up.sums([charge.question for charge in charges])
        return [
            Answer(sums + noise(charge, rng), charge.lengths, charge.price.noise, charge.price.sd)
            for charge, sums in zip(charges, exact, strict=True)
        ]

    def labelled(charges: Sequence[Charge]) -> list[Answer]:
        names = [name for charge in charges for name in columns_of([charge.question])]
        return labels_above(charges, scaled_up.labels(names), partial(_gaussian, rng=rng))

    def answer(questions: Sequence[Question]) -> list[Answer]:
        charges, _ = bill.charge(questions)
        answers = (labelled if isinstance(questions[0].statistic, OpenLabels) else counted)(charges)
        asked.extend(zip(questions, answers, strict=True))
        return answers

    seed = int(rng.integers(2**62))
    outcome = run(spec, Asking(answer, bill.sd), bill, seed, MOST_ROWS, scaled_up.declare)
    return Simulated(spec, outcome, asked, seed)


def noise(charge: Charge, rng: np.random.Generator) -> Ints:
    """Numbers with the distribution of an answer's noise."""
    size, price = sum(charge.lengths), charge.price
    if price.noise == "none":
        return np.zeros(size, np.int64)
    if price.noise == "discrete_laplace":  # the difference of two geometric numbers
        chance = -np.expm1(-1 / float(price.parameter))
        return np.asarray(rng.geometric(chance, size) - rng.geometric(chance, size))
    if price.noise == "discrete_cube":
        return np.concatenate([_cube(float(price.parameter), length, rng) for length in charge.lengths])
    if not charge.sensitivity.half_above:
        return _gaussian(price.parameter, size, rng)
    sd = np.concatenate([_half_above(float(price.parameter), length) for length in charge.lengths])
    return np.asarray(np.rint(rng.normal(0.0, 1.0, size) * sd), np.int64)


def _gaussian(variance: Fraction, size: int, rng: np.random.Generator) -> Ints:
    return np.asarray(np.rint(rng.normal(0.0, float(variance) ** 0.5, size)), np.int64)


def _cube(scale: float, size: int, rng: np.random.Generator) -> Ints:
    """Even on the cube of a random size: the density falls as exp(-largest / scale)."""
    radius = rng.gamma(size + 1, scale)
    return np.rint(rng.uniform(-radius, radius, size)).astype(np.int64)


def _half_above(variance: float, length: int) -> np.ndarray:
    """The diagonal of an upper triangle has the full variance, the rest half of it."""
    d = (int((8 * length + 1) ** 0.5) - 1) // 2
    rows, columns = np.triu_indices(d)
    return np.asarray(np.sqrt(np.where(rows == columns, variance, variance / 2)))
