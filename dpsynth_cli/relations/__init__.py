"""Relations between columns, by public knowledge: kept exactly in the rows that are released, at no cost.

nodes        an expression as data
language     its text: tokens and parser, in linear time
kinds        what an expression can be: kind, range, labels, missing; errors of types
arithmetic   ranges of + - * / // %
functions    what an expression may call
facts        what an expression can be, from what its columns can be
arrays       values a row, and those of a column's codes
values       what an expression is, row by row
tables       lookup tables as expressions
impossible   impossible pairs of values as expressions, and in codes
declared     does what is computed fit its declared column?
relations    derived columns, rules and columns that are missing together, of one spec
keeping      rows that keep all rules, from rows that do not
possible     is there a row that keeps all rules? found before anything is read
contradictions  which rules leave no row, in words
linear       the same as an integer program, where rules are linear
"""
