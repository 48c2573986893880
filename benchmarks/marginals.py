"""marginals on Adult, by classes of income: distances, classifiers, and the zeros of the capital columns.

python -m benchmarks marginals --data DIR --tools DIR [--runs 5] [--epsilon 1 0.1] [--delta 1e-9] [--no-auc]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Finding
from benchmarks.joint import mean_figures, options_of_releases
from benchmarks.tables import real

SPIKES = ("capital-gain", "capital-loss")


def options(parser: argparse.ArgumentParser) -> None:
    options_of_releases(parser, 5, (1.0, 0.1))


def zeros(path: Path) -> dict[str, float]:
    import pandas as pd

    table = pd.read_csv(path, usecols=list(SPIKES))
    return {f"zeros of {name}": float((table[name] == 0).mean()) for name in SPIKES}


def adult(given: argparse.Namespace) -> Iterator[Finding]:
    """Distances, and the share of zeros less that of the real rows."""
    table = real(given, "adult")
    truth = zeros(table.train)

    def less(made: Path) -> dict[str, float]:
        return {key: share - truth[key] for key, share in zeros(made).items()}

    for epsilon in given.epsilon:
        found = mean_figures(given, table, "marginals", epsilon, given.delta, "income", less)
        yield {"epsilon": epsilon, "delta": given.delta or "pure", "runs": given.runs, **found}


PARTS = {"adult": adult}
