"""All figures of the steward's judgement, and the bound of the paper: for the statistician."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth_cli.bounds import Distance
from dpsynth_cli.evaluate.lines import lines, used
from dpsynth_cli.evaluate.report.markup import paragraph, section, table, text
from dpsynth_cli.evaluate.report.units import number
from dpsynth_cli.release.documents.audit import LIPSCHITZ, bound_sentence

PLAIN = {"of_answers": False, "distance": Distance().words, "farthest": 1.0}  # where an audit does not say


def figures(audit: Mapping[str, Any]) -> str:
    """The metrics with their references; on the public page only what follows from no data."""
    bounds = [
        paragraph(
            f"A bound, no measurement: {bound_sentence(PLAIN | line)} What it means: {LIPSCHITZ}.",
            "small",
        )
        for line in audit.get("error_bounds", ())
        if "w1" in line
    ]
    return section("figures", "For the statistician", _metrics(audit), *bounds)


def _metrics(audit: Mapping[str, Any]) -> str:
    utility = audit.get("utility")
    if not utility or not utility.get("metrics"):
        return ""
    headings = used(utility)
    rows = [
        (label, *(number(values[key]) if key in values else "" for key in headings))
        for label, values in lines(utility)
    ]
    compared = utility["compared_rows"]
    said = (
        f"Confidential: computed from {compared['real']:,} of {utility['rows']['real']:,} real rows and "
        f"{compared['synthetic']:,} synthetic ones."
    )
    notes = "".join(paragraph(note, "small") for note in utility.get("notes", ()))
    formulas = "".join(
        f"<li><b>{text(name)}</b>: {text(line.get('formula', ''))}</li>"
        for name, line in utility["metrics"].items()
    )
    shown = table(("metric", *headings.values()), rows, range(1, 1 + len(headings)))
    return f'{paragraph(said, "small")}{shown}{notes}<ul class="small">{formulas}</ul>'
