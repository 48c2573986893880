"""The `utility` of the steward's audit: cheap by default, on samples of a stated size, and confidential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dpsynth_cli.errors import DpsynthError
from dpsynth_cli.evaluate.metrics.metrics import REFERENCES, Judged, chosen, distance_of, judge
from dpsynth_cli.evaluate.metrics.names import QUICK
from dpsynth_cli.evaluate.tables import Sample, Table
from dpsynth_cli.questions import Progress
from dpsynth_cli.spec.spec import Spec

SAMPLE_ROWS = 50_000
QUICK_CELLS = 300_000  # of those that the quick metrics look at, about: a release does not wait for them


def utility(
    spec: Spec,
    real: Callable[[], Table],
    made: Sample,
    progress: Progress,
    problems: Callable[[], Mapping[str, Any]],
) -> dict[str, Any] | None:
    """The verdict, and what the spec's `evaluate.metrics` say of a sample of the synthetic rows against the
    `real` ones; `problems` gives counts of real cells that are not as declared, when these were read.

    A release that is paid for does not fail because it cannot be judged: then the audit says so.
    """
    wanted = spec.evaluation
    metrics, notes = chosen(wanted.metrics, spec.domain, wanted.target)
    if not metrics:
        return None
    quick = set(wanted.metrics) == set(QUICK)
    plan = Judged(metrics, wanted.target, distance=distance_of(spec.params))
    if quick:
        most = min(20_000, max(5_000, QUICK_CELLS // len(spec.domain.columns)))
        plan = replace(plan, references=REFERENCES[:1], most=most)
    confidential = {"confidential": True, "sample_rows": SAMPLE_ROWS, "notes": notes}
    try:
        rows = real()
        counted = {"real": problems()}
        return confidential | judge(rows, made.table(spec.domain), spec.domain, plan, None, progress, counted)
    except DpsynthError as error:
        return confidential | {"failed": error.happened, "metrics": {}}
    except Exception as error:  # never its text: a library may have put a cell's content into it
        return confidential | {"failed": f"a bug in dpsynth: {type(error).__name__}", "metrics": {}}
