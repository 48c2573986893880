"""The JSON documents of a release: the public audit, and the steward's with what is confidential.

The public audit is a function of the transcript, the bill and the synthetic file alone, so that
`verify` can make it again and compare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsynth_cli.bounds import Bound
from dpsynth_cli.hashing import canonical, sha256
from dpsynth_cli.numbers import exact
from dpsynth_cli.release.gone_again import gone_again
from dpsynth_cli.release.profile import allows, profile, protected
from dpsynth_cli.spec.spec import Spec, public_document
from dpsynth_cli.spec.unit import LIFE

VERSION = 1
BOUND = (
    "what the W1 distance (largest coordinate, each column from 0 to 1) between the tables is at most on "
    "average, whatever the data are, with as many rows as the private total says; of "
)
OF_ANSWERS_BOUND = (
    "an estimate from noisy answers that is on average no less than the mean W1 distance (largest "
    "coordinate, each column from 0 to 1) between the tables, whatever the data are; of "
)
LIPSCHITZ = "the mean of any statistic that changes by no more than the row does is off by at most this"
MULTILINE = (
    " The input was declared as CSV with line breaks inside quotes: the guarantee assumes that no record of "
    "it has a quotation mark out of place, which could take the records after it into its own."
)
TABLE = {
    "add_remove": "adding or removing any one row of the input table",
    "replace_one": "replacing any one row of the input table by another (the number of rows is public)",
}
UNITS = {
    "add_remove": "adding or removing all rows of any one {column}, however many there are,",
    "replace_one": "replacing all rows of any one {column} by any others, of any number,",
}
FAMILIES = {
    "add_remove": "adding or removing any one row of {parent} with all rows of {children} that belong to it, "
    "however many there are,",
    "replace_one": "replacing any one row of {parent} with all rows of {children} that belong to it by any "
    "others, of any number,",
}
ONE_FAMILY = (
    " A unit is all rows, of all tables, that have the same {key}; rows without one are one unit together. "
    "Of a unit one row of {parent} was used, and at most {most}, chosen by a secret key and the unit's own "
    "rows; rows without one of {parent} were left out."
)
ONE_UNIT = (
    " A unit is all rows with the same {column}; rows without one are one unit together. At most {rows} "
    "rows of a unit were used, chosen by a secret key and the unit's own rows."
)
STREAM_UNIT = {
    LIFE: " A unit is all rows with the same {column}, over the whole life of the stream; rows without one "
    "are one unit together. At most {rows} rows of a unit are ever counted, chosen by a secret key and the "
    "unit's own rows.",
    "day": " A unit is all rows with the same {column} that were pushed on the same day; rows without one "
    "are one unit together. At most {rows} of them are counted, chosen by a secret key and the unit's own "
    "rows. Somebody with rows on several days is protected for each day by itself: for m days epsilon is up "
    "to m times as large (and a delta grows too).",
}
IN_ORDER = " They follow one another in the order of {order}."
STREAM = {
    "add_remove": "adding or removing any one row of any push",
    "replace_one": "replacing any one row of any push by another, of the same or of another push,",
}
PUBLIC_ARRIVALS = (
    "replacing any one row of any push by another of the same push (how many rows each has is public)"
)
LARGE_EPSILON = 10
LARGE_DELTA = Fraction(1, 10**4)
FEW_ROWS = 30
CONFIDENTIAL = ("input", "files", "ledger", "utility", "groups", "problems")
REQUIRED = (
    "publishable",
    "release",
    "guarantee",
    "budget",
    "mechanism",
    "spec",
    "spec_sha256",
    "output",
    "warnings",
)
OF_ANSWERS = ("transcript", "sampling_seed", "error_bounds")  # a release by groups has none


def guarantee(spec: Spec) -> dict[str, Any]:
    """The promise in numbers and in one sentence a lawyer can read."""
    privacy = spec.privacy
    if privacy.epsilon is None:
        return _groups_guarantee(spec)
    epsilon = exact(privacy.epsilon)
    delta = None if privacy.delta is None else exact(privacy.delta)
    what, unit, changes = "This release is", "one row", TABLE
    if spec.mechanism.stream:
        what, unit = "All snapshots of this stream together, however long it goes on, are", "one event, a row"
        changes = STREAM | ({"replace_one": PUBLIC_ARRIVALS} if spec.params.arrivals == "public" else {})
    change, explained, about = changes[privacy.neighbours], "", dict[str, Any]()
    if spec.mechanism.stream:
        explained = gone_again(spec)
    if privacy.unit is not None:
        column, rows = privacy.unit.column, privacy.unit.rows
        unit = f"one unit, all rows of one {column}"
        change = UNITS[privacy.neighbours].format(column=column)
        explained = ONE_UNIT.format(column=column, rows=rows)
        if spec.mechanism.stream:
            own = "in all pushes" if privacy.unit.per == LIFE else "in the pushes of one day"
            unit, change = f"{unit} {own}", UNITS[privacy.neighbours].format(column=f"{column} {own}")
            explained = STREAM_UNIT[privacy.unit.per].format(column=column, rows=rows)
        if privacy.unit.order is not None:
            explained += IN_ORDER.format(order=privacy.unit.order)
        about = {"unit_column": column, "unit_rows": rows}
        about |= {} if privacy.unit.per == LIFE else {"unit_per": privacy.unit.per}
    if spec.tables is not None:
        parent, key = spec.tables.parent, spec.tables.key
        children = " and ".join(child.name for child in spec.tables.children)
        unit = f"one unit, a row of {parent} with all its rows of {children}"
        change = FAMILIES[privacy.neighbours].format(parent=parent, children=children)
        most = " and ".join(f"{child.rows} rows of {child.name}" for child in spec.tables.children)
        explained = ONE_FAMILY.format(parent=parent, key=key, most=most)
        about = {"unit_column": key, "unit_tables": {parent: 1}}
        about["unit_tables"] |= {child.name: child.rows for child in spec.tables.children}
    kind = (
        f"{epsilon}-differentially private"
        if delta is None
        else f"({epsilon}, {delta})-differentially private"
    )
    slack = "" if delta is None else f", but for a part of probability at most {delta}"
    return {
        "model": "pure differential privacy"
        if delta is None
        else "approximate differential privacy (by Gaussian differential privacy)",
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": privacy.neighbours,
        "unit": unit,
        **about,
        "statement": (
            f"{what} {kind}: {change} changes the probability of any outcome by a factor of at "
            f"most e^{epsilon}{slack}. The unit of protection is {unit}; the guarantee assumes that "
            f"AES-256 cannot be told from random bits.{explained}{MULTILINE if spec.csv.multiline else ''}"
        ),
    }


def kept_of_a_unit(promised: Mapping[str, Any]) -> str:
    """How many rows of a unit were used at most, in words.

    >>> kept_of_a_unit({"unit_rows": 5}), kept_of_a_unit({"unit_tables": {"households": 1, "members": 6}})
    ('5 rows', '1 row of households and 6 rows of members')
    """
    tables = promised.get("unit_tables")
    if tables is None:
        return f"{promised['unit_rows']} rows"
    return " and ".join(f"{rows} row{'s' * (rows != 1)} of {name}" for name, rows in tables.items())


def _groups_guarantee(spec: Spec) -> dict[str, Any]:
    g, centroids = spec.params.group_size, spec.params.output == "centroids"
    made = (
        f"Every row of the input was replaced by the centre of a group of at least {g} similar rows, so that "
        f"each released row is the same, in all its columns, as at least {g - 1} others."
        if centroids
        else f"Rows were drawn from groups of at least {g} similar rows of the input: each category is that "
        "of some row of the group, drawn column by column, and each number is the mean of more than half of "
        "the group's rows."
    )
    if spec.params.convex:
        made += " Rows that broke a declared constraint were then moved to the nearest values that keep all."
    return {
        "model": "microaggregation",
        "group_size": g,
        "unit": "a group of rows",
        "statement": (
            "This release is not differentially private: it is microaggregation with a minimum group size "
            f"of {g}. {made} Nothing limits what it may tell about a row to somebody who knows others, and "
            "such releases of the same data can be compared with each other."
        ),
    }


def groups_audit(
    spec: Spec, release: Mapping[str, Any], ledger: Mapping[str, Any], output: Mapping[str, Any]
) -> dict[str, Any]:
    """What may be published about a release by groups. No seed: it would tell the order of the rows."""
    document = public_document(spec.effective)
    return {
        "dpsynth_audit": VERSION,
        "publishable": True,
        "release": dict(release),
        "guarantee": guarantee(spec),
        "budget": {"currency": "unbounded", "ledger": dict(ledger)},
        "mechanism": {
            "name": spec.mechanism.name,
            "parameters": document["mechanism"],
            "citation": spec.mechanism.citation,
        },
        "spec": document,
        "spec_sha256": sha256(canonical(document)),
        "output": dict(output),
        "warnings": ["This release is not differentially private."],
    }


def public_audit(
    spec: Spec,
    header: Mapping[str, Any],
    budget: Mapping[str, Any],
    charges: Sequence[dict[str, Any]],
    output: Mapping[str, Any],
    transcript: Mapping[str, Any],
    notes: Sequence[str],
    facts: Mapping[str, Any],
    bounds: Sequence[Bound],
) -> dict[str, Any]:
    """What may be published about a release."""
    return {
        "dpsynth_audit": VERSION,
        "publishable": True,
        "release": header["release"],
        "guarantee": guarantee(spec) | {"allows": allows(spec.privacy), "profile": profile(spec.privacy)},
        "budget": dict(budget) | {"charges": list(charges), "ledger": header["ledger"]},
        "mechanism": {
            "name": spec.mechanism.name,
            "parameters": header["spec"]["mechanism"],
            "chosen": dict(facts),
            "citation": spec.mechanism.citation,
        },
        "spec": header["spec"],
        "spec_sha256": sha256(canonical(header["spec"])),
        "output": dict(output),
        "transcript": dict(transcript),
        "sampling_seed": header["sampling_seed"],
        "error_bounds": [
            {
                "step": line["step"],
                "standard_deviation": line["standard_deviation"],
                "meaning": "of the noise in each of its cells, in rows (or in its own unit for moments)",
            }
            for line in charges
            if "standard_deviation" in line
        ]
        + [_bound_line(bound) for bound in bounds],
        "warnings": [*warnings(spec), *notes],
    }


def warnings(spec: Spec) -> list[str]:
    """What is wrong with the guarantee itself, from the spec alone."""
    epsilon, delta, rows = spec.privacy.epsilon, spec.privacy.delta, spec.domain.rows_hint
    found = []
    if epsilon is not None and epsilon > LARGE_EPSILON:
        weak = f"is large, and protects a {protected(spec.privacy)} little or not at all"
        found.append(f"epsilon = {exact(epsilon)} {weak}: {allows(spec.privacy)}")
    if delta is None:
        return found
    too_many = rows is not None and delta * rows > 1
    if delta > LARGE_DELTA or too_many:
        beyond = f" With about {rows:,} rows it is above one over their number." if too_many else ""
        found.append(
            f"delta = {exact(delta)} is large: with about that chance a {protected(spec.privacy)} may be "
            f"told outright. It should be far below one over the number of rows.{beyond}"
        )
    return found


def few_rows(total: int, rows: int) -> list[str]:
    """What to think of a table that has next to no rows; both numbers are public."""
    if total >= FEW_ROWS:
        return []
    if rows == 0:
        return [
            "The synthetic table has no rows: the number of rows, with its noise, is not above 0. The input "
            "is too small for this epsilon. Take more rows or more epsilon, or do not release it."
        ]
    return [
        f"The number of rows, with its noise, is {max(total, 0):,}: so few that noise is most of what the "
        "synthetic table shows. Do not rely on it."
    ]


def steward_audit(
    public: Mapping[str, Any],
    input_path: str,
    files: Mapping[str, str],
    ledger: Mapping[str, Any],
    utility: Mapping[str, Any] | None,
    problems: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The public audit with what must stay with the steward."""
    private = {"publishable": False, "input": input_path, "files": dict(files), "ledger": dict(ledger)}
    measured = {"utility": utility, "problems": problems}
    return dict(public) | private | {key: dict(value) for key, value in measured.items() if value is not None}


