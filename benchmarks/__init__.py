"""Benchmarks: `python -m benchmarks` lists them, and README.md says how they are run and read."""

import os

from dpsynth_cli.__main__ import BLAS_THREADS

for _name in BLAS_THREADS:  # as the command line does, before numpy is imported
    os.environ.setdefault(_name, "1")
