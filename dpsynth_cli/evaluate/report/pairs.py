"""Pairs of columns as cross-tables: of the rows of each line, how many are in which cell.

For the steward the synthetic share stands above the real one, and a cell's colour says which is more; on the
public page the colour says how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.paid import choose, quantile_cells, table_counts
from dpsynth_cli.evaluate.report.columns import labels
from dpsynth_cli.evaluate.report.markup import paragraph, percent, section, text
from dpsynth_cli.evaluate.report.units import cell_words, quantile_cut, values
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats

SHOWN, OFTEN, LONG = 6, 2, 48  # pairs, of which so many have one column; letters of a label
LINES, CELLS = 8, 4  # of a cross-table, and one for missing values each
STRONGEST = 0.35  # of the colour: text stays readable on it

Pair = tuple[str, str]


def pairs(domain: Domain, audit: Mapping[str, Any], synthetic: Table, real: Table | None) -> str:
    """The pairs that matter: those with the largest measured errors, else the strongest links."""
    if len(domain.columns) < 2 or not len(synthetic):
        return ""
    chosen, why, errors = chosen_pairs(domain, audit, synthetic)
    figures = "".join(
        f"<figure><h3>{text(a)} and {text(b)}</h3>{_cross(domain[a], domain[b], synthetic, real)}"
        f"{paragraph(errors[a, b], 'small') if (a, b) in errors else ''}</figure>"
        for a, b in chosen
    )
    how = (
        "A line adds up to 100 %: of the rows with one value of the first column, how many have which other."
    )
    if real is not None:
        how += " Large: synthetic; small: real. Blue: more synthetic rows than real ones; orange: fewer."
    return section(
        "pairs", "Pairs of columns", paragraph(f"{why} {how}", "small"), f'<div class="pairs">{figures}</div>'
    )


def chosen_pairs(
    domain: Domain, audit: Mapping[str, Any], synthetic: Table
) -> tuple[list[Pair], str, dict[Pair, str]]:
    """Which pairs are shown, why these, and words about their errors."""
    known = {column.name for column in domain}
    measured = _measured(audit)
    paid = [
        (*line["columns"], line["tvd"], line["noise"])
        for line in audit.get("evaluation", {}).get("pairs", [])
    ]
    if measured:
        found = measured
        why = "The pairs that differ most from the real ones."
    elif paid:
        paid.sort(key=lambda line: -line[2])
        found = [
            (a, b, f"{percent(tvd)} ± {percent(2 * noise)} of the rows would have to change (paid for).")
            for a, b, tvd, noise in paid
        ]
        why = "The pairs with the largest errors of those that were measured and paid for."
    else:
        counts = {ways: many for ways, many in table_counts(domain).items() if ways < 3}
        cut = {ways: {c.name: quantile_cells(c, synthetic, ways) for c in domain} for ways in counts}
        found = [(names[0], names[1], "") for names in choose(domain, synthetic, counts, cut)[2]]
        why = (
            "The pairs that hang together most in the synthetic table; the real one was not asked about them."
        )
    kept: list[tuple[str, str, str]] = []
    times = dict.fromkeys(known, 0)
    for a, b, words in found:
        if a in known and b in known and max(times[a], times[b]) < OFTEN and len(kept) < SHOWN:
            kept.append((a, b, words))
            times[a], times[b] = times[a] + 1, times[b] + 1
    return [(a, b) for a, b, _ in kept], why, {(a, b): words for a, b, words in kept if words}


def _measured(audit: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The pairs that differ most by the steward's figures, in that order, with words about their errors."""
    figures = (audit.get("utility") or {}).get("metrics", {}).get("marginals", {}).get("synthetic", {})
    return [
        (
            *line["columns"],
            f"{percent(line['tvd'])} of the rows would have to change in a finer table; "
            f"between two halves of the real rows, {percent(line['real_split'])}.",
        )
        for line in figures.get("most", {}).get("pairs", [])
    ]


