"""Anything at all as spec, CSV or Parquet: a clear end, the contract's exit codes, and nobody's cell in any
output. A part runs in every test; 100,000 cases in the slow suite."""

from __future__ import annotations

import random
import string
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import DpsynthError, FileError, UsageError
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.questions import Bins, CellCounts, Cells, Question, Total
from dpsynth_cli.spec.spec import load_spec
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.rows.read import open_scan
from tests.conftest import ROOT

SECRET = "zq-secret-7"  # in a cell, so it may be in no output
OMEGA = Domain(
    (
        Column("age", "integer", lower=0, upper=120, nullable=True),
        Column("score", "continuous", lower=0.0, upper=1.0),
        Column("group", "nominal", categories=("a", "b", "c,d"), nullable=True),
    )
)
ASKED = [
    Question("n", Total(), 1),
    Question("group", CellCounts(Cells((Bins("group", (0, 1, 2, 3, 4)),))), 1),
    Question("age", CellCounts(Cells((Bins("age", (0, 60, 121, 122)),))), 1),
]


# --- specs -------------------------------------------------------------------------------------------

SPECS = [path.read_text() for path in sorted((ROOT / "configs").glob("*.yaml"))]
WORDS = [
    "null", "~", "1e309", "-1", "0", "nan", ".inf", "[]", "{}", "yes", "NO", "012", "1_000", "'", '"', "|",
    ">", "&a", "*a", "!!python/object:os.system", "<<", "? x", "- ", ": ", "#", "\t", "\x00", "\ud7ff", "é",
    "add_remove", "replace_one", "epsilon", "bounds", "categories", "1" * 400, "a" * 300, "[" * 60,
    "{a: " * 60, "1e-9", "0x10", "2026-02-30", "2020-13-45", "-", "--- ", "...", "%YAML 1.2",
]  # fmt: skip


def mangled(text: str, rng: random.Random) -> str:
    """A spec with a few things wrong: words exchanged, lines lost, doubled, moved or indented."""
    for _ in range(rng.randint(1, 4)):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            lines[at] = " " * rng.randrange(5) + lines[at]
        elif kind == 3 and ":" in lines[at]:
            lines[at] = lines[at].split(":")[0] + ": " + rng.choice(WORDS)
        elif kind == 4:
            lines[at] = lines[at].replace(rng.choice("abeio[]{},:"), rng.choice(WORDS), 1)
        elif kind == 5:
            lines = lines[:at]
        elif kind == 6:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + rng.choice(string.printable) + lines[at][place:]
        else:
            lines[at] = rng.choice(WORDS)
        text = "\n".join(lines) or "\n"
    return text


def specs(folder: Path, count: int, rng: random.Random) -> int:
    """How many of so many mangled specs were refused; all others are valid."""
    path, said = folder / "spec.yaml", []
    for _ in range(count):
        text = mangled(rng.choice(SPECS), rng)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            load_spec(str(path))
        except (UsageError, FileError) as error:
            said.append(str(error))
        except Exception as error:
            pytest.fail(f"{error!r} for the spec\n{text}")
    assert all("Nothing was read and nothing was spent." in each for each in said)
    return len(said)


# --- files -------------------------------------------------------------------------------------------

CELLS = [
    b"", b"1", b"-1", b"60", b"1e400", b"nan", b"inf", b"0.5", b"a", b"b", b'"c,d"', b"c,d", b'"', b'""',
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b" 7 ", b"=1+1", SECRET.encode(), b"9" * 40, b"x" * 3000,
    b'"' + SECRET.encode() + b'"', "é😀".encode(), b"\x1f", b"\\", b"'", b"true", b"2020-01-01",
]  # fmt: skip


def csv_bytes(rng: random.Random) -> bytes:
    """A header that is right, then anything."""
    lines = [b"age,score,group"]
    for _ in range(rng.randrange(6)):
        kind = rng.randrange(3)
        if kind == 0:
            lines.append(b",".join(rng.choice(CELLS) for _ in range(rng.choice((3, 3, 3, 1, 2, 4, 9)))))
        elif kind == 1:
            lines.append(rng.randbytes(rng.randrange(40)))
        else:
            lines.append(b",".join(rng.choice(CELLS) for _ in range(3)) + b"\r")
    return b"\n".join(lines) + rng.choice((b"", b"\n", b"\r\n"))


