"""Mixed tables: k-way errors, all pairs, classifiers and an analyst's figures, beside what was published.

    python -m benchmarks joint --data DIR --tools DIR [--mechanism joint ...] [--table nltcs ...] [--epsilon 1 ...]
    python -m benchmarks joint --data DIR --tools DIR --table adult --made FILE.csv    # another tool's file

A table is a name in the data folder (privmrf: nltcs, acs, br2000, privmrf/adult; aim: salary, titanic; adult,
mushroom), `wide` (simulated, 20,000 x 100), or the path of any spec. Each release goes through the API from file to
file; its CPU seconds are of reading, asking, drawing and writing, without imports. Noise is drawn anew for every
release; figures are means. 3- to 5-way: kway.py, where every column is a category; 1-way, 2-way (all pairs), worst
pair, swd1, AUC: evaluate.py; the rest: analyst.py. Without --tools only `dpsynth evaluate` judges. Every figure
of every yardstick is in --json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import benchmarks.tables as tables
from benchmarks.harness import Finding, means, progress, real_tables, releases, timed
from benchmarks.judging import YARDSTICKS, judged

TABLES = ["nltcs", "acs", "privmrf/adult", "br2000", "salary", "titanic", "adult", "mushroom"]
COLUMNS = ("1-way", "2-way", "worst pair", "3-way", "4-way", "5-way", "swd1", "AUC")
ANALYST = ("tvd2", "tvd3", "ranks", "r2", "determined", "impossible", "groups", "distinct")

# What others published or what was measured of their tools: table, epsilon, delta, who, figures by column.
PRIVMRF = "PrivMRF (VLDB 2021), as rerun by others"
AIM = "AIM (mbi, its own script, degree 3, one run)"
MIXED = "AIM, strong setting, as run by others: mean TVD of a mixed workload (indicative)"
HERE = "measured by benchmarks/peers, one release"


def three(*figures: float) -> dict[str, float]:
    return dict(zip(("3-way", "4-way", "5-way"), figures, strict=True))


BY_EPSILON = {  # of PrivMRF, delta 1e-5: mean TVD of 300 random 3-, 4- and 5-way tables
    "privmrf/nltcs": {
        0.1: three(0.0182, 0.0288, 0.0415),
        0.2: three(0.0152, 0.0233, 0.0327),
        0.4: three(0.0074, 0.0116, 0.0175),
        0.8: three(0.0049, 0.0080, 0.0117),
        1.6: three(0.0030, 0.0052, 0.0084),
        3.2: three(0.0024, 0.0039, 0.0062),
    },
    "privmrf/acs": {
        0.1: three(0.0136, 0.0208, 0.0278),
        0.2: three(0.0099, 0.0145, 0.0204),
        0.4: three(0.0053, 0.0082, 0.0117),
        0.8: three(0.0040, 0.0058, 0.0083),
        1.6: three(0.0025, 0.0038, 0.0056),
        3.2: three(0.0017, 0.0027, 0.0043),
    },
    "privmrf/adult": {
        0.1: three(0.127, 0.199, 0.277),
        0.2: three(0.109, 0.161, 0.241),
        0.4: three(0.088, 0.153, 0.207),
        0.8: three(0.044, 0.078, 0.123),
        1.6: three(0.040, 0.072, 0.117),
        3.2: three(0.034, 0.066, 0.109),
    },
    "privmrf/br2000": {
        0.1: three(0.094, 0.159, 0.218),
        0.2: three(0.077, 0.116, 0.177),
        0.4: three(0.051, 0.103, 0.145),
        0.8: three(0.028, 0.052, 0.082),
        1.6: three(0.020, 0.036, 0.065),
        3.2: three(0.017, 0.033, 0.059),
    },
}
BLOCKS = {  # of AIM's strong setting, delta 1e-9, at epsilon 0.1 and 0.3
    "privmrf/nltcs": (0.0294, 0.0096),
    "privmrf/acs": (0.0139, 0.0063),
    "privmrf/br2000": (0.0531, 0.0260),
    "privmrf/adult": (0.0719, 0.0430),
}
PUBLISHED: list[tuple[str, float, float, str, dict[str, float]]] = [
    *((t, epsilon, 1e-5, PRIVMRF, f) for t, each in BY_EPSILON.items() for epsilon, f in each.items()),
    *((t, e, 1e-9, MIXED, {"mixed": v}) for t, pair in BLOCKS.items() for e, v in zip((0.1, 0.3), pair, strict=True)),
    ("aim/salary", 1.0, 1e-9, AIM, {"2-way": 0.0362, "3-way": 0.0349, "CPU s": 276.0}),
    ("aim/titanic", 1.0, 1e-9, AIM, {"2-way": 0.251, "3-way": 0.371, "CPU s": 219.0}),
    ("adult", 1.0, 1e-9, f"MST of OpenDP 0.16.0, {HERE}",
     {"2-way": 0.0554, "worst pair": 0.252, "swd1": 0.0071, "AUC": 0.867, "CPU s": 127.0}),
    ("adult", 1.0, 1e-9, f"AIM of OpenDP 0.16.0, tables of two, 4 MB, {HERE}",
     {"2-way": 0.0461, "worst pair": 0.182, "swd1": 0.0050, "AUC": 0.884, "CPU s": 1203.0}),
    ("adult", 1.0, 1e-9, f"MST of dpmm 0.1.9, {HERE}",
     {"2-way": 0.0496, "worst pair": 0.136, "swd1": 0.0058, "AUC": 0.812, "CPU s": 325.0}),
]  # fmt: skip


def options(parser: argparse.ArgumentParser) -> None:
    real_tables(parser)
    releases(parser, 3, None, "default: those at which others published figures of the table, else 1")
    parser.add_argument(
        "--pure", action="store_true", help="pure epsilon; default: the delta of those who published"
    )
    judging_options(parser)
    parser.add_argument("--mechanism", nargs="+", default=["joint"], help="default: joint")
    parser.add_argument("--table", nargs="+", default=TABLES, help=f"default: {' '.join(TABLES)}")
    parser.add_argument("--made", type=Path, help="judge this file of the one table instead of releasing")


def judging_options(parser: argparse.ArgumentParser) -> None:
    """How releases of real tables are made and judged."""
    parser.add_argument("--strata", action="store_true", help="by classes of the table's target")
    parser.add_argument(
        "--by", nargs="+", choices=YARDSTICKS, default=YARDSTICKS, help="yardsticks; default: all"
    )
    parser.add_argument("--no-auc", action="store_true", help="leave the three classifiers out")


def mixed(given: argparse.Namespace) -> Iterator[Finding]:
    """Each table at each epsilon, ours and theirs, in one table."""
    from dpsynth_cli.mechanisms.registry import mechanisms

    for mechanism in given.mechanism:
        if mechanism not in mechanisms() and not given.made:
            sys.exit(f"no mechanism is called {mechanism} here; --mechanism of {', '.join(mechanisms())}")
    for name in given.table:
        table = tables.real(given, name)
        theirs = [one for one in PUBLISHED if one[0] == table.name]
        default = 1e-5 if table.name in BY_EPSILON else 1e-9
        delta = None if given.pure else given.delta or default
        for epsilon in given.epsilon or sorted({e for _, e, d, _, _ in theirs if d == default}) or [1.0]:
            if given.made:
                found = figures(given, table, given.made)
                yield line(table.name, epsilon, delta, given.made.name, 1, found)
            else:
                for mechanism in given.mechanism:
                    found = mean_figures(given, table, mechanism, epsilon, delta)
                    yield line(table.name, epsilon, delta, mechanism, given.runs, found)
            for _, e, d, who, found in theirs:
                if e == epsilon:
                    yield line(table.name, e, d, who, "", found)


def line(
    table: str, epsilon: float, delta: float | None, who: str, runs: Any, found: dict[str, float]
) -> dict[str, Any]:
    """A line of the one table; what was not measured is empty."""
    if "mixed" in found:
        who = f"{who} {found['mixed']}"
    own = found.get("2-way", found.get("dpsynth tvd2"))
    return {
        "table": table,
        "epsilon": epsilon,
        "delta": f"{delta:g}" if delta else "pure",
        "who": who,
        "runs": runs,
        **{key: found.get(key) for key in COLUMNS},
        "2-way": own,
        **{key: found.get(f"analyst {key}") for key in ANALYST},
        "CPU s": found.get("CPU s"),
        "_all": found,
    }


# --- for the other benchmarks on real tables --------------------------------------------------------


def options_of_releases(parser: argparse.ArgumentParser, runs: int, epsilon: Sequence[float]) -> None:
    """Of a benchmark that releases real tables and judges them, by evaluate.py unless told otherwise."""
    real_tables(parser)
    releases(parser, runs, epsilon)
    judging_options(parser)
    parser.set_defaults(by=["evaluate"])


def figures(given: argparse.Namespace, table: tables.Real, made: Path) -> dict[str, float]:
    by = [name for name in given.by if name != "kway" or table.categorical]
    return judged(table, made, given.folder, given.tools, by, not given.no_auc)


def mean_figures(
    given: argparse.Namespace,
    table: tables.Real,
    mechanism: str,
    epsilon: float,
    delta: float | None,
    strata: str | None = None,
    also: Callable[[Path], dict[str, float]] = lambda made: {},
    **params: object,
) -> dict[str, float]:
    """Releases of a file through the API, each judged: the means of all figures, and of CPU seconds."""
    from dpsynth_cli import api

    strata = strata or (table.target if given.strata else None)
    made, found = given.folder / "made.csv", []
    for seed in range(given.runs):
        spec = table.spec(mechanism, epsilon, delta, strata=strata, seed=seed, output=made, params=params)
        _, seconds = timed(
            lambda spec=spec: api.release(spec, ledger=given.folder / "ledger.sqlite", replace=True)
        )
        found.append({**figures(given, table, made), **also(made), "CPU s": seconds})
        progress(f"{table.name}, {mechanism}, epsilon {epsilon:g}: {found[-1]}")
    return means(found)


PARTS = {"mixed": mixed}
