"""MST or AIM of OpenDP on the Adult table; needs its own environment.

    python -m venv peer && peer/bin/pip install 'opendp[mbi,polars]==0.16.0' pandas
    peer/bin/python -m benchmarks peers.opendp --data DIR --model mst --out OUT.csv [--epsilon 1] [--delta 1e-9]
                                               [--bins 32] [--queries 3] [--megabytes 80]

It gets the largest rho whose zCDP implies (epsilon, delta), the schema's categories, and equal bins between the
schema's bounds for numbers. Rows are drawn independently (method "sample"), since in mbi 1.1.0 the rounding method
moves columns that share a parent together. Judge the file with `python -m benchmarks joint --made`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import benchmarks.peers as peers
from benchmarks.harness import Finding, timed


def options(parser: argparse.ArgumentParser) -> None:
    peers.options(parser)
    parser.add_argument("--bins", type=int, default=32)
    parser.add_argument(
        "--queries", type=int, default=3, help="AIM: columns of the tables it chooses from, at most"
    )
    parser.add_argument("--megabytes", type=float, default=80.0, help="AIM: size of its model, at most")
    parser.add_argument("--method", choices=["sample", "round"], default="sample")


def largest_rho(epsilon: float, delta: float) -> float:
    """The zCDP that implies (epsilon, delta): Canonne, Kamath and Steinke (2020), by Renyi orders."""
    import numpy as np

    orders = 1 + np.geomspace(1e-2, 1e6, 100_000)

    def least_delta(rho: float) -> float:
        exponents = (orders - 1) * (orders * rho - epsilon)
        exponents += (orders - 1) * np.log1p(-1 / orders) - np.log(orders)
        return math.exp(min(0.0, exponents.min()))

    low, high = 0.0, 10.0 * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if least_delta(middle) <= delta else (low, middle)
    return math.floor(low * 2**20) / 2**20  # with more digits, its own sums of the parts may exceed the whole


def synthesize(given: argparse.Namespace) -> Iterator[Finding]:
    import numpy as np
    import opendp.prelude as dp
    import polars as pl

    rho = largest_rho(given.epsilon, given.delta)
    train, columns = peers.adult(given)
    keys, cuts, types = {}, {}, {}
    for column in columns:
        name = column["name"]
        if column["type"] == "categorical":
            keys[name], types[name] = column["categories"], pl.String
        else:
            cuts[name] = np.linspace(column["min"], column["max"], given.bins + 1)[1:-1].tolist()
            types[name] = pl.Float64
    table = pl.read_csv(train, schema_overrides=types, null_values=[])
    dp.enable_features("contrib")
    aim = {"queries": given.queries, "max_size": given.megabytes}
    algorithm = dp.mbi.MST() if given.model == "mst" else dp.mbi.AIM(**aim)

    def fitted() -> pl.DataFrame:
        context = dp.Context.compositor(
            data=table.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
        )
        release = (
            context.query(rho=rho).contingency_table(keys=keys, cuts=cuts, algorithm=algorithm).release()
        )
        return release.synthesize(rows=len(table), method=given.method)

    made, seconds = timed(fitted)
    for column in columns:  # back to integers inside the bounds
        if column["type"] != "categorical":
            number = pl.col(column["name"]).fill_nan(None)
            made = made.with_columns(number.clip(column["min"], column["max"]).round().cast(pl.Int64))
    made.select([column["name"] for column in columns]).write_csv(given.out)
    yield {"model": given.model, "epsilon": given.epsilon, "delta": given.delta, "rho": rho, "CPU s": seconds}


PARTS = {"synthesize": synthesize}
