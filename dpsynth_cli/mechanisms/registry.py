"""Finds every module's MECHANISM, and says what a mechanism is."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Ask, Model


@dataclass(frozen=True)
class Mechanism:
    """A mechanism: a plain function of `ask`, with what the spec may set about it.

    `params` is a frozen dataclass whose fields are made by `parameter` (below); `stages` maps each
    stage's name to its default weight in the split. `private` says whether the parameters ask for a
    differentially private release; where they do not, `run` is never called (see `grouped.py`).
    """

    name: str
    summary: str
    suits: str
    citation: str
    run: Callable[[Ask, Domain, Any, Mapping[str, float]], Model]
    params: type
    stages: Mapping[str, float]
    fits: Callable[[Domain, Any], list[str]] = field(default=lambda domain, params: [])
    private: Callable[[Any], bool] = field(default=lambda params: True)


def parameter(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    low: float | None = None,
    high: float | None = None,
    whole: bool = True,
    auto: bool = False,
    texts: bool = False,
) -> Any:
    """A field of a mechanism's Params with its stated range.

    One of `choices`; or a number in [low, high] (whole by default); `auto` also allows the word auto,
    which is None in the dataclass. Or, with `texts`, a list of texts: a tuple in the dataclass.
    """
    return field(
        default=default,
        metadata={
            "help": help,
            "choices": choices,
            "low": low,
            "high": high,
            "whole": whole,
            "auto": auto,
            "texts": texts,
        },
    )


@cache
def mechanisms() -> dict[str, Mechanism]:
    """All mechanisms by name, in alphabetical order."""
    import dpsynth_cli.mechanisms as package

    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        mechanism = getattr(import_module(f"{package.__name__}.{module.name}"), "MECHANISM", None)
        if mechanism is not None:
            found[mechanism.name] = mechanism
    return dict(sorted(found.items()))
