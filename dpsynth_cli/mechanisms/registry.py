"""Finds every module's MECHANISM, and says what a mechanism is."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from dpsynth_cli.bounds import Bound
from dpsynth_cli.domain import Domain
from dpsynth_cli.questions import Ask, Model


@dataclass(frozen=True)
class Mechanism:
    """A mechanism: a plain function of `ask`, with what the spec may set about it.

    `params` is a frozen dataclass whose fields are made by `parameter` (below); `stages` maps each
    stage's name to its default weight in the split. `bound` says what is known of the expected W1 of any
    data, by domain, params, split, pure epsilon and n rows. One with `stream` takes its rows push by push
    (`dpsynth stream`); its `run` is only what the first push would ask. `private` says whether the parameters
    ask for a differentially private release; where they do not, `run` is never called (see
    `release/groups.py`). One that `rounds` is better where it knows what numbers are rounded to, so that is
    found first. `printed` are the parameters that make it the algorithm of its paper, to the letter but for
    the errata: what `printed: true` in a spec sets.
    """

    name: str
    summary: str
    suits: str
    citation: str
    run: Callable[[Ask, Domain, Any, Mapping[str, float]], Model]
    params: type
    stages: Mapping[str, float]
    fits: Callable[[Domain, Any], list[str]] = field(default=lambda domain, params: [])
    bound: Callable[[Domain, Any, Mapping[str, float], float, float], Bound | None] = field(
        default=lambda domain, params, split, epsilon, n: None
    )
    stream: bool = False
    rounds: bool = False
    private: Callable[[Any], bool] = field(default=lambda params: True)
    printed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Structure:
    """A parameter that is more than one word or number: what it may be, in words and as a JSON Schema.

    `read` gets lists, dictionaries by name, texts as written and None, and gives back what is kept, of the
    same kinds (and the same again when it reads that); ValueError says what the value must be. It knows no
    column: what concerns the declared columns is for the mechanism's `fits`.
    """

    allowed: str
    schema: Mapping[str, Any]
    read: Callable[[Any], Any]


def parameter(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] = (),
    low: float | None = None,
    high: float | None = None,
    whole: bool = True,
    auto: bool | str = False,
    structure: Structure | None = None,
) -> Any:
    """A field of a mechanism's Params with its stated range.

    One of `choices`; or a number in [low, high] (whole by default); or lists and keys of a `structure`;
    `auto` also allows the word auto, or the word that it is, which is None in the dataclass.
    """
    return field(
        default=default,
        metadata={
            "help": help,
            "choices": choices,
            "low": low,
            "high": high,
            "whole": whole,
            "auto": "auto" if auto is True else auto or "",
            "structure": structure,
        },
    )


class _Found(MutableMapping[str, Mechanism]):
    """The MECHANISM of each module by its name, which is the module's: imported when it is asked for."""

    def __init__(self, package: str, modules: Sequence[str]) -> None:
        self._package, self._modules = package, sorted(modules)
        self._found: dict[str, Mechanism | None] = {}

    def __getitem__(self, name: str) -> Mechanism:
        if name not in self._found and name in self._modules:
            mechanism = getattr(import_module(f"{self._package}.{name}"), "MECHANISM", None)
            assert mechanism is None or mechanism.name == name, f"{name}.py has a mechanism of another name"
            self._found[name] = mechanism
        found = self._found.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, mechanism: Mechanism) -> None:
        self._found[name] = mechanism

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._modules if name in self)

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def mechanisms() -> MutableMapping[str, Mechanism]:
    """All mechanisms by name, in alphabetical order."""
    import dpsynth_cli.mechanisms as package

    return _Found(package.__name__, [module.name for module in pkgutil.iter_modules(package.__path__)])
