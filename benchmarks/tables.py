"""Tables: public ones with the spec that their documentation gives, one made up, and points in the unit cube."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import in_data
from dpsynth_cli.domain import GRID, Column, CsvOptions, Domain
from dpsynth_cli.spec.spec import Spec, from_document, load_spec
from dpsynth_cli.trusted.rows.read import open_scan

Codes = dict[str, np.ndarray]


# --- public tables ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Real:
    """A table in a file, its declared columns, and what evaluate.py needs to know of it.

    `most_cells` is the size of the largest k-way table that whoever published figures looked at.
    """

    name: str
    train: Path
    columns: dict[str, dict[str, Any]]
    test: Path | None = None
    target: str | None = None
    positive: str | None = None
    geo: list[str] | None = None
    most_cells: int | None = None

    def spec(
        self,
        mechanism: str,
        epsilon: float,
        delta: float | None = None,
        *,
        strata: str | None = None,
        seed: int = 0,
        output: Path | str = "-",
        params: Mapping[str, Any] | None = None,
    ) -> Spec:
        """What `dpsynth release` would read."""
        privacy: dict[str, Any] = {"epsilon": str(epsilon)}
        return from_document({
            "dpsynth": 1,
            "name": "benchmark",
            "input": str(self.train),
            "output": str(output),
            "privacy": privacy | ({"delta": str(delta)} if delta else {}),
            "mechanism": {"name": mechanism, **({"strata": strata} if strata else {}), **(params or {})},
            "columns": self.columns,
            "sampling": {"seed": seed},
            "evaluate": {"metrics": "none"},
        })  # fmt: skip

    @property
    def domain(self) -> Domain:
        return self.spec("marginals", 1.0).domain

    @property
    def categorical(self) -> bool:
        """Whether every column is one, so that k-way tables can be had without cutting numbers."""
        return all(column.categorical for column in self.domain)

    def schema(self) -> dict[str, Any]:
        """The columns in evaluate.py's words."""
        columns = [
            {"name": c.name, "type": "categorical", "categories": list(c.categories)}
            if c.categorical
            else {"name": c.name, "type": "datetime" if "date" in c.type else c.type, "min": c.lower, "max": c.upper}
            for c in self.domain
        ]  # fmt: skip
        about = {"name": self.name, "target": self.target, "positive": self.positive, "geo": self.geo}
        return about | {"columns": columns}

    def codes(self) -> tuple[Domain, Codes]:
        """The rows as the border sees them, in memory."""
        domain = self.domain
        with closing(open_scan(str(self.train), domain.columns, CsvOptions())) as scan:
            pieces = [scan.encode(piece) for piece in scan.pieces()]
        return domain, {c.name: np.concatenate([p[c.name] for p in pieces]).astype(np.int64) for c in domain}


def real(given: argparse.Namespace, name: str) -> Real:
    """A table by its name in the data folder, or by the path of a spec."""
    if name.endswith((".yaml", ".yml")):
        return of_spec(Path(name))
    if name == "wide":
        return made_wide(given.folder)
    folder = in_data(given)
    if (folder / name / "schema.json").exists():
        return of_schema(folder / name)
    found = [
        path for path in (folder / f"{name}.csv", *sorted(folder.glob(f"*/{name}.csv"))) if path.exists()
    ]
    if not found:
        sys.exit(f"no table is called {name} in the data folder; a spec's name ends in .yaml")
    return of_sizes(found[0])


def of_spec(path: Path) -> Real:
    """Any table with a spec; its strata are what a classifier would predict."""
    spec = load_spec(str(path))
    columns = {c["name"]: {k: v for k, v in c.items() if k != "name"} for c in spec.effective["columns"]}
    return Real(path.stem, Path(spec.input), columns, target=spec.domain.strata)


def of_schema(folder: Path) -> Real:
    """A folder with train.csv, test.csv and schema.json: bounds and categories from the set's documentation."""
    schema = json.loads((folder / "schema.json").read_text())
    columns = {
        c["name"]: {"type": "nominal", "categories": [str(label) for label in c["categories"]]}
        if c["type"] == "categorical"
        else {
            "type": "integer" if c["type"] == "integer" else "continuous",
            "bounds": [c["min"], c["max"]],
        }
        for c in schema["columns"]
    }
    return Real(
        folder.name,
        folder / "train.csv",
        columns,
        folder / "test.csv",
        schema.get("target"),
        schema.get("positive"),
        schema.get("geo"),
    )


def of_sizes(path: Path) -> Real:
    """A CSV file of categories: integers 0 .. size - 1 with the sizes in JSON beside it, else labels as in the file.

    Sizes are {column: size} in FILE-domain.json or {column: {"domain": size}} in FILE.json. Without either, the
    categories are those of the file, as a benchmark may and a steward may not, and the first column is the target.
    """
    import pandas as pd

    with open(path) as file:
        header = file.readline().strip().split(",")
    name = f"{path.parent.name}/{path.stem}"
    short = path.with_name(f"{path.stem}-domain.json")
    if short.exists() or path.with_suffix(".json").exists():
        sizes = json.loads((short if short.exists() else path.with_suffix(".json")).read_text())
        each = {c: sizes[c] if short.exists() else sizes[c]["domain"] for c in header}
        columns = {c: nominal(map(str, range(each[c]))) for c in header}
        return Real(name, path, columns, most_cells=10_000 if short.exists() else None)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return Real(path.stem, path, {c: nominal(sorted(set(table[c]))) for c in header}, target=header[0])


