"""Large tables for `scale.py`, made chunk by chunk, the same rows in other files, and specs for them."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 500_000
INTEGERS = {"age": (17, 90), "weight": (12_285, 1_490_400), "years": (1, 16), "gain": (0, 99_999)}
INTEGERS |= {"loss": (0, 4_356), "hours": (1, 99)}
NOMINALS = {"work": 8, "school": 16, "married": 7, "job": 14, "family": 6, "race": 5, "sex": 2, "country": 41}
NOMINALS |= {"income": 2}
WIDTHS = (5, 10, 20, 40)


def make(folder: Path, name: str, rows: int) -> Path:
    """A table of so many rows, chunk by chunk: memory stays at one chunk."""
    path = folder / f"{name}-{rows}.parquet"
    if path.exists():
        return path
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        table = pa.table({"places": places, "people": people, "wide": wide}[name](rng, n))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path


def places(rng: np.random.Generator, n: int) -> dict:
    near = rng.integers(20, size=n)
    middles = np.random.default_rng(1).random((20, 5))
    x = np.clip(middles[near] + 0.03 * rng.standard_normal((n, 5)), 0, 1)
    return {f"x{i}": x[:, i] for i in range(5)}


def people(rng: np.random.Generator, n: int) -> dict:
    columns: dict = {}
    latent = rng.standard_normal(n)
    for name, (low, high) in INTEGERS.items():
        z = 0.6 * latent + 0.8 * rng.standard_normal(n)
        value = np.clip(np.rint((z + 3) / 6 * (high - low) + low), low, high).astype(np.int64)
        columns[name] = np.where(rng.random(n) < 0.9, 0, value) if name in ("gain", "loss") else value
    for name, k in NOMINALS.items():
        z = 0.5 * latent + rng.standard_normal(n)
        codes = np.clip(((z + 2.5) / 5 * k).astype(np.int64), 0, k - 1)
        columns[name] = pa.DictionaryArray.from_arrays(codes, [f"{name} {i}" for i in range(k)])
    return columns


def wide(rng: np.random.Generator, n: int) -> dict:
    latent = rng.standard_normal((n, 4)) @ np.random.default_rng(2).standard_normal((4, max(WIDTHS)))
    return {f"x{i}": 1 / (1 + np.exp(-latent[:, i])) for i in range(max(WIDTHS))}


def spec(folder: Path, table: Path, mechanism: str, count: int, more: str) -> tuple[Path, list[str]]:
    """A spec for the first columns of a table."""
    names = pq.read_schema(table).names[:count]
    lines = []
    for name in names:
        if name in INTEGERS:
            lines.append(f"  {name}: {{type: integer, bounds: {list(INTEGERS[name])}}}")
        elif name in NOMINALS:
            labels = ", ".join(f"{name} {i}" for i in range(NOMINALS[name]))
            lines.append(f"  {name}: {{type: nominal, categories: [{labels}]}}")
        else:
            lines.append(f"  {name}: {{type: continuous, bounds: [0, 1]}}")
    path = folder / "spec.yaml"
    path.write_text(
        f"dpsynth: 1\nname: bench\ninput: {table}\noutput: {folder / 'made.parquet'}\n"
        f"privacy: {{epsilon: 1.0, delta: 1e-9}}\nmechanism: {{name: {mechanism}{more}}}\ncolumns:\n"
        + "\n".join(lines)
        + "\n"
    )
    return path, names


# --- other files ---------------------------------------------------------------------------------


def as_csv(table: Path) -> Path:
    from pyarrow import csv

    path = table.with_suffix(".csv")
    if not path.exists():
        with pq.ParquetFile(table) as file, open(path, "wb") as target:
            for number, batch in enumerate(file.iter_batches(2**18)):
                csv.write_csv(batch, target, csv.WriteOptions(include_header=number == 0))
    return path


def as_gzip(table: Path) -> Path:
    path = table.with_suffix(".csv.gz")
    if not path.exists():
        with open(as_csv(table), "rb") as source, gzip.open(path, "wb", 6) as target:
            shutil.copyfileobj(source, target)
    return path


def in_pieces(table: Path) -> Path:
    folder = table.with_suffix("")
    if not folder.exists():
        folder.mkdir()
        whole = pq.read_table(table)
        size = -(-len(whole) // 1_000)
        for number in range(1_000):
            pq.write_table(whole.slice(number * size, size), folder / f"{number:04}.parquet")
    return folder
