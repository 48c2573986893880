"""The JSON documents of a release: the public audit, and the steward's with what is confidential.

The public audit is a function of the transcript, the bill and the synthetic file alone, so that
`verify` can make it again and compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsynth_cli.bounds import Bound, rounded
from dpsynth_cli.hashing import canonical, sha256
from dpsynth_cli.numbers import exact
from dpsynth_cli.release.documents.guarantee import guarantee
from dpsynth_cli.release.documents.profile import allows, profile, protected
from dpsynth_cli.spec.spec import Spec, public_document

VERSION = 1
BOUND = (
    "what the W1 distance ({distance}) between the tables is at most on average, whatever the data are, with "
    "as many rows as the private total says; of {of}: {meaning}"
)
OF_ANSWERS_BOUND = (
    "an estimate from noisy answers that is on average no less than the mean W1 distance ({distance}) "
    "between the tables, whatever the data are; of {of}: {meaning}"
)
LIPSCHITZ = "the mean of any statistic that changes by no more than the row does is off by at most this"
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
            "chosen": in_nine_digits(facts),
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


def in_nine_digits(facts: Any) -> Any:
    """What a mechanism says of itself, the same on every machine: fits may differ in their last digits.

    >>> in_nine_digits({"variance": [0.1 + 0.2, 3], "most": 2.0e-20, "edge": float("inf")})
    {'variance': [0.3, 3], 'most': 2e-20, 'edge': None}
    """
    if isinstance(facts, Mapping):
        return {key: in_nine_digits(value) for key, value in facts.items()}
    if isinstance(facts, (list, tuple)):
        return [in_nine_digits(value) for value in facts]
    if isinstance(facts, float):
        return float(f"{facts:.9g}") if math.isfinite(facts) else None
    return facts


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
    meaning = of_what.format(distance=bound.distance.words, of=bound.of, meaning=LIPSCHITZ)
    return {"step": "all"} | bound_document(bound) | {"meaning": meaning}


def bound_document(bound: Bound) -> dict[str, Any]:
    """A bound as JSON: what it is of, what it is the sum of, between rows that are how far apart, and what it
    means."""
    terms = {"terms": dict(bound.terms)} if bound.terms else {}
    far = {"distance": bound.distance.words, "farthest": rounded(bound.distance.farthest)}
    said = {"w1": bound.w1, "of": bound.of, "of_answers": bound.of_answers}
    return said | terms | far | {"meaning": LIPSCHITZ}


def bound_sentence(bound: Mapping[str, Any]) -> str:
    """A bound in words, from its JSON."""
    size = bound_words(bound["w1"], bound["farthest"])
    if not bound["of_answers"]:
        return f"Of any data, the mean W1 ({bound['distance']}) is up to {size}. That is of {bound['of']}."
    terms = ", ".join(f"{name.replace('_', ' ')} {term:.3g}" for name, term in bound["terms"].items())
    told = f"The mean W1 ({bound['distance']}) of {bound['of']} is up to {size} ({terms})"
    return f"{told}, whatever the data are."


def bound_words(bound: float, farthest: float) -> str:
    """A bound as it should be read: W1 is never more than the distance of two rows.

    >>> bound_words(0.5, 1.0), bound_words(1.5, 1.414)
    ('0.5', '1.5, which is as far as rows can be apart (1.41) and says nothing here')
    """
    far = f", which is as far as rows can be apart ({farthest:.3g}) and says nothing here"
    return f"{bound:.3g}" + (far if bound >= farthest else "")


def as_text(document: Mapping[str, Any]) -> bytes:
    """Indented JSON, as the files hold it."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
