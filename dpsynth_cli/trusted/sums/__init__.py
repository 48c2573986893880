"""Exact integers of every kind of question, over batches of codes.

tally      adds up batches, merges by addition
batch      one batch: cells looked up once; cells: row by row, codes to cells
tables     counts of many tables at once, distances of a Misfit; products: moments, Gram, sums in cells
passes     all passes over the rows of one release; memory: codes of a small table, kept
"""
