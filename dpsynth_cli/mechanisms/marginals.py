"""Independent private marginals, one for each column; with strata, one for each column and class.

The baseline that nothing may fall below. How a column is counted is in `oneway.py`; here rows are drawn, each
column by itself, the class first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.mechanisms.oneway import DEEPEST, ask_marginals, codes_from
from dpsynth_cli.mechanisms.registry import Mechanism, parameter
from dpsynth_cli.mechanisms.sizes import sizes_and_rest
from dpsynth_cli.numeric.sampling import shuffled, whole
from dpsynth_cli.questions import Ask, Block, Model

ROWS = 2**17  # of a block


@dataclass(frozen=True)
class Params:
    depth: int | None = parameter(
        None,
        "halvings of a numeric column; auto: 4, and where there are rows enough log2(epsilon n) - 3",
        low=1,
        high=DEEPEST,
        auto=True,
    )


def run(ask: Ask, omega: Domain, params: Params, split: Mapping[str, float]) -> Model:
    sizes, rest = sizes_and_rest(ask, omega, split)
    marginals = ask_marginals(ask, omega, omega.modelled, sizes, rest, params.depth)
    totals = np.array([mass.sum() for mass in next(iter(marginals.values())).masses])
    facts = {"cells": {name: len(marginal.first) for name, marginal in marginals.items()}}

    def draw(rows: int, rng: np.random.Generator) -> Iterator[Block]:
        for start in range(0, rows, ROWS):
            count = min(ROWS, rows - start)
            label = shuffled(whole(totals, count, rng), rng)
            block = {column.name: np.empty(count, np.int64) for column in omega.modelled}
            for k in range(omega.classes):
                own = np.flatnonzero(label == k)
                for name, marginal in marginals.items():
                    block[name][own] = codes_from(marginal, k, len(own), rng)
            if omega.strata:
                block[omega.strata] = label
            yield block

    return Model(round(float(totals.sum())), draw, facts=facts)


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
    stages={"total": 0.02, "columns": 0.98},
    fits=fits,
)
