"""Independent private marginals, one for each column; with strata, one for each column and class.

The baseline that nothing may fall below. How a column is counted is in `oneway.py`; here rows are drawn, each
column by itself, the class first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.shared.drawing import Deal, by_class
from dpsynth_cli.mechanisms.shared.oneway import ask_marginals, room_for
from dpsynth_cli.mechanisms.shared.oneway_plan import DEEPEST
from dpsynth_cli.mechanisms.shared.sizes import Sizes, sizes_and_rest
from dpsynth_cli.questions import Ask, Block, Model


@dataclass(frozen=True)
class Params:
    depth: int | None = parameter(
        None,
        "halvings of a numeric column; auto: 4, fewer for few rows, and for many log2(epsilon n) - 3",
        low=1,
        high=DEEPEST,
        auto=True,
    )


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    sizes, rest = sizes_and_rest(ask, omega, split)
    return independent(ask, omega, sizes, rest, params.depth)


def independent(
    ask: Ask,
    omega: Domain,
    sizes: Sizes,
    share: Fraction,
    depth: int | None = None,
    notes: tuple[str, ...] = (),
) -> Model:
    """The model for a share of the budget, once sizes are known: also what other mechanisms fall back to."""
    depth = depth or room_for(ask, omega, sizes, share)
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, share, depth)
    totals = np.array([mass.sum() for mass in next(iter(marginals.values())).masses])
    facts = {"cells": {name: len(marginal.first) for name, marginal in marginals.items()}}

    def begin(k: int, rows: int, rng: np.random.Generator) -> Deal:
        decks = {name: marginal.deck(k, rows, rng) for name, marginal in marginals.items()}

        def deal(count: int) -> Block:
            return {name: marginals[name].codes(own.deal(count), rng) for name, own in decks.items()}

        return deal

    return Model(round(float(totals.sum())), by_class(omega, totals, begin), notes, facts)


def fits(omega: Domain, params: Params) -> list[str]:
    return [] if omega.modelled else ["marginals needs a column besides the strata"]


MECHANISM = Mechanism(
    name="marginals",
    summary="each column by its own noisy histogram or tree; with strata, class by class",
    suits="any table; with strata the safe choice for labelled tables with few rows",
    citation=(
        "Noisy histograms (Dwork, McSherry, Nissim, Smith 2006) and trees of counts "
        "(Hay, Rastogi, Miklau, Suciu 2010)"
    ),
    run=run,
    params=Params,
    stages={"total": 0.005, "columns": 0.995},
    fits=fits,
)
