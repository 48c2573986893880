"""The whole page, in the order in which people ask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.report.budget import budget
from dpsynth_cli.evaluate.report.children import children
from dpsynth_cli.evaluate.report.columns import columns
from dpsynth_cli.evaluate.report.figures import figures
from dpsynth_cli.evaluate.report.guarantee import guarantee, on_the_tin
from dpsynth_cli.evaluate.report.junk import not_as_declared
from dpsynth_cli.evaluate.report.known import known
from dpsynth_cli.evaluate.report.markup import facts, items, percent, section, text
from dpsynth_cli.evaluate.report.pairs import pairs
from dpsynth_cli.evaluate.report.receipts import receipts
from dpsynth_cli.evaluate.report.style import STYLE
from dpsynth_cli.evaluate.report.verdict import clear, holds, verdict, within
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.release.documents.audit import public_part
from dpsynth_cli.release.found import steps_in_words

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Shown:
    """What a page is made from; `real` and what is confidential in the audit only for the steward.

    `name` is that of the release's files; `signature` their signature's file and the keys it names; `kept`
    are rules that every row keeps, `computed` columns that follow from others of their row, by the spec.
    """

    audit: Mapping[str, Any]
    domain: Domain
    synthetic: Table
    real: Table | None
    name: str
    note: str = ""
    signature: tuple[str, Sequence[str]] | None = None
    kept: Sequence[str] = ()
    computed: Sequence[str] = ()


def page(shown: Shown) -> str:
    """The page as HTML."""
    audit, domain = shown.audit, shown.domain
    if audit["publishable"]:  # whatever else the audit holds, and whoever said that it may be published
        audit = public_part(audit)
        if shown.real is not None:
            raise ValueError("a public page is made without real rows")
    errors = _column_errors(audit)
    sections = [
        verdict(audit, domain),
        children(audit),
        not_as_declared(audit, domain),
        guarantee(audit),
        section(
            "holds",
            "What holds, and what does not",
            on_the_tin(audit, shown.kept, shown.computed),
            holds(audit),
        ),
        known(audit),
        budget(audit),
        columns(domain, shown.synthetic, shown.real, " ".join([*_steps(audit), shown.note]), errors),
        pairs(domain, audit, shown.synthetic, shown.real),
        figures(audit),
        receipts(audit, shown.name, shown.signature),
    ]
    title = f"Synthetic table: {text(audit['release']['name'])}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>"
        f"<header><h1>{title}</h1>{_summary(audit)}{_contents(sections)}</header>"
        f"<main>{''.join(sections)}</main></body></html>\n"
    )


def _summary(audit: Mapping[str, Any]) -> str:
    output, mechanism = audit["output"], audit["mechanism"]
    public = audit["publishable"]
    kind, mark = (
        ("public", "Public: may be published")
        if public
        else ("confidential", "Confidential: the steward's copy")
    )
    rows: list[tuple[str, object]] = [
        ("File", output["file"]),
        ("Contents", f"{output['rows']:,} synthetic rows, {len(output['columns']):,} columns"),
        *((f"Its {one['name']}", _child(one)) for one in audit.get("tables", ())),
        ("Promise", _promise(audit)),
        ("Released on", audit["release"]["day"]),
        ("Mechanism", mechanism["name"]),
    ]
    if not public:
        rows.append(("Input", audit.get("input", "")))
    notes = items(audit["warnings"])
    warned = f'<div class="box weaker"><h3>Read this first</h3>{notes}</div>' if notes else ""
    return f'<p><span class="mark {kind}">{mark}</span></p>{facts(rows)}{warned}'


def _child(table: Mapping[str, Any]) -> str:
    output, key = table["output"], table["foreign_key"]
    return (
        f"{output['file']}: {output['rows']:,} rows, {len(output['columns']):,} columns; {key} "
        f"names a row of {table['parent']}, which has at most {table['rows_of_a_parent']:,}"
    )


def _promise(audit: Mapping[str, Any]) -> str:
    promised = audit["guarantee"]
    if "epsilon" not in promised:
        return f"{promised['model']}; not differentially private"
    delta = f", delta {promised['delta']}" if promised["delta"] else ""
    return f"differentially private: epsilon {promised['epsilon']}{delta}, for {promised['unit']}"


def _contents(sections: Sequence[str]) -> str:
    """Links to the parts that there are."""
    found = (re.match(r'<section id="(\w+)"><h2>(.*?)</h2>', part) for part in sections)
    links = "".join(f'<a href="#{part[1]}">{part[2]}</a>' for part in found if part)
    return f"<nav>{links}</nav>"


def _steps(audit: Mapping[str, Any]) -> list[str]:
    """Sentences about what numbers are rounded to."""
    return [f"{said[0].upper()}{said[1:]}." for said in steps_in_words(audit)]


def _column_errors(audit: Mapping[str, Any]) -> dict[str, str]:
    """Words about each column's measured error, worst first: paid for, and on the steward's page measured."""
    paid = (audit.get("evaluation") or {}).get("columns", {})
    found: dict[str, tuple[float, str]] = {
        name: (line["tvd"], f"{within(line)} of the rows would have to change (paid for).")
        if clear(line)
        else (0.0, f"The error is not above its noise, {percent(2 * line['noise'])} of the rows (paid for).")
        for name, line in paid.items()
    }
    metrics = (audit.get("utility") or {}).get("metrics", {})
    measured = metrics.get("marginals", {}).get("synthetic", {}).get("tvd1", {}).get("columns", {})
    found |= {
        name: (tvd, f"{percent(tvd)} of the rows would have to change.") for name, tvd in measured.items()
    }
    return {name: words for name, (_, words) in sorted(found.items(), key=lambda item: -item[1][0])}
