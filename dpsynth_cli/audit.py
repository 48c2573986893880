"""The JSON documents of a release: the public audit, and the steward's with what is confidential.

The public audit is a function of the transcript, the bill and the synthetic file alone, so that
`verify` can make it again and compare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsynth_cli.spec import Spec, exact

VERSION = 1
MULTILINE = (
    " The input was declared as CSV with line breaks inside quotes: the guarantee assumes that no record of "
    "it has a quotation mark out of place, which could take the records after it into its own."
)
CONFIDENTIAL = ("input", "files", "utility")


def short(amount: Fraction) -> str:
    """An exact decimal where there is one of reasonable length, else a rounded one.

    >>> short(Fraction(1, 10)), short(Fraction(1, 3))
    ('0.1', '0.333333')
    """
    for digits in range(13):
        if (amount * 10**digits).denominator == 1:
            scaled = str(int(amount * 10**digits)).rjust(digits + 1, "0")
            return f"{scaled[:-digits]}.{scaled[-digits:]}" if digits else scaled
    return f"{float(amount):.6g}"


def guarantee(spec: Spec) -> dict[str, Any]:
    """The promise in numbers and in one sentence a lawyer can read."""
    privacy = spec.privacy
    epsilon = exact(privacy.epsilon)
    delta = None if privacy.delta is None else exact(privacy.delta)
    change = {
        "add_remove": "adding or removing any one row of the input table",
        "replace_one": "replacing any one row of the input table by another (the number of rows is public)",
    }[privacy.neighbours]
    kind = (
        f"{epsilon}-differentially private"
        if delta is None
        else f"({epsilon}, {delta})-differentially private"
    )
    slack = "" if delta is None else f", but for a part of probability at most {delta}"
    return {
        "model": "pure differential privacy"
        if delta is None
        else "approximate differential privacy (by zCDP)",
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": privacy.neighbours,
        "unit": "one row",
        "statement": (
            f"This release is {kind}: {change} changes the probability of any outcome by a factor of at "
            f"most e^{epsilon}{slack}. The unit of protection is one row; the guarantee assumes that "
            f"AES-256 cannot be told from random bits.{MULTILINE if spec.csv.multiline else ''}"
        ),
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
) -> dict[str, Any]:
    """What may be published about a release."""
    from dpsynth_cli.transcript import canonical, sha256  # imports pyarrow, which `check` can do without

    return {
        "dpsynth_audit": VERSION,
        "publishable": True,
        "release": header["release"],
        "guarantee": guarantee(spec),
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
        ],
        "warnings": list(notes),
    }


def steward_audit(public: Mapping[str, Any], input_path: str, files: Mapping[str, str]) -> dict[str, Any]:
    """The public audit with what must stay with the steward."""
    private = {"publishable": False, "input": input_path, "files": dict(files)}
    return dict(public) | private


def as_text(document: Mapping[str, Any]) -> bytes:
    """Indented JSON, as the files hold it."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
