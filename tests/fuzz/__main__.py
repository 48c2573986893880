"""Fuzz one reader from the command line: see `tests/fuzz/__init__.py`."""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("target", nargs="?")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--corpus", type=Path, help="a folder to go on from, and to keep what was found in")
    chosen = parser.parse_args()
    try:
        import atheris
    except ImportError:
        atheris = None
    if atheris is not None:
        with atheris.instrument_imports(include=["dpsynth_cli"], enable_loader_override=False):
            from tests.fuzz import targets
    else:
        from tests.fuzz import targets
    if chosen.target not in targets.TARGETS:
        print("targets:", " ".join(targets.TARGETS))
        return 2
    with TemporaryDirectory() as name:
        folder = Path(name)
        seeds = targets.examples(folder)[chosen.target]
        if atheris is None:
            return blind(targets, chosen.target, seeds, folder, chosen.minutes)
        corpus = chosen.corpus or folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        for i, seed in enumerate(seeds):
            (corpus / f"seed{i}").write_bytes(seed)
        words = [
            sys.argv[0],
            f"-max_total_time={int(60 * chosen.minutes)}",
            "-timeout=60",
            "-rss_limit_mb=4096",
        ]
        atheris.Setup([*words, "-print_final_stats=1", f"-artifact_prefix={Path.cwd()}/", str(corpus)],
                      lambda data: targets.tried(chosen.target, data, folder))  # fmt: skip
        atheris.Fuzz()
    return 0


def blind(targets, name: str, seeds: list[bytes], folder: Path, minutes: float) -> int:
    from tests.fuzz.mutate import mutated

    luck, until, count = random.Random(), time.monotonic() + 60 * minutes, 0
    while time.monotonic() < until:
        data = mutated(luck.choice(seeds), luck)
        try:
            targets.tried(name, data, folder)
        except Exception:
            Path("crash").write_bytes(data)
            raise
        count += 1
    print(f"{name}: {count} inputs, nothing found (without coverage: atheris is not installed)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
