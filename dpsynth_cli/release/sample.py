"""More rows from a past release: reads no data, costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dpsynth_cli.errors import UsageError
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.publish import Files
from dpsynth_cli.release.replay import replay
from dpsynth_cli.release.synthesis import draw
from dpsynth_cli.release.transcript import load


@dataclass(frozen=True)
class Sampled:
    """What `sample` wrote."""

    output: str
    rows: int
    seed: int
    sha256: str


def sample(path: Path, output: str, rows: int | None, seed: int, progress: Progress = no_progress) -> Sampled:
    """Draw rows from a transcript into a file."""
    if output != "-" and not output.endswith((".csv", ".parquet")):
        raise UsageError(
            f"the output {output} is not a .csv or .parquet file.", next_step="Name one, or - for CSV."
        )
    transcript, _ = load(path)
    spec, outcome = replay(transcript, progress)
    model = outcome.model
    spec = replace(spec.found(outcome.found.domain), output=output)
    files = Files.of(spec)
    if files.output is not None and files.public_audit.exists():
        raise UsageError(
            f"{output} is the table of a release: its audit is beside it.", next_step="Choose another name."
        )
    files.check_writable()
    count = rows or (max(0, model.total) if spec.rows is None else spec.rows)
    pending = draw(spec, model, count, seed, files.path, progress)
    pending.publish()
    return Sampled(output, count, seed, pending.sha256)
