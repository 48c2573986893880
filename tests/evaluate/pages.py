"""Releases with columns of every kind and names and labels of the worst kind, for tests of their pages."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

LONG = "a label that goes on and on as codebooks have them, without ever coming to its end (level 3, general)"
WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
SCRIPT = "<script>alert(1)</script>"
TURNED = "\u202eturned round"
NAMES = (
    "age",
    SCRIPT,
    "income \"gross\" & 'net'",
    "opened",
    "seen",
    "a_very_long_column_name_without_any_place_to_break_it_anywhere_in_sight",
    "level of the household's reference person in the classification",
    "price",
    "rank",
    "mostly amounts",
)
ROWS = 400


def column(place: int, rng: np.random.Generator) -> tuple[str, dict[str, Any], list[str]]:
    """Name, declaration and cells of the column at a place: ten kinds, again and again."""
    kind, z = place % len(NAMES), rng.normal(size=ROWS)
    name = NAMES[kind] + (f" {place}" if place >= len(NAMES) else "")
    if kind == 0:
        declared = {"type": "integer", "bounds": [0, 120]}
        cells = np.clip(40 + 15 * z, 0, 120).astype(int).tolist()
    elif kind == 1:
        declared = {"type": "nominal", "categories": [LONG, "<i>b</i>", WORD, TURNED]}
        cells = [(LONG, "<i>b</i>", WORD)[i] for i in rng.integers(3, size=ROWS)]
    elif kind == 2:
        declared = {"type": "integer", "bounds": [0, 10**9], "nullable": True}
        cells = [
            "" if gone else int(v) for v, gone in zip(np.exp(8 + z), rng.random(ROWS) < 0.1, strict=True)
        ]
    elif kind == 3:
        declared = {"type": "date", "bounds": ["1980-01-01", "2030-01-01"]}
        cells = [str(np.datetime64("1995-01-01") + int(1000 * v)) for v in z]
    elif kind == 4:
        declared = {"type": "datetime", "bounds": ["2024-01-01 00:00:00", "2024-12-31 00:00:00"]}
        cells = [f"2024-{m:02}-03 {h:02}:15:00" for m, h in rng.integers([1, 0], [13, 24], (ROWS, 2))]
    elif kind == 5:
        declared = {"type": "boolean", "nullable": True}
        cells = [("true", "false", "")[i] for i in rng.integers(3, size=ROWS)]
    elif kind == 6:
        declared = {"type": "ordinal", "categories": [f"{i}: {LONG[: 20 + 3 * i]}" for i in range(30)]}
        cells = [declared["categories"][i] for i in rng.integers(30, size=ROWS)]
    elif kind == 7:
        declared = {"type": "continuous", "bounds": [-123456.789, 1e12]}
        cells = np.round(np.abs(z) * 20, 2).tolist()
    elif kind == 8:
        declared = {"type": "integer", "bounds": [1, 5]}
        cells = rng.integers(1, 6, ROWS).tolist()
    else:  # two thirds of it junk
        declared = {"type": "continuous", "bounds": [0, 10000], "nullable": True}
        cells = [f"$ {v:,.2f}" if i % 3 else f"{v:.2f}" for i, v in enumerate(np.abs(z) * 1000)]
    return name, declared, [str(cell) for cell in cells]


def write(folder: Path, columns: int, paid: str = "30%", metrics: Any = "none") -> None:
    """trips.csv and spec.yaml in the folder."""
    rng = np.random.default_rng(columns)
    made = [column(place, rng) for place in range(columns)]
    with open(folder / "trips.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([name for name, _, _ in made])
        writer.writerows(zip(*(cells for _, _, cells in made), strict=True))
    spec: dict[str, Any] = {
        "dpsynth": 1,
        "name": "trips & <b>more",
        "input": "trips.csv",
        "output": "out/trips.csv",
        "privacy": {"epsilon": "1.0", "neighbours": "add_remove"},
        "mechanism": {"name": "marginals"},
        "columns": {name: declared for name, declared, _ in made},
        "evaluate": {"metrics": metrics} | ({"epsilon": paid} if paid else {}),
    }
    (folder / "spec.yaml").write_text(json.dumps(spec, ensure_ascii=False), encoding="utf-8")  # JSON is YAML


def pages(dpsynth: Any, folder: Path) -> tuple[str, str]:
    """The steward's page and the public one of a release of spec.yaml."""
    for words in (
        ["release", "spec.yaml", "--replace"],
        ["report", "out/trips.audit.json"],
        ["report", "out/trips.audit.json", "--public"],
    ):
        ran = dpsynth(*words)
        assert ran.code == 0, ran.err
    steward, public = ((folder / f"out/trips.report{kind}.html").read_text() for kind in ("", ".public"))
    return steward, public
