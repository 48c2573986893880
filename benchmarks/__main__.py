"""Run a benchmark, or list them all.

    python -m benchmarks                            # the list
    python -m benchmarks NAME --help                # what NAME measures, its parts and options
    python -m benchmarks NAME [PART ...] [options]  # Markdown on standard output, progress on standard error

A benchmark is a module of this folder with PARTS: functions that get the options and yield what they find, a
sentence or a line of a table at a time. `options` adds its own options, DEFAULT names the parts that run unless
others are named (else the first), and HEADING the section of RESULTS.md that --write replaces.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from benchmarks.harness import Finding, shown, written

HERE = Path(__file__).resolve().parent
NOT_BENCHMARKS = {
    "__init__", "__main__", "covering", "harness", "judging", "large_tables", "online_attainable", "online_growth", "online_occupancy", "online_tables", "packaged", "surveys", "tables",
}  # fmt: skip


def names() -> list[str]:
    """Every benchmark, those of `papers` and `peers` last."""
    found = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_BENCHMARKS)
    for folder in ("papers", "peers"):
        inside = (path.stem for path in (HERE / folder).glob("*.py"))
        found += sorted(f"{folder}.{name}" for name in inside if name != "__init__")
    return found


def benchmark(name: str) -> ModuleType:
    return import_module(f"benchmarks.{name}")


def parser_of(name: str, module: ModuleType) -> argparse.ArgumentParser:
    """The options of one benchmark: its parts, its own ones, and those that all have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(module.PARTS)}")
    if hasattr(module, "options"):
        module.options(parser)
    parser.add_argument("--folder", type=Path, help="keep files here; default: a temporary folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found as JSON, too")
    if hasattr(module, "HEADING"):
        parser.add_argument(
            "--write", action="store_true", help=f'replace "{module.HEADING}" of benchmarks/RESULTS.md'
        )
    return parser


def main(words: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if words is None else words
    if not words or words[0] in ("-h", "--help"):
        print(__doc__ if words else "python -m benchmarks NAME --help says more.\n")
        for name in names():
            print(f"{name:<20}{(benchmark(name).__doc__ or '').splitlines()[0]}")
        return
    name, *rest = words
    if name not in names():
        sys.exit(f"no benchmark is called {name}; there are {', '.join(names())}")
    module = benchmark(name)
    parser = parser_of(name, module)
    given = parser.parse_intermixed_args(rest)
    unknown = [part for part in given.parts if part not in module.PARTS]
    if unknown:
        parser.error(f"no part is called {unknown[0]}; there are {', '.join(module.PARTS)}")
    parts = given.parts or getattr(module, "DEFAULT", list(module.PARTS)[:1])
    found: list[Finding] = []

    def all_found() -> Iterator[Finding]:
        for part in parts:
            for finding in module.PARTS[part](given):
                found.append(finding)
                yield finding

    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        given.folder = given.folder or Path(temporary)
        given.folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for line in shown(all_found()):
            print(line, flush=True)
            lines.append(line)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1, default=float) + "\n")
    if getattr(given, "write", False):
        written(HERE / "RESULTS.md", module.HEADING, f"python -m benchmarks {name}", lines)


if __name__ == "__main__":
    main()
