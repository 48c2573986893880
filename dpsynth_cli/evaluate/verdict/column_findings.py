"""What there is to say of columns by themselves: their distribution, what is missing, their precision."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.verdict.finding import Figures, Finding, Side, amount, percent, weighed

MOST_DECIMALS = 6  # that are worth a grid
WIDE = 1000  # interquartile ranges between the declared bounds, from which these are called wide


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
                by_quantiles = weighed(own["error"], halves.get(key), 0.25, numbers.chance)
                if by_quantiles > weight:
                    weight, error = by_quantiles, own["error"]
                words = _number_words(name, own, tvd)
            words += _wide(domain[name], own) if weight >= 1 else ""
            yield Finding("column", key, weight, words, error, None, None, split.get(key), apart.get(key))
    if far and "missing" in far.made:
        split, apart = far.by(lambda one: {(name,): x for name, x in one["missing"].items()})
        for name, gap in far.made["missing"].items():
            words = f"{name}: the part that is missing is off by {percent(gap)} of the rows."
            weight = weighed(gap, split.get((name,)), 0.05, far.chance / 4)
            yield Finding("missing", (name,), weight, words, gap, None, None, split.get((name,)))


def _number_words(name: str, own: Figures, tvd: float) -> str:
    if not own["synthetic"]:
        return f"{name}: it has no value any more." if own["error"] else f"{name}: it has no value."
    real, made = (amount(own[key][len(own[key]) // 2]) for key in ("real", "synthetic"))
    median = (
        f"the median is {made}, as it should" if made == real else f"the median is {made} instead of {real}"
    )
    return (
        f"{name}: quantiles are off by {own['error']:.2g} interquartile ranges, {median}; "
        f"{percent(tvd)} of its rows are elsewhere."
    )


def _wide(column: Column, own: Figures | None) -> str:
    """A remedy, where bounds are far wider than the data."""
    if own is None or column.type not in ("integer", "continuous") or not own["spread"]:
        return ""
    times = (float(column.upper) - float(column.lower)) / float(own["spread"])
    if times < WIDE:
        return ""
    scale = ", or declare scale: log (asinh for both signs)" if column.type == "continuous" else ""
    return (
        f" Its declared bounds are {times:.2g} interquartile ranges apart: narrow them by public "
        f"knowledge{scale}."
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
            made = "more" if digits["synthetic"] is None else digits["synthetic"]
            words += f" Most numbers are written with {made} decimals, really {digits['real']}."
            if domain[name].grid is None and 0 < digits["real"] <= MOST_DECIMALS:
                words += f" Declare decimals: {digits['real']}."
            weight = max(weight, 0.5)
        yield Finding("precision", (name,), weight, words, error, None, None, split.get((name,)))
