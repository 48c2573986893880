"""dpsynth plan: which epsilon reaches this error?"""

from __future__ import annotations

from typing import Annotated

import typer

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
        str, typer.Option("--target", "-t", help="The error to reach, such as w1=0.01 or tvd2=0.05.")
    ],
    like: Like = None,
    n: ImaginedRows = None,
    runs: Runs = 3,
    set_: Set = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solve for the epsilon that reaches a target error, without data.

    Errors are simulated on a uniform table, or on one like a public table; `dpsynth check` lists them.
    """
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.numbers import decimal
    from dpsynth_cli.release.predict import plan

    name, _, number = target.partition("=")
    exact = decimal(number)
    if exact is None or exact <= 0:
        raise UsageError(f"--target is {target}; it must be NAME=NUMBER, such as w1=0.01 or tvd2=0.05.")
    value = float(exact)
    wanted = loaded(spec, set_, None, None, None)
    table, count = imagined(wanted, like, n)

    def tell(epsilon: float, error: float) -> None:
        if not quiet and not json:
            typer.echo(f"  epsilon = {epsilon:<8g} {name} = {error:.3g}", err=True)

    found = plan(wanted, name, value, count, table, max(1, runs), tell)
    if json:
        print_json(
            {
                "target": {name: value},
                "epsilon": found.epsilon,
                "predicted_error": found.error,
                "imagined_rows": count,
                "reference": like or "uniform",
                "tried": [{"epsilon": epsilon, "error": error} for epsilon, error in found.tried],
            }
        )
    else:
        typer.echo(
            f"epsilon = {found.epsilon:g} reaches {name} = {value:g}: predicted {found.error:.3g} "
            f"with {count:,} rows like {like or 'a uniform table'}."
        )
