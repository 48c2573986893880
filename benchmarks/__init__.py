"""Benchmarks: `python -m benchmarks` lists them, and README.md says how they are run and read."""
