"""What there is to say of columns together: what follows, never occurs, is missing together, correlations,
regressions, group means, tables."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.verdict.finding import Figures, Finding, Key, Side, amount, percent, weighed

LINKED = 0.2  # a correlation, or the effect of a group, that an analyst would look at
FITTED = 0.1  # such an R^2
NEVER = 0.01  # of rows of independent columns have such a combination: a relation that can be broken
TOGETHER = 0.5  # of the rows with one missing lack the other too: missing together


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
        by_chance = side.chance * math.sqrt(own["real_rows"] * (1 - own["real_rows"]))
        open_ = weighed(error, split.get(key), 0.15, side.chance * math.sqrt(max(0.0, own["real"])))
        weight = max(open_, weighed(rows, half.get(key), 0.05, by_chance))
        both = frozenset(key)
        if both in found and found[both].weight >= weight:
            continue
        a, b = key
        exactly = "" if own["real_rows"] < 0.001 else "nearly "
        usual = "" if own["real_rows"] < 0.001 else f" (real: {percent(own['real_rows'])})"
        words = (
            f"{b} {exactly}follows from {a}: {percent(own['rows'])} of the synthetic rows break that{usual}; "
            f"{a} leaves {percent(max(0.0, own['synthetic']))} of it open, really "
            f"{percent(max(0.0, own['real']))}."
        )
        found[both] = Finding(
            "follows", key, weight, words, error, own["real"], own["synthetic"], split.get(key),
            apart.get(key), own["rows"],
        )  # fmt: skip
    yield from found.values()


def never(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """Combinations of categories that never occur."""
    side = Side(metrics, "relations")
    if not side:
        return
    split, _ = side.by(lambda one: {tuple(own["columns"]): own["share"] for own in one["never"]})
    for own in side.made["never"]:
        if max(own["share"], own["independent"]) < NEVER:
            continue
        a, b = key = tuple(own["columns"])
        words = (
            f"{a} and {b}: {percent(own['share'])} of the synthetic rows have a combination that no real row "
            "has"
            f"{_half(split.get(key))}."
        )
        weight = weighed(own["share"], split.get(key), 0.05)
        yield Finding(
            "never", key, weight, words, own["share"], 0.0, own["share"], split.get(key), own["independent"]
        )


def _half(floor: float | None) -> str:
    return "" if floor is None else f" (half of the real rows against the other: {percent(floor)})"


def associations(metrics: Figures, domain: Domain) -> Iterator[Finding]:
    """Pairs of categories that have to do with each other, really or in the synthetic rows."""
    side = Side(metrics, "relations")
    if not side:
        return

    def errors(one: Figures) -> dict[Key, float]:
        return {tuple(o["columns"]): abs(o["synthetic"] - o["real"]) for o in one["associations"]}

    split, apart = side.by(errors)
    for own in side.made["associations"]:
        real, made = own["real"], own["synthetic"]
        if max(real, made) < LINKED:
            continue
        a, b = key = tuple(own["columns"])
        error = abs(real - made)
        words = f"{a} and {b}: their association (Cramer's V) is {made:.2f}, really {real:.2f}."
        weight = weighed(error, split.get(key), _lost(real, 0.2), side.chance)
        yield Finding("association", key, weight, words, error, real, made, split.get(key), apart.get(key))


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
                f"{key[0]} and {key[1]} are missing together: where the first is missing, so is the second "
                "in "
                f"{percent(own['synthetic'])} of the synthetic rows, in {percent(own['real'])} of the real "
                "ones."
            )
            found[both] = Finding(
                "together", key, weight, words, error, own["real"], own["synthetic"], split.get(key),
                apart.get(key),
            )  # fmt: skip
    yield from found.values()


def _lost(real: float, bad: float) -> float:
    """What counts as broken of an effect: so much, or two thirds of a small one."""
    return min(bad, 2 / 3 * max(abs(real), FITTED))


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
        weight = weighed(error, split.get(key), _lost(real, 0.2), side.chance * (1 - real**2))
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
            f"{name} by all other columns: a linear regression explains {percent(own['synthetic'])} of its "
            "variance, "
            f"really {percent(own['real'])}."
        )
        key, fit = (name,), own["real"]
        by_chance = side.chance * 2 * math.sqrt(fit) * (1 - fit)
        weight = weighed(error, split.get(key), _lost(fit, 0.15), by_chance)
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
        weight = max(
            weighed(own["error"], split.get(key), 0.25, side.chance / 2),
            weighed(real - made, split.get(key), _lost(real, 0.2), side.chance),
        )
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
    return f"; {worst['group']}: {amount(worst['synthetic'])} instead of {amount(worst['real'])}"


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
                f"{names}: their table is off by {own['tvd']:.2f} (total variation), {own['beyond']:.2f} "
                "beyond "
                f"{less}; half of the real rows against the other: {own['real_split']:.2f}"
                + (", and independent columns would do as well." if as_good else ".")
            )
            weight = weighed(own["beyond"], own["real_split"], 0.15)
            yield Finding(
                kind, tuple(own["columns"]), weight, words, own["tvd"], None, None, own["real_split"],
                own["independent"],
            )  # fmt: skip
