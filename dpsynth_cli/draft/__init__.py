"""Drafting a spec from public knowledge: what `dpsynth init` writes, or a release without a spec uses.

draft        a whole draft: the table's columns, what is known of them, the text
columns      ONE table of what a column's form means for its keys; a column's line, and what is missing in it
facts        what a public source says of a column, checked
names        bounds that a column's name tells (month: 1 to 12)
text         the YAML that people read
codebook     which kind of codebook a file is; one module a kind:
             frictionless  csvw  ddi  sdv  google_domain  expectations  plain_csv
documents    JSON, YAML, CSV and XML of strangers: bounded, in linear time, with the place of a mistake
like         a table that is public already, such as last year's
"""
