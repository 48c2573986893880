"""A release on one HTML page: no script, nothing from the network, readable on a telephone and on paper.

The public page is made from the public audit and the synthetic file alone. The steward's page also shows real
rows' distributions and what was computed from them, and says so at its top. The same files give the same
bytes.

page        the whole page, in its order            style       its CSS: light, dark, narrow, printed
verdict     how good it is: what was measured, or paid for, or that nothing was
guarantee   what is promised, and what that leaves an attacker; what holds and what does not
junk        cells that were not as declared (the steward's page only)
known       which relations were measured, follow, are assumed
budget      where the budget went                   receipts    hashes, signature, how to check
columns     each column in its units                pairs       pairs of columns as cross-tables
figures     all metrics, for the statistician       units       values, cells of a column, their words
markup      text, tables, bars: everything is escaped there
"""
