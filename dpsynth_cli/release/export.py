"""What else a past release says, beside its rows: reads no data, costs nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.record.transcript import load
from dpsynth_cli.release.replay import replay


def export(path: Path, what: str, progress: Progress = no_progress) -> dict[str, Any]:
    """An output of the mechanism other than rows, from the transcript alone."""
    transcript, _ = load(path)
    spec, outcome = replay(transcript, progress)
    made = outcome.model.exports.get(what)
    if made is None:
        raise UsageError(
            f"a release by {spec.mechanism.name} has no {what} of its own.",
            next_step="lowdim has private means and covariances; of others, take them from the rows.",
        )
    about = transcript.header["release"]
    return {"release": about["id"], "name": about["name"], "mechanism": spec.mechanism.name} | made()


def write_json(document: dict[str, Any], output: str) -> None:
    """One JSON document into a new file."""
    try:
        with open(output, "x", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False)
            file.write("\n")
    except FileExistsError:
        raise UsageError(f"{output} exists.", next_step="Choose another name, or remove it.") from None
    except OSError as error:
        raise FileError(f"{output} cannot be written: {error.strerror}.", "Nothing was spent.") from None
