"""The real border over a table in memory, for tests and benchmarks of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Asking, Model
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.curator import open_curator
from dpsynth_cli.trusted.core.prices import Charge
from dpsynth_cli.trusted.noise.words import system_source
from dpsynth_cli.trusted.sums.tally import Tally


def asking(
    codes: Mapping[str, np.ndarray], omega: Domain, epsilon: float, delta: float | None = None
) -> tuple[Asking, Accountant, list[Charge], list]:
    """An `ask` with the real sums, prices and noise; the accountant, the bill, and the recorded answers."""
    exact = Fraction(str(epsilon))
    accountant = Accountant.pure(exact) if delta is None else Accountant.zcdp(exact, Fraction(str(delta)))
    bill: list[Charge] = []
    recorded: list = []
    rows = len(next(iter(codes.values())))

    def sums(questions):
        tally = Tally(questions, omega)
        tally.add(codes, rows)
        return tally.sums(), rows

    ask = open_curator(
        sums,
        omega,
        accountant,
        system_source(),
        lambda charges, answers: recorded.extend(
            (charge.question, answer) for charge, answer in zip(charges, answers, strict=True)
        ),
        lambda: None,
        (),
        bill,
    )
    return ask, accountant, bill, recorded


def drawn(model: Model, rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """All rows of a model in one block."""
    blocks = list(model.draw(rows, np.random.default_rng(seed)))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}
