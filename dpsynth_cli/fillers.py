"""Columns of the release that are not modelled and never come from the data: fresh keys and constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dpsynth_cli.domain import Column
from dpsynth_cli.numbers import decimal, whole

SEQUENCE, UUID = "sequence", "uuid"
T = TypeVar("T")


@dataclass(frozen=True)
class Filler:
    """A key (1, 2, 3, ... or random UUIDs) or a constant; `after` so many of the declared columns."""

    name: str
    after: int
    key: str = ""
    constant: str = ""

    @property
    def column(self) -> Column:
        """What it looks like to a reader of the release."""
        if self.key == SEQUENCE:
            return Column(self.name, "integer", lower=1, upper=2**53)
        return Column(self.name, "nominal", categories=() if self.key else (self.constant,))

    @property
    def number(self) -> int | float | None:
        """The constant, if it is a number."""
        exact = decimal(self.constant) if self.constant else None
        if exact is None:
            return None
        return int(exact) if whole(self.constant) is not None and abs(exact) < 2**63 else float(exact)


def placed(columns: Sequence[T], fillers: Iterable[tuple[Filler, T]]) -> Iterator[T]:
    """Columns, or what belongs to them, with those of the fillers where they were declared.

    >>> list(placed(["a", "b"], [(Filler("id", 0), "id"), (Filler("x", 1), "x"), (Filler("y", 9), "y")]))
    ['id', 'a', 'x', 'b', 'y']
    """
    waiting = list(fillers)
    for i, column in enumerate(columns):
        while waiting and waiting[0][0].after <= i:
            yield waiting.pop(0)[1]
        yield column
    yield from (one for _, one in waiting)


def all_columns(columns: Sequence[Column], fillers: Iterable[Filler]) -> list[Column]:
    """The columns of a release, keys and constants too."""
    return list(placed(columns, [(filler, filler.column) for filler in fillers]))
