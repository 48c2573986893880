"""Others' tools against ours: dp-recorder on releases, dp_accounting on conversions, OpenDP on samplers.

    python -m benchmarks oracles install --environments DIR       # once: an environment for each
    python -m benchmarks oracles recorder --environments DIR      # record on one table, replay on its neighbour
    python -m benchmarks oracles accounting --environments DIR    # every conversion of budgets
    python -m benchmarks oracles opendp --environments DIR        # discrete Laplace and Gaussian noise

Each finding says whether they agree; what is compared is in `benchmarks/outside/`. One that has no
environment is left out. No data is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import chdtrc

from benchmarks.harness import Finding, progress
from dpsynth_cli.trusted.core.accountant import Accountant
from dpsynth_cli.trusted.core.gaussian import delta_above, epsilon_of_rho, rho_of_epsilon, rho_of_pure
from dpsynth_cli.trusted.noise.samplers import discrete_gaussian, discrete_laplace
from dpsynth_cli.trusted.noise.words import system_source

ROOT = Path(__file__).resolve().parent.parent
RECORDER = (
    "dp-recorder @ git+https://github.com/ObliviousAI/dp-recorder@85d189ebd7ff81a52984708322ee2c2d8c479db4"
)
ORACLES = {
    "dp_recorder": (RECORDER, str(ROOT)),
    "dp_accounting": ("dp-accounting==0.6.0",),
    "opendp": ("opendp==0.16.0",),
}
LONGEST = 1800  # seconds
ALARM = 1e-6  # of a chi-square test: rarer than that is a difference


def options(parser: argparse.ArgumentParser) -> None:
    found = os.environ.get("DPSYNTH_ORACLES") or None
    parser.add_argument(
        "--environments", type=Path, metavar="DIR", default=found, help="default: $DPSYNTH_ORACLES"
    )
    parser.add_argument(
        "--recorder", default=RECORDER, help="where dp-recorder is installed from; default: its repository"
    )
    parser.add_argument("--samples", type=int, default=4000, help="that dp-recorder draws; default: 4000")
    parser.add_argument("--draws", type=int, default=200_000, help="of each sampler; default: 200000")


def environments(given: argparse.Namespace) -> Path:
    if given.environments is None:
        sys.exit("oracles have environments of their own: --environments DIR or $DPSYNTH_ORACLES")
    return Path(given.environments)


def install(given: argparse.Namespace) -> Iterator[Finding]:
    """An environment for each."""
    for name, wanted in ORACLES.items():
        folder = environments(given) / name
        if not folder.exists():
            venv.create(folder, with_pip=True)
        words = [given.recorder if one == RECORDER else one for one in wanted]
        ran = subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *words], check=False
        )
        yield f"{name}: {'installed' if ran.returncode == 0 else 'could not be installed'}."


def asked(given: argparse.Namespace, name: str, *words: str) -> list[Any]:
    """The lines of JSON that the script of an oracle prints; none where it has no environment or fails."""
    python = environments(given).absolute() / name / "bin" / "python"
    if not python.exists():
        progress(f"{name}: no environment (python -m benchmarks oracles install)")
        return []
    ran = subprocess.run(
        [python, ROOT / "benchmarks" / "outside" / f"oracle_{name}.py", *words],
        capture_output=True, text=True, timeout=LONGEST, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=given.folder,
    )  # fmt: skip
    if ran.returncode:
        progress(ran.stderr[-2000:])
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def about_cases(given: argparse.Namespace, name: str, cases: list[dict[str, Any]]) -> tuple[str, list[Any]]:
    """The oracle's version, and its answers to cases."""
    path = given.folder / f"{name}.json"
    path.write_text(json.dumps(cases))
    said = asked(given, name, str(path.absolute()))
    return (f"{name} {said[-1]['version']}, {date.today()}.", said[-1]["answers"]) if said else ("", [])


# --- dp-recorder ----------------------------------------------------------------------------------------


def recorder(given: argparse.Namespace) -> Iterator[Finding]:
    """What it says of every mechanism, and of a price that forgets a cell."""
    first, *lines = asked(given, "dp_recorder", str(given.samples)) or [{}]
    if not first:
        return
    yield f"dp-recorder {first['version']}, {date.today()}."
    yield from lines
    for line in asked(given, "dp_recorder", "0", "broken"):
        yield {"mechanism": "marginals, priced as add_remove"} | {
            k: v for k, v in line.items() if k != "mechanism"
        }


# --- dp_accounting --------------------------------------------------------------------------------------


