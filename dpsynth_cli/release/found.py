"""What was found of private columns, as the public audit says it; and the spec of a release with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpsynth_cli.errors import UsageError
from dpsynth_cli.mechanisms.search.find import FAILURE, Found, first_looks, looks
from dpsynth_cli.mechanisms.search.noise import reach
from dpsynth_cli.mechanisms.search.outer import outer, private
from dpsynth_cli.numbers import exact
from dpsynth_cli.questions import OpenLabels
from dpsynth_cli.release.budget import accountant_of
from dpsynth_cli.spec.columns import column_document
from dpsynth_cli.spec.spec import Spec, from_document
from dpsynth_cli.spec.tables import each_table
from dpsynth_cli.trusted.core.prices import Charge, charge_for


def found_columns(found: Found, charges: Sequence[Charge]) -> dict[str, Any]:
    """The columns as a spec would declare them, what finding them took, and how far it can be trusted."""
    names = {*found.facts.get("sure", ()), *found.facts.get("steps", ())}
    columns = {column.name: column_document(column) for column in found.domain if column.name in names}
    facts, thresholds, seen = dict(found.facts), {}, {}
    for charge in charges:
        if isinstance(charge.question.statistic, OpenLabels) and charge.price.threshold is not None:
            name, price = charge.question.statistic.column, charge.price
            thresholds[name] = charge.price.threshold
            failure = float(FAILURE) / looks(found.domain[name] for name in facts["sure"])
            seen[name] = math.ceil(charge.price.threshold + reach(price.noise, price.sd, 1, failure))
    if thresholds:
        facts |= {"thresholds": thresholds, "rows_seen": facts["rows_seen"] | seen}
    return facts | {"columns": columns}


def steps_in_words(audit: Mapping[str, Any]) -> list[str]:
    """What was found of what numbers are rounded to, and of which nothing was, from a public audit; of each
    table that was looked at."""
    said = []
    for table in (audit, *audit.get("tables", ())):
        steps: Mapping[str, float | None] = table.get("found", {}).get("steps", {})
        of = f" of {table['name']}" if "name" in table else ""
        if known := [f"{name} to multiples of {step:.15g}" for name, step in steps.items() if step]:
            said.append(f"numbers{of} are rounded, as was found: {', '.join(known)}")
        if none := [name for name, step in steps.items() if not step]:
            said.append(
                f"no rounding{of} was found of {', '.join(none)}: values are anywhere between bounds. If you "
                "know a step, state step or decimals; step: any does not look"
            )
    return said


def released_spec(audit: Mapping[str, Any]) -> Spec:
    """The spec of an audit, in which private columns have the bounds and categories that were found."""
    document = audit["spec"]
    if "tables" in document:
        said = [audit, *audit["tables"]]
        tables = [_known(one, own) for one, own in zip(document["tables"], said, strict=True)]
        privacy = document["privacy"] | ({"search": None} if any("found" in one for one in said) else {})
        return each_table(from_document(document | {"tables": tables, "privacy": privacy}))[tables[0]["name"]]
    privacy = document["privacy"] | ({"search": None} if "found" in audit else {})
    return from_document(_known(document, audit) | {"privacy": privacy})


def _known(document: Mapping[str, Any], audit: Mapping[str, Any]) -> dict[str, Any]:
    """What a document says of a table, with the columns that were found."""
    found = audit.get("found", {}).get("columns", {})
    columns = [{"name": one["name"]} | found.get(one["name"], one) for one in document["columns"]]
    return {**document, "columns": columns}


def beside(spec: Spec, synthetic: str) -> Spec:
    """The spec with what the audit beside a synthetic file says was found of its private columns."""
    if not private(spec.domain):
        return spec
    for ending in (".audit.json", ".audit.public.json"):
        path = Path(synthetic).with_suffix(ending)
        if path.exists():
            domain = released_spec(json.loads(path.read_bytes())).domain
            if not private(domain) and [c.name for c in domain] == [c.name for c in spec.domain]:
                return spec.found(domain)
    refuse_private(spec, synthetic)
    return spec


def refuse_private(spec: Spec, what: str) -> None:
    """Refuse to compare tables by bounds or categories that nobody knows."""
    if columns := private(spec.domain):
        raise UsageError(
            f"{what} cannot be read by this spec: bounds or categories of "
            f"{', '.join(column.name for column in columns)} are private.",
            next_step="Give a spec that states them, such as what the audit of a release says was found.",
        )


def search_worth(spec: Spec) -> dict[str, Any]:
    """What finding private columns takes, and how many rows it sees, from the spec alone; nothing if there is
    nothing to find."""
    if not private(spec.domain):
        return {}
    looks, failure = first_looks(spec.domain, spec.privacy.share_of_search, spec.privacy.apart)
    accountant, asked = accountant_of(spec), outer(spec.domain)
    seen, thresholds = {}, {}
    for name, question in looks.items():
        charge = charge_for(question, asked, accountant)
        price, cells = charge.price, max(1, sum(charge.lengths))
        reached = reach(price.noise, price.sd, cells, failure)
        seen[name] = math.ceil(reached + (reached if price.threshold is None else price.threshold))
        if price.threshold is not None:
            thresholds[name] = price.threshold
    return {
        "share": str(spec.privacy.share_of_search),
        "failure_probability": float(FAILURE),
        "rows_seen": seen,
    } | ({"thresholds": thresholds, "delta": exact(spec.privacy.apart)} if thresholds else {})


def search_advice(found: Mapping[str, Any], unit: str | None = None) -> str:
    """The same in a sentence."""
    seen = ", ".join(f"{rows:,} of {name}" for name, rows in found["rows_seen"].items())
    return (
        f"private bounds and categories: at most {found['share']} of the budget finds them. With probability "
        f"at least {1 - found['failure_probability']:g} nothing is kept that no row has, and nothing is left "
        f"out by the first look that many rows have (a label, or values between two powers of two): {seen}. "
        "A second look may narrow bounds, and leave out scattered rows that it cannot tell from noise: the "
        "audit says how many (may_be_outside). Rows left out are moved to a bound, or to the other category."
        + _label_advice(found, unit)
    )


def _label_advice(found: Mapping[str, Any], unit: str | None) -> str:
    if "thresholds" not in found:
        return ""
    each = ", ".join(f"{rows:,} of {name}" for name, rows in found["thresholds"].items())
    counted = "rows" if unit is None else f"values of {unit}, each at one of its labels,"
    return (
        f" Labels that nobody has listed are released if their noisy number of {counted} reaches {each}: a "
        f"label of only one does so with a probability that delta = {found['delta']} pays for, out of "
        "privacy.delta."
    )
