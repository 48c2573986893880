"""microaggregation on real tables: 2-way marginals, the judge's figures, groups against MDAV, time and memory.

    python benchmarks/microaggregation.py DATA [releases] --what pairs     # Adult and mushroom, one-hot error
    python benchmarks/microaggregation.py DATA [releases] --what judge [--epsilon 1 0.1] [--no-auc]
    python benchmarks/microaggregation.py DATA --what groups               # bisection and net against MDAV
    python benchmarks/microaggregation.py DATA --what scale --table FILE   # a dp release of a large Parquet file

DATA is the folder (or set DPSYNTH_DATA) that holds adult/ and mushroom.csv; the judge is ../tools/evaluate.py
beside it (or --judge). Adult one-hot has 14 attributes: all but the sampling weight fnlwgt, numbers in 5 equal
public bins. Noise is drawn anew for every release, so figures vary.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.adult_marginals import adult, arguments, decoded, judge_at
from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.mechanisms import marginals
from dpsynth_cli.mechanisms.microaggregation import printed as damped
from dpsynth_cli.mechanisms.microaggregation.microaggregation import MECHANISM, Params
from dpsynth_cli.trusted import groups
from tests.asking import asking, drawn

Rows = dict[str, np.ndarray]
BINS = 5


def one_hot_adult(folder: Path) -> tuple[Domain, Rows]:
    omega, codes, _ = adult(folder)
    columns, binned = [], {}
    for column in omega:
        if column.name == "fnlwgt":
            continue
        columns.append(column)
        binned[column.name] = codes[column.name]
        if not column.categorical:
            columns[-1] = Column(column.name, "ordinal", categories=tuple(map(str, range(BINS))))
            binned[column.name] = codes[column.name] * BINS // column.size
    return Domain(tuple(columns)), binned


def mushroom(path: Path) -> tuple[Domain, Rows]:
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    columns = tuple(Column(name, "nominal", categories=tuple(sorted(set(table[name])))) for name in table)
    return Domain(columns), {
        c.name: pd.Categorical(table[c.name], categories=list(c.categories)).codes.astype(np.int64)
        for c in columns
    }


def pair_tables(omega: Domain, rows: Rows) -> list[np.ndarray]:
    n = len(next(iter(rows.values())))
    return [
        np.bincount(rows[a.name] * b.codes + rows[b.name], minlength=a.codes * b.codes) / n
        for a, b in combinations(omega.columns, 2)
    ]


def error(real: list[np.ndarray], made: list[np.ndarray]) -> float:
    """The mean squared error over all pairs of one-hot cells of different attributes."""
    return float(((np.concatenate(real) - np.concatenate(made)) ** 2).mean())


def as_printed(omega: Domain, rows: Rows, epsilon: float) -> list[np.ndarray]:
    """The 2-way marginals of the printed Algorithm 2, whose bits are rounded by themselves, in expectation."""
    known = Domain(omega.columns, "replace_one")
    ask, *_ = asking(rows, known, epsilon)
    attributes = [damped.public(column) for column in omega]
    mixture, _ = damped.damped(ask, attributes, float(len(next(iter(rows.values())))))
    weighted = [table * mixture.weights[:, None] for table in mixture.tables]
    return [(weighted[i].T @ mixture.tables[j]).ravel() for i, j in combinations(range(len(attributes)), 2)]


def pairs(data: Path, releases: int) -> None:
    settings = [
        ("adult", *one_hot_adult(data / "adult"), 1.0, None),
        ("adult", *one_hot_adult(data / "adult"), 0.5, None),
        ("mushroom", *mushroom(data / "mushroom.csv"), 1.0, 1e-9),
    ]
    rng = np.random.default_rng(0)
    for name, omega, rows, epsilon, delta in settings:
        real = pair_tables(omega, rows)
        ours, seconds = [], []
        for seed in range(releases):
            ask, accountant, *_ = asking(rows, omega, epsilon, delta)
            start = time.process_time()
            model = MECHANISM.run(ask, omega, Params(), MECHANISM.stages)
            made = drawn(model, model.total, seed)
            seconds.append(time.process_time() - start)
            assert accountant.spent == accountant.total
            ours.append(error(real, pair_tables(omega, made)))
        alone = error(real, pair_tables(omega, {key: rng.permutation(codes) for key, codes in rows.items()}))
        printed = np.mean([error(real, as_printed(omega, rows, epsilon)) for _ in range(releases)])
        print(
            f"{name}, epsilon {epsilon}, delta {delta}, {releases} releases: {np.mean(ours):.2e} "
            f"(worst {max(ours):.2e}); independent, without noise {alone:.2e}; as printed {printed:.2e}, "
            f"{printed / np.mean(ours):,.0f} x ours; {np.mean(seconds):.2f} s of CPU",
            flush=True,
        )


def judged(given: SimpleNamespace) -> None:
    folder = given.data / "adult"
    judge = judge_at(given.judge or given.data.parent / "tools" / "evaluate.py")
    omega, codes, schema = adult(folder)
    options = SimpleNamespace(no_tstr=given.no_auc, projections=200, svm_rows=3000, w1_grid=64, seed=0)
    for epsilon in given.epsilon:
        for name, mechanism, params in (
            ("microaggregation", MECHANISM, Params()),
            ("marginals", marginals.MECHANISM, marginals.Params()),
        ):
            found = []
            for seed in range(given.releases):
                ask, *_ = asking(codes, omega, epsilon, given.delta)
                start = time.process_time()
                model = mechanism.run(ask, omega, params, mechanism.stages)
                rows = drawn(model, model.total, seed)
                seconds = time.process_time() - start
                with tempfile.TemporaryDirectory() as place:
                    path = f"{place}/synthetic.csv"
                    decoded(omega, rows).to_csv(path, index=False)
                    said = judge.evaluate(
                        str(folder / "train.csv"), str(folder / "test.csv"), path, schema, options
                    )
                auc = said.get("tstr", {}).get("mean_roc_auc", float("nan"))
                measured = {key: said[key] for key in ("tv1_mean", "tv2_mean", "tv2_max", "swd1")}
                found.append(measured | {"auc": auc, "cpu s": seconds})
            means = pd.DataFrame(found).mean().round(4).to_dict()
            print(f"epsilon {epsilon}, {name}, mean of {given.releases}: {json.dumps(means)}", flush=True)


def mdav(x: np.ndarray, g: int) -> np.ndarray:
    """Maximum distance to average vector (Domingo-Ferrer and Mateo-Sanz 2002): what others do."""
    left, of_row, count = np.arange(len(x)), np.empty(len(x), np.int64), 0

    def far(point: np.ndarray) -> np.ndarray:
        return x[left[np.argmax(((x[left] - point) ** 2).sum(axis=1))]]

    def take(point: np.ndarray) -> None:
        nonlocal left, count
        near = np.argpartition(((x[left] - point) ** 2).sum(axis=1), g - 1)[:g]
        of_row[left[near]] = count
        left, count = np.delete(left, near), count + 1

    while len(left) >= 3 * g:
        first = far(x[left].mean(axis=0))
        take(first)
        take(far(first))
    if len(left) >= 2 * g:
        take(far(x[left].mean(axis=0)))
    of_row[left] = count
    return of_row


def by_groups(data: Path) -> None:
    omega, rows = one_hot_adult(data / "adult")
    pick = np.random.default_rng(0).permutation(len(rows["income"]))[:12_000]
    some = {name: codes[pick] for name, codes in rows.items()}
    x = groups.points(some, Domain(tuple(Column(c.name, "nominal", categories=c.categories) for c in omega)))
    attribute = np.repeat(np.arange(len(omega.columns)), [c.codes for c in omega])
    cross = attribute[:, None] != attribute[None, :]
    for g in (20, 100):
        losses = {}
        for name, partition in (("bisection", groups.bisected), ("net", groups.by_net), ("mdav", mdav)):
            start = time.process_time()
            of_row = partition(x, g)
            seconds = time.process_time() - start
            sizes = np.bincount(of_row)
            means = np.zeros((len(sizes), x.shape[1]))
            np.add.at(means, of_row, x)
            means /= sizes[:, None]
            lost = (x.T.astype(float) @ x - (means * sizes[:, None]).T @ means) / len(x)
            losses[name] = ((lost[cross] ** 2).mean(), seconds)
            print(f"g {g}, {name}: squared error {losses[name][0]:.2e}, {seconds:.2f} s of CPU", flush=True)
        (ours, fast), (theirs, slow) = losses["bisection"], losses["mdav"]
        print(
            f"g {g}: MDAV loses {theirs / ours:.1f} x as much and takes {slow / fast:.1f} x as long",
            flush=True,
        )
    rng = np.random.default_rng(0)
    bits = (rng.random((100_000, 100)) < rng.random(100)).astype(np.float32)
    start = time.process_time()
    sizes = np.bincount(groups.bisected(bits, 20))
    print(
        f"100,000 rows x 100 bits, g 20: {time.process_time() - start:.2f} s of CPU, least {sizes.min()} rows"
    )


def scale(data: Path, table: Path) -> None:
    """A release of a table with Adult's columns, from the file to the file, with its own ledger."""
    import yaml

    from dpsynth_cli.release.table import release
    from dpsynth_cli.spec.spec import load_spec
    from dpsynth_cli.trusted.ledger.ledger import Ledger

    schema = json.loads((data / "adult/schema.json").read_text())
    columns = {
        c["name"]: {"type": "nominal", "categories": c["categories"]}
        if c["type"] == "categorical"
        else {"type": "integer", "bounds": [c["min"], c["max"]], "nullable": True}
        for c in schema["columns"]
    }
    with tempfile.TemporaryDirectory() as place:
        spec = {
            "dpsynth": 1,
            "name": "large",
            "input": str(table.resolve()),
            "output": f"{place}/made.parquet",
            "privacy": {"epsilon": 1.0},
            "mechanism": {"name": "microaggregation", "strata": "income"},
            "columns": columns,
        }
        (Path(place) / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
        start = time.process_time()
        receipt = release(load_spec(f"{place}/spec.yaml"), Ledger(f"{place}/ledger.sqlite"))
        seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{receipt.rows:,} rows x {len(columns)} columns: {seconds:.1f} s of CPU, {peak:.2f} GB at most")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--what", choices=["pairs", "judge", "groups", "scale"], default="pairs")
    parser.add_argument("--no-auc", action="store_true", help="leave the three classifiers out")
    parser.add_argument("--table", type=Path, help="the Parquet file of --what scale")
    given = parser.parse_args()
    if given.what == "pairs":
        pairs(given.data, given.releases)
    elif given.what == "judge":
        judged(given)
    elif given.what == "groups":
        by_groups(given.data)
    else:
        scale(given.data, given.table)


if __name__ == "__main__":
    main()
