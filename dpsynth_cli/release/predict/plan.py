"""The epsilon for a target error: solved for on the reference table where it is largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from dpsynth_cli.errors import UsageError
from dpsynth_cli.evaluate.lines import TARGETS
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.release.predict.imagine import imagine, references
from dpsynth_cli.release.predict.predict import MARGIN, Range, errors_of
from dpsynth_cli.spec.reader import did_you_mean
from dpsynth_cli.spec.spec import Spec

LEAST, MOST = 1e-3, 100.0  # epsilons that are looked at
WATCHED = 2  # tables, the worst, that are simulated while it looks
LOOKS = 5  # at most, until the next would be as near as
NEAR = 1.15  # so many times this one;
FAR = 8.0  # and no further than so many times
STEEP = 0.7  # an error falls as epsilon to this power, until two looks say between which of
POWERS = 0.3, 1.2
RAISE = 1.3  # where what was found does not hold, at most;
LITTLE = 1.05  # and at least
ENOUGH = 0.8  # of the target: an epsilon with less is larger than it need be
CLOSE = 0.6  # of the largest error: a table with less is looked at once at the end
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
    """Solve for epsilon by secants: the logarithm of an error falls with that of epsilon, but for the noise.

    All tables are simulated at the first epsilon (once) and at the last; between them those that were worst.
    """
    tables = references(spec, rows, like)
    _check(spec, target, tables)
    tried: list[tuple[float, Range]] = []

    def simulated(epsilon: float, name: str) -> float:
        exact = Fraction(f"{epsilon:.3g}")
        wanted = replace(spec, privacy=replace(spec.privacy, epsilon=exact))
        made = imagine(wanted, rows, tables[name])[1]
        return errors_of(tables[name], made, wanted, [target]).get(target, 0.0)

    def tell_of(epsilon: float, found: Mapping[str, Sequence[float]]) -> None:
        tried.append((float(f"{epsilon:.3g}"), Range.of(found)))
        tell(*tried[-1])

    def largest(epsilon: float, names: Iterable[str]) -> dict[str, float]:
        """The error of each of these tables, with the margin of a range."""
        found = {name: simulated(epsilon, name) for name in names}
        tell_of(epsilon, {name: [error] for name, error in found.items()})
        return {name: error * MARGIN for name, error in found.items()}

    least = max(LEAST, 2 * float(spec.evaluation.epsilon or 0))
    epsilon = min(MOST, max(least, float(spec.privacy.budget)))
    first = largest(epsilon, tables)
    order = sorted(first, key=lambda name: -first[name])
    looks = [(epsilon, first[order[0]])]
    for _ in range(LOOKS):
        following = min(MOST, max(least, _next(looks, value)))
        if max(following / epsilon, epsilon / following) < NEAR:
            break
        epsilon = following
        looks.append((epsilon, max(largest(epsilon, order[:WATCHED]).values())))
    # What was found rests on a few noisy runs: looked at again on every table, and raised until it holds.
    best = _rounded_up(min(MOST, max(least, _next(looks, value))))
    again = {name: runs if first[name] > CLOSE * first[order[0]] else 1 for name in order}
    again |= dict.fromkeys(order[:WATCHED], 2 * runs)
    held: dict[str, list[float]] = {}  # a table other than the worst that held at a smaller one still does
    found, failed = None, least
    while True:
        error = _first_above(value, best, again, simulated, held)
        tell_of(best, held)
        if error <= value:
            found = best, tried[-1][1]
            following = (
                best * max(1 / FAR, (error / value) ** (1 / STEEP)) if error < ENOUGH * value else best
            )
        elif best == MOST:
            raise _unreachable(target, value, rows, tried[-1][1], like is None)
        else:
            failed = best
            raised = min(RAISE, max(LITTLE, (error / value) ** (1 / STEEP)))
            following = best * raised if found is None else math.sqrt(failed * found[0])
        if found is not None and (found[0] < NEAR * failed or _rounded_up(following) >= found[0]):
            return Plan(*found, tried if tried[-1] == found else [*tried, found])
        above = [name for name, each in held.items() if max(each) * MARGIN > value]
        for name in {*order[:WATCHED], *above} if found is None else tuple(held):
            held.pop(name, None)
        best = min(MOST, _rounded_up(max(following, failed)))


def _next(looks: Sequence[tuple[float, float]], value: float) -> float:
    """Where an error should be the value, by the last looks at (epsilon, error)."""
    (epsilon, error), power = looks[-1], STEEP
    for one, other in pairwise(looks):
        apart = math.log(other[0] / one[0])
        if min(one[1], other[1]) > 0:
            power = min(max(-math.log(other[1] / one[1]) / apart, POWERS[0]), POWERS[1])
    times: float = (error / value) ** (1 / power)
    return epsilon * min(FAR, max(1 / FAR, times))


def _first_above(
    value: float,
    epsilon: float,
    times: Mapping[str, int],
    simulated: Callable[[float, str], float],
    held: dict[str, list[float]],
) -> float:
    """The first error, with the margin of a range, that is above a value, of each table in so many runs; else
    the largest. Added to those held. At the last epsilon nothing is left out."""
    largest = 0.0
    for name, many in times.items():
        if name in held:
            continue
        held[name] = []
        for _ in range(many):
            held[name].append(simulated(epsilon, name))
            largest = max(largest, held[name][-1] * MARGIN)
            if largest > value and epsilon < MOST:
                return largest
    return largest


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
