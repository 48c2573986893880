"""Mechanisms: plain functions of `ask`. POST-PROCESSING: no row, no file, no noise of their own.

registry                                              finds them: a module or a folder with a MECHANISM
marginals, pmm, psmm, tree                            one file each
factor/, lowdim/, microaggregation/, online/          a folder each; `printed.py` is the paper's own algorithm
shared/                                               what two or more of them are made of
"""