def _cross(a: Column, b: Column, synthetic: Table, real: Table | None) -> str:
    beside = real is not None and {a.name, b.name} <= set(real.codes)
    tables = [synthetic, real] if real is not None and beside else [synthetic]
    by = tables[-1]  # cut by the real table where it may be looked at
    lines, line_words = _cells(a, tables, by, LINES)
    cells, cell_names = _cells(b, tables, by, CELLS)
    size = (len(line_words), len(cell_names))
    counts = [
        np.bincount(i * size[1] + j, minlength=size[0] * size[1]).reshape(size)
        for i, j in zip(lines, cells, strict=True)
    ]
    parts = [count / np.maximum(1, count.sum(axis=1, keepdims=True)) for count in counts]
    whole = [count.sum(axis=1) / max(1, count.sum()) for count in counts]
    head = "".join(f'<th class="n">{text(words)}</th>' for words in cell_names)
    body = "".join(
        f"<tr><th>{text(words)}<small>{percent(float(whole[0][i]))} of all</small></th>"
        f"{''.join(_cell([part[i, j] for part in parts]) for j in range(size[1]))}</tr>"
        for i, words in enumerate(line_words)
        if max(share[i] for share in whole) > 0
    )
    corner = f"<th>{text(a.name)} ↓ <br>{text(b.name)} →</th>"
    return f'<table class="cross"><thead><tr>{corner}{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(shares: Sequence[float]) -> str:
    share = float(shares[0])
    if len(shares) == 1:
        return (
            f'<td style="background:rgba(var(--heat), {STRONGEST * share**0.5:.3f})">{percent(share, 0)}</td>'
        )
    gap = share - float(shares[1])
    colour, depth = ("more" if gap > 0 else "less"), STRONGEST * min(1.0, abs(gap) / 0.2)
    return (
        f'<td style="background:rgba(var(--{colour}), {depth:.3f})">{percent(share, 0)}'
        f"<small>{percent(float(shares[1]), 0)}</small></td>"
    )


def _cells(
    column: Column, tables: Sequence[Table], by: Table, most: int
) -> tuple[list[NDArray[np.int64]], list[str]]:
    """Each table's rows as cells of a column, and words for the cells; missing has the last one."""
    codes = [np.asarray(t.codes[column.name], np.int64) for t in tables]
    if column.categorical:
        place, words = _categories(column, np.asarray(by.codes[column.name], np.int64), most)
        found = [place[own] for own in codes]
    else:
        starts = quantile_cut(values(by.codes[column.name], column), most)
        words = cell_words(starts, column)
        found = [_numbers(own, column, starts) for own in codes]
    return found, [_short(label) for label in words] + ["(missing)"] * column.nullable


def _short(label: str) -> str:
    """A label that fits a cell; all of it is beside the drawing of its column."""
    return label if len(label) <= LONG else label[: LONG - 1] + "…"


def _numbers(codes: NDArray[np.int64], column: Column, starts: Floats) -> NDArray[np.int64]:
    place = np.full(len(codes), len(starts), np.int64)
    there = codes < column.size
    place[there] = np.clip(
        np.searchsorted(starts, values(codes, column), side="right") - 1, 0, len(starts) - 1
    )
    return place


def _categories(column: Column, codes: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], list[str]]:
    """The cell of each code: the most frequent labels in their order, the others together, then missing."""
    words = labels(column)
    if len(words) > most:
        counted = np.bincount(codes, minlength=column.codes)[: column.size]
        keep = np.sort(np.argsort(-counted, kind="stable")[: most - 1])
        place = np.full(column.size, most - 1, np.int64)
        place[keep] = np.arange(most - 1)
        words = [words[i] for i in keep] + [f"({column.size - most + 1:,} others)"]
    else:
        place = np.arange(column.size, dtype=np.int64)
    return np.append(place, len(words)), words
