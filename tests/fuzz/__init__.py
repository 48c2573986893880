"""Readers against anything at all, guided by coverage.

    python -m tests.fuzz                      # the targets
    python -m tests.fuzz csv --minutes 10     # one of them; with atheris if it is installed, else blind

targets    what is read, from real files of each kind: it is read, or refused in words; nothing else
mutate     bytes with a few things wrong, for where there is no atheris
"""
