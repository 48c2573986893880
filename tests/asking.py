"""The real border over a table in memory, for tests and benchmarks of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Asking, Model
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.bill import Bill
from dpsynth_cli.trusted.core.curator import InMemory, open_curator
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.sums.tally import Tally


def asking(
    codes: Mapping[str, np.ndarray], omega: Domain, epsilon: float, delta: float | None = None
) -> tuple[Asking, Accountant, list[Charge], list]:
    """An `ask` with the real sums, prices and noise; the accountant, the bill, and the recorded answers."""
    exact = Fraction(str(epsilon))
    accountant = Accountant.pure(exact) if delta is None else Accountant.gaussian(exact, Fraction(str(delta)))
    bill, journal = Bill(omega, accountant), InMemory()
    ask = open_curator(Codes(codes, omega), bill, system_source(), journal)
    return ask, accountant, bill.charges, journal.answers


@dataclass(frozen=True)
class Codes:
    """Rows in memory."""

    codes: Mapping[str, np.ndarray]
    omega: Domain

    def sums(self, questions):
        tally = Tally(questions, self.omega)
        tally.add(self.codes, len(next(iter(self.codes.values()))))
        return tally.sums()


def drawn(model: Model, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """All rows of a model in one block."""
    blocks = list(model.draw(rows, np.random.default_rng(seed)))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}
