"""Drawings as SVG text: a divided bar, a histogram of two tables, a pair of heat maps.

Colours are told apart by people who see few of them, and by printers: the synthetic table is a filled area,
the real one a black line, and heat goes from white to dark. Every drawing says in words what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from dpsynth_cli.questions import Floats

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#999999")
SYNTHETIC, REAL = "#56b4e9", "#000000"
LETTER = 6.6  # width of a letter of 11 px, about


def shortened(text: str, width: float) -> str:
    """As many letters as fit, with an ellipsis where some were left out.

    >>> shortened("a long label", 40)
    'a lon…'
    """
    fit = max(1, int(width / LETTER))
    return text if len(text) <= fit else text[: fit - 1] + "…"


def drawing(width: int, height: int, words: str, parts: Sequence[str]) -> str:
    """An image with its description."""
    inside = "".join(parts)
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg"><title>{escape(words)}</title>{inside}</svg>'
    )


def divided_bar(parts: Sequence[tuple[str, float]], words: str, width: int = 680) -> str:
    """One bar in as many parts as there are, numbered from 1 where there is room."""
    total = sum(value for _, value in parts) or 1.0
    x, drawn = 0.0, []
    for number, (label, value) in enumerate(parts):
        wide = width * value / total
        colour = PALETTE[number % len(PALETTE)]
        drawn.append(
            f'<rect x="{x:.1f}" y="0" width="{wide:.1f}" height="34" fill="{colour}" stroke="#fff">'
            f"<title>{escape(label)}: {value / total:.1%}</title></rect>"
        )
        if wide > 24:
            # A white ground under the number: readable on every colour, on paper too.
            drawn.append(
                f'<circle cx="{x + wide / 2:.1f}" cy="17" r="9" fill="#fff"/>'
                f'<text x="{x + wide / 2:.1f}" y="21" text-anchor="middle">{number + 1}</text>'
            )
        x += wide
    return drawing(width, 34, words, drawn)


def histogram(
    name: str, synthetic: Floats, real: Floats | None, ends: tuple[str, str], lost: str = ""
) -> str:
    """Shares of even cells: synthetic as an area, real as a line on top; `lost` says what is missing."""
    width, height, left, bottom = 300, 150, 8, 118
    room = width - 2 * left
    top = max(float(synthetic.max(initial=0)), float(real.max(initial=0)) if real is not None else 0.0, 1e-9)
    step = room / len(synthetic)

    def y(share: float) -> float:
        return bottom - 96 * share / top

    drawn = [
        f'<rect x="{left + i * step:.1f}" y="{y(share):.1f}" width="{step:.1f}" '
        f'height="{bottom - y(share):.1f}" fill="{SYNTHETIC}"/>'
        for i, share in enumerate(synthetic)
        if share > 0
    ]
    if real is not None:
        points = " ".join(
            f"{left + (i + side) * step:.1f},{y(share):.1f}"
            for i, share in enumerate(real)
            for side in (0, 1)
        )
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{REAL}" stroke-width="1.5"/>')
    drawn.append(
        f'<line x1="{left}" y1="{bottom}" x2="{width - left}" y2="{bottom}" stroke="#000"/>'
        f'<text x="{left}" y="14" >highest {top:.1%}</text>'
        f'<text x="{left}" y="{bottom + 14}">{escape(shortened(ends[0], room / 2))}</text>'
        f'<text x="{width - left}" y="{bottom + 14}" text-anchor="end">'
        f"{escape(shortened(ends[1], room / 2))}</text>"
        f'<text x="{left}" y="{bottom + 29}">{escape(shortened(lost, room))}</text>'
    )
    return drawing(width, height, _words(name, real), drawn)


def bars(name: str, labels: Sequence[str], synthetic: Floats, real: Floats | None) -> str:
    """A bar a category: synthetic filled, real as a black mark at its share."""
    width, left, line = 300, 104, 17
    height = line * len(labels) + 6
    top = max(float(synthetic.max(initial=0)), float(real.max(initial=0)) if real is not None else 0.0, 1e-9)
    room = width - left - 52
    drawn = []
    for i, (label, share) in enumerate(zip(labels, synthetic, strict=True)):
        y = i * line + 3
        drawn.append(
            f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{escape(shortened(label, left - 8))}'
            f"<title>{escape(label)}</title></text>"
            f'<rect x="{left}" y="{y}" width="{room * share / top:.1f}" height="13" fill="{SYNTHETIC}"/>'
            f'<text x="{width - 2}" y="{y + 11}" text-anchor="end">{share:.1%}</text>'
        )
        if real is not None:
            at = left + room * real[i] / top
            drawn.append(
                f'<line x1="{at:.1f}" y1="{y - 1}" x2="{at:.1f}" y2="{y + 14}" stroke="{REAL}" '
                'stroke-width="2.5"/>'
            )
    return drawing(width, height, _words(name, real), drawn)


def heat_maps(names: tuple[str, str], panels: Sequence[tuple[str, Floats]]) -> str:
    """Shares of two columns' cells, a panel a table, all on one scale: white is nothing, dark is the most."""
    side, gap, left, head = 176, 28, 22, 20
    width, height = left + len(panels) * (side + gap), head + side + 22
    top = max(max(float(shares.max(initial=0)) for _, shares in panels), 1e-12)
    drawn = []
    for number, (title, shares) in enumerate(panels):
        x0 = left + number * (side + gap)
        rows, columns = shares.shape
        wide, high = side / rows, side / columns
        drawn.append(f'<text x="{x0 + side / 2}" y="13" text-anchor="middle">{escape(title)}</text>')
        for i, j in np.argwhere(shares > 0):
            heat = float(shares[i, j] / top) ** 0.5
            drawn.append(
                f'<rect x="{x0 + i * wide:.1f}" y="{head + side - (j + 1) * high:.1f}" '
                f'width="{wide + 0.2:.1f}" height="{high + 0.2:.1f}" fill="{_heat(heat)}"/>'
            )
        drawn.append(
            f'<rect x="{x0}" y="{head}" width="{side}" height="{side}" fill="none" stroke="#000"/>'
            f'<text x="{x0 + side / 2}" y="{head + side + 15}" text-anchor="middle">'
            f"{escape(shortened(names[0], side))} →</text>"
        )
    middle = head + side / 2
    drawn.append(
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">'
        f"{escape(shortened(names[1], side))} →</text>"
    )
    shown = " and ".join(title for title, _ in panels)
    words = f"Heat maps of {names[0]} and {names[1]}: {shown}, the darkest cell has {top:.1%} of the rows"
    return drawing(width, height, words, drawn)


def _words(name: str, real: Floats | None) -> str:
    both = "synthetic rows as filled bars" + (", real rows as black lines" if real is not None else "")
    return f"Distribution of {name}: {both}"


def _heat(heat: float) -> str:
    """From white through blue to nearly black, ever darker."""
    stops = ((255, 255, 255), (158, 202, 225), (49, 130, 189), (8, 29, 88))
    at = min(heat, 1.0) * (len(stops) - 1)
    low = min(int(at), len(stops) - 2)
    mixed = [round(a + (at - low) * (b - a)) for a, b in zip(stops[low], stops[low + 1], strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)
