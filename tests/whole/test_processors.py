"""A release is rebuilt to the byte with the instructions of other processors, whatever its mechanism."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dpsynth_cli.mechanisms.registry import mechanisms
from tests.conftest import ROOT, Ran
from tests.processors import on_others

EVERY = [name for name, one in mechanisms().items() if not one.stream]
WIDE = [name for name in EVERY if name not in ("auto", "pmm")]  # that take eight columns
VERIFY = """
import sys
from pathlib import Path
from dpsynth_cli.errors import VerificationError
from dpsynth_cli.release.verify import verify
for audit in sys.argv[1:]:
    try:
        verify(Path(audit))
    except VerificationError as error:
        print(Path(audit).name, error)
"""
MIXED = """\
  age:    {type: integer, bounds: [0, 99], nullable: true}
  score:  {type: continuous, bounds: [0.0, 1.0]}
  color:  {type: nominal, categories: [a, b, c, d, e]}
  size:   {type: ordinal, categories: [s, m, l, xl]}
  flag:   {type: boolean}
  amount: {type: continuous, bounds: [0, 1000], decimals: 2}
  day:    {type: date, bounds: [2020-01-01, 2020-12-31]}
  label:  {type: nominal, categories: ["yes", "no"]}
"""
CODES = (5, 6, 4, 7, 3, 8)  # 20,160 cells, of which more functions are fitted than are written down


def mixed(rows: int = 2000) -> list[str]:
    """The rows of a table of all types, whose columns hang together."""
    rng = np.random.default_rng(11)
    z, color = rng.normal(size=rows), rng.integers(0, 5, rows)
    noise = rng.normal(size=(4, rows))
    columns = {
        "age": [
            "" if lost else str(x)
            for lost, x in zip(rng.random(rows) < 0.05, ints(40 + 12 * z, 99), strict=True)
        ],
        "score": [f"{x:.4f}" for x in 1 / (1 + np.exp(-z - noise[0]))],
        "color": ["abcde"[c] for c in color],
        "size": [("s", "m", "l", "xl")[k] for k in ints(1.5 + z + noise[1], 3)],
        "flag": ["true" if x > 0 else "false" for x in z + noise[2]],
        "amount": [f"{min(x, 1000):.2f}" for x in np.exp(3 + z + 0.5 * noise[3])],
        "day": [str(np.datetime64("2020-01-01") + int(k)) for k in ints(180 + 80 * z, 365)],
        "label": ["yes" if x > 0.7 else "no" for x in z + 0.5 * noise[0]],
    }
    return [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]


def ints(x: np.ndarray, most: int) -> list[int]:
    return np.clip(np.rint(x), 0, most).astype(int).tolist()


def codes(sizes: tuple[int, ...], rows: int) -> tuple[list[str], str]:
    """A table of categories that follow one hidden number, and what a spec says of its columns."""
    rng = np.random.default_rng(11)
    z, noise = rng.normal(size=rows), rng.normal(size=(len(sizes), rows))
    parts = [ints((z * (0.3 + 0.2 * j) + noise[j] + 2.5) / 5 * k - 0.5, k - 1) for j, k in enumerate(sizes)]
    lines = [",".join(f"q{j}" for j in range(len(sizes)))]
    words = [[f'"{code}"' for code in range(k)] for k in sizes]
    spec = [f"  q{j}: {{type: nominal, categories: [{', '.join(each)}]}}\n" for j, each in enumerate(words)]
    return lines + [",".join(map(str, row)) for row in zip(*parts, strict=True)], "".join(spec)


@pytest.fixture
def released(dpsynth: Callable[..., Ran], tmp_path: Path) -> Callable[..., Path]:
    """The audit of a release of some rows."""

    def release(
        name: str, lines: list[str], columns: str, mechanism: str, privacy: str, more: str = ""
    ) -> Path:
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        (tmp_path / f"{name}.yaml").write_text(
            f"dpsynth: 1\nname: {name}\ninput: {name}.csv\noutput: out/{name}.csv\n"
            f"privacy: {{{privacy}, neighbours: add_remove}}\n"
            f"mechanism: {{name: {mechanism}{more}}}\ncolumns:\n{columns}"
        )
        ran = dpsynth("release", f"{name}.yaml")
        assert ran.code == 0, ran.err
        return tmp_path / f"out/{name}.audit.public.json"

    return release


def check(audits: list[Path], only: tuple[str, ...] = ()) -> None:
    for processor, told in on_others(VERIFY, *map(str, audits), only=only):
        assert told == "", f"as on a processor {processor}: {told}"


def test_every_mechanism_is_rebuilt_on_another_processor(released):
    """One old processor; all columns of a table that all mechanisms take."""
    lines = mixed(400)
    few = ["age", "score", "label"]
    at = [lines[0].split(",").index(name) for name in few]
    lines = [",".join(line.split(",")[k] for k in at) for line in lines]
    columns = "".join(line for line in MIXED.splitlines(keepends=True) if line.split(":")[0].strip() in few)
    check([released(name, lines, columns, name, "epsilon: 2.0") for name in EVERY], only=("of 2004",))


def test_one_model_of_every_combination_is_rebuilt_on_another_processor(released):
    lines, columns = codes(CODES, 20_000)
    check([released("cube", lines, columns, "joint", "epsilon: 1.0, delta: 1e-9")], only=("of 2004",))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", WIDE)
def test_releases_of_many_kinds_are_rebuilt_on_all_processors(released, mechanism):
    table, gaussian = mixed(), "epsilon: 2.0, delta: 1e-9"
    lines, columns = codes(CODES, 20_000)
    check(
        [
            released("pure", table, MIXED, mechanism, "epsilon: 1.0"),
            released("gaussian", table, MIXED, mechanism, gaussian),
            released("strata", table, MIXED, mechanism, gaussian, ", strata: label"),
            released("categories", lines, columns, mechanism, gaussian),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 3.0, 30.0])
def test_models_of_every_combination_are_rebuilt_on_all_processors(released, epsilon):
    tables = {
        "cube": codes(CODES, 38_000),
        "few": codes((5, 4, 2, 3), 2000),
        "signs": codes((2,) * 12, 16_000),
    }
    check(
        [
            released(name, *table, "joint", f"epsilon: {epsilon}, delta: 1e-9")
            for name, table in tables.items()
        ]
    )


@pytest.mark.slow
def test_the_sample_configurations_are_rebuilt_on_all_processors(dpsynth, tmp_path):
    """Places and times, units, tables that belong together: all that is a table's release."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    for path in (ROOT / "configs").glob("*.yaml"):
        if "online" not in path.name and "groups" not in path.name:
            (tmp_path / "configs" / path.name).write_text(path.read_text())
            ran = dpsynth("release", f"configs/{path.name}")
            assert ran.code == 0, ran.err
    audits = sorted((tmp_path / "out").glob("*.audit.public.json"))
    assert len(audits) > 5
    check(audits)
