"""What bounds that are far too wide cost: errors with tight bounds, and with bounds a thousand times wider.

    python -m benchmarks loose_bounds --data DIR --tools DIR [--table adult diamonds ...] [--mechanism joint ...]

Upper bounds of all numeric columns are moved out so that the range is `--times` as wide, and the release is judged by
analyst.py, whose figures know no bounds: `quantiles` is in interquartile ranges. Packaged tables need what packaged.py says.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.auto import options as options_of_auto
from benchmarks.auto import table_of
from benchmarks.harness import Finding
from benchmarks.joint import mean_figures
from benchmarks.tables import Real

HEADING = "## Loose bounds"
TABLES = ["adult", "uber2d", "flights", "diamonds", "weather", "HI", "baseball"]
MECHANISMS = ["joint", "marginals"]
SHOWN = ("tvd1", "tvd2", "quantiles", "ranks", "r2")


def options(parser: argparse.ArgumentParser) -> None:
    options_of_auto(parser)
    parser.add_argument("--times", type=int, default=1000, help="how much wider; default: 1000")
    parser.set_defaults(table=TABLES, mechanism=MECHANISMS, epsilon=[1.0], by=["analyst"])


def loose(given: argparse.Namespace) -> Iterator[Finding]:
    """Every table by every mechanism, with tight bounds and with loose ones."""
    delta = None if given.pure else given.delta or 1e-9
    for name in given.table:
        table = table_of(given, name)
        for mechanism in given.mechanism:
            for epsilon in given.epsilon:
                for times in (1, given.times):
                    found = mean_figures(given, widened(table, times), mechanism, epsilon, delta)
                    figures = {key: found[f"analyst {key}"] for key in SHOWN}
                    yield {
                        "table": name,
                        "mechanism": mechanism,
                        "epsilon": epsilon,
                        "times": times,
                    } | figures


def widened(table: Real, times: int) -> Real:
    columns = dict(table.columns)
    for name, column in columns.items():
        if "bounds" in column:
            low, high = column["bounds"]
            columns[name] = column | {"bounds": [low, low + times * (high - low)]}
    return replace(table, columns=columns)


PARTS = {"loose": loose}
