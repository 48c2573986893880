"""More rows from a past release: reads no data, costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dpsynth_cli.errors import UsageError
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.files.publish import Files
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.release.replay import replay
from dpsynth_cli.release.synthesis import draw
from dpsynth_cli.spec.table_reading import beside


@dataclass(frozen=True)
class Sampled:
    """What `sample` wrote."""

    output: str
    rows: int
    seed: int
    sha256: str
    tables: tuple[Sampled, ...] = ()  # of children


def sample(path: Path, output: str, rows: int | None, seed: int, progress: Progress = no_progress) -> Sampled:
    """Draw rows from a transcript into a file."""
    if output != "-" and not output.endswith((".csv", ".parquet")):
        raise UsageError(
            f"the output {output} is not a .csv or .parquet file.", next_step="Name one, or - for CSV."
        )
    transcript, _ = load(path)
    spec, outcome = replay(transcript, progress)
    model = outcome.model
    if outcome.tables and output == "-":
        raise UsageError(
            "several tables cannot go to standard output.",
            next_step="Name a file for the parents: --output FILE. Their children go beside it.",
        )
    spec = replace(spec.found(outcome.found.domain), output=output)
    files = Files.of(spec)
    others = [Path(beside(output, one.child.name)) for one in outcome.tables]
    for taken in (other for other in others if other.exists()):
        raise UsageError(f"{taken} is already there.", next_step="Choose another name for the parents.")
    if files.output is not None and files.public_audit.exists():
        raise UsageError(
            f"{output} is the table of a release: its audit is beside it.", next_step="Choose another name."
        )
    files.check_writable()
    count = rows or (max(0, model.total) if spec.rows is None else spec.rows)
    pending = draw(spec, model, count, seed, files.path, progress)
    made = []
    for one, other in zip(outcome.tables, others, strict=True):
        child = draw(one.spec, one.model, count, seed, str(other), progress, written=None)
        child.publish()
        made.append(Sampled(str(other), child.rows, seed, child.sha256))
    pending.publish()
    return Sampled(output, count, seed, pending.sha256, tuple(made))