def accounting(given: argparse.Namespace) -> Iterator[Finding]:
    """Each conversion, by ours and by theirs: the largest difference, and whether ours is on the safe side."""
    cases, ours = [], []
    for rho in ("0.0001", "0.005", "0.05", "0.5", "3"):
        for delta in ("1e-9", "1e-6", "1e-3"):
            cases.append({"kind": "epsilon_of_rho", "rho": float(rho), "delta": float(delta)})
            ours.append(float(epsilon_of_rho(Fraction(rho), Fraction(delta))))
    for epsilon in ("0.05", "0.5", "1", "4", "10"):
        for delta in ("1e-9", "1e-6", "1e-3"):
            cases.append({"kind": "rho_of_epsilon", "epsilon": float(epsilon), "delta": float(delta)})
            ours.append(float(rho_of_epsilon(Fraction(epsilon), Fraction(delta))))
    for epsilon in ("0.1", "0.5", "1", "3"):
        rho = float(rho_of_pure(Fraction(epsilon)))
        cases.append({"kind": "rho_of_pure", "epsilon": float(epsilon), "rho": rho})
        ours.append(0.0)
    for total, shares in (("1", (1, 2, 5)), ("0.3", (1, 1)), ("4", (3, 1, 1, 1))):
        budget = Accountant.pure(Fraction(total))
        parts = [budget.price(Fraction(share, sum(shares)), 2, 2) for share in shares]
        budget.charge(parts)
        cases.append({"kind": "laplace", "parts": [(float(part.parameter), 2) for part in parts]})
        ours.append(float(budget.spent))
    for total, shares in (("1", (1, 2, 5)), ("4", (1, 1))):
        delta = Fraction(1, 10**6)
        budget = Accountant.gaussian(Fraction(total), delta)
        parts = [budget.price(Fraction(share, sum(shares)), 2, 2) for share in shares]
        budget.charge(parts)
        sigmas = [(float(part.parameter) ** 0.5, 2**0.5) for part in parts]
        cases.append({"kind": "gaussian", "epsilon": float(total), "parts": sigmas})
        ours.append(float(delta_above(budget.spent, Fraction(total))))
    version, theirs = about_cases(given, "dp_accounting", cases)
    if not theirs:
        return
    yield version
    for kind in dict.fromkeys(case["kind"] for case in cases):
        pairs = [(a, b) for a, b, case in zip(ours, theirs, cases, strict=True) if case["kind"] == kind]
        if (
            kind == "rho_of_pure"
        ):  # theirs is what randomised response has more than Gaussian noise of our rho
            found = f"{max(b for _, b in pairs):.1e} of delta above"
        else:
            found = f"{max(abs(a - b) / a for a, b in pairs):.1e} of it apart"
        yield {"conversion": kind, "cases": len(pairs), "largest difference": found}


# --- OpenDP ---------------------------------------------------------------------------------------------


def opendp(given: argparse.Namespace) -> Iterator[Finding]:
    """Draws of both, by a chi-square test that they are of one distribution; and the price of both."""
    cases = [
        {"noise": noise, "scale": scale, "count": given.draws}
        for noise in ("discrete_laplace", "discrete_gaussian")
        for scale in (0.5, 1.0, 2.5, 20.0, 1000.0)
    ]
    version, theirs = about_cases(given, "opendp", cases)
    if not theirs:
        return
    yield version
    for case, said in zip(cases, theirs, strict=True):
        laplace, scale = case["noise"] == "discrete_laplace", Fraction(case["scale"])
        sampler, parameter = (discrete_laplace, scale) if laplace else (discrete_gaussian, scale**2)
        own = sampler(parameter, given.draws, system_source())
        other = np.repeat(*np.array(said["counts"]).T)
        p = same_distribution(own, other)
        price = 1 / scale if laplace else 1 / (2 * scale**2)
        yield {
            "noise": case["noise"],
            "scale": case["scale"],
            "draws of each": given.draws,
            "chi-square p": f"{p:.3f}",
            "price, ours and theirs": f"{float(price):.6g}, {said['price']:.6g}",
            "agree": p > ALARM and abs(said["price"] / float(price) - 1) < 1e-9,
        }


def same_distribution(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of a chi-square test with cells of about 1/60 of the draws."""
    both = np.concatenate([one, other])
    edges = np.unique(np.quantile(both, np.linspace(0, 1, 61)[1:-1], method="nearest"))
    counts = np.array(
        [np.bincount(np.searchsorted(edges, each), minlength=len(edges) + 1) for each in (one, other)]
    )
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = counts.sum(axis=0) / 2
    return float(chdtrc(counts.shape[1] - 1, ((counts - expected) ** 2 / expected).sum()))


PARTS = {"install": install, "recorder": recorder, "accounting": accounting, "opendp": opendp}
DEFAULT = ["recorder", "accounting", "opendp"]
