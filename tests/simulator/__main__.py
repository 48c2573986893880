"""Run schedules from the command line: see `tests/simulator/__init__.py`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from tests.simulator.simulate import first_failure


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator")
    parser.add_argument("--seed", type=int, default=0, help="the first schedule")
    parser.add_argument("--schedules", type=int, default=1000, help="how many, from there on")
    parser.add_argument("--minutes", type=float, help="stop after so long, whatever is left")
    parser.add_argument("--log", type=Path, help="a file that says how many were run so far")
    chosen = parser.parse_args()
    began, until = time.process_time(), time.monotonic() + 60 * (chosen.minutes or 1e9)
    done = 0

    def report(ending: str) -> str:
        spent = time.process_time() - began
        return f"{done} schedules from {chosen.seed} on: {ending} ({spent:.0f} s of processor time)"

    def noted(more: int) -> None:
        if chosen.log is not None and more % 500 == 0:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            chosen.log.write_text(f"{now} {report('nothing found so far')}\n")

    def seeds() -> Iterator[int]:
        nonlocal done
        for seed in range(chosen.seed, chosen.seed + chosen.schedules):
            if time.monotonic() > until:
                return
            yield seed
            done += 1

    failure = first_failure(seeds(), told=noted)
    ending = str(failure) if failure else report("nothing found")
    if chosen.log is not None:
        chosen.log.write_text(ending + "\n")
    print(ending)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
