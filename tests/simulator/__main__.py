"""Run schedules from the command line: see `tests/simulator/__init__.py`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulator.simulate import first_failure


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator")
    parser.add_argument("--seed", type=int, default=0, help="the first schedule")
    parser.add_argument("--schedules", type=int, default=1000, help="how many, from there on")
    chosen = parser.parse_args()
    began = time.process_time()
    seeds = range(chosen.seed, chosen.seed + chosen.schedules)
    failure = first_failure(seeds)
    if failure is not None:
        print(failure)
        return 1
    spent = time.process_time() - began
    print(f"{len(seeds)} schedules from {chosen.seed} on: nothing found ({spent:.0f} s of processor time)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
