"""Tables of children: what was counted of their links with parents and with each other, and for the steward
what holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth_cli.evaluate.report.markup import items, paragraph, section, text

SHOWN = 20


def children(audit: Mapping[str, Any]) -> str:
    """Nothing where the release has one table."""
    tables = audit.get("tables", ())
    if not tables:
        return ""
    judged = (audit.get("utility") or {}).get("tables", {})
    parts = []
    for table in tables:
        parts.append(f"<h3>{text(table['name'])}</h3>")
        numbers = table["relations"]["numbers"]
        counted = ["/".join(line["columns"]) for line in table["relations"].get("measured", ())]
        parts.append(
            paragraph(
                f"Of {sum(numbers.values()):,} pairs of its columns, those of its {table['parent']} and "
                f"those of the row before it, {numbers['measured']:,} were counted"
                + (f": {', '.join(counted[:SHOWN])}." if counted else ".")
            )
        )
        verdict = (judged.get(table["name"]) or {}).get("verdict")
        if verdict:
            parts.append(paragraph(" ".join(verdict["summary"])))
            weaker = [one["words"] for one in verdict["findings"] if one["state"] != "holds"]
            parts.append(items(weaker[:SHOWN]))
    return section("children", "Tables that belong to it", *parts)
