"""The plot of an audit: for each claim, what it allows, and how far the runs came.

For every threshold of the likelihood test: how often the table without the row passed it (across) and the
table with the row (up). A private mechanism stays inside the shaded area; a sharp audit comes near its edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from dpsynth_cli.evidence.empirical import Finding

SIDE, GAP, HEAD = 220, 36, 44
INK, ALLOWED, SHOWN = "#222", "#dbe9f6", "#c23b22"


def plot(findings: Sequence[Finding]) -> str:
    """One SVG document, a panel a finding."""
    width, height = GAP + len(findings) * (SIDE + GAP), HEAD + SIDE + 48
    panels = [_panel(finding, GAP + i * (SIDE + GAP)) for i, finding in enumerate(findings)]
    words = "What each claim allows, as an area, and how far the runs of the audit came, as a line"
    ground = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    style = f'<g font-family="sans-serif" font-size="11" fill="{INK}">'
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg"><title>{escape(words)}</title>'
        f"{ground}{style}{''.join(panels)}</g></svg>\n"
    )


def _panel(finding: Finding, left: int) -> str:
    x = np.linspace(0, 1, 101)
    e = np.exp(finding.epsilon)
    top = np.minimum(1.0, np.minimum(e * x + finding.delta, 1 - (1 - x - finding.delta) / e))
    bottom = 1 - top[::-1]  # the same with the tables exchanged
    area = _points(np.append(x, x[::-1]), np.append(top, bottom[::-1]), left)
    curve = _points(*finding.curve, left)
    claim = f"epsilon {finding.epsilon:g}" + (f", delta {finding.delta:g}" if finding.delta else "")
    return (
        f'<text x="{left}" y="16" font-weight="bold">{escape(finding.mechanism)}, {finding.neighbours}</text>'
        f'<text x="{left}" y="32">claimed {claim}; at least {finding.audited:.2f}</text>'
        f'<polygon points="{area}" fill="{ALLOWED}"/>'
        f'<rect x="{left}" y="{HEAD}" width="{SIDE}" height="{SIDE}" fill="none" stroke="{INK}"/>'
        f'<polyline points="{curve}" fill="none" stroke="{SHOWN}" stroke-width="2"/>'
        f'<text x="{left}" y="{HEAD + SIDE + 15}">across: passed without the row, up: with it</text>'
        f'<text x="{left}" y="{HEAD + SIDE + 30}">{escape(finding.pair)}, {2 * finding.runs:,} runs</text>'
    )


def _points(x: np.ndarray, y: np.ndarray, left: int) -> str:
    return " ".join(
        f"{left + SIDE * a:.1f},{HEAD + SIDE * (1 - b):.1f}"
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    )
