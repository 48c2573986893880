"""dpsynth check of several tables: in words, every question, its noise, its cost, errors of each table."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dpsynth_cli.cli.options import IMAGINED_ROWS, progress_bar

if TYPE_CHECKING:
    from dpsynth_cli.spec.spec import Spec


def report_tables(
    spec: Spec, like: str | None, n: int | None, runs: int | None, compare: bool, quiet: bool
) -> dict[str, Any]:
    """What simulated releases say, and which table has what."""
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.release.documents.audit import warnings
    from dpsynth_cli.release.predict.imagine_tables import predict_tables

    if like or compare:
        option = "--like" if like else "--compare"
        raise UsageError(
            f"{option} is for one table, and {spec.name} has several.",
            next_step="Leave it out: releases are simulated on generated tables.",
        )
    rows = n or spec.domain.rows_hint or spec.rows or IMAGINED_ROWS
    with progress_bar(quiet) as progress:
        prediction = predict_tables(spec, rows, 1 if runs is None else runs, progress, runs is None)
    notes = [
        *warnings(spec),
        *(f"with {rows:,} imagined parents: {note}" for note in prediction.pop("notes")),
    ]
    if not (n or spec.domain.rows_hint or spec.rows):
        notes.append(
            f"{rows:,} parents are imagined, and errors depend on that: say how many, --n or rows_hint."
        )
    notes.append(
        "children of imagined parents do not depend on them: how well such links are kept is not predicted."
    )
    return {"tables": family_words(spec), "notes": notes, "prediction": prediction}


def family_words(spec: Spec) -> list[str]:
    """Who belongs to whom, a sentence each."""
    assert spec.tables is not None
    said = [f"{spec.tables.parent}: one row for each {spec.tables.key}, released as 1, 2, 3, ..."]
    for child in spec.tables.children:
        by = f", sorted by {', '.join(child.order)}" if child.order else ", in any order"
        before = "nothing" if child.siblings == () else ", ".join(child.siblings or ()) or "all columns"
        said.append(
            f"{child.name}: 0 to {child.rows} rows for each row of {spec.tables.parent}, which "
            f"{child.foreign_key} names{by}; each given its parent and, of the row before, {before}."
        )
    return said


def headers(spec: Spec) -> dict[str, Any]:
    """Whether each input has the declared columns. No row is read."""
    from dpsynth_cli.errors import FileError
    from dpsynth_cli.spec.tables import each_table
    from dpsynth_cli.trusted.rows.read import open_scan
    from dpsynth_cli.trusted.rows.unit_marks import unit_column

    said: list[str] = []
    for own in each_table(spec).values():
        if not os.path.exists(own.input):
            return {"fits": None, "says": f"not compared: {own.input} is not there."}
        assert own.privacy.unit is not None
        columns = (*own.domain.columns, unit_column(own.privacy.unit.column))
        try:
            with closing(open_scan(own.input, columns, own.csv)):
                said.append(own.input)
        except FileError as error:
            return {"fits": False, "says": f"{error.happened} {error.next_step}".strip()}
    return {"fits": True, "says": f"{' and '.join(said)} have all declared columns."}


def data_of(spec: Spec) -> dict[str, Any]:
    """Counts in the real rows of each table, and how many have no parent: for the steward."""
    from dpsynth_cli.mechanisms.search.outer import outer
    from dpsynth_cli.release.documents.junk import for_the_steward
    from dpsynth_cli.spec.tables import each_table
    from dpsynth_cli.trusted.rows.family_counts import family_counts
    from dpsynth_cli.trusted.rows.problems import count_problems
    from dpsynth_cli.trusted.rows.read import open_scan
    from dpsynth_cli.trusted.rows.unit_marks import unit_column

    assert spec.tables is not None
    found: dict[str, Any] = {}
    keys = {}
    for name, own in each_table(spec).items():
        asked = outer(own.domain)
        with closing(open_scan(own.input, asked.columns, own.csv)) as scan:
            found[name] = for_the_steward(count_problems(scan), asked, own.domain)
        assert own.privacy.unit is not None
        keys[name] = (own, own.privacy.unit)
    parent, parent_unit = keys[spec.tables.parent]
    for child in spec.tables.children:
        own, unit = keys[child.name]
        with (
            closing(open_scan(parent.input, [unit_column(parent_unit.column)], parent.csv)) as above,
            closing(open_scan(own.input, [unit_column(unit.column)], own.csv)) as below,
        ):
            found[child.name]["family"] = family_counts(
                above, parent_unit.column, below, unit.column, child.rows
            )
    return found


def show_tables(console: Any, report: dict[str, Any]) -> None:
    """The predictions, and the counts if there are any."""
    from rich.table import Table

    from dpsynth_cli.cli.predictions import span
    from dpsynth_cli.cli.problems import show_problems

    for line in report["tables"]:
        console.print(line, markup=False)
    prediction = report["prediction"]
    table = Table(
        title=f"What it would ask, imagined for {prediction['rows']:,} parents", title_justify="left"
    )
    for name in ("table", "step", "questions", "cells", "sd of a cell"):
        table.add_column(name, justify="left" if name in ("table", "step") else "right")
    steps: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for charge in prediction["charges"]:
        steps.setdefault((charge["table"], charge["step"]), []).append(charge)
    for (name, step), own in steps.items():
        noise = sorted(charge.get("standard_deviation", 0.0) for charge in own)
        spread = f"{noise[0]:.3g}" + (f" - {noise[-1]:.3g}" if noise[-1] > noise[0] else "")
        table.add_row(name, step, f"{len(own):,}", f"{sum(charge['cells'] for charge in own):,}", spread)
    console.print(table)
    for name, errors in prediction["errors"].items():
        simulated = ", ".join(prediction["generated_tables"])
        moved = f"ends moved out by {prediction['margin']:g}"
        title = f"Errors of {name}, simulated on generated tables ({simulated}; {moved})"
        table = Table(title=title, title_justify="left")
        for head in ("target", "range", "median"):
            table.add_column(head, justify="left" if head == "target" else "right")
        for target, one in errors.items():
            table.add_row(target, span(one), f"{one['typical']:.3g}")
        console.print(table)
    console.print(
        f"Predicted cost: up to about {prediction['cpu_seconds']:.2g} s of processor time and "
        f"{prediction['memory_bytes'] / 1e6:.0f} MB of memory."
    )
    for name, counts in report.get("data", {}).items():
        console.print(f"{name}:")
        show_problems(console, counts)
        if family := counts.get("family"):
            console.print(
                f"confidential, for the steward only: {family['rows']:,} rows and {family['parents']:,} "
                f"parents; {family['orphans']:,} rows have no parent and are left out, {family['cut']:,} are "
                f"more than are kept of one; {family['childless']:,} parents have none, and "
                f"{family['duplicates']:,} rows of parents have a key that another has, or none."
            )
