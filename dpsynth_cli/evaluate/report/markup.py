"""Pieces of HTML. All text of a page goes through `text`; whatever else is markup is written in this package.

Nothing here has a width of its own: bars and drawings take the width that there is, and long words break
anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from dpsynth_cli.questions import Floats

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#999999")
NAMES = 24  # of a list, at most
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


def text(words: object) -> str:
    """Words as HTML: escaped, and without what a browser cannot show or what turns its neighbours round.

    >>> text("<script> & \\x00")
    '&lt;script&gt; &amp; \ufffd'
    """
    return escape(_UNPRINTABLE.sub("\ufffd", str(words)), quote=True)


def percent(share: float, digits: int = 1) -> str:
    """A share of rows; what is little but there does not become nothing.

    >>> percent(0.123), percent(1), percent(0.00002), percent(0)
    ('12.3\xa0%', '100\xa0%', '<\xa00.1\xa0%', '0\xa0%')
    """
    least = 10.0 ** -(digits + 2)
    if 0 < share < least / 2:
        return f"<\u00a0{100 * least:g}\u00a0%"
    shown = f"{100 * share:.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown}\u00a0%"


def section(name: str, title: str, *inside: str) -> str:
    """A part of the page with its heading, which the contents link to; nothing if it is empty."""
    body = "".join(inside)
    return f'<section id="{name}"><h2>{text(title)}</h2>{body}</section>' if body else ""


def paragraph(words: object, kind: str = "") -> str:
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def items(lines: Iterable[object], kind: str = "") -> str:
    """A list of sentences."""
    inside = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{inside}</ul>' if inside else ""


def few(names: Sequence[str]) -> str:
    """Names as a list, as many as can be read.

    >>> few(["age", "sex"])
    'age; sex'
    """
    more = f"; and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
    return "; ".join(names[:NAMES]) + more


def facts(rows: Sequence[tuple[str, object]], kind: str = "facts") -> str:
    """Names and what they are."""
    inside = "".join(f"<div><dt>{text(name)}</dt><dd>{text(what)}</dd></div>" for name, what in rows)
    return f'<dl class="{kind}">{inside}</dl>'


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Iterable[int] = (),
    marked: Sequence[str] = (),
    names: Iterable[int] = (0,),
) -> str:
    """A table whose lines become cards on a narrow screen; `marked` gives lines a class.

    `names` are the columns with words of others, which break anywhere; those of the others stay whole.
    """
    kinds = dict.fromkeys(names, ' class="name"') | dict.fromkeys(numbers, ' class="n"')

    def cell(i: int, words: object) -> str:
        return f'<td{kinds.get(i, "")} data-label="{text(head[i])}">{text(words)}</td>'

    top = "".join(f"<th{kinds.get(i, '')}>{text(name)}</th>" for i, name in enumerate(head))
    lines = []
    for number, row in enumerate(rows):
        kind = f' class="{marked[number]}"' if number < len(marked) and marked[number] else ""
        lines.append(f"<tr{kind}>{''.join(cell(i, words) for i, words in enumerate(row))}</tr>")
    body = f"<thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<table class="cards">{body}</table>'


def divided_bar(parts: Sequence[tuple[str, float]], words: str, colours: Sequence[str] = PALETTE) -> str:
    """One bar in as many parts as there are, numbered from 1; its numbers are in the table below it."""
    total = sum(value for _, value in parts) or 1.0
    drawn = "".join(
        f'<span style="flex:{value / total:.5f} 1 0;background:{colours[i % len(colours)]}" '
        f'title="{text(label)}: {percent(value / total)}">'
        f"{f'<b>{i + 1}</b>' if value / total > 0.06 else ''}</span>"
        for i, (label, value) in enumerate(parts)
    )
    return f'<div class="divided" role="img" aria-label="{text(words)}">{drawn}</div>'


def bars(labels: Sequence[str], synthetic: Floats, real: Floats | None) -> str:
    """A bar a label: synthetic filled, real as a mark at its share; the numbers stand beside them."""
    top = max(float(synthetic.max(initial=0)), 0.0 if real is None else float(real.max(initial=0)), 1e-9)
    lines = []
    for i, label in enumerate(labels):
        mark = "" if real is None else f'<b style="left:{100 * real[i] / top:.2f}%"></b>'
        beside = "" if real is None else f"<small>real {percent(float(real[i]))}</small>"
        lines.append(
            f'<li><span class="label">{text(label)}</span>'
            f'<span class="track"><i style="width:{100 * synthetic[i] / top:.2f}%"></i>{mark}</span>'
            f'<span class="n">{percent(float(synthetic[i]))}{beside}</span></li>'
        )
    return f'<ul class="bars">{"".join(lines)}</ul>'


def histogram(words: str, synthetic: Floats, real: Floats | None) -> str:
    """Shares of cells that touch: synthetic as an area, real as a line on top; as wide as there is room."""
    top = max(float(synthetic.max(initial=0)), 0.0 if real is None else float(real.max(initial=0)), 1e-9)
    step = 1000 / max(1, len(synthetic))

    def y(share: float) -> float:
        return 100 - 96 * share / top

    drawn = "".join(
        f'<rect class="synthetic" x="{i * step:.1f}" y="{min(y(share), 99.0):.1f}" width="{step:.1f}" '
        f'height="{max(100 - y(share), 1.0):.1f}"/>'
        for i, share in enumerate(synthetic.tolist())
        if share > 0
    )
    if real is not None:
        points = " ".join(
            f"{(i + side) * step:.1f},{y(share):.1f}"
            for i, share in enumerate(real.tolist())
            for side in (0, 1)
        )
        drawn += f'<polyline class="real" points="{points}"/>'
    return (
        f'<svg role="img" aria-label="{text(words)}" viewBox="0 0 1000 100" preserveAspectRatio="none">'
        f"{drawn}</svg>"
    )
