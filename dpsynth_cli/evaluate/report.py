"""A release on one HTML page: no script, nothing from the network, readable on paper.

The public page is made from the public audit and the synthetic file alone. The steward's page also shows real
rows' distributions and what was computed from them, and says so at its top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate import svg
from dpsynth_cli.evaluate.lines import TARGETS, lines, targets, used
from dpsynth_cli.evaluate.pictures import distributions, heat
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.mechanisms.registry import mechanisms
from dpsynth_cli.release.audit import CONFIDENTIAL

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #111; background: #fff; max-width: 1000px;
  margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .6rem;
  border-bottom: 1px solid #999; } h3 { font-size: 1rem; margin: .4rem 0; overflow-wrap: anywhere; }
td:first-child { min-width: 2rem; } .facts td { overflow-wrap: anywhere; }
.facts td:first-child { min-width: 9rem; }
.mark { display: inline-block; border: 2px solid #111; padding: .1rem .6rem; font-weight: 600; }
table { border-collapse: collapse; margin: .6rem 0; } th, td { padding: .2rem .8rem .2rem 0; text-align: left;
  border-bottom: 1px solid #ccc; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; } .grid { display: flex; flex-wrap: wrap; gap: 1.2rem 1.6rem; }
figure { margin: 0; break-inside: avoid; max-width: 100%; }
svg { max-width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: #111; } p.small { color: #444; font-size: .9rem; }
@media print { body { padding: 0; font-size: 11pt; } h2 { break-after: avoid; } tr { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } @page { margin: 15mm; } }
"""


@dataclass(frozen=True)
class Shown:
    """What a page is made from; `real` and what is confidential in the audit only for the steward."""

    audit: Mapping[str, Any]
    domain: Domain
    synthetic: Table
    real: Table | None
    predicted: Mapping[str, Any] | None
    real_missing: str = ""


def public_part(audit: Mapping[str, Any]) -> dict[str, Any]:
    """An audit without what is confidential.

    >>> public_part({"publishable": False, "input": "/secret", "utility": {}, "release": {}})
    {'publishable': True, 'release': {}}
    """
    return {key: value for key, value in audit.items() if key not in CONFIDENTIAL} | {"publishable": True}