def public_part(audit: Mapping[str, Any]) -> dict[str, Any]:
    """An audit without what is confidential.

    >>> public_part({"publishable": False, "input": "/secret", "utility": {}, "release": {}})
    {'publishable': True, 'release': {}}
    """
    return {key: value for key, value in audit.items() if key not in CONFIDENTIAL} | {"publishable": True}


def _bound_line(bound: Bound) -> dict[str, Any]:
    of_what = OF_ANSWERS_BOUND if bound.of_answers else BOUND
    return {"step": "all"} | bound_document(bound) | {"meaning": f"{of_what}{bound.of}: {LIPSCHITZ}"}


def bound_document(bound: Bound) -> dict[str, Any]:
    """A bound as JSON: what it is of, what it is the sum of, and what it means."""
    terms = {"terms": dict(bound.terms)} if bound.terms else {}
    return {"w1": bound.w1, "of": bound.of, "of_answers": bound.of_answers} | terms | {"meaning": LIPSCHITZ}


def bound_sentence(bound: Mapping[str, Any]) -> str:
    """A bound in words, from its JSON."""
    if not bound["of_answers"]:
        return (
            f"Of any data, the mean W1 (largest coordinate, unit cube) is up to {bound_words(bound['w1'])}. "
            f"That is of {bound['of']}."
        )
    terms = ", ".join(f"{name.replace('_', ' ')} {term:.3g}" for name, term in bound["terms"].items())
    return (
        f"The mean W1 (largest coordinate, unit cube) of {bound['of']} is up to "
        f"{bound_words(bound['w1'])} ({terms}), whatever the data are."
    )


def bound_words(bound: float) -> str:
    """A bound as it should be read: W1 in the unit cube is never more than 1."""
    return f"{bound:.3g}" + (", which is more than 1 and says nothing here" if bound >= 1 else "")


def as_text(document: Mapping[str, Any]) -> bytes:
    """Indented JSON, as the files hold it."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
