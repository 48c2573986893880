"""What `check` and `plan` say of errors that are simulated on public tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpsynth_cli.cli.options import imagined, progress_bar

if TYPE_CHECKING:
    from dpsynth_cli.spec.spec import Spec

FAMILY = "family"
WIDE = 20  # columns from which another mechanism is simulated with --compare only: it may take minutes
LINKS_NEAR = 10  # times what links take: fewer rows than that, and it is said how many they take
BRIEF, LONG = 0.5, 60.0  # processor seconds after which no further table is begun for a mechanism


def predicted(
    spec: Spec, like: str | None, n: int | None, runs: int | None, compare: bool, quiet: bool
) -> dict[str, Any]:
    """The part of `check`'s report that comes from simulated releases: a quick look if no runs are said."""
    from dpsynth_cli.release.documents.audit import warnings
    from dpsynth_cli.release.predict.candidates import (
        JUDGED_BY,
        Candidate,
        better,
        candidates,
        others,
        recommended,
    )
    from dpsynth_cli.release.predict.predict import predict

    table, rows = imagined(spec, like, n)
    times, quick = 1 if runs is None else runs, runs is None and not compare
    with progress_bar(quiet) as progress:
        prediction, example = predict(spec, rows, table, times, progress, quick)
        found, own, best = list[Candidate](), None, None
        if times and not spec.mechanism.stream and (compare or len(spec.domain.columns) <= WIDE):
            own = Candidate.of(spec, prediction)
            if compare:
                found = others(spec, rows, table, times, LONG, progress, own, candidates(spec))
            else:
                found = others(spec, rows, table, 1, BRIEF, progress, own, recommended(spec), JUDGED_BY)
            best = better(found, own)
    notes = [*warnings(spec), *(f"with {rows:,} imagined rows: {note}" for note in prediction.notes)]
    if not (n or like or spec.domain.rows_hint or spec.rows):
        notes.append(
            f"{rows:,} rows are imagined, and errors depend on that: say how many, --n or rows_hint."
        )
    enough = example.model.facts.get("links_from_rows")
    if enough and rows / LINKS_NEAR < enough <= rows:
        notes.append(
            f"links between columns are looked for from about {enough:,} rows on"
            f"{'' if spec.privacy.neighbours == 'replace_one' else ', by their noisy number'}; with fewer, "
            "columns are independent (within a class)."
        )
    report = {
        "imagined_rows": rows,
        "currency": example.accountant.currency,
        "total": str(example.accountant.total),
        "spent": str(example.accountant.spent),
        "charges": [charge.as_json() for charge in example.bill],
        "chosen": example.model.facts,
        "notes": notes,
        "prediction": {"reference": like or FAMILY} | prediction.as_json(),
    }
    if own is not None and best is not None:
        report["better"] = best.as_json() | best.compared(own)
    if compare and found:
        report["compared"] = [one.as_json() for one in found]
    return report


def reference(like: str) -> str:
    """A reference in words, as one of which so many rows are imagined."""
    return "the correlated table of the family" if like == FAMILY else f"a table like {like}"


def show_prediction(console: Any, report: dict[str, Any]) -> None:
    """Errors, what would do better, the paper's bound, time and memory."""
    from dpsynth_cli.release.documents.audit import LIPSCHITZ, bound_sentence

    prediction = report["prediction"]
    if prediction["errors"]:
        _show_errors(console, report)
    if "compared" in report:
        _show_compared(console, report)
    if "better" in report:
        _show_better(console, report)
    for bound in prediction["bounds"]:
        simulated = "Simulated on a reference table. " if bound["of_answers"] else ""
        console.print(simulated + bound_sentence(bound), markup=False)
    if prediction["bounds"]:
        console.print(f"What a W1 means: {LIPSCHITZ}.", markup=False)
    console.print(
        f"Predicted cost: up to about {prediction['cpu_seconds']:.2g} s of processor time and "
        f"{prediction['memory_bytes'] / 1e6:.0f} MB of memory."
    )


def _show_errors(console: Any, report: dict[str, Any]) -> None:
    from rich.table import Table

    from dpsynth_cli.evaluate.lines import TARGETS
    from dpsynth_cli.release.predict.family import FAMILY as MEMBERS

    prediction = report["prediction"]
    whole, runs = prediction["reference"] == FAMILY, prediction["runs"]
    times = f"{runs} simulated release{'s' * (runs != 1)}"
    simulated = {name: one.words for name, one in MEMBERS.items() if name in prediction["by_table"]}
    many = str(len(MEMBERS)) if len(simulated) == len(MEMBERS) else f"{len(simulated)} of {len(MEMBERS)}"
    title = f"Predicted errors, {report['imagined_rows']:,} rows: " + (
        f"ranges over {many} generated tables with these columns, {times} each"
        if whole
        else f"ranges over {times} of a table like {prediction['reference']}"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("target")
    table.add_column("range", justify="right")
    table.add_column("median", justify="right")
    if whole:
        table.add_column("worst on")
    table.add_column("what it is")
    for name, one in prediction["errors"].items():
        worst = [one["worst"]] if whole else []
        table.add_row(name, span(one), f"{one['typical']:.3g}", *worst, TARGETS[name][0])
    console.print(table)
    if whole:
        console.print("The generated tables: " + "; ".join(f"{n}: {m}" for n, m in simulated.items()) + ".")
        if len(simulated) < len(MEMBERS):
            console.print(
                f"A quick look, so the ends of these ranges are moved out by {prediction['margin']:g}; "
                "--runs 1: all generated tables."
            )


def _show_compared(console: Any, report: dict[str, Any]) -> None:
    from rich.table import Table

    names = list(report["prediction"]["errors"])
    tables = max(one["tables"] for one in report["compared"])
    table = Table(
        title="All mechanisms that take this table, on the same tables, best first", title_justify="left"
    )
    for name in ("mechanism", *names, "s a run"):
        table.add_column(name, justify="left" if name == "mechanism" else "right")
    for one in report["compared"]:
        few = f" ({one['tables']} of {tables} tables)" if one["tables"] < tables else ""
        errors = [span(one["errors"].get(name)) for name in names]
        table.add_row(one["mechanism"] + few, *errors, f"{one['cpu_seconds_a_run']:.2g}")
    console.print(table)


def _show_better(console: Any, report: dict[str, Any]) -> None:
    best = report["better"]
    shared = best["shared_tables"]
    where = "the same table" if shared == 1 else f"the same tables (means of {shared})"
    others = "" if "compared" in report else "; all of them: --compare"
    console.print(
        f"note: {best['mechanism']} would do better on {where}: {best['by']} {best['mean']:.2g}, here "
        f"{best['own_mean']:.2g}. Try: --set mechanism.name={best['mechanism']}{others}",
        markup=False,
    )


def span(error: dict[str, Any] | None) -> str:
    """A range in words; nothing where a table does not have such an error."""
    return "" if error is None else f"{error['low']:.2g} - {error['high']:.2g}"