def nominal(labels: Any) -> dict[str, Any]:
    return {"type": "nominal", "categories": list(labels)}


def made_wide(folder: Path, rows: int = 20_000, columns: int = 100) -> Real:
    """Mixed columns that follow five hidden normals, and a label that follows the first of them."""
    import pandas as pd

    rng = np.random.default_rng(5)
    hidden = rng.normal(size=(rows, 5))
    label = hidden[:, 0] + 0.5 * rng.normal(size=rows) > 0.5
    declared, cells = {"label": nominal(["no", "yes"])}, {"label": np.where(label, "yes", "no")}
    for j in range(columns - 1):
        x = hidden @ (rng.normal(size=5) * (rng.random(5) < 0.3)) + rng.normal(size=rows)
        name = f"c{j}"
        if j % 4 == 0:
            declared[name] = {"type": "integer", "bounds": [0, 999]}
            cells[name] = np.clip((x + 5) * 100, 0, 999).astype(int)
        else:
            labels = np.array([f"v{i}" for i in range(int(rng.integers(2, 9)))])
            declared[name] = nominal(labels.tolist())
            cells[name] = labels[np.searchsorted(np.sort(rng.normal(size=len(labels) - 1)) * 1.5, x)]
    path = folder / "wide.csv"
    pd.DataFrame(cells).to_csv(path, index=False)
    return Real("wide", path, declared, target="label")


# --- points in the unit cube ------------------------------------------------------------------------


def unit_cube(d: int, neighbours: str = "add_remove") -> Domain:
    return Domain(
        tuple(Column(f"x{i}", "continuous", lower=0.0, upper=1.0) for i in range(d)),
        neighbours,
    )


def in_unit_cube(
    path: Path, mechanism: str, d: int, input: Path | None = None, delta: float | None = None
) -> Path:
    """A spec file of d such columns, beside which the output is made."""
    lines = [
        "dpsynth: 1",
        "name: benchmark",
        *([f"input: {input}"] if input else []),
        "output: made.parquet",
        f"privacy: {{epsilon: 1.0{f', delta: {delta}' if delta else ''}}}",
        f"mechanism: {{name: {mechanism}}}",
        "columns:",
        *(f"  x{i}: {{type: continuous, bounds: [0, 1]}}" for i in range(d)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def to_codes(points: np.ndarray, omega: Domain) -> Codes:
    scaled = np.minimum((points * GRID).astype(np.int64), GRID - 1)
    return {column.name: scaled[:, i] for i, column in enumerate(omega)}


def to_points(rows: Mapping[str, np.ndarray], omega: Domain) -> np.ndarray:
    return np.stack([(rows[column.name] + 0.5) / GRID for column in omega], axis=1)


def three_clusters(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Rows in one or two dimensions: uniform, skewed, or three narrow clusters at fixed places."""
    if kind == "uniform":
        return rng.random((n, d))
    if kind == "skewed":
        return rng.beta(0.5, 5, (n, d))
    centres = np.array([[0.2, 0.3], [0.7, 0.6], [0.5, 0.9]])[:, :d]
    return np.clip(centres[rng.integers(3, size=n)] + rng.normal(0, 0.03, (n, d)), 0, 1)


def line_w1(x: np.ndarray, y: np.ndarray) -> float:
    """Exact W1 of two samples of numbers."""
    both = np.sort(np.concatenate([x, y]))
    below = [np.searchsorted(np.sort(z), both[:-1], "right") / len(z) for z in (x, y)]
    return float(np.sum(np.abs(below[0] - below[1]) * np.diff(both)))


def grid_w1(x: np.ndarray, y: np.ndarray, cells: int, low: Any = 0.0, side: float = 1.0) -> float:
    """W1 (l1 metric) of two samples rounded to a grid, exactly: the cheapest flow between neighbouring cells."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    k = x.shape[1]
    shape = (cells,) * k
    masses = []
    for points in (x, y):
        place = np.clip(((points - low) / side * cells).astype(int), 0, cells - 1)
        masses.append(
            np.bincount(np.ravel_multi_index(tuple(place.T), shape), minlength=cells**k) / len(points)
        )
    node = np.arange(cells**k).reshape(shape)
    ends = [np.moveaxis(node, j, 0) for j in range(k)]
    one, other = (np.concatenate([e[cut].ravel() for e in ends]) for cut in (slice(-1), slice(1, None)))
    tail, head = np.concatenate([one, other]), np.concatenate([other, one])
    arc = np.arange(len(tail))
    places = (np.concatenate([tail, head]), np.concatenate([arc, arc]))
    flow = coo_matrix((np.repeat([1.0, -1.0], len(arc)), places), shape=(cells**k, len(arc))).tocsr()
    surplus = (masses[0] - masses[1])[:-1]
    method = "highs" if k < 3 else "highs-ipm"
    return float(linprog(np.full(len(arc), side / cells), A_eq=flow[:-1], b_eq=surplus, method=method).fun)
