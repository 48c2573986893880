"""Budgets of data sets across releases, in one SQLite file or in a PostgreSQL database.

ledger       reserve, drawn, commit, abort, note, grant, revoke, close, rules
reading      what it says, and whether it is whole
books        the accounts that cover a data set; balance: what entries add up to; grants: units and costs
policy       the ledger's own rules; refusals: every refusal in words
replay       verification, entry by entry
chain        append-only, hash-chained, salted entries
places       where it is: sqlite_file, postgres; addresses: without their passwords
copies       files of lines, for moving and for auditors
"""
