"""What is read by others' hand: each reader takes bytes, and either reads them or refuses them in words.

An exception of any other kind is a finding. So is a refusal that repeats what is in a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.csv as csv
import pyarrow.parquet as pq

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.errors import DpsynthError
from dpsynth_cli.questions import Bins, CellCounts, Cells, Question, Total
from dpsynth_cli.release import table
from dpsynth_cli.release.record.transcript import PartialTranscript, load
from dpsynth_cli.release.stream import stream
from dpsynth_cli.release.verify import verify
from dpsynth_cli.spec.spec import Spec, load_spec
from dpsynth_cli.trusted.engines.local import sum_over
from dpsynth_cli.trusted.ledger import copies
from dpsynth_cli.trusted.ledger.ledger import Ledger
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.stream import state
from tests.conftest import ROOT

SECRET = "zq-secret-7"
OMEGA = Domain(
    (
        Column("age", "integer", lower=0, upper=120, nullable=True),
        Column("group", "nominal", categories=("a", "b", "c,d"), nullable=True),
        Column("seen", "date", lower=0, upper=20_000),
    )
)
ASKED = [
    Question("n", Total(), 1),
    Question("group", CellCounts(Cells((Bins("group", (0, 1, 2, 3, 4)),))), 1),
    Question("age", CellCounts(Cells((Bins("age", (0, 60, 121, 122)),))), 1),
]
CSV = (
    f"age,group,seen\n1,a,2020-01-01\n,b,1999-12-31\n999,{SECRET},x\n",
    'age,group,seen\r\n"4","c,d",2001-02-03\r\n"5\n6",a',
    "\ufeffage,group,seen,more\n7;8,\x00,,\n9,a,2020-02-30,1,2\n",
)
SPEC = """\
dpsynth: 1
name: s
input: table.csv
output: people.csv
privacy: {epsilon: 1, dataset: people}
mechanism: {name: MECHANISM}
columns:
  age: {type: integer, bounds: [0, 120], nullable: true}
"""


@dataclass(frozen=True)
class Target:
    """One reader; `name` is that of the file it is given."""

    name: str
    read: Callable[[Path], object]


def _rows(path: Path) -> object:
    scan = open_scan(str(path), OMEGA.columns)
    try:
        return sum_over(scan, OMEGA, ASKED, workers=1)
    finally:
        scan.close()


def _ledger(path: Path) -> object:
    book = Ledger(path, timeout=0.1)
    return book.verify(), book.log(), book.balance("people")


def _audit(path: Path) -> object:
    return verify(path, ledger=Ledger(path.with_name("ledger.sqlite")))


TARGETS = {
    "spec": Target("spec.yaml", lambda path: load_spec(str(path))),
    "csv": Target("table.csv", _rows),
    "parquet": Target("table.parquet", _rows),
    "transcript": Target("people.transcript.arrow", load),
    "partial": Target(".people.partial", PartialTranscript.peek),
    "audit": Target("people.audit.public.json", _audit),
    "ledger": Target("ledger.sqlite", _ledger),
    "mirror": Target("mirror.jsonl", copies.read),
    "state": Target("s.state", state._read),
}


def _spec(folder: Path, mechanism: str) -> Spec:
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("MECHANISM", mechanism))
    return load_spec(str(path))


def examples(folder: Path) -> dict[str, list[bytes]]:
    """Real files of every kind, of a release and a stream; the folder keeps what an audit is checked with."""
    ledger = Ledger(folder / "ledger.sqlite", mirror=folder / "mirror.jsonl")
    ledger.grant("people", "5", "add_remove")
    (folder / "table.csv").write_text(CSV[0])
    growing, spec = (_spec(folder, mechanism) for mechanism in ("online", "marginals"))
    stream.init(growing, ledger)
    stream.push(growing, ledger, growing.input, "1")
    kept: list[bytes] = []
    remove = PartialTranscript.remove
    PartialTranscript.remove = lambda self: (kept.append(self.path.read_bytes()), remove(self))[1]
    try:
        table.release(spec, ledger)
    finally:
        PartialTranscript.remove = remove
    pq.write_table(csv.read_csv(folder / "table.csv"), folder / "table.parquet")
    found = {
        "spec": [path.read_bytes() for path in sorted((ROOT / "configs").glob("*.yaml"))],
        "csv": [text.encode() for text in CSV],
        "parquet": [(folder / "table.parquet").read_bytes()],
        "partial": kept,
        "state": [(folder / "ledger.sqlite.streams" / "s.state").read_bytes()],
    }
    for name in ("transcript", "audit", "ledger", "mirror"):
        found[name] = [(folder / TARGETS[name].name).read_bytes()]
    return found


def tried(name: str, data: bytes, folder: Path) -> bool:
    """Give bytes to a reader; whether it read them. Anything but a refusal in words is raised."""
    target = TARGETS[name]
    path = folder / target.name
    whole = path.read_bytes() if path.exists() else None
    path.write_bytes(data)
    try:
        target.read(path)
        return True
    except DpsynthError as error:
        if SECRET in str(error) or not error.happened:
            raise AssertionError(f"a refusal without words, or with a cell in it: {error}") from error
        return False
    finally:
        for left in (folder / "ledger.sqlite-journal", folder / "ledger.sqlite-wal"):
            left.unlink(missing_ok=True)
        if whole is not None:
            path.write_bytes(whole)
