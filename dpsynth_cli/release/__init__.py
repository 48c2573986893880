"""The main path: a spec and a table in, a synthetic table and its receipts out.

table        one release of a table; groups: one without differential privacy
synthesis    what follows from answers alone: model, file, public audit
tables       the same for tables that belong together; parts: a budget for each of them
budget       what it may spend; paid: the part of it for errors that may be published
found        what was found of private columns; dataset: whose budget is charged
replay       the same again from a transcript, without the data; verify, sample, export: what that is for

stream/      releases of rows that go on arriving
record/      what is durable while a release runs: the transcript, its journal, what a crash leaves behind
files/       codes to rows, rows to files, all files in place together
documents/   what is told of a release: audits, the guarantee in words, junk, signatures, registries
predict/     errors, time and memory before any data is read

`files` and `documents` know none of the others: a contract in `pyproject.toml`.
"""
