"""The epsilon for a target error: solved for on the reference table where it is largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.lines import TARGETS
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.release.predict.imagine import imagine, references
from dpsynth_cli.release.predict.predict import MARGIN, Range, errors_of
from dpsynth_cli.spec.reader import did_you_mean
from dpsynth_cli.spec.spec import Spec

LEAST, MOST = 1e-3, 100.0  # epsilons that are looked at
BISECTIONS = 4
WATCHED = 2  # tables, the worst, that are simulated while it looks
RAISE = 1.15
Tell = Callable[[float, Range], None]


@dataclass(frozen=True)
class Plan:
    """The least epsilon found, to two digits, at which the whole range of an error is below a target; that
    range; and all that was tried."""

    epsilon: float
    error: Range
    tried: list[tuple[float, Range]]


def plan(
    spec: Spec,
    target: str,
    value: float,
    rows: int,
    like: Table | None = None,
    runs: int = 2,
    tell: Tell = lambda epsilon, error: None,
) -> Plan:
    """Solve for epsilon by bisection on its logarithm: errors fall as epsilon grows, but for the noise.

    All tables are simulated at the first epsilon (once) and at the last; between them those that were worst.
    """
    tables = references(spec, rows, like)
    _check(spec, target, tables)
    tried: list[tuple[float, Range]] = []

    def errors(epsilon: float, times: Mapping[str, int]) -> dict[str, float]:
        """The largest error of each of these tables in so many runs, with the margin of a range."""
        exact = Fraction(f"{epsilon:.3g}")
        wanted = replace(spec, privacy=replace(spec.privacy, epsilon=exact))
        found: dict[str, list[float]] = {}
        for name, many in times.items():
            made = [imagine(wanted, rows, tables[name])[1] for _ in range(many)]
            found[name] = [errors_of(tables[name], one, wanted, [target]).get(target, 0.0) for one in made]
        tried.append((float(exact), Range.of(found)))
        tell(*tried[-1])
        return {name: max(each) * MARGIN for name, each in found.items()}

    least = max(LEAST, 2 * float(spec.evaluation.epsilon or 0))
    low = high = min(MOST, max(least, float(spec.privacy.budget)))
    first = errors(high, dict.fromkeys(tables, 1))
    worst = dict.fromkeys(sorted(first, key=lambda name: first[name])[-WATCHED:], runs)

    def reached(epsilon: float) -> bool:
        return max(errors(epsilon, worst).values()) <= value

    if max(first.values()) <= value:
        while low > least and reached(low := max(least, high / 4)):
            high = low
    else:
        while not reached(high := min(MOST, low * 4)):
            if high == MOST:
                raise _unreachable(target, value, rows, tried[-1][1], like is None)
            low = high
    for _ in range(BISECTIONS if low < high else 0):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    # What was found rests on a few noisy runs: looked at again on every table, and raised until it holds.
    best = _rounded_up(high)
    again = dict.fromkeys(tables, runs) | dict.fromkeys(worst, 2 * runs)
    while max(errors(best, again).values()) > value:
        if best == MOST:
            raise _unreachable(target, value, rows, tried[-1][1], like is None)
        best = min(MOST, _rounded_up(best * RAISE))
    return Plan(best, tried[-1][1], tried)


def _check(spec: Spec, target: str, tables: dict[str, Table]) -> None:
    few = [table.at_most(20) for table in tables.values()]
    here = list(dict.fromkeys(name for table in few for name in errors_of(table, table, spec)))
    if target not in TARGETS or target not in here:
        raise UsageError(
            f"{target} is not an error of this table{did_you_mean(target, here)}.",
            next_step=f"Errors here: {', '.join(here)}.",
        )


def _unreachable(target: str, value: float, rows: int, found: Range, family: bool) -> UsageError:
    where = f" on the worst table of the family ({found.worst})" if family else ""
    least = f", and {found.low:.3g} on the best" if family else ""
    public = ", or give a public table that is like yours (--like)" if family else ""
    return UsageError(
        f"no epsilon up to {MOST:g} reaches {target} = {value:g} with {rows:,} rows{where}: "
        f"at {MOST:g} it is up to {found.high:.3g}{least}.",
        next_step="Release fewer columns, take another mechanism (dpsynth check --compare), ask for less"
        f"{public}.",
    )


def _rounded_up(epsilon: float) -> float:
    """Two digits, not below."""
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    return float(f"{math.ceil(epsilon / step - 1e-9) * step:.3g}")
