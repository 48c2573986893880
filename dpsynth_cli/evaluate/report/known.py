"""Which relations the release knows: measured with which noise, following from others, assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth_cli.evaluate.report.markup import few, items, paragraph, percent, section, table
from dpsynth_cli.evaluate.report.units import number

KINDS = {
    "looked_at": "Only compared with the model, not counted: that they differ little is known, not how",
    "follows": "Not measured: independent given the columns that connect them",
    "assumed": "Not measured, and nothing connects them: taken as independent",
}
HEAD = ("columns", "asked", "numbers", "noise (standard deviation)", "part of all rows")
HOW = (
    "Intervals for counts, means, correlations and regressions, with this noise in them: dpsynth query. It "
    "gives none for a relation that was not measured."
)


def known(audit: Mapping[str, Any]) -> str:
    """The page a release owes its users; nothing for one that has no answers."""
    found = audit.get("relations")
    if found is None:
        return ""
    counts = found["numbers"]
    said = (
        f"Of {found['pairs']:,} pairs of columns {counts['measured']:,} were measured together, "
        f"{counts['looked_at']:,} only looked at, {counts['follows']:,} follow from others, and "
        f"{counts['assumed']:,} are assumed independent. {HOW}"
    )
    lists = [f"{words}: {few(_pairs(found[kind]))}." for kind, words in KINDS.items() if found.get(kind)]
    return section(
        "known",
        "Which relations it knows",
        paragraph(said),
        items(lists),
        "<h3>Best known</h3>",
        _tables(found["best_known"]),
        "<h3>Least known of what was measured</h3>",
        _tables(found["least_known"]),
    )


def _pairs(pairs: Sequence[Sequence[str]]) -> list[str]:
    return [" and ".join(pair) for pair in pairs]


def _tables(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            ", ".join(line["columns"]),
            line["question"],
            f"{line['cells']:,}",
            number(float(f"{line['standard_deviation']:.3g}")),
            percent(line["part_of_rows"], 2) if "part_of_rows" in line else "",
        )
        for line in lines
    ]
    return table(HEAD, rows, (2, 3, 4))
