"""Judges that others wrote, one script each; `benchmarks/judges.py` runs them, each in an environment of its own.

A script `by_NAME.py` is given three tables (`three_tables.py`) and prints its figures as one line of JSON. It imports
the judge and pandas, and nothing of dpsynth, so that nobody's figures depend on our code.
"""
