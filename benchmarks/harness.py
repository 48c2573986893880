"""What benchmarks share: options, CPU time, releases, means, and Markdown of what was found."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
Finding: TypeAlias = "str | dict[str, Any]"  # a sentence, or a line of a table

# As installed packages are: of this checkout, and compiled once, not at every start.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
DPSYNTH = (sys.executable, "-m", "dpsynth_cli")


# --- options ----------------------------------------------------------------------------------------


def real_tables(parser: argparse.ArgumentParser) -> None:
    """Options of benchmarks that read public tables: these and the yardsticks are kept outside the repository."""
    for what, variable, holds in (
        ("--data", "DPSYNTH_DATA", "public tables"),
        ("--tools", "DPSYNTH_TOOLS", "evaluate.py, kway.py and analyst.py"),
    ):
        found = os.environ.get(variable) or None
        help = f"the folder of {holds}; default: ${variable}"
        parser.add_argument(what, type=Path, metavar="DIR", default=found, help=help)


def releases(
    parser: argparse.ArgumentParser, runs: int = 5, epsilon: Sequence[float] | None = (1.0,), also: str = ""
) -> None:
    """How often, and at what price."""
    parser.add_argument("--runs", type=int, default=runs, help=f"releases of each kind; default: {runs}")
    parser.add_argument(
        "--epsilon", type=float, nargs="+", default=epsilon, help=also or f"default: {words(epsilon or ())}"
    )
    parser.add_argument("--delta", type=float, help="with zCDP; default: pure epsilon")


def words(values: Iterable[object]) -> str:
    return " ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def in_data(given: argparse.Namespace, *parts: str) -> Path:
    """A file of the folder of public tables; without it there is nothing to do."""
    if given.data is None:
        sys.exit("this needs the folder of public tables: --data DIR or $DPSYNTH_DATA")
    path = Path(given.data).joinpath(*parts)
    if not path.exists():
        sys.exit(f"{path} does not exist")
    return path


def need(package: str) -> None:
    if find_spec(package) is None:
        sys.exit(f"this needs {package}: pip install '.[bench]'")


# --- time -------------------------------------------------------------------------------------------


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its CPU seconds (user and system, all threads of this process)."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def least(work: Callable[[], Any], times: int) -> float:
    """The fewest CPU seconds of several runs."""
    return min(timed(work)[1] for _ in range(times))


@dataclass(frozen=True)
class Cost:
    seconds: float
    megabytes: float


def cost(*command: object) -> Cost:
    """CPU time and peak memory of a process and those it waited for, start-up included."""
    line = list(map(str, command))
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.execve(line[0], line, ENVIRONMENT)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(line)}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- releases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """Codes of the synthetic rows, what the mechanism chose, and CPU seconds of all but reading and writing."""

    rows: dict[str, Any]
    facts: Mapping[str, Any]
    seconds: float


def released(
    name: str,
    omega: Any,
    codes: Mapping[str, Any],
    epsilon: float = 1.0,
    delta: float | None = None,
    seed: int = 0,
    rows: int | None = None,
    at_least: int = 1,
    **params: object,
) -> Release:
    """One release of rows in memory, through the real border: exact sums, prices and noise, but no files."""
    from dpsynth_cli.mechanisms.registry import mechanisms
    from tests.asking import asking, drawn

    mechanism = mechanisms()[name]
    ask, accountant, _, _ = asking(codes, omega, epsilon, delta)
    start = time.process_time()
    model = mechanism.run(ask, omega, mechanism.params(**params), dict(mechanism.stages))
    made = drawn(model, max(at_least, model.total) if rows is None else rows, seed)
    seconds = time.process_time() - start
    assert accountant.spent == accountant.total
    return Release(made, model.facts, seconds)


# --- findings ---------------------------------------------------------------------------------------


def means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure over releases; one that some release lacks is left out."""
    shared = [key for key in found[0] if all(key in one for one in found)]
    return {key: sum(one[key] for one in found) / len(found) for key in shared}


def number(value: Any) -> str:
    """A float to four significant digits; nothing for None and NaN."""
    if value is None or value != value:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if value and not 1e-3 <= abs(value) < 1e7:
        return min(f"{value:g}", f"{value:.2e}", key=len)
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def shown(findings: Iterable[Finding]) -> Iterator[str]:
    """Markdown, line by line as it is found; where the keys change, another table begins.

    Keys that begin with an underscore are for JSON alone.

    >>> list(shown(["Two runs.", {"W1": 0.012345, "rows": 1000, "_seed": 7}]))
    ['Two runs.', '', '| W1 | rows |', '|---|---|', '| 0.01235 | 1,000 |']
    """
    keys: list[str] | None = None
    first = True
    for finding in findings:
        if isinstance(finding, str):
            yield from ([finding] if first else ["", finding])
            keys = None
        else:
            visible = [key for key in finding if not key.startswith("_")]
            if keys != visible:
                keys = visible
                yield from ([] if first else [""])
                yield f"| {' | '.join(keys)} |"
                yield f"|{'---|' * len(keys)}"
            yield f"| {' | '.join(number(finding[key]) for key in keys)} |"
        first = False


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def written(path: Path, heading: str, command: str, lines: Sequence[str]) -> None:
    """Replace the section under the heading, and leave the others alone."""
    packages = [f"{p} {installed(p)}" for p in ("numpy", "pyarrow", "distributed", "opendp") if installed(p)]
    about = (
        f"Made by `{command} --write` on {date.today()}: Python {platform.python_version()}, "
        f"{', '.join(packages)}; {platform.machine()}, {os.cpu_count()} cores."
    )
    section = "\n".join([heading, "", about, "", *lines, "", ""])
    old = path.read_text() if path.exists() else "# Results\n"
    new, times = re.subn(rf"^{re.escape(heading)}\n.*?(?=^## |\Z)", lambda _: section, old, flags=re.M | re.S)
    path.write_text((new if times else f"{old.rstrip()}\n\n{section}").rstrip() + "\n")


# --- pictures ---------------------------------------------------------------------------------------


def pictures() -> Any:
    """pyplot for figures that come out the same every time."""
    need("matplotlib")
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "dpsynth", "svg.fonttype": "none"})
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, path: Path) -> str:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    return f"Drawn: `{path.name}`."
