"""The `utility` of the steward's audit: cheap by default, on samples of a stated size, and confidential."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsynth_cli.errors import DpsynthError
from dpsynth_cli.evaluate.metrics import Judged, chosen, judge
from dpsynth_cli.evaluate.names import QUICK
from dpsynth_cli.evaluate.tables import Sample, Table
from dpsynth_cli.questions import Progress
from dpsynth_cli.spec.spec import Spec

SAMPLE_ROWS = 50_000


def utility(spec: Spec, real: Callable[[], Table], made: Sample, progress: Progress) -> dict[str, Any] | None:
    """What the spec's `evaluate.metrics` say of a sample of the synthetic rows against the `real` ones.

    A release that is paid for does not fail because it cannot be judged: then the audit says so.
    """
    wanted = spec.evaluation
    metrics, notes = chosen(wanted.metrics, spec.domain, wanted.target)
    if not metrics:
        return None
    plan = Judged(metrics, wanted.target, references=set(wanted.metrics) != set(QUICK))
    confidential = {"confidential": True, "sample_rows": SAMPLE_ROWS, "notes": notes}
    try:
        return confidential | judge(real(), made.table(spec.domain), spec.domain, plan, None, progress)
    except DpsynthError as error:
        return confidential | {"failed": error.happened, "metrics": {}}
    except Exception as error:  # never its text: a library may have put a cell's content into it
        return confidential | {"failed": f"a bug in dpsynth: {type(error).__name__}", "metrics": {}}
