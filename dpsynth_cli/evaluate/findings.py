"""What an analyst would rely on in the real table, one finding each, from the figures of the metrics: how far it is
off, what sampling alone does, and the sentence that says it. `verdict.py` weighs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from dpsynth_cli.domain import Column, Domain

Figures: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[str, ...]

WIDE = 1000  # interquartile ranges between the declared bounds, from which these are called wide
LINKED = 0.2  # a correlation, or the effect of a group, that an analyst would look at
FITTED = 0.1  # such an R^2
TOGETHER = 0.5  # of the rows with one missing lack the other too: missing together


@dataclass(frozen=True)
class Finding:
    """One thing to rely on. `weight`: its error beyond that of half of the real rows against the other half, in
    parts of what counts as broken."""

    kind: str
    columns: Key
    weight: float
    words: str
    error: float
    real: float | None = None
    synthetic: float | None = None
    real_split: float | None = None
    independent: float | None = None
    rows: float | None = None

    def as_json(self, state: str) -> dict[str, Any]:
        own = {key: value for key, value in asdict(self).items() if value is not None}
        words = own.pop("words")
        return {"kind": self.kind, "columns": list(self.columns), "state": state, "words": words} | {
            key: round(value, 6) for key, value in own.items() if isinstance(value, float)
        }


def weighed(error: float, floor: float | None, bad: float) -> float:
    """How bad an error is: 0 up to what sampling does, 1 where it is `bad` beyond that."""
    return max(0.0, error - (floor or 0.0)) / bad


class Side:
    """The figures of one metric, of the synthetic table and its references."""

    def __init__(self, metrics: Figures, name: str) -> None:
        self.line = metrics.get(name, {})

    def __bool__(self) -> bool:
        return "synthetic" in self.line

    def by(self, pick: Callable[[Figures], dict[Key, float]]) -> tuple[dict[Key, float], dict[Key, float]]:
        """The errors of half of the real rows and of independent columns, by columns."""
        half, apart = (self.line.get(key) for key in ("real_split", "independent"))
        return (pick(half) if half else {}), (pick(apart) if apart else {})

    @property
    def made(self) -> Figures:
        found: Figures = self.line["synthetic"]
        return found


def percent(part: float) -> str:
    """
    >>> percent(0.1304), percent(0.0004), percent(0.999)
    ('13 %', '0.04 %', '99.9 %')
    """
    if part > 0.99 and part < 1:
        return f"{100 * part:.3g} %"
    return f"{100 * part:.2g} %" if part < 0.0995 else f"{100 * part:.0f} %"


# --- columns by themselves --------------------------------------------------------------------------------


def columns(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """The distribution of each column, and how much of it is missing."""
    tables, numbers, far = (Side(metrics, name) for name in ("marginals", "quantiles", "w1"))
    quantiles = numbers.made["columns"] if numbers else {}
    halves, _ = numbers.by(lambda one: {(name,): own["error"] for name, own in one["columns"].items()})
    if tables:
        split, apart = tables.by(lambda one: {(name,): x for name, x in one["tvd1"]["columns"].items()})
        for name, tvd in tables.made["tvd1"]["columns"].items():
            own, key = quantiles.get(name), (name,)
            weight, error = weighed(tvd, split.get(key), 0.15), tvd
            words = f"{name}: {percent(tvd)} of its rows have another value than they should."
            if own is not None:
                by_quantiles = weighed(own["error"], halves.get(key), 0.25)
                if by_quantiles > weight:
                    weight, error = by_quantiles, own["error"]
                words = _number_words(name, own, tvd)
            words += _wide(domain[name], own) if weight >= 1 else ""
            yield Finding("column", key, weight, words, error, None, None, split.get(key), apart.get(key))
    if far and "missing" in far.made:
        split, apart = far.by(lambda one: {(name,): x for name, x in one["missing"].items()})
        for name, gap in far.made["missing"].items():
            words = f"{name}: the part that is missing is off by {percent(gap)} of the rows."
            weight = weighed(gap, split.get((name,)), 0.05)
            yield Finding("missing", (name,), weight, words, gap, None, None, split.get((name,)))


def _number_words(name: str, own: Figures, tvd: float) -> str:
    if not own["synthetic"]:
        return f"{name}: it has no value any more." if own["error"] else f"{name}: it has no value."
    middle = len(own["real"]) // 2
    return (
        f"{name}: quantiles are off by {own['error']:.2g} interquartile ranges, the median is "
        f"{own['synthetic'][middle]} instead of {own['real'][middle]}; {percent(tvd)} of its rows are elsewhere."
    )


def _wide(column: Column, own: Figures | None) -> str:
    """A remedy, where bounds are far wider than the data."""
    if own is None or column.type not in ("integer", "continuous") or not own["spread"]:
        return ""
    times = (float(column.upper) - float(column.lower)) / float(own["spread"])
    if times < WIDE:
        return ""
    return (
        f" Its declared bounds are {times:.2g} interquartile ranges apart: narrow them by public knowledge, or "
        "release its logarithm."
    )


def precision(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """Distinct values and decimals of numbers."""
    side = Side(metrics, "quantiles")
    if not side:
        return
    split, _ = side.by(
        lambda one: {(name,): abs(own["distinct"]["log10_ratio"]) for name, own in one["columns"].items()}
    )
    for name, own in side.made["columns"].items():
        many, digits = own["distinct"], own["decimals"]
        error = abs(many["log10_ratio"])
        words = (
            f"{name}: {many['synthetic']:,} distinct values in 10,000 rows or fewer, really {many['real']:,}."
        )
        weight = weighed(error, split.get((name,)), 1.0)
        if digits["real"] is not None and digits["synthetic"] != digits["real"]:
            made = "all" if digits["synthetic"] is None else digits["synthetic"]
            words += f" Numbers have {made} decimals, really {digits['real']}."
            weight = max(weight, 0.5)
        yield Finding("precision", (name,), weight, words, error, None, None, split.get((name,)))


# --- relations --------------------------------------------------------------------------------------------


def follows(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """What follows from what; two columns that follow from each other are one finding, by the worse."""
    side = Side(metrics, "relations")
    if not side:
        return
    split, apart = side.by(
        lambda one: {tuple(own["columns"]): own["synthetic"] - own["real"] for own in one["follows"]}
    )
    half, _ = side.by(
        lambda one: {tuple(own["columns"]): own["rows"] - own["real_rows"] for own in one["follows"]}
    )
    found: dict[frozenset[str], Finding] = {}
    for own in side.made["follows"]:
        key: Key = tuple(own["columns"])
        error, rows = own["synthetic"] - own["real"], own["rows"] - own["real_rows"]
        weight = max(weighed(error, split.get(key), 0.15), weighed(rows, half.get(key), 0.05))
        both = frozenset(key)
        if both in found and found[both].weight >= weight:
            continue
        a, b = key
        exactly = "" if own["real_rows"] < 0.001 else "nearly "
        usual = "" if own["real_rows"] < 0.001 else f" (real: {percent(own['real_rows'])})"
        words = (
            f"{b} {exactly}follows from {a}: {percent(own['rows'])} of the synthetic rows break that{usual}; "
            f"{a} leaves {percent(max(0.0, own['synthetic']))} of it open, really {percent(max(0.0, own['real']))}."
        )
        found[both] = Finding(
            "follows", key, weight, words, error, own["real"], own["synthetic"], split.get(key), apart.get(key),
            own["rows"],
        )  # fmt: skip
    yield from found.values()


def never(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """Combinations of categories that never occur."""
    side = Side(metrics, "relations")
    if not side:
        return
    split, apart = side.by(lambda one: {tuple(own["columns"]): own["share"] for own in one["never"]})
    for own in side.made["never"]:
        if not own["pairs"]:
            continue
        a, b = key = tuple(own["columns"])
        words = (
            f"{a} and {b}: {percent(own['share'])} of the synthetic rows have a combination that no real row has"
            f"{_half(split.get(key))}."
        )
        weight = weighed(own["share"], split.get(key), 0.05)
        yield Finding(
            "never", key, weight, words, own["share"], 0.0, own["share"], split.get(key), apart.get(key)
        )


def _half(floor: float | None) -> str:
    return "" if floor is None else f" (half of the real rows against the other: {percent(floor)})"


def together(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """Values that are missing together; a pair of columns is one finding, by the worse direction."""
    side = Side(metrics, "relations")
    if not side:
        return

    def errors(one: Figures) -> dict[Key, float]:
        return {tuple(o["columns"]): abs(o["synthetic"] - o["real"]) for o in one["missing_together"]}

    split, apart = side.by(errors)
    found: dict[frozenset[str], Finding] = {}
    for own in side.made["missing_together"]:
        if own["real"] < TOGETHER:
            continue
        key: Key = tuple(own["columns"])
        error = abs(own["synthetic"] - own["real"])
        weight = weighed(error, split.get(key), 0.2)
        both = frozenset(key)
        if both not in found or found[both].weight < weight:
            words = (
                f"{key[0]} and {key[1]} are missing together: where the first is missing, so is the second in "
                f"{percent(own['synthetic'])} of the synthetic rows, in {percent(own['real'])} of the real ones."
            )
            found[both] = Finding(
                "together", key, weight, words, error, own["real"], own["synthetic"], split.get(key),
                apart.get(key),
            )  # fmt: skip
    yield from found.values()


# --- numbers ----------------------------------------------------------------------------------------------


def correlations(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """Pairs of numbers that are correlated, really or in the synthetic rows."""
    side = Side(metrics, "regressions")
    if not side:
        return
    split, apart = side.by(lambda one: {(a, b): abs(p - q) for a, b, p, q in one["ranks"]["pairs"]})
    for a, b, real, made in side.made["ranks"]["pairs"]:
        if max(abs(real), abs(made)) < LINKED:
            continue
        key, error = (a, b), abs(real - made)
        words = f"{a} and {b}: the rank correlation is {made:.2f}, really {real:.2f}."
        weight = weighed(error, split.get(key), 0.2)
        yield Finding("correlation", key, weight, words, error, real, made, split.get(key), apart.get(key))


def regressions(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """R^2 of each number on all other columns."""
    side = Side(metrics, "regressions")
    if not side:
        return

    def errors(one: Figures) -> dict[Key, float]:
        return {(n,): abs(o["real"] - o["synthetic"]) for n, o in one["r2"]["columns"].items()}

    split, apart = side.by(errors)
    for name, own in side.made["r2"]["columns"].items():
        if max(own["real"], own["synthetic"]) < FITTED:
            continue
        error = abs(own["real"] - own["synthetic"])
        words = (
            f"{name} by all other columns: a linear regression explains {percent(own['synthetic'])} of its variance, "
            f"really {percent(own['real'])}."
        )
        key = (name,)
        weight = weighed(error, split.get(key), 0.15)
        yield Finding(
            "regression",
            key,
            weight,
            words,
            error,
            own["real"],
            own["synthetic"],
            split.get(key),
            apart.get(key),
        )


def group_means(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """Means of numbers that differ between the groups of a category."""
    side = Side(metrics, "groups")
    if not side:
        return
    split, apart = side.by(lambda one: {tuple(own["columns"]): own["error"] for own in one["pairs"]})
    for own in side.made["pairs"]:
        real, made = (math.sqrt(max(0.0, own["explained"][key])) for key in ("real", "synthetic"))
        if real < LINKED:
            continue
        a, b = key = tuple(own["columns"])
        weight = max(weighed(own["error"], split.get(key), 0.25), weighed(real - made, split.get(key), 0.2))
        words = f"mean of {b} by {a}: off by {own['error']:.2g} standard deviations of {b} on average"
        if made < real / 2:
            words += ", and the groups hardly differ any more"
        words += _group_words(own.get("means", []))
        yield Finding(
            "group means", key, weight, words + ".", own["error"], real, made, split.get(key), apart.get(key)
        )


def _group_words(means: list[Figures]) -> str:
    """The group that is off most, among the largest."""
    numbers = [one for one in means if isinstance(one["real"], float) and isinstance(one["synthetic"], float)]
    if not numbers:
        return ""
    worst = max(numbers, key=lambda one: abs(one["real"] - one["synthetic"]) * one["share"] ** 0.5)
    return f"; {worst['group']}: {worst['synthetic']:.4g} instead of {worst['real']:.4g}"


# --- tables -----------------------------------------------------------------------------------------------


def tables(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """The pairs and triples that differ most beyond their parts."""
    side = Side(metrics, "marginals")
    most = side.made.get("most", {}) if side else {}
    for kind, listed, less in (("pair", "links", "either alone"), ("triple", "triples", "their pairs")):
        for own in most.get(listed, ()):
            names = " and ".join((", ".join(own["columns"][:-1]), own["columns"][-1]))
            as_good = own["tvd"] >= 0.9 * own["independent"] > own["real_split"] + 0.1
            words = (
                f"{names}: their table is off by {own['tvd']:.2f} (total variation), {own['beyond']:.2f} beyond "
                f"{less}; half of the real rows against the other: {own['real_split']:.2f}"
                + (", and independent columns would do as well." if as_good else ".")
            )
            weight = weighed(own["beyond"], own["real_split"], 0.15)
            yield Finding(
                kind, tuple(own["columns"]), weight, words, own["tvd"], None, None, own["real_split"],
                own["independent"],
            )  # fmt: skip


RELIED_ON = (
    columns, follows, never, together, correlations, regressions, group_means, tables, precision,
)  # fmt: skip
