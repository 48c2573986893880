"""`dpsynth mechanisms`: what there is, for which data, with which parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsynth_cli.cli import completion
from dpsynth_cli.cli.options import Json, print_json

if TYPE_CHECKING:
    from dpsynth_cli.mechanisms.registry import Mechanism


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="One mechanism: its parameters, stages and citation.", autocompletion=completion.mechanisms
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """What there is, for which data, with which parameters."""
    from dpsynth_cli.mechanisms.registry import mechanisms

    known = mechanisms()
    one = None if name is None else named(name)
    if as_json:
        what = {"mechanisms": [described(each) for each in known.values()]} if one is None else described(one)
        print_json(what)
    elif one is None:
        _print_list(list(known.values()))
    else:
        _print_one(one)


def named(name: str) -> Mechanism:
    """The mechanism, or an error that says which there are."""
    from dpsynth_cli.errors import UsageError
    from dpsynth_cli.mechanisms.registry import mechanisms
    from dpsynth_cli.spec.reader import did_you_mean

    known = mechanisms()
    if name not in known:
        raise UsageError(
            f"There is no mechanism {name}{did_you_mean(name, known)}.",
            next_step=f"The mechanisms are {', '.join(known)}.",
        )
    return known[name]


def described(mechanism: Mechanism) -> dict[str, Any]:
    """All that is public about a mechanism, as JSON values."""
    from dataclasses import fields

    parameters = [
        {"name": parameter.name, "default": parameter.default}
        | dict(parameter.metadata)
        | {"auto": bool(parameter.metadata["auto"])}
        | {"structure": dict(shape.schema) if (shape := parameter.metadata["structure"]) else None}
        for parameter in fields(mechanism.params)
    ]
    return {
        "name": mechanism.name,
        "suits": mechanism.suits,
        "summary": mechanism.summary,
        "citation": mechanism.citation,
        "parameters": parameters,
        "stages": dict(mechanism.stages),
    }


def _print_list(known: list[Mechanism]) -> None:
    from rich.console import Console

    table = _table("name", "for which data", "what it does")
    for mechanism in known:
        table.add_row(mechanism.name, mechanism.suits, mechanism.summary)
    console = Console(markup=False, highlight=False)
    console.print(table)
    console.print("\ndpsynth mechanisms NAME shows the parameters of one.")


def _print_one(mechanism: Mechanism) -> None:
    from dataclasses import fields

    from rich.console import Console

    from dpsynth_cli.spec.mechanism import stated_range

    console = Console(markup=False, highlight=False)
    console.print(f"{mechanism.name}: {mechanism.summary}")
    console.print(f"For {mechanism.suits}.\n")
    if not fields(mechanism.params) and not mechanism.stages:
        console.print(f"It has no parameters and no stages.\n\n{mechanism.citation}")
        return
    table = _table("parameter", "default", "allowed", "what it is")
    for parameter in fields(mechanism.params):
        stated = parameter.metadata
        default = stated["auto"] if parameter.default is None and stated["auto"] else str(parameter.default)
        default = "none" if parameter.default == () else default
        table.add_row(parameter.name, default, stated_range(stated), stated["help"])
    console.print(table, "")
    table = _table("stage", "default weight in mechanism.split")
    for stage, weight in mechanism.stages.items():
        table.add_row(stage, f"{weight:g}")
    console.print(table)
    console.print(f"\n{mechanism.citation}")


def _table(*names: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    return table
