"""dpsynth evaluate: how good is a synthetic file, whoever made it?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpsynth_cli.cli.options import Json, Quiet, Set, SpecPath, loaded, print_json, progress_bar

MOST_ROWS = 1_000_000


def command(
    spec: SpecPath,
    synthetic: Annotated[
        str, typer.Argument(metavar="SYNTHETIC", help="The synthetic .csv, .csv.gz or .parquet file.")
    ],
    real: Annotated[
        str | None, typer.Option("--real", "-i", help="The real table, if it is not the spec's input.")
    ] = None,
    test: Annotated[
        str | None,
        typer.Option("--test", help="Real rows that were held out: classifiers are tested on them."),
    ] = None,
    metrics: Annotated[
        str, typer.Option("--metrics", "-m", help="all, or names separated by commas.")
    ] = "all",
    target: Annotated[
        str | None,
        typer.Option("--target", help="The column classifiers predict; default: the spec's strata."),
    ] = None,
    references: Annotated[
        bool, typer.Option(help="Also judge half the real rows, independent columns and uniform rows.")
    ] = True,
    rows: Annotated[
        int,
        typer.Option("--rows", min=1, help="Look at a random sample of at most so many rows of each table."),
    ] = MOST_ROWS,
    set_: Set = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge any synthetic file against the real one, with references beside each number.

    For the steward: the numbers are computed from the real rows, so they are confidential. It costs no
    budget and writes nothing.
    """
    from dpsynth_cli.domain import CsvOptions
    from dpsynth_cli.evaluate import classifiers
    from dpsynth_cli.evaluate.files import read_table
    from dpsynth_cli.evaluate.metrics import CLASSIFIERS, Judged, check_target, chosen, judge
    from dpsynth_cli.evaluate.names import NAMES

    wanted = loaded(spec, set_, real, None, None)
    domain = wanted.domain
    names = NAMES if metrics == "all" else _names(metrics, NAMES)
    target = target or domain.strata
    check_target(domain, target)
    if metrics != "all" and CLASSIFIERS in names:
        classifiers.require()
    kept, notes = chosen(names, domain, target)
    with progress_bar(quiet or json) as progress:
        made = read_table(synthetic, domain, CsvOptions(), rows, progress)
        truth = read_table(wanted.input, domain, wanted.csv, rows, progress)
        held_out = read_table(test, domain, wanted.csv, rows, progress) if test else None
        found = judge(truth, made, domain, Judged(kept, target, references), held_out, progress)
    report = {"confidential": True, "synthetic": synthetic, "real": wanted.input} | found | {"notes": notes}
    if json:
        print_json(report)
    else:
        _show(report)


def _names(metrics: str, known: tuple[str, ...]) -> tuple[str, ...]:
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.spec.reader import did_you_mean

    names = tuple(name.strip() for name in metrics.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no metric {name}{did_you_mean(name, known)}.",
                next_step=f"The metrics are {', '.join(known)}; or all.",
            )
    return names


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from dpsynth_cli.evaluate.lines import lines, used

    console = Console(highlight=False)
    rows, compared = report["rows"], report["compared_rows"]
    console.print(
        f"{rows['synthetic']:,} synthetic rows against {rows['real']:,} real ones. "
        "Confidential: computed from the real rows."
    )
    if compared != rows:
        console.print(f"Compared: samples of {compared['synthetic']:,} and {compared['real']:,} rows.")
    table = Table(title_justify="left")
    table.add_column("metric")
    headings = used(report)
    for heading in headings.values():
        table.add_column(heading, justify="right")
    for label, values in lines(report):
        table.add_row(label, *(f"{values[key]:.4g}" if key in values else "" for key in headings))
    console.print(table)
    for name, line in report["metrics"].items():
        if "sample_rows" in line:
            console.print(f"{name}: on a sample of {line['sample_rows']:,} rows of each table.")
    for note in report["notes"]:
        console.print(f"note: {note}", markup=False)