def page(shown: Shown) -> str:
    """The whole page."""
    audit = shown.audit
    name = escape(audit["release"]["name"])
    public = audit["publishable"]
    mark = "Public: may be published" if public else "Confidential: the steward's copy"
    sections = [
        f"<h1>Synthetic release: {name}</h1><p><span class='mark'>{mark}</span></p>",
        _summary(audit),
        _guarantee(audit),
        _budget(audit) if "charges" in audit["budget"] else "",
        _errors(shown),
        distributions(shown.domain, shown.synthetic, shown.real, shown.real_missing),
        heat(shown.domain, shown.synthetic, shown.real),
        _utility(audit),
        _receipts(audit),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Synthetic release: {name}</title><style>{STYLE}</style></head><body><main>"
        f"{''.join(sections)}</main></body></html>\n"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    def cell(tag: str, i: int, text: str) -> str:
        return f"<{tag}{' class=n' if i in numbers else ''}>{escape(text)}</{tag}>"

    top = "".join(cell("th", i, text) for i, text in enumerate(head))
    body = "".join(f"<tr>{''.join(cell('td', i, t) for i, t in enumerate(row))}</tr>" for row in rows)
    shown = f"<thead><tr>{top}</tr></thead>" if head else ""
    return f"<div class=wide><table>{shown}<tbody>{body}</tbody></table></div>"


def _summary(audit: Mapping[str, Any]) -> str:
    output, mechanism = audit["output"], audit["mechanism"]
    rows = [
        ("File", output["file"]),
        ("Rows and columns", f"{output['rows']:,} synthetic rows, {len(output['columns'])} columns"),
        ("Released on", audit["release"]["day"]),
        ("Mechanism", f"{mechanism['name']} ({mechanism['citation']})"),
        ("Release", audit["release"]["id"]),
    ]
    if not audit["publishable"]:
        rows.append(("Input", audit.get("input", "")))
    notes = "".join(f"<li>{escape(note)}</li>" for note in audit["warnings"])
    listed = f"<ul>{notes}</ul>" if notes else ""
    return f"<h2>What was released</h2><div class=facts>{_table((), rows)}</div>{listed}"


def _guarantee(audit: Mapping[str, Any]) -> str:
    guarantee = audit["guarantee"]
    stated = f"<h2>The guarantee</h2><p>{escape(guarantee['statement'])}</p>"
    if "epsilon" not in guarantee:  # a release by groups: its statement says all
        return stated
    epsilon = float(guarantee["epsilon"])
    factor = f"{np.exp(epsilon):.3g}" if epsilon < 700 else "an enormous number"
    slack = f", up to a chance of {guarantee['delta']}," if guarantee["delta"] else ""
    stream = mechanisms()[audit["mechanism"]["name"]].stream
    whole, seen = "the input table", "all that was published"
    if stream:
        whole, seen = "any push", "every snapshot of this stream, now and for as long as it goes on"
    change = {
        "add_remove": f"that any one row was in {whole} at all",
        "replace_one": f"that any one row of {whole} said one thing rather than another",
    }[guarantee["neighbours"]]
    return (
        f"{stated}<p><b>In plain words:</b> for somebody who knows everything else and sees {seen}, the odds "
        f"{change} change by a factor of at most {factor}{slack} whatever they try and "
        f"whatever they learn later.{_allows(guarantee)} Synthetic rows are drawn from noisy answers: how "
        "much they tell about a real one is what epsilon says, and nothing less.</p>"
    )


def _allows(guarantee: Mapping[str, Any]) -> str:
    """What that means to an attacker; an audit of before has no such words."""
    return f" In other words, {escape(guarantee['allows'])}" if "allows" in guarantee else ""


def _budget(audit: Mapping[str, Any]) -> str:
    budget = audit["budget"]
    steps: dict[str, list[Mapping[str, Any]]] = {}
    for line in budget["charges"]:
        steps.setdefault(line["step"], []).append(line)
    costs = {step: float(sum(Fraction(line["cost"]) for line in own)) for step, own in steps.items()}
    paid = {step: cost for step, cost in costs.items() if cost > 0}
    total = sum(paid.values()) or 1.0
    words = "Where the budget went: " + ", ".join(f"{s} {c / total:.0%}" for s, c in paid.items())
    rows = []
    for number, (step, cost) in enumerate(paid.items()):
        own = steps[step]
        noises = sorted(line["standard_deviation"] for line in own if "standard_deviation" in line) or [0.0]
        sd = " to ".join(dict.fromkeys(f"{noise:.3g}" for noise in (noises[0], noises[-1])))
        kinds = ", ".join(sorted({line["question"] for line in own}))
        rows.append(
            (str(number + 1), step, kinds, f"{sum(line['cells'] for line in own):,}", sd, f"{cost:.4g}",
             f"{cost / total:.1%}")
        )  # fmt: skip
    head = ("", "step", "questions", "numbers", "sd of the noise", budget["currency"], "share")
    ledger = budget["ledger"]
    remaining = audit.get("ledger", {}).get("remaining")  # in the steward's audit only
    left = "" if remaining is None else f"; {float(Fraction(remaining)):.4g} is left there"
    return (
        f"<h2>Where the budget went</h2><figure>{svg.divided_bar(list(paid.items()), words)}</figure>"
        f"{_table(head, rows, (3, 4, 5, 6))}"
        f"<p class=small>Spent {budget['spent_float']:.4g} of {budget['total_float']:.4g} "
        f"({escape(budget['currency'])}), charged to {escape(ledger['dataset'])}{left}.</p>"
    )


def _errors(shown: Shown) -> str:
    predicted = (shown.predicted or {}).get("errors", {})
    paid = shown.audit.get("evaluation", {})
    metrics = shown.audit.get("utility", {}).get("metrics", {})
    measured = targets({name: line.get("synthetic") for name, line in metrics.items()})
    found = {
        "predicted": {key: f"{value:.3g}" for key, value in predicted.items()},
        "paid for (noise)": {
            key: f"{line['mean']:.3g} ({line['noise']:.2g})" for key, line in paid.items() if key in TARGETS
        },
        "measured": {key: f"{value:.3g}" for key, value in measured.items()},
    }
    found = {heading: values for heading, values in found.items() if values}
    head = ["error", *found]
    rows = [
        [words, *(values.get(key, "") for values in found.values())]
        for key, (words, _, _) in TARGETS.items()
        if any(key in values for values in found.values())
    ]
    notes = []
    if predicted:
        notes.append("Predicted: simulated with the real noise on a uniform table, without data.")
    bound = [line for line in shown.audit.get("error_bounds", ()) if "w1" in line]
    notes += [
        f"The paper's bound on W1 for the printed algorithm: {bound_words(line['w1'])}." for line in bound
    ]
    if paid:
        notes.append("Paid for: from noisy answers in the transcript; noise is its standard deviation.")
    if measured:
        notes.append("Measured: on a sample of the real rows; confidential.")
    said = "".join(f"<p class=small>{escape(note)}</p>" for note in notes)
    return f"<h2>Errors</h2>{_table(head, rows, range(1, len(head)))}{said}" if rows or said else ""


def bound_words(bound: float) -> str:
    """A bound as it should be read: W1 in the unit cube is never more than 1."""
    return f"{bound:.3g}" + (", which is more than 1 and says nothing here" if bound >= 1 else "")


def _utility(audit: Mapping[str, Any]) -> str:
    utility = audit.get("utility")
    if not utility or not utility.get("metrics"):
        return ""
    headings = used(utility)
    rows = [
        (label, *(f"{values[key]:.4g}" if key in values else "" for key in headings))
        for label, values in lines(utility)
    ]
    compared = utility["compared_rows"]
    said = (
        f"Confidential: computed from {compared['real']:,} of {utility['rows']['real']:,} real rows and "
        f"{compared['synthetic']:,} synthetic ones."
    )
    notes = "".join(f"<p class=small>{escape(note)}</p>" for note in utility.get("notes", ()))
    formulas = "".join(
        f"<li><b>{escape(name)}</b>: {escape(line.get('formula', ''))}</li>"
        for name, line in utility["metrics"].items()
    )
    table = _table(("metric", *headings.values()), rows, range(1, 1 + len(headings)))
    return f"<h2>Utility</h2><p class=small>{said}</p>{table}{notes}<ul class=small>{formulas}</ul>"


def _receipts(audit: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{key} {value}" for key, value in audit["release"]["versions"].items())
    rows = [("Synthetic file, SHA-256", audit["output"]["sha256"])]
    if transcript := audit.get("transcript"):
        rows += [("Transcript", transcript["file"]), ("Transcript, SHA-256", transcript["sha256"])]
        rows.append(("Sampling seed", str(audit["sampling_seed"])))
    rows += [
        ("Spec, SHA-256", audit["spec_sha256"]),
        ("Ledger entry", audit["budget"]["ledger"]["hash"]),
        ("Made by", versions),
    ]
    return (
        f"<h2>Receipts</h2><div class=facts>{_table((), rows)}</div>"
        "<p class=small>Anybody can check all of this without the data: dpsynth verify.</p>"
    )