def arrow_table(rng: random.Random) -> pa.Table:
    """Columns of the right names and of any types."""
    rows = rng.randrange(5)
    kinds = [
        lambda: pa.array([rng.choice((None, -5, 3, 2**62)) for _ in range(rows)], pa.int64()),
        lambda: pa.array(
            [rng.choice((None, float("nan"), 1e308, -0.0, 0.3)) for _ in range(rows)], pa.float64()
        ),
        lambda: pa.array([rng.choice((None, "a", SECRET, "c,d", "\x00")) for _ in range(rows)], pa.string()),
        lambda: pa.array(
            [rng.choice((None, b"a", b"\xff", SECRET.encode())) for _ in range(rows)], pa.binary()
        ),
        lambda: pa.array([rng.choice((None, True, False)) for _ in range(rows)], pa.bool_()),
        lambda: pa.array(
            [rng.choice((None, "a", SECRET)) for _ in range(rows)], pa.string()
        ).dictionary_encode(),
        lambda: pa.array([None] * rows, pa.null()),
        lambda: pa.array([rng.choice((None, [1], [])) for _ in range(rows)], pa.list_(pa.int32())),
        lambda: pa.array([rng.choice((None, 0, 86399)) for _ in range(rows)], pa.timestamp("s", "UTC")),
    ]
    return pa.table({name: rng.choice(kinds)() for name in ("age", "score", "group", "more")})


def files(folder: Path, count: int, rng: random.Random, capfd) -> tuple[int, int]:
    """Read so many odd files; how many were summed, how many refused in plain words."""
    summed, said = 0, []
    for i in range(count):
        if i % 2:
            path = folder / "t.csv"
            path.write_bytes(csv_bytes(rng))
        else:
            path = folder / "t.parquet"
            pq.write_table(arrow_table(rng), path)
            if rng.random() < 0.5:
                data = bytearray(path.read_bytes())
                for _ in range(rng.randint(1, 4)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                path.write_bytes(bytes(data[: rng.randrange(len(data))] if rng.random() < 0.2 else data))
        try:
            sums, rows = sum_over(open_scan(str(path), OMEGA.columns, None), OMEGA, ASKED, workers=1)
            summed += 1
            assert all(int(part.sum()) == rows for part in sums)
        except DpsynthError as error:
            said.append(str(error))
            if path.suffix == ".csv":
                pytest.fail(f"a CSV file with its header is never refused: {error}")
        except Exception as error:
            pytest.fail(f"{type(error).__name__} while reading {path.name}: {path.read_bytes()!r}")
    out, err = capfd.readouterr()
    assert SECRET not in out + err + "".join(said)
    return summed, len(said)


# --- whole releases ----------------------------------------------------------------------------------


def whole_releases(dpsynth, people, tmp_path, count: int, rng: random.Random) -> None:
    """Odd tables, specs and commands from end to end."""
    known = [name for name, one in mechanisms().items() if not getattr(one, "stream", False)]
    for _ in range(count):
        spec = people(rng.choice(known), rng.choice(("1", "0.01", "50")), rows=0)
        (tmp_path / "people.csv").write_bytes(csv_bytes(rng))
        if rng.random() < 0.3:
            spec.write_text(mangled(spec.read_text(), rng), errors="surrogatepass")
        command = rng.choice(("release", "release", "check"))
        again = ["--replace"] if command == "release" else []
        ran = dpsynth(command, spec, *again, *(["--json"] if rng.random() < 0.3 else []))
        assert ran.code in (0, 2, 5), (ran.code, ran.err, spec.read_text())
        assert "Traceback" not in ran.err
        assert SECRET not in ran.out + ran.err
        for made in (tmp_path / "out").rglob("*") if (tmp_path / "out").is_dir() else ():
            assert made.is_dir() or SECRET.encode() not in made.read_bytes(), made


def test_some_specs(tmp_path):
    refused = specs(tmp_path, 600, random.Random(1))
    assert 100 < refused < 600


def test_some_files(tmp_path, capfd):
    summed, refused = files(tmp_path, 400, random.Random(2), capfd)
    assert summed > 200
    assert refused > 20


def test_some_releases(dpsynth, people, tmp_path):
    whole_releases(dpsynth, people, tmp_path, 8, random.Random(3))


SEEDS = np.random.SeedSequence().generate_state(8).tolist()  # new ones each time; a failure prints its own


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_sixty_thousand_specs(tmp_path, part):
    specs(tmp_path, 7500, random.Random(SEEDS[part]))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_forty_thousand_files(tmp_path, capfd, part):
    files(tmp_path, 5000, random.Random(SEEDS[part]), capfd)


@pytest.mark.slow
def test_a_thousand_releases(dpsynth, people, tmp_path):
    whole_releases(dpsynth, people, tmp_path, 1000, random.Random(SEEDS[0]))
