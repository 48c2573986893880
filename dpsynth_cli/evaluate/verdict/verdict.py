"""The verdict: which relations of the real table hold in the synthetic one, in words, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from dpsynth_cli.domain import Domain
from dpsynth_cli.evaluate.verdict import column_findings, relation_findings
from dpsynth_cli.evaluate.verdict.finding import WORST, Figures, Finding

RELIED_ON = (
    column_findings.columns,
    relation_findings.follows,
    relation_findings.never,
    relation_findings.associations,
    relation_findings.together,
    relation_findings.correlations,
    relation_findings.regressions,
    relation_findings.group_means,
    relation_findings.tables,
    column_findings.precision,
)
BROKEN, WEAKER = 1.0, 0.4  # weights from which
LISTED = 200  # findings, at most: the worst
JUNK, DEAD = 0.05, 0.5  # of a column's cells: broken, and dead, from here
LINKS = (
    "follows",
    "never",
    "association",
    "correlation",
    "group means",
)  # which say of a pair what its table says too


def verdict(metrics: Figures, domain: Domain, problems: Mapping[str, Figures]) -> dict[str, Any]:
    """What holds, what is weaker, what is broken. `problems` are counts of cells that are not as declared, of
    the `real` and the `synthetic` file, as far as they were counted."""
    found = sorted(_found(metrics, domain, problems), key=lambda finding: -finding.weight)
    states = [state(finding) for finding in found]
    counts = Counter(states)
    return {
        "summary": _summary(found, counts),
        "counts": {key: counts[key] for key in ("holds", "weaker", "broken")},
        "findings": [one.as_json(own) for one, own in zip(found[:LISTED], states, strict=False)],
    }


def state(finding: Finding) -> str:
    return "broken" if finding.weight >= BROKEN else "weaker" if finding.weight >= WEAKER else "holds"


def _found(metrics: Figures, domain: Domain, problems: Mapping[str, Figures]) -> Iterator[Finding]:
    found = [finding for relied_on in RELIED_ON for finding in relied_on(metrics, domain)]
    said = {frozenset(one.columns) for one in found if one.kind in LINKS and one.weight >= WEAKER}
    for finding in found:
        columns = frozenset(finding.columns)
        covered = finding.kind in ("pair", "triple") and any(own <= columns for own in said)
        follows = finding.kind in ("never", "association") and any(
            one.kind == "follows" and one.weight >= WEAKER and frozenset(one.columns) == columns
            for one in found
        )
        if not covered and not follows:
            yield finding
    yield from _junk(domain, problems)


def _junk(domain: Domain, problems: Mapping[str, Figures]) -> Iterator[Finding]:
    """Columns of which much is not as declared: whatever else is said of them is about something else."""
    from dpsynth_cli.release.documents.junk import junk, told

    for which, counted in problems.items():
        rows = max(1, counted["rows"])
        for column in domain:
            counts = counted["columns"].get(column.name)
            words = told({**counted, "ruined": 0}, Domain((column,))) if counts else []
            if counts and words:
                share = junk(counts, column) / rows or 1.0
                said = f"In the {which} file, {words[0]}"
                yield Finding("junk", (column.name,), _weight(share), said, share)
        for ruined in told({**counted, "columns": {}}, domain):
            share = counted["ruined"] / rows
            yield Finding("junk", (), _weight(share), f"In the {which} file, {ruined}", share)


def _weight(junk: float) -> float:
    """Of a part of cells that are junk: before all else if most of them are."""
    return WORST + junk if junk > DEAD else 1 + junk / JUNK


def _are(many: int, verb: str = "are") -> str:
    """A number with its verb: 1 is, 1 holds."""
    return f"{many:,} {verb}" if many != 1 else f"1 {'is' if verb == 'are' else verb + 's'}"


def _summary(found: list[Finding], counts: Mapping[str, int]) -> list[str]:
    if not found:
        return ["Nothing was compared that a verdict could be about."]
    whole = len(found)
    said = [
        f"Of {whole:,} things in the real table that an analyst would rely on, "
        f"{_are(counts['holds'], 'hold')}, "
        f"{_are(counts['weaker'])} weaker and {_are(counts['broken'])} broken."
    ]
    dead = sorted(
        {one.columns[0] for one in found if one.kind == "junk" and one.columns and one.error > DEAD}
    )
    if dead:
        said.insert(
            0,
            f"{', '.join(dead)}: most cells were not read as they are meant. Other figures of "
            f"{'this column' if len(dead) == 1 else 'these columns'} are about the junk, however good they "
            "look.",
        )
    broken = Counter(one.kind for one in found if one.weight >= BROKEN)
    if broken:
        kinds = ", ".join(f"{WORDS[kind]} ({many})" for kind, many in broken.most_common())
        said.append(f"Broken: {kinds}.")
    return said


WORDS = {
    "junk": "columns that are not as declared",
    "column": "columns by themselves",
    "missing": "parts that are missing",
    "follows": "columns that follow from others",
    "never": "combinations that never occur",
    "together": "values missing together",
    "association": "associations of categories",
    "correlation": "correlations",
    "regression": "regressions",
    "group means": "group means",
    "pair": "tables of two columns",
    "triple": "tables of three columns",
    "precision": "precision of numbers",
}
