"""Which rows of a push are read at all, where units are protected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from dpsynth_cli.domain import Column
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.spec.unit import LIFE
from dpsynth_cli.trusted.rows.kept_rows import Kept
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.scan import Scan
from dpsynth_cli.trusted.rows.unit_marks import unit_column
from dpsynth_cli.trusted.stream.state import StreamState
from dpsynth_cli.trusted.stream.unit_quota import Quota, within_quota


@dataclass(frozen=True)
class Source:
    """The rows that are counted, how far they are read, what of them is still to be looked at; and what the
    state has of units once they are counted."""

    rows: Scan | Kept
    progress: Callable[[int], None]
    counted: Problems | None
    units: Quota


def columns_read(spec: Spec) -> tuple[Column, ...]:
    """Those of the table, and that of units."""
    unit = spec.privacy.unit
    return (*spec.domain.columns, *(() if unit is None else (unit_column(unit.column),)))


@contextmanager
def counted_rows(
    scan: Scan,
    spec: Spec,
    state: StreamState,
    day: str,
    progress: Callable[[int], None],
    counted: Problems,
) -> Iterator[Source]:
    """All rows of a batch, or as many of each unit as may still be counted: of the whole life of the stream,
    or of the day of the push."""
    unit = spec.privacy.unit
    if unit is None:
        yield Source(scan, progress, counted, {})
        return
    today = None if unit.per == LIFE else day
    kept, units = within_quota(
        scan, spec.domain.columns, unit.column, unit.rows, state.units, today, progress, counted
    )
    with closing(kept):
        yield Source(kept, lambda done: None, None, units)
