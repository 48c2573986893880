"""A program as on other processors: numpy and its linear algebra are told to leave instructions out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from tests.conftest import ROOT

WIDE = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"  # numpy's names, old
MIDDLE = f"AVX AVX2 F16C FMA3 X86_V3 {WIDE}"  # and new: it passes over those that it does not know
WITHOUT = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable"
PROCESSORS = {
    "of 2004": {
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": MIDDLE,
        "GLIBC_TUNABLES": WITHOUT,
    },
    "of 2013": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": WIDE},
    "of 2017": {"OPENBLAS_CORETYPE": "SkylakeX"},
}


def on_others(script: str, *words: str, only: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """What a script prints with the instructions of each of some processors that this one has as well."""
    for name, setting in PROCESSORS.items():
        if (only and name not in only) or ("SkylakeX" in setting.values() and not _has("avx512f")):
            continue
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, *words],
            capture_output=True,
            text=True,
            env=os.environ | setting | {"PYTHONPATH": str(ROOT)},
        )
        assert ran.returncode == 0, ran.stderr
        yield name, ran.stdout


def _has(instructions: str) -> bool:
    try:
        with open("/proc/cpuinfo") as told:
            return instructions in told.read()
    except OSError:
        return False
