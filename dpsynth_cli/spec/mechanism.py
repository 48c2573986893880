"""The `mechanism` section of the spec: the mechanism's own parameters and stages, and the strata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from dpsynth_cli.domain import CATEGORICAL, Column
from dpsynth_cli.mechanisms.registry import Mechanism, Structure
from dpsynth_cli.spec.reader import Section, Wrong, choice, did_you_mean, listed, number, positive, text
from dpsynth_cli.spec.yaml_nodes import Node, Scalar, as_plain, shortened


def read_strata(section: Section, columns: tuple[Column, ...]) -> str | None:
    """The column whose classes get a model each, if any."""
    strata = section.optional("strata", text("the name of a declared column"), None)
    types = {column.name: column.type for column in columns}
    allowed = [name for name, kind in types.items() if kind in CATEGORICAL]
    if strata is None or not types or types.get(strata) == "":
        return strata  # nothing to check, or the column's own mistake has been noted
    if strata not in allowed:
        choices = listed(allowed) + did_you_mean(strata, allowed) if allowed else "there is none"
        section.note(
            "strata",
            f"is {shortened(strata)}; it must be a declared ordinal, nominal or boolean column: {choices}",
        )
    elif len(types) == 1:
        section.note(
            "strata", f"is {shortened(strata)}, the only column; there must be another one to release"
        )
    return strata


def read_params(section: Section, mechanism: Mechanism) -> Any:
    """The mechanism's Params, each value checked against its stated range."""
    values = {}
    for parameter in fields(mechanism.params):
        assert parameter.default is not MISSING
        values[parameter.name] = section.optional(
            parameter.name, _parameter(parameter.metadata), parameter.default
        )
    return mechanism.params(**values)


def _parameter(stated: Mapping[str, Any]) -> Callable[[Node], Any]:
    def convert(node: Node) -> Any:
        if stated["auto"] and isinstance(node, Scalar) and node.text == "auto":
            return None
        if stated["structure"]:
            return _structured(node, stated["structure"])
        if stated["choices"]:
            return choice((*stated["choices"], *(("auto",) if stated["auto"] else ())))(node)
        value = number(stated_range(stated), stated["low"], stated["high"], whole=stated["whole"])(node)
        return int(value) if stated["whole"] else float(value)

    return convert


def _structured(node: Node, structure: Structure) -> Any:
    try:
        return structure.read(as_plain(node))
    except ValueError as error:
        raise Wrong(str(error)) from None


def stated_range(stated: Mapping[str, Any]) -> str:
    """What a parameter may be, in words.

    >>> stated = {"structure": None, "choices": (), "low": 1, "high": 30, "whole": True, "auto": True}
    >>> stated_range(stated)
    'a whole number from 1 to 30, or auto'
    """
    if stated["structure"]:
        words = str(stated["structure"].allowed)
    elif stated["choices"]:
        words = ", ".join(stated["choices"])
    else:
        low, high = stated["low"], stated["high"]
        words = "a whole number" if stated["whole"] else "a number"
        if low is not None and high is not None:
            words += f" from {low} to {high}"
        elif low is not None:
            words += f", at least {low}"
        elif high is not None:
            words += f", at most {high}"
    return words + (", or auto" if stated["auto"] else "")


def param_document(params: Any) -> dict[str, Any]:
    """The parameters as the spec would say them."""
    values = {}
    for parameter in fields(params):
        value = getattr(params, parameter.name)
        if value is None and parameter.metadata["auto"]:
            value = "auto"
        values[parameter.name] = list(value) if isinstance(value, tuple) else value
    return values


def read_split(section: Section, mechanism: Mechanism) -> dict[str, float]:
    """The weight of each stage: the stated one, else its default."""
    usual = ", ".join(f"{stage}: {weight:g}" for stage, weight in mechanism.stages.items())
    split = section.section("split", f"{{{usual}}}", needed=False)
    positive_weight = positive("a positive number; only proportions matter")
    weights = {
        stage: float(split.optional(stage, positive_weight, weight))
        for stage, weight in mechanism.stages.items()
    }
    split.finish()
    return weights
