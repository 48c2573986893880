"""Synthetic tables that belong together against the real ones: each with all that belongs to its rows.

Parents are judged with how many children they have, children with the columns of their parent and of the
child before them: so links between tables and between siblings are judged as links of columns are.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsynth_cli.domain import Domain, as_written
from dpsynth_cli.errors import FileError, UsageError
from dpsynth_cli.evaluate.metrics.metrics import REFERENCES, Judged, chosen, judge
from dpsynth_cli.evaluate.metrics.names import MOST_ROWS, NAMES
from dpsynth_cli.questions import Progress, no_progress
from dpsynth_cli.release.documents.junk import for_the_steward
from dpsynth_cli.spec.spec import Spec
from dpsynth_cli.spec.tables import each_table
from dpsynth_cli.trusted.engines import Engine
from dpsynth_cli.trusted.engines.local import gather, sum_over
from dpsynth_cli.trusted.rows.problems import Problems
from dpsynth_cli.trusted.rows.read import open_scan
from dpsynth_cli.trusted.rows.sample import Table
from dpsynth_cli.trusted.rows.unit_marks import fresh_key, unit_column
from dpsynth_cli.trusted.sums.table_passes import Source, TablePasses


def compare_tables(
    spec: Spec,
    synthetic: str,
    *,
    metrics: tuple[str, ...] | None = None,
    references: bool = True,
    rows: int = MOST_ROWS,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The figures of every table by its name; `synthetic` is the parents' file, the others are beside it."""
    assert spec.tables is not None
    real = {name: own.input for name, own in each_table(spec).items()}
    made = {spec.tables.parent: synthetic}
    for child in spec.tables.children:
        made[child.name] = str(Path(synthetic).with_name(Path(child.spec.output).name))
    for path in made.values():
        if not Path(path).exists():
            raise FileError(
                f"there is no synthetic file {path}.",
                "Nothing was read and nothing was spent.",
                f"Name the parents that were released, {spec.output}, with their children beside them.",
            )
    if any(column.private for own in each_table(spec).values() for column in own.domain):
        raise UsageError(
            "these tables cannot be compared by this spec: some bounds or categories are private.",
            next_step="State in the spec what the audit says was found.",
        )
    domains = {spec.tables.parent: spec.domain}
    for child in spec.tables.children:
        omega = child.of_child(child.spec.domain, spec.domain)
        domains[child.name] = replace(omega, unit_rows=child.rows)
    found = {}
    for name, domain in domains.items():
        own = [column for column in domain if column.origin is None]
        counted = {which: Problems.of(column.name for column in own) for which in ("real", "synthetic")}
        truth = joined_table(spec, real, domain, rows, progress, counted["real"])
        drawn = joined_table(spec, made, domain, rows, progress, counted["synthetic"], written=True)
        kept, notes = chosen(NAMES if metrics is None else metrics, domain, None)
        told = {which: for_the_steward(one, Domain(tuple(own))) for which, one in counted.items()}
        wanted = Judged(kept, None, REFERENCES if references else ())
        judged = judge(truth, drawn, domain, wanted, None, progress, told)
        found[name] = {"synthetic": made[name], "real": real[name]} | judged | {"notes": notes}
    return {"confidential": True, "tables": found}


def joined_table(
    spec: Spec,
    files: Mapping[str, str],
    domain: Domain,
    rows: int | None,
    progress: Progress = no_progress,
    problems: Problems | None = None,
    written: bool = False,
) -> Table:
    """An even sample of a table's rows with all that belongs to them; `written`: files of a release."""
    assert spec.tables is not None
    ordered = {child.name: child.sorted_by for child in spec.tables.children}
    with ExitStack() as opened:
        sources = {}
        for name, own in each_table(spec).items():
            unit = own.privacy.unit
            assert unit is not None
            plain, csv = as_written(own.domain, own.csv) if written else (own.domain, own.csv)
            columns = (*plain.columns, unit_column(unit.column))
            scan = opened.enter_context(closing(open_scan(files[name], columns, csv)))
            sources[name] = Source(scan, unit.column, unit.rows, ordered.get(name, ()))
        engine = Engine(sum_over, watches=True, counts=True, gather=gather)
        passes = opened.enter_context(closing(TablePasses(sources, domain, engine, fresh_key(), progress)))
        return passes.sampled(domain, rows, problems)
