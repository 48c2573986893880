"""dpsynth audit-mechanism: an empirical privacy audit that anybody can run."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli import completion
from dpsynth_cli.cli.options import (
    Json,
    Neighbours,
    Quiet,
    below_one,
    positive,
    print_json,
    print_table,
    progress_bar,
)

if TYPE_CHECKING:
    from dpsynth_cli.evidence.empirical import Finding

NO_COST = "Nothing was run."
LARGEST_EPSILON = 20  # of epsilon: beyond, a bound would take millions of runs


class Currency(str, Enum):
    """The kinds of accounting, as typed on the command line."""

    pure = "pure"
    gaussian = "gaussian"


def command(
    name: Annotated[
        str,
        typer.Argument(
            help="A mechanism; `dpsynth mechanisms` lists them.", autocompletion=completion.mechanisms
        ),
    ],
    epsilon: Annotated[str, typer.Option(help="The claim that is put to the test.")] = "4",
    delta: Annotated[str, typer.Option(help="Of the releases with Gaussian noise.")] = "1e-5",
    neighbours: Annotated[Neighbours | None, typer.Option(help="This relation only.")] = None,
    currency: Annotated[Currency | None, typer.Option(help="This accounting only.")] = None,
    runs: Annotated[
        int, typer.Option(min=100, max=10_000_000, help="Releases of each of the two tables.")
    ] = 2000,
    transcripts: Annotated[
        int, typer.Option(min=100, max=10_000_000, help="Of each of the two tables where a run tells most.")
    ] = 200_000,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=1 - 1e-12, help="That a line's bound holds.")
    ] = 0.9999,
    unit_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Protect units of so many rows: tables differ in all of one.",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A parameter of it, such as algorithm=joint (repeat)."
        ),
    ] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE.svg", help="Draw what was found.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to tell neighbouring tables apart by thousands of small releases: a lower bound on epsilon beside
    the claim. Reads no data and costs nothing; takes a minute or two. Exit code 4 if a claim does not hold.
    """
    from dpsynth_cli.cli.mechanisms import named
    from dpsynth_cli.errors import UsageError, VerificationError
    from dpsynth_cli.evidence.empirical import audit, releases
    from dpsynth_cli.spec.mechanism import stated_params

    mechanism = named(name)
    params = stated_params(mechanism, set_ or [])
    claim, small = positive("epsilon", epsilon, NO_COST), below_one("delta", delta, NO_COST)
    if claim > LARGEST_EPSILON:
        raise UsageError(
            f"epsilon is above {LARGEST_EPSILON}, where no number of runs proves anything.", NO_COST
        )
    relations = [neighbours] if neighbours else list(Neighbours)
    deltas = {Currency.pure: None, Currency.gaussian: small}
    findings = []
    with progress_bar(quiet) as progress:
        for relation in relations:
            for kind in [currency] if currency else list(Currency):
                what = f"{relation.value} {kind.value}"
                progress(what, 0, releases(mechanism, params, relation.value, runs, unit_rows))
                advance = partial(_advance, progress, what)
                words = (relation.value, claim, deltas[kind], runs, confidence, advance, transcripts)
                findings.append(audit(mechanism, *words, unit_rows, params))
    if plot is not None:
        _write_plot(Path(plot), findings)
    found: dict[str, Any] = {"audits": [finding.as_json() for finding in findings]}
    if set_:
        found["set"] = set_
    if not quiet and not json:
        _print(findings)
    if not all(finding.holds for finding in findings):
        raise VerificationError(
            f"{name} tells neighbouring tables apart better than its claim allows.",
            "",
            "That is a privacy bug: report it, and release nothing with it.",
            found,
        )
    if json:
        print_json(found)


def _advance(progress: Callable[[str, int, int | None], None], what: str, done: int) -> None:
    progress(what, done, None)


def _write_plot(path: Path, findings: list[Finding]) -> None:
    from dpsynth_cli.errors import FileError
    from dpsynth_cli.evidence.plot import plot

    try:
        path.write_text(plot(findings), encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}.", "Nothing was spent.") from None


def _print(findings: list[Finding]) -> None:
    rows = []
    for found in findings:
        claim = f"{found.epsilon:g}" + (f", delta {found.delta:g}" if found.delta else "")
        fit = "" if found.gaussian is None else f"{found.gaussian:.2f}"
        exactly = f"{found.worst.part:.0%}"
        numbers = [f"{found.lower:.2f}", fit, f"{found.transcripts:.2f}", f"{found.of_claim:.0%}", exactly]
        rows.append([found.neighbours, claim, *numbers, found.pair, found.statistic])
    head = ["neighbours", "claimed epsilon", "at least", "Gaussian fit", "by transcripts", "of the claim"]
    print_table([*head, "by exact loss", "tables that differ by", "told apart by"], rows)
    one = findings[0]
    typer.echo(f"A line has {2 * one.runs:,} releases and {2 * one.count:,} transcripts of the worst one.")
    if all(found.holds for found in findings):
        typer.echo(f"No claim is refuted; each bound holds with confidence {findings[0].confidence:g}.")
