"""Other tools on the Adult table. Each needs an environment of its own, and nothing of dpsynth.

A peer writes a synthetic CSV file and says its CPU seconds; any environment of dpsynth then judges it:

    peer/bin/python -m benchmarks peers.opendp --data DIR --out OUT.csv
    python -m benchmarks joint --data DIR --tools DIR --table adult --epsilon 1 --made OUT.csv
"""

import argparse
import json
import os
from pathlib import Path


def options(parser: argparse.ArgumentParser) -> None:
    """What every peer is told."""
    parser.add_argument("--data", type=Path, metavar="DIR", default=os.environ.get("DPSYNTH_DATA"))
    parser.add_argument("--model", choices=["mst", "aim"], default="mst")
    parser.add_argument("--out", type=Path, default=Path("peer.csv"), help="default: peer.csv")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-9)


def adult(given: argparse.Namespace) -> tuple[Path, list[dict]]:
    """The training rows, and the declared columns."""
    from benchmarks.harness import in_data

    columns = json.loads(in_data(given, "adult", "schema.json").read_text())["columns"]
    return in_data(given, "adult", "train.csv"), columns
