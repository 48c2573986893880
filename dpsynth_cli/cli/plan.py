"""dpsynth plan: which epsilon reaches this error?"""

from __future__ import annotations

from typing import Annotated

import typer

from dpsynth_cli.cli import completion
from dpsynth_cli.cli.options import (
    ImaginedRows,
    Json,
    Like,
    Quiet,
    Runs,
    Set,
    SpecPath,
    imagined,
    loaded,
    print_json,
)


def command(
    spec: SpecPath,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            help="The error to reach, such as w1=0.1 or tvd2=0.05.",
            autocompletion=completion.targets,
        ),
    ],
    like: Like = None,
    n: ImaginedRows = None,
    runs: Runs = 2,
    set_: Set = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solve for the epsilon that reaches a target error, without data.

    Errors are simulated on a family of generated tables with the declared columns, and epsilon is solved for
    on the one where the error is largest; or on a public table (--like). `dpsynth check` lists them.
    """
    from dataclasses import asdict

    from dpsynth_cli.cli.predictions import FAMILY
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.numbers import decimal
    from dpsynth_cli.release.predict.plan import plan
    from dpsynth_cli.release.predict.predict import Range

    name, _, number = target.partition("=")
    exact = decimal(number)
    if exact is None or exact <= 0:
        raise UsageError(f"--target is {target}; it must be NAME=NUMBER, such as w1=0.1 or tvd2=0.05.")
    value = float(exact)
    wanted = loaded(spec, set_, None, None, None)
    if wanted.tables is not None:
        raise UsageError(
            f"{wanted.name} has several tables, and epsilon is solved for one.",
            next_step="See the errors of each at some epsilon: dpsynth check SPEC --set privacy.epsilon=1",
        )
    table, count = imagined(wanted, like, n)

    def tell(epsilon: float, error: Range) -> None:
        if not quiet and not json:
            typer.echo(f"  epsilon = {epsilon:<8g} {name} up to {error.high:.3g} ({error.worst})", err=True)

    found = plan(wanted, name, value, count, table, max(1, runs), tell)
    if json:
        print_json(
            {
                "target": {name: value},
                "epsilon": found.epsilon,
                "predicted_error": asdict(found.error),
                "imagined_rows": count,
                "reference": like or FAMILY,
                "tried": [{"epsilon": epsilon, "error": asdict(error)} for epsilon, error in found.tried],
            }
        )
    else:
        where = f"like {like}" if like else f"on the worst table of the family ({found.error.worst})"
        typer.echo(
            f"epsilon = {found.epsilon:g} reaches {name} = {value:g} with {count:,} rows {where}: predicted "
            f"{found.error.low:.2g} to {found.error.high:.2g}, median {found.error.typical:.2g}."
        )
