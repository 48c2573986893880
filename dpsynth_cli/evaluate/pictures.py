"""The pictures of a page: each column's distribution, and pairs of columns as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from html import escape

import numpy as np

from dpsynth_cli.domain import Column, Domain
from dpsynth_cli.evaluate import svg
from dpsynth_cli.evaluate.cuts import PARTS, CutTables
from dpsynth_cli.evaluate.marginals import paired, sets
from dpsynth_cli.evaluate.scales import cells, missing, share
from dpsynth_cli.evaluate.search import differ_most
from dpsynth_cli.evaluate.tables import Table
from dpsynth_cli.questions import CellCounts, Cells, Question

COLUMNS, PAIRS, CATEGORIES, BINS = 40, 6, 14, 32  # drawn at most


def distributions(domain: Domain, synthetic: Table, real: Table | None, note: str) -> str:
    """Each column: synthetic rows as areas and, where they are shown, real ones as lines."""
    tables = [synthetic] if real is None else [synthetic, real]
    figures = "".join(
        f"<figure><h3>{escape(column.name)}</h3>{_distribution(tables, column)}</figure>"
        for column in domain.columns[:COLUMNS]
    )
    key = "Blue areas are synthetic rows" + ("." if real is None else ", black lines real rows.")
    more = f" The first {COLUMNS} columns." if len(domain.columns) > COLUMNS else ""
    said = f"{key}{more} {escape(note)}"
    return f"<h2>Columns</h2><p class=small>{said}</p><div class=grid>{figures}</div>"


def _distribution(tables: Sequence[Table], column: Column) -> str:
    if column.categorical:
        return _bars(tables, column)
    question = Question("report", CellCounts(Cells((cells(column, BINS, BINS),))), Fraction(0))
    shares = [t.sums([question], Domain((column,)))[0] / max(1, len(t)) for t in tables]
    lost = ""
    if column.nullable:
        shares = [part[:-1] for part in shares]  # missing has the last cell
        gone = [share(missing(t.codes[column.name], column)) for t in tables]
        lost = f"missing: {gone[0]:.1%}" + (f" (real {gone[1]:.1%})" if len(gone) > 1 else "")
    real = shares[1] if len(shares) > 1 else None
    return svg.histogram(column.name, shares[0], real, _ends(column), lost)


def _bars(tables: Sequence[Table], column: Column) -> str:
    labels = ["false", "true"] if column.type == "boolean" else list(column.categories)
    labels += ["(missing)"] if column.nullable else []
    shares = [np.bincount(t.codes[column.name], minlength=column.codes) / max(1, len(t)) for t in tables]
    if len(labels) > CATEGORIES:
        order = np.argsort(-shares[0], kind="stable")
        keep, rest = np.sort(order[: CATEGORIES - 1]), order[CATEGORIES - 1 :]
        labels = [labels[i] for i in keep] + [f"({len(rest)} others)"]
        shares = [np.append(part[keep], part[rest].sum()) for part in shares]
    return svg.bars(column.name, labels, shares[0], shares[1] if len(shares) > 1 else None)


def _ends(column: Column) -> tuple[str, str]:
    if column.type in ("date", "datetime"):
        from dpsynth_cli.release.write import decode

        low, high = decode(np.array([0, column.size - 1]), column).to_pylist()
        return str(low), str(high)
    return f"{column.lower:g}", f"{column.upper:g}"


def heat(domain: Domain, synthetic: Table, real: Table | None) -> str:
    """Pairs of columns: those that differ most from the real ones, or else the first."""
    if len(domain.columns) < 2:
        return ""
    few = Domain(paired(domain))
    if real is None:
        chosen, why = sets(few, 2)[:PAIRS], f"The first {PAIRS} pairs of columns."
    else:
        chosen, why = differ_most(real, synthetic, few, PAIRS), f"The {PAIRS} pairs that differ most."
    tables = (synthetic,) if real is None else (real, synthetic)
    counted = CutTables(tables[0], tables, few, PARTS[2])
    figures = []
    for a, b in chosen:
        shape = (counted.sizes[a], counted.sizes[b])
        titles = ("synthetic",) if real is None else ("real", "synthetic")
        panels = [
            (
                title,
                np.bincount(own[a] * shape[1] + own[b], minlength=shape[0] * shape[1]).reshape(shape)
                / max(1, len(own[a])),
            )
            for title, own in zip(titles, counted.cells, strict=True)
        ]
        drawn = svg.heat_maps((a, b), panels)
        figures.append(f"<figure><h3>{escape(a)} and {escape(b)}</h3>{drawn}</figure>")
    more = "" if len(sets(few, 2)) <= PAIRS else why
    said = f"Darker cells have more rows; values rise to the right and upwards. {more}"
    return f"<h2>Pairs of columns</h2><p class=small>{said}</p><div class=grid>{''.join(figures)}</div>"
