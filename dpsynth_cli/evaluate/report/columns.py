"""Each column in its own units: how its values are spread, what is missing, a few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate.metrics.scales import missing, share
from dpsynth_cli.evaluate.report.markup import bars, histogram, paragraph, percent, section, table, text
from dpsynth_cli.evaluate.report.units import KINDS, ends, even_cut, said, values
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import Floats

DRAWN, CATEGORIES = 40, 14  # columns that are drawn, and bars of a column, at most
LEVELS = {"5 %": 0.05, "half": 0.5, "95 %": 0.95}


def columns(
    domain: Domain, synthetic: Table, real: Table | None, note: str, errors: Mapping[str, str]
) -> str:
    """Drawings of the columns, as many as can be looked at, and a line for each of the others.

    `errors` has words about a column's measured error; where there are too many columns, those with such
    words, in their order, are drawn first.
    """

    def tables(column: Column) -> list[Table]:
        """A computed column may not be in the real table."""
        return [synthetic] if real is None or column.name not in real.codes else [synthetic, real]

    every = [column.name for column in domain]
    first = sorted(every, key=lambda name: list(errors).index(name) if name in errors else len(every))
    drawn = set(every if len(every) <= DRAWN else first[:DRAWN])
    figures = "".join(_figure(tables(c), c, errors.get(c.name, "")) for c in domain if c.name in drawn)
    others = [_line(tables(column), column) for column in domain if column.name not in drawn]
    key = "Areas are synthetic rows. " if real is None else "Areas are synthetic rows, lines are real rows. "
    key += "5 % of the rows are at or below the first number, half at or below the second. "
    if others:
        which = "with the largest errors" if errors else "that were declared first"
        key += f"Drawn are {DRAWN} columns of {len(every)}, those {which}; the others are in a table below. "
    heading = ["column", "kind", "synthetic values", "missing", *(["real values"] if real else [])]
    others = [line[: len(heading)] for line in others]
    rest = f"<h3>The other columns</h3>{table(heading, others, [3], names=[0, 2, 4])}" if others else ""
    return section(
        "columns", "Columns", paragraph(key + note, "small"), f'<div class="grid">{figures}</div>', rest
    )


def _figure(tables: Sequence[Table], column: Column, error: str) -> str:
    inside = _bars(tables, column) if column.categorical else _numbers(tables, column)
    below = paragraph(error, "small") if error else ""
    heading = f"<h3>{text(column.name)} <small>{text(KINDS[column.type])}</small></h3>"
    return f"<figure>{heading}{inside}{below}</figure>"


def labels(column: Column) -> list[str]:
    """The categories of a column by code, with what they mean where that is declared; missing is apart.

    >>> labels(Column("sex", "nominal", categories=("1", "2"), labels=("male", "")))
    ['1: male', '2']
    """
    if column.type == "boolean":
        return ["no", "yes"]
    meant = column.labels or ("",) * len(column.categories)
    return [
        f"{own}: {means}" if means and means != own else own
        for own, means in zip(column.categories, meant, strict=True)
    ]


def _bars(tables: Sequence[Table], column: Column) -> str:
    shown = labels(column)
    parts = [
        np.bincount(t.codes[column.name], minlength=column.codes)[: column.size] / max(1, len(t))
        for t in tables
    ]
    if len(shown) > CATEGORIES:
        order = np.argsort(-parts[0], kind="stable")
        keep, rest = np.sort(order[: CATEGORIES - 1]), order[CATEGORIES - 1 :]
        shown = [shown[i] for i in keep] + [f"({len(rest):,} other categories)"]
        parts = [np.append(part[keep], part[rest].sum()) for part in parts]
    return bars(shown, parts[0], parts[1] if len(parts) > 1 else None) + _missing(tables, column)


def _missing(tables: Sequence[Table], column: Column) -> str:
    """Missing values, apart from the others."""
    if not column.nullable:
        return ""
    gone = [share(missing(t.codes[column.name], column)) for t in tables]
    beside = f" (real {percent(gone[1])})" if len(gone) > 1 else ""
    return paragraph(f"Missing: {percent(gone[0])} of the rows{beside}", "small")


def _numbers(tables: Sequence[Table], column: Column) -> str:
    known = [values(t.codes[column.name], column) for t in tables]
    if not any(len(own) for own in known):
        return paragraph("There is no value.", "small") + _missing(tables, column)
    cut = even_cut(known, column)
    found = [cut.shares(own, len(t)) for own, t in zip(known, tables, strict=True)]
    low, middle, high = ends(cut, column)
    real = found[1][0] if len(found) > 1 else None
    words = f"Distribution of {column.name} from {low} to {high}: synthetic rows as filled bars"
    words += "" if real is None else ", real rows as a line"
    axis = "".join(f"<span>{text(end)}</span>" for end in (low, middle, high))
    top = float(found[0][0].max(initial=0))
    about = f"Cells of {cut.width}; the fullest has {percent(top)} of the synthetic rows."
    for place, side in ((1, "below"), (2, "above")):
        beyond = [float(part[place]) for part in found]
        if max(beyond) > 0:
            about += f" {percent(beyond[0])} are {side}"
            about += f" (real {percent(beyond[1])})." if len(beyond) > 1 else "."
    drawing = f'{histogram(words, found[0][0], real)}<div class="axis">{axis}</div>'
    return drawing + _quantiles(known, column) + paragraph(about, "small") + _missing(tables, column)


def _quantiles(known: Sequence[Floats], column: Column) -> str:
    tables = [summary(own, column) for own in known]
    rows = "".join(
        f"<tr><th>{text(level)}</th>{''.join(f'<td>{text(own[level])}</td>' for own in tables)}</tr>"
        for level in (*LEVELS, "mean")
    )
    head = "".join(f"<th>{name}</th>" for name in ("synthetic", "real")[: len(tables)])
    return f'<table class="quantiles"><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>'


def summary(own: Floats, column: Column) -> dict[str, str]:
    """A few quantiles and the mean, in the column's unit."""
    if not len(own):
        return dict.fromkeys((*LEVELS, "mean"), "")
    at = np.quantile(own, list(LEVELS.values()), method="inverted_cdf")
    found = {name: said(float(value), column) for name, value in zip(LEVELS, at, strict=True)}
    return found | {"mean": said(float((own / len(own)).sum()), column)}


def _line(tables: Sequence[Table], column: Column) -> list[str]:
    gone = [share(missing(t.codes[column.name], column)) for t in tables]
    words = [_in_short(t, column) for t in tables]
    absent = percent(gone[0]) + (f" (real {percent(gone[1])})" if len(gone) > 1 and column.nullable else "")
    return [
        column.name,
        KINDS[column.type],
        words[0],
        absent if column.nullable else "",
        *(words[1:] or [""]),
    ]


def _in_short(own: Table, column: Column) -> str:
    if not column.categorical:
        at: dict[str, Any] = summary(values(own.codes[column.name], column), column)
        return f"{at['5 %']} · {at['half']} · {at['95 %']}" if at["half"] else "none"
    parts = np.bincount(own.codes[column.name], minlength=column.codes)[: column.size] / max(1, len(own))
    order = np.argsort(-parts, kind="stable")[:2]
    return ", ".join(f"{labels(column)[i]} {percent(float(parts[i]))}" for i in order if parts[i] > 0)
