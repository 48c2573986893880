"""Budgets of data sets across releases, in one SQLite file.

ledger     reserve, drawn, commit, abort, note, grant
chain      append-only, hash-chained, salted entries
balance    what entries add up to; refusals: every refusal in words
"""
