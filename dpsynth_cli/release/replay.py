"""A release again from its transcript: no data, no noise source."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dpsynth_cli import __version__
from dpsynth_cli.errors import UsageError, VerificationError
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.release.stream.snapshot import rebuilt
from dpsynth_cli.release.synthesis import Outcome, check_paid_for, run
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.trusted.core.bill import Bill, recorded_ask

if TYPE_CHECKING:
    from dpsynth_cli.release.record.transcript import Transcript


def replay(transcript: Transcript, progress: Progress = no_progress) -> tuple[Spec, Outcome]:
    """The spec and the outcome again, from the transcript alone."""
    try:
        spec = from_document(transcript.header["spec"])
        if spec.mechanism.stream:
            return spec, rebuilt(spec, transcript)
        bill = Bill(spec.domain, accountant_of(spec), transcript.answers)
        outcome = run(
            spec, replace(recorded_ask(bill), progress=progress), bill, transcript.header["sampling_seed"]
        )
    except (KeyError, UsageError, ValueError) as error:
        made = transcript.header.get("release", {}).get("versions", {}).get("dpsynth", "an unknown version")
        raise VerificationError(
            f"the transcript does not fit its own spec: {error}.",
            "",
            f"It was made by dpsynth {made}; this is {__version__}.",
        ) from None
    check_paid_for(outcome.charges, transcript.answers)
    return spec, outcome
